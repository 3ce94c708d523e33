"""Scores of many lists in one array, and scores so near that they count as tied."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bounds = tuple[NDArray[np.int64], NDArray[np.int64]]
"""``(starts, stops)``: the scores of query ``q`` are ``scores[starts[q]:stops[q]]``."""


def merge_near(
    scores: NDArray[Any], bounds: Bounds, tolerance: float, exact: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Replace the scores of each query by the number of their tie group, lowest first.

    Neighbours in the sorted list belong together when they are at most `tolerance` apart (in
    float64), and so do their neighbours: a chain of small steps is one group, however far
    apart its ends are. That makes "tied" an equivalence: any two documents within the
    tolerance are tied, and the order of the documents does not matter. NaN is a group of its
    own below every score, −inf included. Where `scores` are only the places of numbers that
    float64 cannot hold, these are in `exact`, and compared exactly.

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
            near = upper - lower <= tolerance
        if exact is not None:
            near = _exactly_near(exact[start:stop][order], tolerance)
        apart = ~(near | (upper == lower) | np.isnan(upper))
        merged[start:stop][order[1:]] = np.cumsum(apart)
    return merged


def _exactly_near(ascending: NDArray[Any], tolerance: float) -> NDArray[np.bool_]:
    """Per pair of neighbours: are both numbers finite, and at most `tolerance` apart."""
    numbers = [None if x in (-math.inf, math.inf) or x != x else Fraction(x) for x in ascending]
    near = [
        low is not None and high is not None and high - low <= tolerance
        for low, high in pairwise(numbers)
    ]
    return np.array(near, np.bool_)
