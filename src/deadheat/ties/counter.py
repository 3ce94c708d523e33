"""Counts add up: tie groups from a list in memory, or from a stream of its pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import InputError
from deadheat.numbers import exact_floats
from deadheat.ties.checks import (
    check_distinct,
    check_number,
    grade_values,
    list_bounds,
    query_indices,
    whole_numbers,
)
from deadheat.ties.counting import Counts, count_candidates
from deadheat.ties.groups import Floats, Ints, TieGroups
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
        groups know the ranks under the rule "input order", and that every document passed by
        with the score it was announced with. Without it nobody knows where in its tie group
        a document stands: the oblivious order then puts the documents of interest before
        the other candidates of their group, in the order they were announced, and
        `deadheat.evaluate_groups` warns where that matters. The other views need no places.
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
        n_queries = check_number("n_queries", n_queries, least=0)
        queries = query_indices("query", query, n_queries)
        scores, grades = exact_floats(score, by_place=False), grade_values(grade)
        places = None if position is None else whole_numbers("position", position)
        lengths = [len(queries), scores.size, len(grades)]
        lengths += [] if places is None else [len(places)]
        if (scores.ndim != 1 and scores.size) or len(set(lengths)) > 1:
            raise InputError(
                "query, score, grade and position describe the same documents: give them the "
                f"same length, one row each, not {', '.join(map(str, lengths))}"
            )
        scores = scores.reshape(-1)
        if np.isnan(scores).any():
            raise InputError("the score of a document of interest is NaN")
        if places is not None:
            check_distinct(queries, places)
        absent = (
            query_indices("unretrieved", unretrieved[0], n_queries),
            grade_values(unretrieved[1]),
        )
        if len(absent[0]) != len(absent[1]):
            raise InputError(
                "unretrieved must give a query and a grade for each document, not "
                f"{len(absent[0])} queries and {len(absent[1])} grades"
            )
        self._announce(n_queries, queries, scores, grades, places, absent)

    @classmethod
    def of(
        cls,
        n_queries: int,
        query: Ints,
        score: NDArray[Any],
        grade: Floats,
        position: Ints | None,
        unretrieved: tuple[Ints, Floats],
    ) -> TieCounter:
        """Make a counter from arrays that are known to be sound."""
        counter = cls.__new__(cls)
        counter._announce(n_queries, query, score, grade, position, unretrieved)
        return counter

    def _announce(
        self,
        n_queries: int,
        query: Ints,
        score: NDArray[Any],
        grade: Floats,
        position: Ints | None,
        unretrieved: tuple[Ints, Floats],
    ) -> None:
        place = np.zeros(len(query), np.int64) if position is None else position
        step = np.diff(query)
        in_order = bool(np.all((step > 0) | ((step == 0) & (np.diff(place) > 0))))
        order = np.lexsort((-score, query) if in_order else (place, -score, query))
        self.n_queries = n_queries
        self.query: Ints = query[order]
        self.score = score[order]
        self.grade = grade[order]
        self.position: Ints = place[order]
        self.has_positions = position is not None
        self.offsets: Ints = np.searchsorted(self.query, np.arange(n_queries + 1))
        self.above: Ints = np.zeros(len(query), np.int64)
        self.equal: Ints = np.zeros(len(query), np.int64)
        self.before: Ints = np.zeros(len(query), np.int64)
        self.passed: Ints = np.zeros(len(query), np.int64)
        """Per document: how often its place in the list went by."""
        self.retrieved: Ints = np.zeros(n_queries, np.int64)
        self.unretrieved = unretrieved

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
        if bounds is None:
            if scores.ndim != 2 or len(scores) != self.n_queries:
                raise InputError(
                    f"scores must have the shape [{self.n_queries} queries, candidates], "
                    f"not {list(scores.shape)}"
                )
            starts = np.arange(self.n_queries, dtype=np.int64) * scores.shape[1]
            bounds = (starts, starts + scores.shape[1])
        else:
            bounds = list_bounds(bounds, scores, self.n_queries)
        first = whole_numbers("start", start, one=True)
        if first.shape not in ((), (self.n_queries,)):
            raise InputError(
                f"start must be one place, or one for each of the {self.n_queries} queries, "
                f"not {len(first)}"
            )
        if scores.size and np.isnan(np.min(scores)):
            raise InputError("a score is NaN: a NaN has no place in a ranking")
        flat = np.ascontiguousarray(scores).reshape(-1)
        rows = self.position + (bounds[0] - first)[self.query]
        passed = self._passing(flat, bounds, rows)
        self.add(flat, bounds, rows)
        self.passed += passed - 1  # `add` takes all documents to have passed

    def add(self, scores: NDArray[Any], bounds: Bounds, rows: Ints) -> None:
        """Count whole lists of floats that are known to be sound and to hold every document.

        `rows` are the documents' indices among the scores, as `rows` gives them.
        """
        above, equal, before = self._counts(scores, bounds, rows)
        self.above += above
        self.equal += equal
        self.before += before
        self.passed += 1
        self.retrieved += bounds[1] - bounds[0]

    def _counts(self, scores: NDArray[Any], bounds: Bounds, rows: Ints) -> Counts:
        values = self.score
        if scores.dtype != values.dtype:
            scores, values = scores.astype(np.float64), values.astype(np.float64)
        flat = np.ascontiguousarray(scores)
        return count_candidates(flat, *bounds, self.offsets, values, rows)

    def _passing(self, scores: NDArray[Any], bounds: Bounds, rows: Ints) -> NDArray[np.bool_]:
        """Tell whose places are in this piece; refuse one that has another score there."""
        if not self.has_positions:
            return np.zeros(len(rows), bool)
        inside = (rows >= bounds[0][self.query]) & (rows < bounds[1][self.query])
        seen = np.flatnonzero(inside)
        other = seen[scores[rows[seen]] != self.score[seen]]
        if len(other):
            i = int(other[0])
            raise InputError(
                f"the document at position {self.position[i]} of query {self.query[i]} was "
                f"announced with the score {self.score[i]}, and the stream has "
                f"{scores[rows[i]]} there: score the announced documents exactly as the stream "
                "does"
            )
        return np.asarray(inside)

    def rows(self, bounds: Bounds) -> Ints:
        """Per document: its index among the scores that `bounds` divides into lists."""
        return self.position + bounds[0][self.query]

    def __add__(self, other: TieCounter) -> TieCounter:
        """Counts of the pieces that either counter has seen."""
        if not isinstance(other, TieCounter):
            return NotImplemented
        same = self.n_queries == other.n_queries and self.has_positions == other.has_positions
        mine, theirs = self._documents(), other._documents()
        if not same or not all(map(np.array_equal, mine, theirs)):
            raise InputError(
                "only counters of the same documents of interest, retrieved and unretrieved, can "
                "be added"
            )
        position = self.position if self.has_positions else None
        total = TieCounter.of(
            self.n_queries, self.query, self.score, self.grade, position, self.unretrieved
        )
        for counts in ("above", "equal", "before", "passed", "retrieved"):
            setattr(total, counts, getattr(self, counts) + getattr(other, counts))
        return total

    def _documents(self) -> list[NDArray[Any]]:
        """All that was announced, in an order that does not depend on the caller's."""
        query, grade = self.unretrieved
        order = np.lexsort((grade, query))
        return [self.query, self.score, self.grade, self.position, query[order], grade[order]]

    def groups(self, rank: Ints | None = None, end: tuple[Ints, Ints] | None = None) -> TieGroups:
        """Give the tie groups of everything seen so far.

        Parameters
        ----------
        rank
            Ranks of the documents under another rule than input order, in the counter's order.
        end
            ``(above, size)`` of the group that ends each query's list.
        """
        new = np.ones(len(self.query), bool)
        new[1:] = (self.query[1:] != self.query[:-1]) | (self.score[1:] != self.score[:-1])
        group = np.cumsum(new) - 1
        self._check_complete(group)
        grade = self.grade
        ranked = self.has_positions or rank is not None
        if rank is None:
            before = self.before
            if not self.has_positions:
                before = np.arange(len(group)) - np.flatnonzero(new)[group]
            rank = self.above + 1 + before
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
            retrieved=self.retrieved.copy(),
            ideal_query=ideal_query,
            ideal_grade=ideal_grade,
            end_above=end_above,
            end_size=end_size,
            zeros=self._zeros(),
            ranked=ranked,
        )

    def _check_complete(self, group: Ints) -> None:
        """Refuse counts that lack an announced document, or hold one twice."""
        tied = np.bincount(group)[group]
        wrong = self.passed != 1 if self.has_positions else tied > self.equal
        if not wrong.any():
            return
        i = int(np.flatnonzero(wrong)[0])
        where = f" at position {self.position[i]}" if self.has_positions else ""
        if self.passed[i] > 1:
            happened = f"passed by {self.passed[i]} times: pass every candidate once"
        else:
            happened = (
                "did not pass by with that score: pass every candidate, and score the announced "
                "documents exactly as the stream does"
            )
        raise InputError(
            f"a document of query {self.query[i]} was announced{where} with the score "
            f"{self.score[i]}, but {happened}"
        )

    def _zeros(self) -> Ints:
        query = np.concatenate((self.query, self.unretrieved[0]))
        grade = np.concatenate((self.grade, self.unretrieved[1]))
        return np.bincount(query[grade == 0], minlength=self.n_queries)

    def _ideal(self) -> tuple[Ints, Floats]:
        query = np.concatenate((self.query, self.unretrieved[0]))
        grade = np.concatenate((self.grade, self.unretrieved[1]))
        query, grade = query[grade > 0], grade[grade > 0]
        if (np.diff(query) < 0).any() or (np.diff(grade) != 0).any():
            order = np.lexsort((-grade, query))
            query, grade = query[order], grade[order]
        return query, grade
