"""Scores of many lists in one array: rounded, without NaN, and so near that they tie."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.remarks import Remark, warning
from deadheat.errors import InputError
from deadheat.formats import Run
from deadheat.settings import EvalSettings
from deadheat.ties.numpy_counting import Floats, Ints, Scores

if TYPE_CHECKING:
    from deadheat._internal.dtypes import Format


def prepare_scores(run: Run, settings: EvalSettings) -> tuple[Run, list[Remark]]:
    """Return the run with rounded scores that can be ranked, as the settings say; and remarks."""
    remarks: list[Remark] = []
    if run.n_tied_beyond_cut is not None and (settings.tie_tolerance or settings.score_dtype):
        # Where more scores tie, lists may not end with a whole tie group.
        if run.n_tied_beyond_cut.any():
            raise InputError(
                f"{run.source}: last_group_size counts documents of exactly the same score; with "
                "tie_tolerance or score_dtype others tie, too: leave one of the two out"
            )
        run = replace(run, n_tied_beyond_cut=None)
    if settings.score_dtype is not None:
        run, remarks = round_scores(run, settings.score_format)
    return rank_nan(run, settings.nan), remarks


def round_scores(run: Run, format: Format | None) -> tuple[Run, list[Remark]]:
    """Round the scores of a run to a format; None leaves them as they are.

    Returns a warning, too, if scores are beyond the largest number of the format.

    >>> from deadheat.formats import read_run
    >>> run = read_run({"q": {"a": 1.0, "b": 1.00000000001}})
    >>> from deadheat._internal.dtypes import parse_format
    >>> round_scores(run, parse_format("float32"))[0].scores
    array([1., 1.], dtype=float32)
    """
    if format is None:
        return run, []
    scores = run.scores if run.exact is None else run.exact
    with np.errstate(over="ignore"):
        rounded = format.round(scores)
    lost = int((np.isinf(rounded) & (scores != rounded)).sum())
    pattern = "{lost:score} beyond the largest number of {format}, infinite there: these tie"
    remarks = [warning(pattern, lost=lost, format=format.name)] if lost else []
    return replace(run, scores=rounded, exact=None), remarks


def rank_nan(run: Run, nan: str) -> Run:
    """Return the run with scores that can be ranked.

    Parameters
    ----------
    nan
        ``"raise"`` and ``"refuse"`` refuse a NaN, the first where ``"last"`` is a choice, too:
        it puts such documents below all others, tied. The order and the ties of the others stay
        as they are.
    """
    scores = run.scores
    if not len(scores) or (lowest := scores.min()) == lowest:  # NaN, if there is one
        return run
    if nan == "last":
        ranked, exact = place_nan_last(scores)
        return replace(run, scores=ranked, exact=exact if run.exact is None else run.exact)
    row = np.flatnonzero(np.isnan(scores))[:1]
    query = int(np.searchsorted(run.offsets, row[0], "right")) - 1
    if run.documents is None:
        document = f"candidate {row[0] - run.offsets[query]}"
    else:
        document = f"document {run.documents.ids(row)[0]!r}"
    choice = ", or rank such documents last with nan='last' (--nan last)" if nan == "raise" else ""
    raise InputError(
        f"{run.origin(row[0])}: query {run.query_ids[query]!r}, {document}: the score is NaN, "
        f"which has no place in a ranking; mend the scores{choice}"
    )


def place_nan_last(scores: Scores) -> tuple[Scores, Floats | None]:
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
    scores: Scores,
    bounds: tuple[Ints, Ints],
    tolerance: float,
    exact: NDArray[np.generic] | None = None,
) -> Floats:
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
            numbers = exact[start:stop][order].tolist()
            near = np.array([_are_near(*pair, tolerance) for pair in pairwise(numbers)], np.bool_)
        apart = ~(near | (upper == lower) | np.isnan(upper))
        merged[start:stop][order[1:]] = np.cumsum(apart)
    return merged


def _are_near(low: int | float | Fraction, high: int | float | Fraction, tolerance: float) -> bool:
    """Whether two numbers are finite and, exactly, at most `tolerance` apart."""
    if low - low != 0 or high - high != 0:
        return False
    return Fraction(high) - Fraction(low) <= tolerance
