"""What counts and groups: the compiled functions, or NumPy where none were built."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.ties.groups import Floats, Ints
from deadheat.ties.numpy_counting import Counts as Counts

try:
    import deadheat.ties.compiled_counting as _active

    BACKEND = "compiled"
except ImportError:  # no C compiler when deadheat was installed
    import deadheat.ties.numpy_counting as _active

    BACKEND = "numpy"


def count_candidates(
    scores: NDArray[Any], starts: Ints, stops: Ints, offsets: Ints, values: NDArray[Any], rows: Ints
) -> Counts:
    """Count candidates above, equal and tied before; `numpy_counting` holds the definition."""
    counts: Counts = _active.count_candidates(scores, starts, stops, offsets, values, rows)
    return counts


def group_lists(
    scores: NDArray[Any], starts: Ints, stops: Ints, query: Ints, position: Ints, grade: Floats
) -> tuple[Ints, Ints, Ints, Ints, Ints, Floats]:
    """Find the tie groups of lists in memory; `numpy_counting` holds the definition."""
    flat = np.ascontiguousarray(scores)
    groups: tuple[Ints, Ints, Ints, Ints, Ints, Floats] = _active.group_lists(
        flat, starts, stops, query, position, grade
    )
    return groups
