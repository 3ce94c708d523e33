"""What is asked of every key and value of a dictionary: where it stands, if it is plain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.formats.ids import is_unicode
from deadheat.numbers import LARGEST_WHOLE


def python_places_of(docs: dict[Any, Any], wanted: dict[str, int]) -> list[int] | None:
    """Place of each wanted key in the order of `docs`, −1 where it is not in it.

    `wanted` numbers its keys from 0. None if a key of `docs` is not a string.
    """
    if not all(isinstance(key, str) for key in docs):
        return None
    places = dict(zip(docs, range(len(docs)), strict=True))
    return [places.get(key, -1) for key in wanted]


def python_plain_list(docs: dict[Any, Any], numbers: NDArray[np.float64]) -> bool:
    """Copy the values of `docs` into `numbers` if all of it is plain, as nearly every list is.

    Plain are ids that are text, not empty, without halves of surrogate pairs; and numbers that are
    floats, or ints that float64 holds. What is not plain may still be an id or a number.
    """
    if not all(isinstance(key, str) and key and is_unicode(key) for key in docs):
        return False
    for value in docs.values():
        if not isinstance(value, float) and (type(value) is not int or abs(value) > LARGEST_WHOLE):
            return False
    numbers[:] = np.fromiter(docs.values(), np.float64, len(docs))
    return True


try:
    from deadheat.formats.compiled_keys import places_of as places_of
    from deadheat.formats.compiled_keys import plain_list as plain_list
except ImportError:  # no C compiler when deadheat was installed
    places_of = python_places_of
    plain_list = python_plain_list
