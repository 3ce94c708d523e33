"""Counts add up: tie groups from a list in memory, or from a stream of its pieces."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import InputError
from deadheat.numbers import exact_floats, half_floats, is_tensor
from deadheat.ties.checks import (
    check_distinct,
    check_number,
    grade_values,
    list_bounds,
    list_starts,
    nan_score,
    number_array,
    places,
    query_indices,
    whole_numbers,
)
from deadheat.ties.counting import Counts, count_candidates
from deadheat.ties.groups import Floats, Ints, TieGroups, begins, falling, firsts
from deadheat.ties.scores import Bounds
from deadheat.ties.torch_counting import tensor_counts

BLOCK = 1 << 20
"""Scores of a piece that are counted together: few enough to stay near the processor."""


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
        order = falling(query, score, place)
        self.n_queries = n_queries
        self.query: Ints = query[order]
        self.score = score[order]
        self.grade = grade[order]
        self.position: Ints = place[order]
        self.has_positions = position is not None
        self.offsets: Ints = firsts(self.query, n_queries + 1)
        self.counts: Counts = np.zeros((3, len(query)), np.int64)
        self.passed: Ints = np.zeros(len(query), np.int64)
        """Per document: how often its place in the list went by."""
        self.retrieved: Ints = np.zeros(n_queries, np.int64)
        self.unretrieved = unretrieved

    @property
    def above(self) -> Ints:
        """Per document: candidates of a greater score."""
        above: Ints = self.counts[0]
        return above

    @property
    def equal(self) -> Ints:
        """Per document: candidates of the same score, itself included."""
        equal: Ints = self.counts[1]
        return equal

    @property
    def before(self) -> Ints:
        """Per document: candidates of the same score at earlier places."""
        before: Ints = self.counts[2]
        return before

    def update(
        self,
        scores: Any,
        start: int | ArrayLike = 0,
        *,
        positions: ArrayLike | None = None,
        bounds: Bounds | None = None,
        threads: int = 1,
    ) -> None:
        """Count one piece of every query's list.

        Parameters
        ----------
        scores
            ``[n_queries, n]``: the same `n` places of every list. Or, with `bounds`, one
            row of scores for all queries. float16 and bfloat16, in arrays and tensors, are
            compared as they are, and a tensor on another device than the CPU is counted there.
        start
            The place in its list of the first score of each query, one for all or one each.
        positions
            The place in the lists of each of the `n` columns, where they do not follow one
            another.
        bounds
            ``(starts, stops)``: the scores of query ``q`` are ``scores[starts[q]:stops[q]]``.
        threads
            Count in so many threads. The compiled pass releases the interpreter's lock.
        """
        threads = check_number("threads", threads, least=1)
        if positions is not None and (bounds is not None or np.any(start)):
            raise InputError("positions say where the columns stand: leave start and bounds out")
        if bounds is not None:
            self._update_lists(exact_floats(scores, by_place=False), start, bounds)
            return
        scores = scores if is_tensor(scores) else number_array(scores)
        if scores.ndim != 2 or len(scores) != self.n_queries:
            raise InputError(
                f"scores must have the shape [{self.n_queries} queries, candidates], "
                f"not {list(scores.shape)}"
            )
        if positions is None:
            column = self.position - list_starts(start, self.n_queries)[self.query]
            inside = (column >= 0) & (column < scores.shape[1])
        else:
            place = places(0, positions, scores.shape[1])
            if (np.diff(place) < 0).any():
                order = np.argsort(place)
                scores, place = scores[:, order], place[order]
            column, inside = self.columns(place)
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                self.add_piece(scores, column, inside, pool)
        else:
            self.add_piece(scores, column, inside)

    def columns(self, place: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Find the documents among columns whose places, ascending, are given; see `add_piece`."""
        column = np.searchsorted(place, self.position)
        inside = column < len(place)
        inside[inside] = place[column[inside]] == self.position[inside]
        return column, inside

    def _update_lists(self, scores: NDArray[Any], start: Any, bounds: Any) -> None:
        """Count pieces of lists that stand in one row."""
        starts, stops = list_bounds(bounds, scores, self.n_queries)
        _check_nan(scores)
        rows = self.position + (starts - list_starts(start, self.n_queries))[self.query]
        inside = (rows >= starts[self.query]) & (rows < stops[self.query])
        self._check_announced(scores, rows, np.flatnonzero(inside), slice(None))
        self.add(scores, (starts, stops), rows)
        self.passed += inside.astype(np.int64) - 1  # `add` takes all documents to have passed

    def add(self, scores: NDArray[Any], bounds: Bounds, rows: Ints) -> None:
        """Count whole lists of floats that are known to be sound and to hold every document.

        `rows` are the documents' indices among the scores, as `rows` gives them.
        """
        counts = _counts(scores, bounds, self.offsets, self.score, rows)
        self._add(counts, 1, bounds[1] - bounds[0])

    def add_piece(
        self,
        scores: Any,
        column: Ints,
        inside: NDArray[np.bool_],
        pool: Executor | None = None,
        *,
        sound: bool = False,
    ) -> None:
        """Count a piece as `update` does.

        Parameters
        ----------
        column
            Per document: the column before which an equal score stands before it.
        inside
            Per document: whether that column is its own.
        pool
            Threads to count in.
        sound
            Whether no score is known to be NaN, and every document to have the score that it was
            announced with.
        """
        if is_tensor(scores) and scores.device.type != "cpu":
            counts = self._counts_on_device(scores, column, inside, sound)
        else:
            counts = self._counts_of_piece(scores, column, inside, pool, sound)
        passed = inside.astype(np.int64) if self.has_positions else 0
        self._add(counts, passed, scores.shape[1])

    def _add(self, counts: Counts, passed: Ints | int, retrieved: Ints | int) -> None:
        self.counts += counts
        self.passed += passed
        self.retrieved += retrieved

    def _counts_of_piece(
        self,
        scores: Any,
        column: Ints,
        inside: NDArray[np.bool_],
        pool: Executor | None,
        sound: bool,
    ) -> Counts:
        """Count in memory, some queries at a time."""

        def count(first: int) -> Counts:
            last = min(first + step, self.n_queries)
            block = half_floats(scores[first:last])
            if block is None:
                block = exact_floats(scores[first:last], by_place=False)
            flat = np.ascontiguousarray(block).reshape(-1)
            starts = np.arange(last - first, dtype=np.int64) * n
            own = slice(int(self.offsets[first]), int(self.offsets[last]))
            rows = column[own] + starts[self.query[own] - first]
            if not sound:
                _check_nan(flat)
                self._check_announced(flat, rows, np.flatnonzero(inside[own]), own)
            offsets = self.offsets[first : last + 1] - own.start
            return _counts(flat, (starts, starts + n), offsets, self.score[own], rows)

        n = scores.shape[1]
        step = max(1, BLOCK // max(1, n))
        firsts = range(0, self.n_queries, step)
        blocks = list(map(count, firsts) if pool is None else pool.map(count, firsts))
        return np.concatenate([np.empty((3, 0), np.int64), *blocks], axis=1)

    def _counts_on_device(
        self, scores: Any, column: Ints, inside: NDArray[np.bool_], sound: bool
    ) -> Counts:
        """Count where a tensor lies; only the counts leave its device."""
        if not sound and scores.is_floating_point() and bool(scores.isnan().any()):
            raise nan_score()
        seen = np.flatnonzero(inside)
        if not sound and self.has_positions and len(seen):
            own = exact_floats(scores[self.query[seen], column[seen]], by_place=False)
            self._check_announced(own, np.arange(len(seen)), np.arange(len(seen)), seen)
        return tensor_counts(scores, self.offsets, self.score, column)

    def _check_announced(self, scores: NDArray[Any], rows: Ints, seen: Ints, own: Any) -> None:
        """Refuse a document that has another score in the stream than it was announced with.

        `own` are the documents that `rows` and `seen` speak of.
        """
        if not self.has_positions or not len(seen):
            return
        other = seen[scores[rows[seen]] != self.score[own][seen]]
        if len(other):
            i = int(other[0])
            raise InputError(
                f"the document at position {self.position[own][i]} of query {self.query[own][i]} "
                f"was announced with the score {self.score[own][i]}, and the stream has "
                f"{scores[rows[i]]} there: score the announced documents exactly as the stream "
                "does"
            )

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
        total.counts += self.counts + other.counts
        total.passed += self.passed + other.passed
        total.retrieved += self.retrieved + other.retrieved
        return total

    def _documents(self) -> list[NDArray[Any]]:
        """All that was announced, in an order that does not depend on the caller's."""
        query, grade = self.unretrieved
        order = np.lexsort((grade, query))
        return [self.query, self.score, self.grade, self.position, query[order], grade[order]]

    def groups(
        self,
        rank: Ints | None = None,
        end: tuple[Ints, Ints] | None = None,
        top_grade: float | None = None,
    ) -> TieGroups:
        """Give the tie groups of everything seen so far.

        Parameters
        ----------
        rank
            Ranks of the documents under another rule than input order, in the counter's order.
        end
            ``(above, size)`` of the group that ends each query's list.
        top_grade
            The highest grade of the judgements, where other queries may hold it.
        """
        grade, new = self.grade, begins(self.query, self.score)
        first, group = new.nonzero()[0], new.cumsum() - 1
        self._check_complete(group)
        ranked = self.has_positions or rank is not None
        if rank is None:
            before = self.before if self.has_positions else np.arange(len(group)) - first[group]
            rank = self.above + 1 + before
        order = np.lexsort((-grade, group))
        ideal_query, ideal_grade, zeros = known_grades(
            self.n_queries, self.query, grade, self.unretrieved
        )
        end_above, end_size = end or (None, None)
        return TieGroups(
            query=self.query[first],
            above=self.above[first],
            size=self.equal[first],
            group=group,
            grade=grade[order],
            rank=rank[order],
            retrieved=self.retrieved.copy(),
            ideal_query=ideal_query,
            ideal_grade=ideal_grade,
            end_above=end_above,
            end_size=end_size,
            zeros=zeros,
            top_grade=top_grade,
            ranked=ranked,
        )

    def _check_complete(self, group: Ints) -> None:
        """Refuse counts that lack an announced document, or hold one twice."""
        wrong = self.passed != 1 if self.has_positions else np.bincount(group)[group] > self.equal
        if not np.count_nonzero(wrong):
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


def known_grades(
    n_queries: int, query: Ints, grade: Floats, unretrieved: tuple[Ints, Floats]
) -> tuple[Ints, Floats, Ints]:
    """Give what the judgements know of queries, whatever was retrieved.

    Parameters
    ----------
    query, grade
        Of the documents of interest that were retrieved, in the order of queries.
    unretrieved
        Query and grade of those that were not.

    Returns
    -------
    ideal_query, ideal_grade
        Of every document of a positive grade: query by query, from high to low.
    zeros
        Per query: documents of grade 0.
    """
    if len(unretrieved[0]):
        query = np.concatenate((query, unretrieved[0]))
        grade = np.concatenate((grade, unretrieved[1]))
    zeros, positive = np.zeros(n_queries, np.int64), grade > 0
    if np.count_nonzero(positive) < len(grade):
        zeros += np.bincount(query[grade == 0], minlength=n_queries)
        query, grade = query[positive], grade[positive]
    if len(unretrieved[0]) or np.count_nonzero(grade != grade[:1]):
        order = np.lexsort((-grade, query))
        query, grade = query[order], grade[order]
    return query, grade, zeros


def _counts(
    scores: NDArray[Any], bounds: Bounds, offsets: Ints, values: NDArray[Any], rows: Ints
) -> Counts:
    if scores.dtype != values.dtype:
        with np.errstate(over="ignore"):  # too large for the type: not equal, and widened
            narrow = values.astype(scores.dtype)
        if np.array_equal(narrow, values):
            values = narrow  # as they are, and nothing is widened
        else:
            scores, values = scores.astype(np.float64), values.astype(np.float64)
    flat, values = np.ascontiguousarray(scores), np.ascontiguousarray(values)
    if flat.dtype.itemsize == 2:
        flat, values = flat.view(np.int16), values.view(np.int16)
    return count_candidates(flat, *bounds, offsets, values, rows)


def _check_nan(scores: NDArray[Any]) -> None:
    if not scores.size:
        return
    if scores.dtype.itemsize == 2:  # its bits are beyond those of an infinity
        ends = np.array([np.inf, -np.inf], scores.dtype)
        positive = scores.view(np.int16).max() > ends.view(np.int16)[0]
        found = positive or scores.view(np.uint16).max() > ends.view(np.uint16)[1]
    else:
        found = np.isnan(np.min(scores))
    if found:
        raise nan_score()
