"""Loops over the keys and values of a dictionary: compiled if possible, else in Python."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.numbers import LARGEST_WHOLE
from deadheat.formats.ids import is_unicode


def python_places_of(docs: dict[object, object], wanted: dict[str, int]) -> list[int]:
    """Return the index of each wanted key in the order of `docs`; −1 if it is missing.

    `wanted` numbers its keys from 0.
    """
    places = dict(zip(docs, range(len(docs)), strict=True))
    return [places.get(key, -1) for key in wanted]


def python_plain_list(docs: dict[object, object], numbers: NDArray[np.float64]) -> bool:
    """Copy the values of `docs` to `numbers`, and return whether all ids and numbers are plain.

    Plain ids are text that is not empty and has no lone surrogates; plain numbers are floats, or
    ints that float64 holds. Other ids and numbers may be valid, too.
    """
    if not all(isinstance(key, str) and key and is_unicode(key) for key in docs):
        return False
    for value in docs.values():
        if not isinstance(value, float) and (type(value) is not int or abs(value) > LARGEST_WHOLE):
            return False
    numbers[:] = np.fromiter(docs.values(), np.float64, len(docs))
    return True


try:
    from deadheat.formats.compiled_keys import places_of as places_of, plain_list as plain_list
except ImportError:  # no C compiler when deadheat was installed
    places_of = python_places_of
    plain_list = python_plain_list
