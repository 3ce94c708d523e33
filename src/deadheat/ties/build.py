"""Tie groups of lists that are in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.ties.counter import TieCounter
from deadheat.ties.counting import count
from deadheat.ties.groups import Floats, Ints, TieGroups
from deadheat.ties.rules import Keys, ranks, reorder
from deadheat.ties.scores import Bounds, merge_near


@dataclass(frozen=True)
class Lists:
    """Candidate lists of all queries and the documents of interest among them."""

    scores: NDArray[Any]
    """float32 or float64, without NaN."""
    bounds: Bounds
    query: Ints
    """Per document of interest: index of its query."""
    position: Ints
    """Per document of interest: its place in its query's list, starting at 0."""
    grade: Floats
    """Per document of interest: its grade."""
    unretrieved: tuple[Ints, Floats]
    """Query and grade of the judged documents that are not in their query's list."""

    def count(self, scores: NDArray[Any]) -> TieCounter:
        """Count what stands above and beside the documents of interest."""
        score = scores[self.bounds[0][self.query] + self.position]
        counter = TieCounter(
            len(self.bounds[0]),
            self.query,
            score,
            self.grade,
            self.position,
            unretrieved=self.unretrieved,
        )
        counter.count(scores, self.bounds, np.int64(0))
        return counter


def tie_groups(
    lists: Lists,
    *,
    rule: str = "input",
    ids: Keys | None = None,
    rank_column: Ints | None = None,
    tolerance: float = 0.0,
) -> TieGroups:
    """Build the tie groups of `lists`, with ranks under a tie rule.

    With a tolerance the groups are those of near-equal scores; the ranks, which say what a
    tie-oblivious tool does, are still those of the scores as they are.
    """
    scores = lists.scores
    counter = lists.count(scores)
    rank = ranks(rule, counter, scores, lists.bounds, ids, rank_column)
    if tolerance > 0:
        scores = merge_near(scores, lists.bounds, tolerance)
        merged = lists.count(scores)
        rank = reorder(rank, counter.rows(lists.bounds), merged.rows(lists.bounds))
        counter = merged
    return counter.groups(rank, _ends(counter, scores, lists))


def _ends(counter: TieCounter, scores: NDArray[Any], lists: Lists) -> tuple[Ints, Ints]:
    """``(above, size)`` of the group that ends each list, as far as it can matter.

    It can where it holds a document of interest, or where relevant documents were not
    retrieved and may have been cut off behind it; elsewhere the size is given as 0.
    """
    above = counter.retrieved.copy()
    size = np.zeros(counter.n_queries, np.int64)
    last = counter.above + counter.equal == counter.retrieved[counter.query]
    above[counter.query[last]] = counter.above[last]
    size[counter.query[last]] = counter.equal[last]
    query, grade = lists.unretrieved
    missing = np.unique(query[grade > 0])
    missing = missing[(counter.retrieved[missing] > 0) & (size[missing] == 0)]
    if len(missing):
        starts, stops = lists.bounds[0][missing], lists.bounds[1][missing]
        slices = zip(starts.tolist(), stops.tolist(), strict=True)
        lowest = np.array([scores[start:stop].min() for start, stop in slices], scores.dtype)
        each = np.arange(len(missing) + 1)
        above[missing], size[missing], _ = count(scores, starts, stops, each, lowest, starts)
    return above, size
