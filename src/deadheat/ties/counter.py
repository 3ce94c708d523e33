"""Counts add up: tie groups from a list in memory, or from a stream of its pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import InputError
from deadheat.numbers import exact_floats
from deadheat.ties.counting import count_candidates
from deadheat.ties.groups import Ints, TieGroups
from deadheat.ties.scores import Bounds


class TieCounter:
    """Counts candidates above and tied with the documents of interest, piece by piece.

    The scores of the documents of interest are given first; then every candidate, they
    included, passes by once, in pieces of any size and order. What is kept is a few
    integers per document of interest, so the list itself never has to fit in memory, and
    counters fed with different pieces of the same lists can be added.

    Parameters
    ----------
    n_queries
        Number of queries.
    query
        Per document of interest: index of its query.
    score
        Per document of interest: its score.
    grade
        Per document of interest: its grade.
    position
        Per document of interest: its place in its query's list, starting at 0. With it the
        groups know the ranks under the rule "input order"; without it every tied
        candidate counts as standing behind the document.
    unretrieved
        ``(query, grade)`` of judged documents that are not candidates: they belong to the
        ideal ranking and to the number of relevant documents.

    Examples
    --------
    Two queries over one corpus of six documents that arrives in two pieces. The first
    query's relevant document scores 0.5, the second's 0.9.

    >>> counter = TieCounter(2, query=[0, 1], score=[0.5, 0.9], grade=[1, 1], position=[4, 0])
    >>> counter.update([[0.5, 0.7, 0.1], [0.9, 0.2, 0.9]])
    >>> counter.update([[0.3, 0.5, 0.6], [0.4, 0.9, 0.1]], start=3)
    >>> groups = counter.groups()
    >>> groups.above, groups.size, groups.rank
    (array([2, 0]), array([2, 3]), array([4, 1]))
    """

    def __init__(
        self,
        n_queries: int,
        query: ArrayLike,
        score: ArrayLike,
        grade: ArrayLike,
        position: ArrayLike | None = None,
        *,
        unretrieved: tuple[ArrayLike, ArrayLike] = ((), ()),
    ) -> None:
        query = np.asarray(query, np.int64)
        score = exact_floats(score, by_place=False)
        grade = np.asarray(grade, np.float64)
        place = np.zeros(len(query), np.int64) if position is None else np.asarray(position)
        if not len(query) == len(score) == len(grade) == len(place):
            raise InputError(
                "query, score, grade and position describe the same documents: give them the "
                f"same length, not {len(query)}, {len(score)}, {len(grade)} and {len(place)}"
            )
        if len(query) and (query.min() < 0 or query.max() >= n_queries):
            raise InputError(f"a query index is not between 0 and {n_queries - 1}")
        if np.isnan(score).any():
            raise InputError("the score of a document of interest is NaN")
        step = np.diff(query)
        in_order = bool(np.all((step > 0) | ((step == 0) & (np.diff(place) > 0))))
        order = np.lexsort((-score, query) if in_order else (place, -score, query))
        self.n_queries = n_queries
        self.query: Ints = query[order]
        self.score = score[order]
        self.grade = grade[order]
        self.position: Ints = place[order].astype(np.int64)
        self.offsets: Ints = np.searchsorted(self.query, np.arange(n_queries + 1))
        self.above: Ints = np.zeros(len(query), np.int64)
        self.equal: Ints = np.zeros(len(query), np.int64)
        self.before: Ints = np.zeros(len(query), np.int64)
        self.retrieved: Ints = np.zeros(n_queries, np.int64)
        self.unretrieved = (
            np.asarray(unretrieved[0], np.int64),
            np.asarray(unretrieved[1], np.float64),
        )

    def update(
        self,
        scores: Any,
        start: int | ArrayLike = 0,
        *,
        bounds: Bounds | None = None,
    ) -> None:
        """Count one piece of every query's list.

        Parameters
        ----------
        scores
            ``[n_queries, n]``: the same `n` places of every list. Or, with `bounds`, one
            row of scores for all queries.
        start
            The place in its list of the first score of each query, one for all or one each.
        bounds
            ``(starts, stops)``: the scores of query ``q`` are ``scores[starts[q]:stops[q]]``.
        """
        scores = exact_floats(scores, by_place=False)
        if scores.size and np.isnan(np.min(scores)):
            raise InputError("a score is NaN: a NaN has no place in a ranking")
        if bounds is None:
            if scores.ndim != 2 or len(scores) != self.n_queries:
                raise InputError(
                    f"scores must have the shape [{self.n_queries} queries, candidates], "
                    f"not {list(scores.shape)}"
                )
            starts = np.arange(self.n_queries, dtype=np.int64) * scores.shape[1]
            bounds = (starts, starts + scores.shape[1])
        self.add(scores.reshape(-1), bounds, np.asarray(start, np.int64))

    def add(self, scores: NDArray[Any], bounds: Bounds, start: Ints) -> None:
        """Count a piece as `update` does, from floats known to hold no NaN."""
        starts, stops = bounds
        values = self.score
        if scores.dtype != values.dtype:
            scores, values = scores.astype(np.float64), values.astype(np.float64)
        rows = self.position + (starts - start)[self.query]
        above, equal, before = count_candidates(
            np.ascontiguousarray(scores), starts, stops, self.offsets, values, rows
        )
        self.above += above
        self.equal += equal
        self.before += before
        self.retrieved += stops - starts

    def rows(self, bounds: Bounds) -> Ints:
        """Per document: its index among the scores that `bounds` divides into lists."""
        return self.position + bounds[0][self.query]

    def __add__(self, other: TieCounter) -> TieCounter:
        """Counts of the pieces that either counter has seen."""
        mine = (self.query, self.score, self.grade, self.position)
        theirs = (other.query, other.score, other.grade, other.position)
        if self.n_queries != other.n_queries or not all(map(np.array_equal, mine, theirs)):
            raise InputError("only counters of the same documents of interest can be added")
        total = TieCounter(self.n_queries, *mine, unretrieved=self.unretrieved)
        for counts in ("above", "equal", "before", "retrieved"):
            setattr(total, counts, getattr(self, counts) + getattr(other, counts))
        return total

    def groups(self, rank: Ints | None = None, end: tuple[Ints, Ints] | None = None) -> TieGroups:
        """Give the tie groups of everything seen so far.

        Parameters
        ----------
        rank
            Ranks of the documents under another rule than input order, in the counter's order.
        end
            ``(above, size)`` of the group that ends each query's list.
        """
        lost = np.flatnonzero(self.equal == 0)
        if len(lost):
            raise InputError(
                f"a document of query {self.query[lost[0]]} was announced with the score "
                f"{self.score[lost[0]]!r}, but no candidate had that score: pass every "
                "candidate, and score the announced documents exactly as the stream does"
            )
        new = np.ones(len(self.query), bool)
        new[1:] = (self.query[1:] != self.query[:-1]) | (self.score[1:] != self.score[:-1])
        group = np.cumsum(new) - 1
        grade = self.grade
        if rank is None:
            rank = self.above + 1 + self.before
        if len(grade) and (grade != grade[0]).any():
            order = np.lexsort((-grade, group))
            group, grade, rank = group[order], grade[order], rank[order]
        ideal_query, ideal_grade = self._ideal()
        end_above, end_size = end or (None, None)
        return TieGroups(
            query=self.query[new],
            above=self.above[new],
            size=self.equal[new],
            group=group,
            grade=grade,
            rank=rank,
            retrieved=self.retrieved,
            ideal_query=ideal_query,
            ideal_grade=ideal_grade,
            end_above=end_above,
            end_size=end_size,
            zeros=self._zeros(),
        )

    def _zeros(self) -> Ints:
        query = np.concatenate((self.query, self.unretrieved[0]))
        grade = np.concatenate((self.grade, self.unretrieved[1]))
        return np.bincount(query[grade == 0], minlength=self.n_queries)

    def _ideal(self) -> tuple[Ints, NDArray[np.float64]]:
        query = np.concatenate((self.query, self.unretrieved[0]))
        grade = np.concatenate((self.grade, self.unretrieved[1]))
        query, grade = query[grade > 0], grade[grade > 0]
        if (np.diff(query) < 0).any() or (np.diff(grade) != 0).any():
            order = np.lexsort((-grade, query))
            query, grade = query[order], grade[order]
        return query, grade
