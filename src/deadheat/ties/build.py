"""Tie groups of lists that are in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.ties.counter import TieCounter
from deadheat.ties.counting import count_candidates
from deadheat.ties.groups import Ints, TieGroups
from deadheat.ties.lists import JudgedLists
from deadheat.ties.rules import RuleOrder, ranks, reorder
from deadheat.ties.scores import Bounds, merge_near


def tie_groups(
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
    counter = _counted(lists, scores)
    rank = ranks(order or RuleOrder(scores, None), counter, scores, lists.bounds)
    if tolerance > 0:
        scores = merge_near(scores, lists.bounds, tolerance, lists.exact)
        merged = _counted(lists, scores)
        rank = reorder(rank, counter.rows(lists.bounds), merged.rows(lists.bounds))
        counter = merged
    end = None if lists.complete else _ends(counter, scores, lists)
    return counter.groups(rank, end, lists.max_grade)


def _counted(lists: JudgedLists, scores: NDArray[Any]) -> TieCounter:
    """Count what stands above and beside the documents of interest."""
    counter = TieCounter.of(
        len(lists.bounds[0]),
        lists.query,
        scores[lists.bounds[0][lists.query] + lists.position],
        lists.grade,
        lists.position,
        lists.unretrieved,
    )
    counter.add(scores, lists.bounds, counter.rows(lists.bounds))
    if lists.beyond is not None:
        _add_beyond(counter, scores, lists, lists.beyond)
    return counter


def _add_beyond(
    counter: TieCounter, scores: NDArray[Any], lists: JudgedLists, beyond: Ints
) -> None:
    """Count the candidates that tie with the last of a list and are not in it."""
    longer = np.flatnonzero(beyond)
    last = np.full(counter.n_queries, -np.inf)
    last[longer] = _lowest(scores, lists.bounds, longer)
    tied = counter.score == last[counter.query]
    counter.equal[tied] += beyond[counter.query[tied]]
    counter.retrieved += beyond


def _lowest(scores: NDArray[Any], bounds: Bounds, queries: Ints) -> NDArray[Any]:
    """The lowest score of each of these queries' lists."""
    slices = zip(bounds[0][queries].tolist(), bounds[1][queries].tolist(), strict=True)
    return np.array([scores[start:stop].min() for start, stop in slices], scores.dtype)


def _ends(counter: TieCounter, scores: NDArray[Any], lists: JudgedLists) -> tuple[Ints, Ints]:
    """``(above, size)`` of the group that ends each list, as far as it can matter.

    It can where it holds a document of interest, or where relevant documents were not
    retrieved and may have been cut off behind it; elsewhere the size is given as 0. Where it is
    known how many candidates have the last score, only the latter matters: they may be relevant.
    """
    above = counter.retrieved.copy()
    size = np.zeros(counter.n_queries, np.int64)
    last = counter.above + counter.equal == counter.retrieved[counter.query]
    above[counter.query[last]] = counter.above[last]
    size[counter.query[last]] = counter.equal[last]
    query, grade = lists.unretrieved
    if not len(query):
        return above, size
    missing = np.unique(query[grade > 0])
    missing = missing[(counter.retrieved[missing] > 0) & (size[missing] == 0)]
    if len(missing):
        starts, stops = lists.bounds[0][missing], lists.bounds[1][missing]
        lowest = _lowest(scores, lists.bounds, missing)
        one_each = np.arange(len(missing) + 1)
        above[missing], size[missing], _ = count_candidates(
            scores, starts, stops, one_each, lowest, starts
        )
    if lists.beyond is not None:
        lacks_relevant = np.bincount(query[grade > 0], minlength=counter.n_queries) > 0
        size = np.where(lacks_relevant & (lists.beyond > 0), counter.retrieved - above, 0)
    return above, size
