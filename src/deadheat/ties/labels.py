"""Labels of all candidates: the few that are not 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.ties.groups import Ints


def find_nonzero(labels: NDArray[Any]) -> Ints:
    """Find the labels that are not 0, which are few, as a rule.

    >>> find_nonzero(np.array([0, 0, 1, 0, 0, 0, 0, 2], np.int8))
    array([2, 7])
    """
    if labels.itemsize == 1 and len(labels) % 8 == 0 and labels.flags.c_contiguous:
        # Labels of one byte are looked at eight at a time.
        eights = labels.view(np.uint64)
        some = (eights != 0).nonzero()[0]
        if len(some) < len(eights) // 8:
            found = (eights[some].view(labels.dtype) != 0).nonzero()[0]
            return np.asarray(some[found >> 3] * 8 + (found & 7))
    return (labels if labels.dtype == bool else labels != 0).nonzero()[0]
