"""Ranked lists for display: documents in the order of a tie rule, with their tie groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deadheat._internal.lazy import pl
from deadheat.formats import Judgements, Run
from deadheat.settings import EvalSettings
from deadheat.ties.groups import RuleOrder, rule_order
from deadheat.ties.lists import list_judged, merge_near, prepare_scores
from deadheat.ties.numpy_counting import Floats, Ints, Scores


@dataclass(frozen=True)
class RankedLists:
    """The first documents of every query's list, one query after the other.

    Documents are in the order of the oblivious value. If the rule rounds scores (float32), this
    order can differ from the order of the scores, and the documents of a tie group need not be
    adjacent.
    """

    shown: Ints
    """Per query: number of documents in the arrays below."""
    retrieved: Ints
    """Per query: number of documents in the whole list."""
    rest: Ints
    """Per query: number of documents that tie with the last one shown and are not shown."""
    rest_relevant: Ints
    """Per query: number of relevant documents in `rest`."""
    missing: Ints
    """Per query: number of relevant documents that were not retrieved."""
    doc_ids: list[str]
    scores: Scores
    """Per document: its score, rounded if the settings require it or if float64 cannot hold it."""
    above: Ints
    """Per document: number of candidates above its tie group."""
    size: Ints
    """Per document: number of candidates in its tie group."""
    grades: Floats
    """Per document: its grade; NaN if it is not judged."""


def rank_lists(
    run: Run,
    judgements: Judgements,
    query_ids: Sequence[str],
    top: int | None = None,
    settings: EvalSettings | None = None,
) -> RankedLists:
    """Return the first documents of each query in the order of a tie rule.

    Parameters
    ----------
    query_ids
        The queries, in this order. A query that is missing from the run has an empty list.
    top
        Number of documents of each list. Default: all.
    settings
        Tie rule, tolerance and rounding, as for `deadheat.evaluate`. The order ignores the
        tolerance, like the oblivious value.
    """
    settings = settings or EvalSettings()
    ranked, _ = prepare_scores(run, settings)
    lists, _ = list_judged(judgements, ranked, queries="all", with_judged=True)
    order = rule_order(settings.tie_break, ranked)
    merged = ranked.scores
    if settings.tie_tolerance > 0:
        bounds = run.offsets[:-1], run.offsets[1:]
        merged = merge_near(merged, bounds, settings.tie_tolerance, ranked.exact)
    grade = np.full(len(run.scores), np.nan)
    grade[lists.bounds[0][lists.query] + lists.position] = lists.grade
    lacking = lists.unretrieved[0][lists.unretrieved[1] > 0]
    lost = np.bincount(lacking, minlength=len(lists.query_ids)).tolist()
    n_missing = dict(zip(lists.query_ids, lost, strict=True))

    counts = np.zeros((5, len(query_ids)), np.int64)
    parts = [np.zeros((3, 0), np.int64)]
    for i, query in enumerate(query_ids):
        counts[4, i] = n_missing.get(query, 0)
        q = run.query_index.get(query)
        if q is None:
            continue
        start, stop = int(run.offsets[q]), int(run.offsets[q + 1])
        own = list_order(order, start, stop, top)[:top]
        ascending = np.sort(merged[start:stop])
        first, end = (np.searchsorted(ascending, merged[own], side) for side in ("left", "right"))
        parts.append(np.stack((own, len(ascending) - end, end - first)))
        counts[:2, i] = len(own), len(ascending)
        if len(own):
            tied = start + np.flatnonzero(merged[start:stop] == merged[own[-1]])
            hidden = np.setdiff1d(tied, own)
            counts[2:4, i] = len(hidden), (grade[hidden] > 0).sum()
    rows, above, size = np.concatenate(parts, axis=1)
    scores = np.where(np.isnan(run.rounded[rows]), np.nan, ranked.rounded[rows])
    doc_ids = run.documents.ids(rows).to_list()
    shown, retrieved, rest, rest_relevant, missing = counts
    return RankedLists(
        shown, retrieved, rest, rest_relevant, missing, doc_ids, scores, above, size, grade[rows]
    )


def list_order(order: RuleOrder, start: int, stop: int, top: int | None = None) -> Ints:
    """Return rows ``start … stop − 1``, the list of one query, in the order of the rule.

    Parameters
    ----------
    top
        Return only this many rows, and the rows that the rule ties with the last one.

    Examples
    --------
    >>> ids = pl.Series(["a", "b", "c"])
    >>> by_id = RuleOrder(np.array([0.5, 0.5, 0.75]), ids.gather, descending=True)
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
