"""Count tie groups of lists that arrive in pieces."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat._internal.numbers import check_number, check_tensors, is_tensor
from deadheat._internal.threads import share_work
from deadheat.errors import InputError
from deadheat.ties import counting
from deadheat.ties.checks import nan_error, read_documents, read_places
from deadheat.ties.counting import (
    Counts,
    count_columns,
    find_columns,
    flatten_scores,
    has_nan,
    to_floats,
)
from deadheat.ties.groups import Ints, TieGroups

if TYPE_CHECKING:
    from torch import Tensor

    from deadheat.scoring import Matrix

BLOCK = 1 << 20
"""Number of scores that are counted at once; they fit in the CPU cache."""


class TieCounter:
    """Count the candidates above and tied with the judged documents, piece by piece.

    The scores of the judged documents are given first. Then every candidate is counted once,
    judged documents included, in pieces of any size and order. The counter keeps a few
    integers per judged document, so the lists need not fit in memory. Counters of different
    pieces of the same lists can be added.

    Parameters
    ----------
    n_queries
        Number of queries.
    query
        Per judged document: index of its query.
    score
        Per judged document: its score.
    grade
        Per judged document: its grade.
    position
        Per judged document: its position in the list of its query, starting at 0. The
        oblivious value breaks ties in the order of positions, and the counter checks the score of
        every document at its position.
    unretrieved
        ``(query, grade)`` of judged documents that are not candidates. They count in the ideal
        ranking and in the number of relevant documents. Default: none.

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
        position: ArrayLike,
        *,
        unretrieved: tuple[ArrayLike, ArrayLike] = ((), ()),
    ) -> None:
        self.documents = read_documents(n_queries, query, score, grade, position, unretrieved)
        self.n_queries, n_documents = int(n_queries), len(self.documents.query)
        self.counts: Counts = np.zeros((3, n_documents), np.int64)
        """Three rows per document: candidates above it, equal to it, and tied before it."""
        self.passed: Ints = np.zeros(n_documents, np.int64)
        """Per document: how often its position was counted."""
        self.retrieved: Ints = np.zeros(self.n_queries, np.int64)

    def update(
        self,
        scores: ArrayLike | Tensor,
        start: int = 0,
        *,
        positions: ArrayLike | None = None,
        threads: int = 1,
    ) -> None:
        """Count one piece of every query's list.

        Parameters
        ----------
        scores
            ``[n_queries, n]``: the same `n` positions of every list, an array or a torch tensor.
            float16 and bfloat16 are compared without conversion. A tensor is counted on its
            device.
        start
            Position of the first column.
        positions
            Position of each of the `n` columns, if they are not consecutive.
        threads
            Number of threads. The compiled code releases the GIL.
        """
        threads = check_number("threads", threads, least=1)
        piece = read_piece(scores, self.n_queries)
        place = read_places(start, positions, piece.shape[1])
        if (np.diff(place) < 0).any():
            order = np.argsort(place)
            piece, place = piece[:, order], place[order]
        column, inside = find_columns(place, self.documents.position)
        n = piece.shape[1]
        step = self.n_queries if counting.is_on_device(piece) else BLOCK // max(1, n)
        step = max(1, step)

        def count(first: int) -> Counts:
            return self._count_block(first, piece[first : first + step], column, inside)

        blocks = share_work(count, range(0, self.n_queries, step), threads)
        self.counts += np.concatenate([np.empty((3, 0), np.int64), *blocks], axis=1)
        self.passed += inside
        self.retrieved += n

    def _count_block(
        self, first: int, block: Matrix, column: Ints, inside: NDArray[np.bool_]
    ) -> Counts:
        """Count for some queries, from `first` on; `find_columns` returns `column` and `inside`."""
        if not counting.is_on_device(block):
            block = flatten_scores(block).reshape(block.shape)
        if has_nan(block):
            raise nan_error()
        offsets = self.documents.offsets[first : first + len(block) + 1]
        own = slice(int(offsets[0]), int(offsets[-1]))
        seen = own.start + np.flatnonzero(inside[own])
        if len(seen):
            found = block[self.documents.query[seen] - first, column[seen]]
            self._check_announced(seen, to_floats(found))
        values = self.documents.score[own]
        return count_columns(block, offsets - own.start, values, column[own])

    def _check_announced(self, seen: Ints, found: NDArray[Any]) -> None:
        """Raise an error if the score of a document in the stream differs from the given one."""
        other = np.flatnonzero(found != self.documents.score[seen])
        if len(other):
            i = int(seen[other[0]])
            raise InputError(
                f"the document at position {self.documents.position[i]} of query "
                f"{self.documents.query[i]} was given with the score {self.documents.score[i]}, "
                f"but its score in the stream is {found[other[0]]}: compute both in the same way"
            )

    def __add__(self, other: TieCounter) -> TieCounter:
        """Return a counter of the pieces of both counters."""
        if not isinstance(other, TieCounter):
            return NotImplemented
        columns: list[list[Any]] = [
            [*counter.documents[:-1], *counter.documents.unretrieved] for counter in (self, other)
        ]
        if not all(map(np.array_equal, *columns)):
            raise InputError(
                "counters can be added only if they have the same judged documents, retrieved "
                "and unretrieved"
            )
        total = copy(self)
        total.counts = self.counts + other.counts
        total.passed = self.passed + other.passed
        total.retrieved = self.retrieved + other.retrieved
        return total

    def groups(self) -> TieGroups:
        """Build the tie groups of everything counted so far."""
        own, wrong = self.documents, np.flatnonzero(self.passed != 1)
        if not len(wrong):
            return TieGroups.from_counts(own, self.counts, self.retrieved.copy())
        i = int(wrong[0])
        raise InputError(
            f"the document at position {own.position[i]} of query {own.query[i]} was counted "
            f"{self.passed[i]} times: count every candidate once"
        )


def read_piece(scores: ArrayLike | Tensor, n_queries: int) -> Matrix:
    """Return the scores of a piece of all lists as an array or a tensor ``[n_queries, n]``."""
    if is_tensor(scores):
        check_tensors(scores=scores)
        piece: Matrix = scores.detach()
    elif isinstance(scores, np.ndarray) and scores.dtype.kind in "biufV":
        piece = scores
    else:
        piece = to_floats(scores)
    if piece.ndim != 2 or len(piece) != n_queries:
        raise InputError(
            f"scores must have the shape [{n_queries} queries, candidates], not {list(piece.shape)}"
        )
    return piece
