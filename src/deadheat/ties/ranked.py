"""Ranked lists for display: documents in the order of a tie rule, with their tie groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deadheat.formats import Judgements, Run
from deadheat.settings import EvalSettings
from deadheat.ties.groups import rank_documents, rule_order
from deadheat.ties.lists import JudgedLists, find_lists, match_lists, prepare_scores
from deadheat.ties.numpy_counting import Floats, Ints, Scores, offsets_of


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
    judged, _ = match_lists(judgements, ranked, queries="all", with_judged=True)
    grades = np.full(len(run.scores), np.nan)
    grades[judged.bounds[0][judged.query] + judged.position] = judged.grade
    lacking = judged.unretrieved[0][judged.unretrieved[1] > 0]
    lost = np.bincount(lacking, minlength=len(judged.query_ids)).tolist()
    n_missing = dict(zip(judged.query_ids, lost, strict=True))

    # Rank and count as the evaluation does: documents that may be shown, and judged ones.
    _, (starts, stops) = find_lists(run, query_ids)
    retrieved = stops - starts
    shown = retrieved if top is None else np.minimum(retrieved, top)
    scores = rule_order(settings.tie_break, ranked).scores
    wanted = ~np.isnan(grades)
    for start, stop, n in zip(starts, stops, shown, strict=True):
        if n:
            own = scores[start:stop]
            wanted[start:stop] |= own >= np.partition(own, -n)[-n]
    query = np.arange(len(query_ids)).repeat(retrieved)
    position = np.arange(len(query)) - offsets_of(query, len(query_ids))[query]
    taken = wanted[starts[query] + position]
    lists = JudgedLists(
        query_ids=list(query_ids),
        run=ranked,
        bounds=(starts, stops),
        query=query[taken],
        position=position[taken],
        grade=np.ones(np.count_nonzero(taken)),
        unretrieved=(np.empty(0, np.int64), np.empty(0)),
    )
    documents, counts, rank, _ = rank_documents(lists, settings)
    query, (above, size, _) = documents.query, counts
    rows = starts[query] + documents.position

    is_shown, is_last = rank <= shown[query], rank == shown[query]
    last_above, last_size = np.full(len(query_ids), -1), np.zeros(len(query_ids), np.int64)
    last_above[query[is_last]] = above[is_last]
    last_size[query[is_last]] = size[is_last]
    in_last = above == last_above[query]
    hidden_relevant = in_last & ~is_shown & (grades[rows] > 0)
    order = np.lexsort((rank, query))
    order = order[is_shown[order]]
    listed = rows[order]
    return RankedLists(
        shown=shown,
        retrieved=retrieved,
        rest=last_size - np.bincount(query[in_last & is_shown], minlength=len(query_ids)),
        rest_relevant=np.bincount(query[hidden_relevant], minlength=len(query_ids)),
        missing=np.array([n_missing.get(query_id, 0) for query_id in query_ids]),
        doc_ids=run.documents.ids(listed).to_list(),
        scores=np.where(np.isnan(run.rounded[listed]), np.nan, ranked.rounded[listed]),
        above=above[order],
        size=size[order],
        grades=grades[listed],
    )
