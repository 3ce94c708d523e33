"""Ranked lists as people look at them: documents in the order of a tie rule, with their ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.formats import Judgements, Run
from deadheat.ties.groups import Floats, Ints
from deadheat.ties.lists import list_judged, rank_nan
from deadheat.ties.rules import list_order, rule_order
from deadheat.ties.scores import merge_near


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
    scores: NDArray[Any]
    """Per document: its score, as it was given, rounded where float64 cannot hold it."""
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
    *,
    rule: str = "input",
    tolerance: float = 0.0,
    nan: str = "raise",
) -> RankedLists:
    """Take the first documents of each query in the order of a tie rule.

    Parameters
    ----------
    query_ids
        The queries, in the order wanted; one that the run misses has an empty list.
    top
        How many documents of each list to take; all unless given.
    tolerance
        Scores at most this far apart share a tie group. The order is that of the scores as
        they are, as it is for the oblivious value.
    nan
        What to do with NaN scores, as for `deadheat.evaluate`.
    """
    bounds = run.offsets[:-1], run.offsets[1:]
    ranked = rank_nan(run, nan)
    merged = ranked.scores
    if tolerance > 0:
        merged = merge_near(merged, bounds, tolerance, ranked.exact)
    order = rule_order(rule, ranked.scores, run.documents.ids, run.ranks, ranked.exact)
    grade, missing = _grades(run, judgements)
    counts = np.zeros((len(query_ids), 4), np.int64)
    rows, above, size = [], [], []
    for i, query in enumerate(query_ids):
        q = run.query_index.get(query)
        if q is None:
            continue
        start, stop = int(run.offsets[q]), int(run.offsets[q + 1])
        shown = list_order(order, start, stop, top)[:top]
        ascending = np.sort(merged[start:stop])
        first = np.searchsorted(ascending, merged[shown], "left")
        end = np.searchsorted(ascending, merged[shown], "right")
        rows.append(shown)
        above.append(len(ascending) - end)
        size.append(end - first)
        counts[i, :2] = len(shown), len(ascending)
        if len(shown):
            tied = start + np.flatnonzero(merged[start:stop] == merged[shown[-1]])
            hidden = np.setdiff1d(tied, shown)
            counts[i, 2:] = len(hidden), (grade[hidden] > 0).sum()
    none = np.zeros(0, np.int64)
    taken = np.concatenate([none, *rows])
    number, retrieved, rest, rest_relevant = counts.T
    return RankedLists(
        shown=number,
        retrieved=retrieved,
        rest=rest,
        rest_relevant=rest_relevant,
        missing=np.array([missing.get(query, 0) for query in query_ids], np.int64),
        doc_ids=run.documents.ids(taken).to_list(),
        scores=run.rounded[taken],
        above=np.concatenate([none, *above]),
        size=np.concatenate([none, *size]),
        grades=grade[taken],
    )


def _grades(run: Run, judgements: Judgements) -> tuple[Floats, dict[str, int]]:
    """Grade of every document of the run, NaN where there is none; relevant ones not retrieved."""
    lists, _ = list_judged(judgements, run, queries="all", with_judged=True)
    grade = np.full(len(run.scores), np.nan)
    grade[lists.bounds[0][lists.query] + lists.position] = lists.grade
    query, unretrieved = lists.unretrieved
    lost = np.bincount(query[unretrieved > 0], minlength=len(lists.query_ids))
    return grade, dict(zip(lists.query_ids, lost.tolist(), strict=True))
