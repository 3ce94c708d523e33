"""Tie rules: how a tie-oblivious tool happens to order documents of equal score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat._fork_guard import check_fork
from deadheat._lazy import pl
from deadheat.errors import InputError
from deadheat.numbers import rounded
from deadheat.ties.counting import Bounds, Counts
from deadheat.ties.groups import Ints, JudgedDocuments
from deadheat.ties.numpy_counting import is_group_start
from deadheat.ties.scores import place_nan_last

Keys = Callable[[Ints], "pl.Series"]
"""Gives, for rows of the run, what the rule sorts tied documents by."""


@dataclass(frozen=True)
class RuleOrder:
    """How a rule orders the lists of a run: by the scores it sees, high to low, then by a key."""

    scores: NDArray[Any]
    key: Keys | None
    """None: equal scores stay in the order of the input."""
    descending: bool = False


def rule_order(
    rule: str,
    scores: NDArray[Any],
    ids: Keys | None = None,
    rank_column: Ints | None = None,
    exact: NDArray[Any] | None = None,
) -> RuleOrder:
    """Say by what a rule orders documents; all that depends on the rule's name is decided here.

    Parameters
    ----------
    scores
        Of all lists, float32 or float64, without NaN.
    ids
        Gives the document ids of rows of `scores`; the rules that sort by id need it.
    rank_column
        Per row of `scores`: its rank in the source; the rule ``rank`` needs it.
    exact
        The scores themselves, where `scores` are only places.
    """
    if rule == "input":
        return RuleOrder(scores, None)
    check_fork()
    if rule == "rank":
        if rank_column is None:
            raise InputError("the tie rule 'rank' needs a run with a column of ranks")
        column = rank_column
        return RuleOrder(scores, lambda rows: pl.Series(column[rows]))
    if ids is None:
        raise InputError(f"the tie rule {rule!r} needs document ids")
    if rule == "pytrec_eval":
        if exact is not None:
            scores = rounded(exact)
        with np.errstate(over="ignore"):  # as in C, a double beyond float32 becomes infinite
            scores = scores.astype(np.float32, copy=False)
        if exact is not None and np.isnan(scores).any():
            scores, _ = place_nan_last(scores)
    return RuleOrder(scores, ids, descending=rule != "id_asc")


def list_order(order: RuleOrder, start: int, stop: int, top: int | None = None) -> Ints:
    """Rows ``start:stop``, one query's list, as the rule orders them.

    Parameters
    ----------
    top
        Only the first rows, and those that the rule ties with the last of them.

    Examples
    --------
    >>> ids = pl.Series(["a", "b", "c"])
    >>> by_id = rule_order("id_desc", np.array([0.5, 0.5, 0.75]), ids.gather)
    >>> list_order(by_id, 0, 3)
    array([2, 1, 0])
    """
    own = order.scores[start:stop]
    rows = np.argsort(-own, kind="stable")
    if top is not None and top < len(rows):
        rows = rows[: int((own >= own[rows[top - 1]]).sum())] if top else rows[:0]
    if order.key is not None and len(rows):
        frame = pl.DataFrame({"score": own[rows], "key": order.key(start + rows)})
        by_rule = frame.select(
            pl.arg_sort_by("score", "key", descending=[True, order.descending], maintain_order=True)
        )
        rows = rows[by_rule.to_series().to_numpy()]
    in_order: Ints = start + rows
    return in_order


def rank_documents(
    order: RuleOrder,
    documents: JudgedDocuments,
    counts: Counts,
    scores: NDArray[Any],
    bounds: Bounds,
) -> Ints:
    """Return the ranks of the documents of interest in lists that a rule has put in order.

    Parameters
    ----------
    counts
        Of `documents` among all `scores`. Only tied documents are sorted; the places of the others
        follow from the counts.
    """
    seen = documents
    if order.scores is not scores:
        seen = documents.rescore(order.scores, bounds)
        counts = seen.count_candidates(order.scores, bounds)
    before = counts[2] if order.key is None else _count_before(seen, counts, order, bounds)
    rank: Ints = counts[0] + 1 + before
    return rank if seen is documents else reorder(rank, seen.rows(bounds), documents.rows(bounds))


def reorder(values: Ints, rows: Ints, asked: Ints) -> Ints:
    """Return the values of the rows `asked`, from values given for `rows`."""
    order = np.argsort(rows)
    return values[order[np.searchsorted(rows[order], asked)]]


def _count_before(
    documents: JudgedDocuments, counts: Counts, order: RuleOrder, bounds: Bounds
) -> Ints:
    """Count per document the tied candidates that an order by key puts before it."""
    before = np.zeros(len(documents.query), np.int64)
    tied = np.flatnonzero(counts[1] > 1)
    if order.key is None or not len(tied):
        return before
    query, score = documents.query[tied], documents.score[tied]
    is_start = is_group_start(query, score)
    members = [
        bounds[0][q] + np.flatnonzero(order.scores[bounds[0][q] : bounds[1][q]] == value)
        for q, value in zip(query[is_start], score[is_start], strict=True)
    ]
    rows = np.concatenate(members)
    sizes = np.array([len(m) for m in members])
    frame = pl.DataFrame(
        {"group": np.repeat(np.arange(len(members)), sizes), "row": rows, "key": order.key(rows)}
    ).sort("group", "key", descending=[False, order.descending], maintain_order=True)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    before[tied] = reorder(place, frame["row"].to_numpy(), documents.rows(bounds)[tied])
    return before
