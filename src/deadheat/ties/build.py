"""Tie groups of lists that are in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.ties.counting import Bounds, Counts, count_lists
from deadheat.ties.groups import Ints, JudgedDocuments, TieGroups
from deadheat.ties.lists import JudgedLists
from deadheat.ties.rules import RuleOrder, rank_documents, reorder
from deadheat.ties.scores import merge_near


def build_groups(
    lists: JudgedLists, order: RuleOrder | None = None, *, tolerance: float = 0.0
) -> TieGroups:
    """Build the tie groups of `lists`, with ranks under a tie rule.

    Parameters
    ----------
    order
        The rule, from `deadheat.ties.rules.rule_order`; input order unless given.
    tolerance
        Scores at most this far apart are tied. The ranks, which say what a tie-oblivious tool
        does, are still those of the scores as they are.
    """
    scores = lists.scores
    documents, counts = _count(lists, scores)
    rank = None
    if order is not None and (order.key is not None or order.scores is not scores):
        rank = rank_documents(order, documents, counts, scores, lists.bounds)
    if tolerance > 0:
        rank = counts[0] + 1 + counts[2] if rank is None else rank
        rows = documents.rows(lists.bounds)
        scores = merge_near(scores, lists.bounds, tolerance, lists.exact)
        documents, counts = _count(lists, scores)
        rank = reorder(rank, rows, documents.rows(lists.bounds))
    retrieved = lists.bounds[1] - lists.bounds[0]
    if lists.n_tied_beyond_cut is not None:
        retrieved += lists.n_tied_beyond_cut
    end = None if lists.complete else _find_ends(documents, counts, retrieved, scores, lists)
    return TieGroups.from_counts(
        documents, counts, retrieved, rank=rank, end=end, top_grade=lists.max_grade
    )


def _count(lists: JudgedLists, scores: NDArray[Any]) -> tuple[JudgedDocuments, Counts]:
    """Sort the documents of interest by `scores`, and count the candidates above and beside them.

    Candidates that tie with the last of a list and are not in it are counted, too.
    """
    bounds = lists.bounds
    score = scores[bounds[0][lists.query] + lists.position]
    documents = JudgedDocuments.sort(
        len(bounds[0]), lists.query, score, lists.grade, lists.position, lists.unretrieved
    )
    counts = documents.count_candidates(scores, bounds)
    beyond = lists.n_tied_beyond_cut
    if beyond is not None:
        longer = np.flatnonzero(beyond)
        last = np.full(len(beyond), -np.inf)
        last[longer] = _find_lowest(scores, bounds, longer)
        tied = documents.score == last[documents.query]
        counts[1, tied] += beyond[documents.query[tied]]
    return documents, counts


def _find_lowest(scores: NDArray[Any], bounds: Bounds, queries: Ints) -> NDArray[Any]:
    """Find the lowest score of each of these queries' lists."""
    slices = zip(bounds[0][queries].tolist(), bounds[1][queries].tolist(), strict=True)
    return np.array([scores[start:stop].min() for start, stop in slices], scores.dtype)


def _find_ends(
    documents: JudgedDocuments,
    counts: Counts,
    retrieved: Ints,
    scores: NDArray[Any],
    lists: JudgedLists,
) -> tuple[Ints, Ints]:
    """Return ``(above, size)`` of the group that ends each list, where it can matter.

    It matters where it holds a document of interest, and where relevant documents were not
    retrieved and may have been cut off behind it; elsewhere the size is 0. Where the number of
    candidates with the last score is known, only the latter matters: they may be relevant.
    """
    end_above, end_size = retrieved.copy(), np.zeros(len(retrieved), np.int64)
    above, equal, _ = counts
    last = above + equal == retrieved[documents.query]
    end_above[documents.query[last]] = above[last]
    end_size[documents.query[last]] = equal[last]
    lacking, grade = lists.unretrieved
    if not len(lacking):
        return end_above, end_size
    missing = np.unique(lacking[grade > 0])
    missing = missing[(retrieved[missing] > 0) & (end_size[missing] == 0)]
    if len(missing):
        starts, stops = lists.bounds[0][missing], lists.bounds[1][missing]
        lowest = _find_lowest(scores, lists.bounds, missing)
        one_each = np.arange(len(missing) + 1)
        end_above[missing], end_size[missing], _ = count_lists(
            scores, (starts, stops), one_each, lowest, starts
        )
    if lists.n_tied_beyond_cut is not None:
        lacks_relevant = np.bincount(lacking[grade > 0], minlength=len(retrieved)) > 0
        is_cut = lacks_relevant & (lists.n_tied_beyond_cut > 0)
        end_size = np.where(is_cut, retrieved - end_above, 0)
    return end_above, end_size
