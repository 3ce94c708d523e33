"""Ranked lists for the query explorer: the top of each, with its tie groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.formats import Judgements, Run
from deadheat.ties.scores import merge_near

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class RankedLists:
    """The first documents of every query's list, one query after the other."""

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
    """Per document: its score, as it was given."""
    first: NDArray[np.bool_]
    """Per document: does it begin a tie group."""
    grades: NDArray[np.float64]
    """Per document: its grade, NaN where it was not judged."""


def ranked_lists(
    run: Run,
    qrels: Judgements,
    query_ids: Sequence[str],
    top: int,
    *,
    rule: str = "input",
    tolerance: float = 0.0,
) -> RankedLists:
    """Take the first `top` documents of each query, tied ones in the order of the tie rule.

    A query that the run misses has an empty list.
    """
    bounds = run.offsets[:-1], run.offsets[1:]
    merge = tolerance > 0 or bool(np.isnan(run.scores).any())
    scores = merge_near(run.scores, bounds, tolerance) if merge else run.scores
    grade, missing = _grades(run, qrels, query_ids)
    counts = np.zeros((len(query_ids), 4), np.int64)
    rows: list[Ints] = []
    first: list[NDArray[np.bool_]] = []
    for i, query in enumerate(query_ids):
        q = run.query_index.get(query)
        if q is None:
            continue
        start, stop = int(run.offsets[q]), int(run.offsets[q + 1])
        own = scores[start:stop]
        order = start + np.argsort(-own, kind="stable")
        cut = min(top, len(order))
        lowest = scores[order[cut - 1]]
        end = int((own >= lowest).sum())
        order = _by_rule(order[:end], scores, run, rule)
        rest = order[cut:]
        counts[i] = cut, len(own), len(rest), (grade[rest] > 0).sum()
        shown = order[:cut]
        rows.append(shown)
        first.append(np.append(True, scores[shown[1:]] != scores[shown[:-1]]))
    taken = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    number, retrieved, tied, tied_relevant = counts.T
    return RankedLists(
        number,
        retrieved,
        tied,
        tied_relevant,
        missing,
        doc_ids=run.documents.ids(taken).to_list(),
        scores=run.scores[taken],
        first=np.concatenate(first) if first else np.zeros(0, bool),
        grades=grade[taken],
    )


def _by_rule(order: Ints, scores: NDArray[Any], run: Run, rule: str) -> Ints:
    """Put the documents of a list, which stand in the order of the input, in that of the rule."""
    if rule == "input" or (scores[order[1:]] != scores[order[:-1]]).all():
        return order
    if rule == "rank" and run.ranks is not None:
        return order[np.lexsort((run.ranks[order], -scores[order]))]
    keys = run.documents.ids(order)
    order = order[keys.arg_sort(descending=rule != "id_asc").to_numpy()]
    by_score: Ints = order[np.argsort(-scores[order], kind="stable")]
    return by_score


def _grades(
    run: Run, qrels: Judgements, query_ids: Sequence[str]
) -> tuple[NDArray[np.float64], Ints]:
    """Grade of every document of the run, and how many relevant ones each query misses."""
    wanted = {query: i for i, query in enumerate(query_ids)}
    number = np.array([wanted.get(query, -1) for query in qrels.query_ids])
    place = np.array([run.query_index.get(query, -1) for query in qrels.query_ids])
    lengths = np.diff(qrels.offsets)
    number, place = np.repeat(number, lengths), np.repeat(place, lengths)
    present = np.flatnonzero(place >= 0)
    row = np.full(len(place), -1, np.int64)
    row[present] = run.documents.find(place[present], qrels.doc_ids.gather(present))
    grade = np.full(len(run.scores), np.nan)
    grade[row[row >= 0]] = qrels.grades[row >= 0]
    lost = number[(row < 0) & (qrels.grades > 0) & (number >= 0)]
    return grade, np.bincount(lost, minlength=len(query_ids))
