"""Counts add up: tie groups from a list in memory, or from a stream of its pieces."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import InputError
from deadheat.numbers import exact_floats, is_tensor
from deadheat.ties import counting
from deadheat.ties.checks import (
    check_number,
    nan_error,
    read_documents,
    read_numbers,
    read_places,
    read_starts,
)
from deadheat.ties.counting import (
    Counts,
    count_lists,
    count_tensor,
    find_columns,
    flatten_scores,
    has_nan,
)
from deadheat.ties.groups import Ints, JudgedDocuments, TieGroups

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
        documents = read_documents(n_queries, query, score, grade, position, unretrieved)
        self._start(documents, has_positions=position is not None)

    @classmethod
    def of(cls, documents: JudgedDocuments, *, has_positions: bool = True) -> TieCounter:
        """Make a counter of documents that were checked."""
        counter = cls.__new__(cls)
        counter._start(documents, has_positions=has_positions)
        return counter

    def _start(self, documents: JudgedDocuments, *, has_positions: bool) -> None:
        self.n_queries = documents.n_queries
        self.documents = documents
        self.has_positions = has_positions
        self.counts: Counts = np.zeros((3, len(documents.query)), np.int64)
        """Per document, in three rows: candidates above, equal, and tied before it."""
        self.passed: Ints = np.zeros(len(documents.query), np.int64)
        """Per document: how often its place in the list was counted."""
        self.retrieved: Ints = np.zeros(documents.n_queries, np.int64)

    def update(
        self,
        scores: Any,
        start: int | ArrayLike = 0,
        *,
        positions: ArrayLike | None = None,
        threads: int = 1,
    ) -> None:
        """Count one piece of every query's list.

        Parameters
        ----------
        scores
            ``[n_queries, n]``: the same `n` places of every list. float16 and bfloat16, in arrays
            and tensors, are compared as they are, and a tensor on another device than the CPU is
            counted there.
        start
            The place in its list of the first score of each query, one for all or one each.
        positions
            The place in the lists of each of the `n` columns, where they do not follow one
            another.
        threads
            Count in so many threads. The compiled pass releases the interpreter's lock.
        """
        threads = check_number("threads", threads, least=1)
        if positions is not None and np.any(start):
            raise InputError("positions say where the columns stand: leave start out")
        scores = scores if is_tensor(scores) else read_numbers(scores)
        if scores.ndim != 2 or len(scores) != self.n_queries:
            raise InputError(
                f"scores must have the shape [{self.n_queries} queries, candidates], "
                f"not {list(scores.shape)}"
            )
        if positions is None:
            starts = read_starts(start, self.n_queries)
            column = self.documents.position - starts[self.documents.query]
            inside = (column >= 0) & (column < scores.shape[1])
        else:
            place = read_places(0, positions, scores.shape[1])
            if (np.diff(place) < 0).any():
                order = np.argsort(place)
                scores, place = scores[:, order], place[order]
            column, inside = find_columns(place, self.documents.position)
        if is_tensor(scores) and scores.device.type != "cpu":
            counts = self._count_on_device(scores, column, inside)
        elif threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                counts = self._count_piece(scores, column, inside, pool)
        else:
            counts = self._count_piece(scores, column, inside)
        passed = inside.astype(np.int64) if self.has_positions else 0
        self.add_counts(counts, passed, scores.shape[1])

    def add_counts(self, counts: Counts, passed: Ints | int, retrieved: Ints | int) -> None:
        """Add counts of candidates, made elsewhere for the documents in the counter's order.

        Parameters
        ----------
        passed
            Per document: how often it was among the candidates.
        retrieved
            Per query: how many candidates there were.
        """
        self.counts += counts
        self.passed += passed
        self.retrieved += retrieved

    def _count_piece(
        self,
        scores: Any,
        column: Ints,
        inside: NDArray[np.bool_],
        pool: Executor | None = None,
    ) -> Counts:
        """Count in memory, some queries at a time.

        Parameters
        ----------
        column, inside
            As `find_columns` returns them.
        pool
            Threads to count in.
        """

        def count(first: int) -> Counts:
            last = min(first + step, self.n_queries)
            flat = flatten_scores(scores[first:last])
            starts = np.arange(last - first, dtype=np.int64) * n
            offsets = self.documents.offsets[first : last + 1]
            own = slice(int(offsets[0]), int(offsets[-1]))
            rows = column[own] + starts[self.documents.query[own] - first]
            if has_nan(flat):
                raise nan_error()
            self._check_announced(flat, rows, np.flatnonzero(inside[own]), own)
            values = self.documents.score[own]
            return count_lists(flat, (starts, starts + n), offsets - own.start, values, rows)

        n = scores.shape[1]
        step = max(1, BLOCK // max(1, n))
        firsts = range(0, self.n_queries, step)
        blocks = list(map(count, firsts) if pool is None else pool.map(count, firsts))
        return np.concatenate([np.empty((3, 0), np.int64), *blocks], axis=1)

    def _count_on_device(self, scores: Any, column: Ints, inside: NDArray[np.bool_]) -> Counts:
        """Count where a tensor lies; only the counts leave its device."""
        if scores.is_floating_point() and bool(scores.isnan().any()):
            raise nan_error()
        seen = np.flatnonzero(inside)
        if self.has_positions and len(seen):
            own = exact_floats(scores[self.documents.query[seen], column[seen]], by_place=False)
            self._check_announced(own, np.arange(len(seen)), np.arange(len(seen)), seen)
        return count_tensor(scores, self.documents.offsets, self.documents.score, column)

    def _check_announced(self, scores: NDArray[Any], rows: Ints, seen: Ints, own: Any) -> None:
        """Refuse a document that has another score in the stream than it was announced with.

        `own` are the documents that `rows` and `seen` speak of.
        """
        if not self.has_positions or not len(seen):
            return
        query, position, score = (
            column[own]
            for column in (self.documents.query, self.documents.position, self.documents.score)
        )
        other = seen[scores[rows[seen]] != score[seen]]
        if len(other):
            i = int(other[0])
            raise InputError(
                f"the document at position {position[i]} of query {query[i]} "
                f"was announced with the score {score[i]}, and the stream has "
                f"{scores[rows[i]]} there: score the announced documents exactly as the stream "
                "does"
            )

    def __add__(self, other: TieCounter) -> TieCounter:
        """Counts of the pieces that either counter has seen."""
        if not isinstance(other, TieCounter):
            return NotImplemented
        same = self.n_queries == other.n_queries and self.has_positions == other.has_positions
        mine, theirs = self._list_documents(), other._list_documents()
        if not same or not all(map(np.array_equal, mine, theirs)):
            raise InputError(
                "only counters of the same documents of interest, retrieved and unretrieved, can "
                "be added"
            )
        total = TieCounter.of(self.documents, has_positions=self.has_positions)
        total.counts += self.counts + other.counts
        total.passed += self.passed + other.passed
        total.retrieved += self.retrieved + other.retrieved
        return total

    def _list_documents(self) -> list[NDArray[Any]]:
        """List all that was given of the documents, in an order that does not depend on it."""
        own = self.documents
        query, grade = own.unretrieved
        order = np.lexsort((grade, query))
        return [own.query, own.score, own.grade, own.position, query[order], grade[order]]

    def groups(self) -> TieGroups:
        """Build the tie groups of everything counted so far."""
        self._check_complete()
        return TieGroups.from_counts(
            self.documents, self.counts, self.retrieved.copy(), ranked=self.has_positions
        )

    def _check_complete(self) -> None:
        """Refuse counts that lack an announced document, or hold one twice."""
        query, score = self.documents.query, self.documents.score
        if self.has_positions:
            wrong = self.passed != 1
        else:
            _, group, _ = counting.active.group_documents(query, score, self.documents.grade)
            wrong = np.bincount(group)[group] > self.counts[1]
        if not np.count_nonzero(wrong):
            return
        i = int(np.flatnonzero(wrong)[0])
        where = f" at position {self.documents.position[i]}" if self.has_positions else ""
        if self.passed[i] > 1:
            happened = f"passed by {self.passed[i]} times: pass every candidate once"
        else:
            happened = (
                "did not pass by with that score: pass every candidate, and score the announced "
                "documents exactly as the stream does"
            )
        raise InputError(
            f"a document of query {query[i]} was announced{where} with the score "
            f"{score[i]}, but {happened}"
        )
