"""Ranked lists for display: documents in the order of a tie rule, with their ties."""

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

    Documents stand in the order that gives the oblivious value. Where the rule sees coarser
    scores than were given (float32), that order can leave the order of the scores, and the
    documents of a tie group need not stand together.
    """

    shown: Ints
    """Per query: documents in the arrays below."""
    retrieved: Ints
    """Per query: documents in the whole list."""
    rest: Ints
    """Per query: documents tied with the last one shown that are not shown."""
    rest_relevant: Ints
    """Per query: relevant ones among them."""
    missing: Ints
    """Per query: relevant documents that were not retrieved."""
    doc_ids: list[str]
    scores: Scores
    """Per document: its score, as it was given, rounded where the settings say so, and where
    float64 cannot hold it."""
    above: Ints
    """Per document: candidates scored above its tie group."""
    size: Ints
    """Per document: candidates in its tie group."""
    grades: Floats
    """Per document: its grade, NaN where it was not judged."""


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
        The queries, in the order wanted; one that the run misses has an empty list.
    top
        How many documents of each list to take; all unless given.
    settings
        The tie rule, how near scores tie, and what is done with scores before, as for
        `deadheat.evaluate`. The order is that of the scores without the tolerance, as it is for
        the oblivious value.
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
    """Return rows ``start … stop − 1``, one query's list, as the rule orders them.

    Parameters
    ----------
    top
        Only the first rows, and those that the rule ties with the last of them.

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
