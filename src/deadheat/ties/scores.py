"""Scores of many lists in one array: as an evaluator sees them, and so near that they tie."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.formats import Run
from deadheat.formats.arrays import Candidates
from deadheat.remarks import Remark, warning

if TYPE_CHECKING:
    from deadheat.scoring.dtypes import Format

Bounds = tuple[NDArray[np.int64], NDArray[np.int64]]
"""``(starts, stops)``: the scores of query ``q`` are ``scores[starts[q]:stops[q]]``."""

Scored = TypeVar("Scored", Run, Candidates)

SCORE_PRECISIONS = {"float32": "fp32", "fp16": "fp16", "bf16": "bf16"}
"""Precisions in which an evaluator may see scores: the word for each, and its number format."""


def score_format(score_dtype: object) -> Format | None:
    """Find the format in which an evaluator sees scores; None: as they were given."""
    if score_dtype is None:
        return None
    from deadheat.scoring.dtypes import parse_format

    format = parse_format(score_dtype)
    if format.name not in SCORE_PRECISIONS.values():
        known = ", ".join(SCORE_PRECISIONS)
        raise InputError(f"score_dtype must be one of {known}, not {format.name}")
    return format


def as_seen_in(given: Scored, format: Format | None) -> tuple[Scored, list[Remark]]:
    """Round the scores of a run, or of arrays, as an evaluator of that precision does.

    What is beyond its largest number is told.

    >>> from deadheat.formats import read_run
    >>> run = read_run({"q": {"a": 1.0, "b": 1.00000000001}})
    >>> as_seen_in(run, score_format("float32"))[0].scores
    array([1., 1.], dtype=float32)
    """
    if format is None:
        return given, []
    scores = given.rounded
    with np.errstate(over="ignore"):
        seen = format.round(scores)
    lost = int((np.isinf(seen) & np.isfinite(scores)).sum())
    pattern = "{lost:score} beyond the largest number of {format}, infinite there: these tie"
    remarks = [warning(pattern, lost=lost, format=format.name)] if lost else []
    return replace(given, scores=seen, exact=None), remarks


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
