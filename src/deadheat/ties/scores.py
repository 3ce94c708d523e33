"""Scores of many lists in one array: as an evaluator sees them, and so near that they tie."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deadheat.formats import Run
from deadheat.formats.arrays import Candidates
from deadheat.remarks import Remark, warning
from deadheat.ties.counting import Bounds

if TYPE_CHECKING:
    from deadheat.dtypes import Format

Scored = TypeVar("Scored", Run, Candidates)


def round_scores(given: Scored, format: Format | None) -> tuple[Scored, list[Remark]]:
    """Round the scores of a run, or of arrays, to a format; None leaves them as they are.

    Returns a warning, too, if scores are beyond the largest number of the format.

    >>> from deadheat.formats import read_run
    >>> run = read_run({"q": {"a": 1.0, "b": 1.00000000001}})
    >>> from deadheat.dtypes import parse_format
    >>> round_scores(run, parse_format("float32"))[0].scores
    array([1., 1.], dtype=float32)
    """
    if format is None:
        return given, []
    scores = given.scores if given.exact is None else given.exact
    with np.errstate(over="ignore"):
        rounded = format.round(scores)
    lost = int((np.isinf(rounded) & (scores != rounded)).sum())
    pattern = "{lost:score} beyond the largest number of {format}, infinite there: these tie"
    remarks = [warning(pattern, lost=lost, format=format.name)] if lost else []
    return replace(given, scores=rounded, exact=None), remarks


def place_nan_last(scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return scores in which NaN ranks below all others; also the scores given, where needed.

    NaN becomes −inf. Where a score is −inf already, or would be in float32, scores are replaced by
    their places among the distinct ones, and the scores given are returned, too.

    >>> place_nan_last(np.array([0.5, np.nan]))
    (array([ 0.5, -inf]), None)
    >>> place_nan_last(np.array([0.5, -np.inf, np.nan]))[0]
    array([  1.,   0., -inf])
    """
    missing = np.isnan(scores)
    if scores.min(where=~missing, initial=0) >= np.finfo(np.float32).min:
        return np.where(missing, scores.dtype.type(-np.inf), scores), None
    places = np.unique(scores, return_inverse=True)[1].reshape(scores.shape).astype(np.float64)
    return np.where(missing, -np.inf, places), scores.astype(np.float64)


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
