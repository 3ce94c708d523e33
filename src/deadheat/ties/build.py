"""Tie groups of lists that are in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.ties.counter import TieCounter, known_grades
from deadheat.ties.counting import count_candidates, group_lists
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
    order = order or RuleOrder(scores, None)
    if order.key is None and order.scores is scores and not tolerance and lists.beyond is None:
        return _in_input_order(lists)
    counter = _counted(lists, scores)
    rank = ranks(order, counter, scores, lists.bounds)
    if tolerance > 0:
        scores = merge_near(scores, lists.bounds, tolerance, lists.exact)
        merged = _counted(lists, scores)
        rank = reorder(rank, counter.rows(lists.bounds), merged.rows(lists.bounds))
        counter = merged
    end = _ends(counter.query, counter.above, counter.equal, counter.retrieved, scores, lists)
    return counter.groups(rank, end, lists.max_grade)


def _in_input_order(lists: JudgedLists) -> TieGroups:
    """Build the tie groups of lists whose ties stand in the order of the input."""
    starts, stops = lists.bounds
    query, above, size, group, rank, grade = group_lists(
        lists.scores, starts, stops, lists.query, lists.position, lists.grade
    )
    ideal_query, ideal_grade, zeros = known_grades(
        len(starts), lists.query, lists.grade, lists.unretrieved
    )
    end = _ends(query, above, size, stops - starts, lists.scores, lists)
    return TieGroups(
        query=query,
        above=above,
        size=size,
        group=group,
        grade=grade,
        rank=rank,
        retrieved=stops - starts,
        ideal_query=ideal_query,
        ideal_grade=ideal_grade,
        end_above=None if end is None else end[0],
        end_size=None if end is None else end[1],
        zeros=zeros,
        top_grade=lists.max_grade,
    )


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


def _ends(
    query: Ints,
    above: Ints,
    size: Ints,
    retrieved: Ints,
    scores: NDArray[Any],
    lists: JudgedLists,
) -> tuple[Ints, Ints] | None:
    """``(above, size)`` of the group that ends each list, as far as it can matter.

    It can where it holds a document of interest, or where relevant documents were not
    retrieved and may have been cut off behind it; elsewhere the size is given as 0. Where it is
    known how many candidates have the last score, only the latter matters: they may be relevant.
    None where the lists are known to be complete.

    Parameters
    ----------
    query, above, size
        Of every group with a document of interest.
    retrieved
        Per query: number of candidates.
    """
    if lists.complete:
        return None
    end_above, end_size = retrieved.copy(), np.zeros(len(retrieved), np.int64)
    last = above + size == retrieved[query]
    end_above[query[last]] = above[last]
    end_size[query[last]] = size[last]
    lacking, grade = lists.unretrieved
    if not len(lacking):
        return end_above, end_size
    missing = np.unique(lacking[grade > 0])
    missing = missing[(retrieved[missing] > 0) & (end_size[missing] == 0)]
    if len(missing):
        starts, stops = lists.bounds[0][missing], lists.bounds[1][missing]
        lowest = _lowest(scores, lists.bounds, missing)
        one_each = np.arange(len(missing) + 1)
        end_above[missing], end_size[missing], _ = count_candidates(
            scores, starts, stops, one_each, lowest, starts
        )
    if lists.beyond is not None:
        lacks_relevant = np.bincount(lacking[grade > 0], minlength=len(retrieved)) > 0
        end_size = np.where(lacks_relevant & (lists.beyond > 0), retrieved - end_above, 0)
    return end_above, end_size
