"""Scores as floats that compare exactly as the numbers they came as."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError

Bounds = tuple[NDArray[np.int64], NDArray[np.int64]]
"""``(starts, stops)``: the scores of query ``q`` are ``scores[starts[q]:stops[q]]``."""


def exact_floats(scores: Any) -> NDArray[Any]:
    """Give scores as a float32 or float64 array with the same order and the same ties.

    Types of 16 bits and fewer (float16, bfloat16, float8, int8 …) become float32 and longer
    integers float64, which hold each of their values; what float64 cannot hold (integers
    beyond 2**53, long doubles) is replaced by its place among the distinct values. Torch
    tensors are taken without importing torch.

    >>> exact_floats(np.array([1, 255], np.uint8))
    array([  1., 255.], dtype=float32)
    >>> exact_floats(np.array([2**60, 2**60 + 1]))
    array([0., 1.])
    """
    if hasattr(scores, "detach"):
        tensor = scores.detach().cpu()
        # Exact: every floating-point type of torch but float64 is contained in float32.
        half = tensor.is_floating_point() and tensor.element_size() < 4
        scores = (tensor.float() if half else tensor).numpy()
    array = np.asarray(scores)
    if array.dtype in (np.float32, np.float64):
        return array
    try:
        if array.dtype.kind == "O":
            array = np.asarray([float(x) for x in array.ravel()]).reshape(array.shape)
        if array.dtype.itemsize <= 2 or array.dtype.kind == "b":
            return array.astype(np.float32)
        floats = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"scores must be numbers, not {array.dtype.name} ({str(error).strip()})"
        ) from None
    # Compared in the array's own type: a round trip through float64 must change nothing.
    if array.dtype.kind in "iu" and array.size and (np.abs(floats) > 2.0**53).any():
        return np.unique(array, return_inverse=True)[1].reshape(array.shape).astype(np.float64)
    if array.dtype.kind == "f" and not np.array_equal(floats, array, equal_nan=True):
        places = np.unique(array, return_inverse=True)[1].reshape(array.shape).astype(np.float64)
        return np.where(np.isnan(array), np.nan, places)
    return floats


def merge_near(scores: NDArray[Any], bounds: Bounds, tolerance: float) -> NDArray[np.float64]:
    """Replace the scores of each query by the number of their tie group, lowest first.

    Neighbours in the sorted list belong together when they are at most `tolerance` apart (in
    float64), and so do their neighbours: a chain of small steps is one group, however far
    apart its ends are. That makes "tied" an equivalence: any two documents within the
    tolerance are tied, and the order of the documents does not matter. NaN is a group of its
    own below every score, −inf included.

    >>> merge_near(np.array([0.9, 0.5, 0.89, 0.88]), (np.array([0]), np.array([4])), 0.0101)
    array([1., 0., 1., 1.])
    """
    merged = np.zeros(len(scores), np.float64)
    for start, stop in zip(*bounds, strict=True):
        list_ = scores[start:stop].astype(np.float64)
        order = np.argsort(list_, kind="stable")
        order = np.roll(order, int(np.isnan(list_).sum()))  # NumPy sorts NaN last
        lower, upper = list_[order][:-1], list_[order][1:]
        with np.errstate(invalid="ignore"):  # inf − inf
            apart = ~((upper - lower <= tolerance) | (upper == lower) | np.isnan(upper))
        merged[start:stop][order[1:]] = np.cumsum(apart)
    return merged
