"""Keep the top k of lists that arrive in pieces, and count the tie group at the cut."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat._internal.numbers import check_number
from deadheat.errors import InputError
from deadheat.formats import read_whole_numbers
from deadheat.ties.checks import (
    check_lengths,
    find_twice,
    nan_error,
    read_documents,
    read_places,
    read_query_indices,
)
from deadheat.ties.counter import read_piece
from deadheat.ties.counting import count_lists, to_floats
from deadheat.ties.groups import Floats, Ints, JudgedDocuments, TieGroups

if TYPE_CHECKING:
    from torch import Tensor

    from deadheat.scoring import Matrix

M = TypeVar("M", NDArray[Any], "Tensor")
BLOCK = 1 << 22
"""Number of scores of an array that are compared at once."""
CROWD = 8
"""A piece with more than this × k candidates per query is first cut to its own top k."""

Found = tuple[Ints, Ints, NDArray[Any]]
"""Query, column and score of the documents of a piece that may be in the top k."""


@dataclass(frozen=True)
class Kept:
    """The documents of the lists that are kept, and the counts of the others."""

    retrieved: Ints
    """Per query: number of candidates that were counted."""
    query: Ints
    """Per kept document: index of its query."""
    position: Ints
    """Per document: its place in its query's list."""
    score: Floats
    """Per document: its score. Documents are sorted by query, score and position."""
    threshold: Floats
    """Per query: the score at the cut; −inf if the list is not longer than k."""
    forgotten: Ints
    """Per query: number of candidates with the score at the cut that are not kept."""

    @classmethod
    def of(cls, n_queries: int, retrieved: int, found: Found) -> Kept:
        """Keep all documents found in a piece of `retrieved` candidates."""
        passed, nothing = np.full(n_queries, retrieved), np.zeros(n_queries, np.int64)
        return cls(passed, *found, np.full(n_queries, -np.inf), nothing)


class TopCounter:
    """Keep the first `k` documents of every list, and the number that ties with the last of them.

    Every candidate is counted once, in pieces of any size and order. No score must be known
    before. The counter keeps the first `k` documents of each query with their scores, the number
    of candidates with the `k`-th score, including those beyond `k`, and which of these are judged.
    This is enough for exact views of measures with a cutoff of at most `k`
    (`deadheat.evaluation.evaluate_top`). Counters of different pieces of the same lists can be
    added.

    Parameters
    ----------
    n_queries
        Number of queries.
    k
        The largest cutoff of the measures.
    judged
        ``(query, position)`` of the judged documents: index of the query and position in its
        list. Of the tie group at the cut, only judged documents beyond `k` are then kept, so
        memory is bounded by `k` and the judgements. Default: all documents of that group are
        kept. The results are the same, and no judgements are needed before, but a list with one
        constant score is kept whole.

    Examples
    --------
    Six documents in two pieces. Three score 0.5, and the cut at 2 goes through them.

    >>> counter = TopCounter(1, k=2)
    >>> counter.update([[0.5, 0.1, 0.5]])
    >>> counter.update([[0.9, 0.5, 0.2]], start=3)
    >>> counter.top()
    (array([[3, 0]]), array([[0.9, 0.5]]))
    >>> counter.cut()
    (array([1]), array([3]))
    """

    def __init__(
        self, n_queries: int, k: int, judged: tuple[ArrayLike, ArrayLike] | None = None
    ) -> None:
        self.n_queries = check_number("n_queries", n_queries, least=1)
        self.k = check_number("k", k, least=1)
        self.judged: tuple[Ints, Ints] | None = None
        if judged is not None:
            query = read_query_indices("judged", judged[0], self.n_queries)
            position = read_whole_numbers("judged", judged[1])
            check_lengths("judged", query=query, position=position)
            order = np.lexsort((position, query))
            self.judged = query[order], position[order]
        self.score_type: str | None = None
        """Name of the number type of all scores in NumPy or torch; None before the first piece."""
        none = np.empty(0, np.int64)
        self.kept = Kept.of(self.n_queries, 0, (none, none, np.empty(0)))

    def update(
        self, scores: ArrayLike | Tensor, start: int = 0, *, positions: ArrayLike | None = None
    ) -> None:
        """Count one piece of every query's list.

        Parameters
        ----------
        scores
            ``[n_queries, n]``: an array of any number type, or a torch tensor, which is
            searched on its device. All pieces must have the same type.
        start
            Position of the first column in the lists; the other columns follow.
        positions
            Position of each column in the lists, if they are not consecutive.
        """
        piece = read_piece(scores, self.n_queries)
        place = read_places(start, positions, piece.shape[1])
        score_type = str(piece.dtype).removeprefix("torch.")
        self._check_type(score_type)
        if not len(place):
            return
        least = self.kept.threshold if (self.kept.retrieved >= self.k).all() else None
        query, column, score = _find_best(piece, least, self.k)
        self.score_type = score_type
        found = query, place[column], score.astype(np.float64)
        self.kept = self._merge(self.kept, Kept.of(self.n_queries, len(place), found))

    def __add__(self, other: TopCounter) -> TopCounter:
        """Return a counter of the pieces of both counters."""
        if not isinstance(other, TopCounter):
            return NotImplemented
        alike = (self.n_queries, self.k) == (other.n_queries, other.k)
        judged, others = self.judged or (), other.judged or ()
        if not alike or len(judged) != len(others) or not all(map(np.array_equal, judged, others)):
            raise InputError(
                "counters can be added only if they have the same queries, k and judged documents"
            )
        self._check_type(other.score_type)
        total = TopCounter(self.n_queries, self.k, self.judged)
        total.score_type = self.score_type or other.score_type
        total.kept = self._merge(self.kept, other.kept)
        return total

    def add_empty(self, n: int) -> TopCounter:
        """Return a counter that has `n` more queries, without candidates."""
        kept, wide = self.kept, copy(self)
        wide.n_queries += n
        none = np.zeros(n, np.int64)
        wide.kept = replace(
            kept,
            retrieved=np.append(kept.retrieved, none),
            threshold=np.append(kept.threshold, np.full(n, -np.inf)),
            forgotten=np.append(kept.forgotten, none),
        )
        return wide

    def top(self) -> tuple[Ints, Floats]:
        """Return the first `k` documents of each query: their positions, and their scores.

        Both are ``[n_queries, k]``, or shorter if fewer documents were counted. Ties are in the
        order of positions.
        """
        first = np.searchsorted(self.kept.query, np.arange(self.n_queries))
        rows = first[:, None] + np.arange(min(self.k, int(self.kept.retrieved.min())))
        return self.kept.position[rows], self.kept.score[rows]

    def cut(self) -> tuple[Ints, Ints]:
        """Return ``(above, size)`` of the tie group at the cut, per query.

        ``size`` is the number of candidates with the `k`-th score, kept or not; 0 if fewer than
        `k` documents were counted. The cut is inside the group if above + size > k.
        """
        kept, threshold = self.kept, self.kept.threshold[self.kept.query]
        above = np.bincount(kept.query[kept.score > threshold], minlength=self.n_queries)
        size = np.bincount(kept.query[kept.score == threshold], minlength=self.n_queries)
        return above, np.where(kept.retrieved < self.k, 0, size + kept.forgotten)

    def groups(
        self,
        query: ArrayLike,
        position: ArrayLike,
        grade: ArrayLike,
        *,
        unretrieved: tuple[ArrayLike, ArrayLike] = ((), ()),
    ) -> TieGroups:
        """Return the tie groups of the first `k` places.

        Parameters
        ----------
        query, position, grade
            Per document of interest, as for `deadheat.ties.TieCounter`. A document that is not in
            `judged` and may be in the tie group at the cut is an error.
        unretrieved
            ``(query, grade)`` of the documents of interest that are not candidates.
        """
        kept = self.kept
        if (twice := find_twice(kept.query, kept.position)) is not None:
            raise InputError(
                f"position {kept.position[twice]} of query {kept.query[twice]} was counted more "
                "than once: count every candidate once"
            )
        unscored = np.zeros(np.size(position))
        given = read_documents(self.n_queries, query, unscored, grade, position, unretrieved)
        row = find_documents((kept.query, kept.position), (given.query, given.position))
        self._check_known((given.query, given.position), row)
        found = row >= 0
        absent = (
            np.concatenate((given.unretrieved[0], given.query[~found])),
            np.concatenate((given.unretrieved[1], given.grade[~found])),
        )
        documents = JudgedDocuments.sort(
            self.n_queries,
            given.query[found],
            kept.score[row[found]],
            given.grade[found],
            given.position[found],
            absent,
        )
        # All documents above the score at the cut are kept, and some with that score.
        first = np.searchsorted(kept.query, np.arange(self.n_queries + 1))
        bounds, rows = (first[:-1], first[1:]), np.sort(row[found])
        counts = count_lists(kept.score, bounds, documents.offsets, documents.score, rows)
        at_cut = documents.score == kept.threshold[documents.query]
        counts[1, at_cut] += kept.forgotten[documents.query[at_cut]]
        return TieGroups.from_counts(documents, counts, kept.retrieved.copy(), known=self.k)

    def _merge(self, one: Kept, other: Kept) -> Kept:
        """Return the top of two pieces, from the tops of both."""
        query = np.concatenate((one.query, other.query))
        position = np.concatenate((one.position, other.position))
        score = np.concatenate((one.score, other.score))
        order = np.lexsort((position, -score, query))
        query, position, score = query[order], position[order], score[order]
        retrieved = one.retrieved + other.retrieved
        first = np.searchsorted(query, np.arange(self.n_queries))
        threshold = np.full(self.n_queries, -np.inf)
        long = retrieved >= self.k
        threshold[long] = score[first[long] + self.k - 1]
        # Of the documents with the score at the cut, the first by position are among the k. Both
        # pieces kept enough of them, because at least as many documents are above the common cut.
        at_cut = score == threshold[query]
        kept = at_cut | (score > threshold[query])
        beyond = at_cut & (np.arange(len(query)) - first[query] >= self.k)
        if self.judged is not None:  # otherwise any document may be judged
            kept[beyond] = find_documents(self.judged, (query[beyond], position[beyond])) >= 0
        forgotten = np.bincount(query[at_cut & ~kept], minlength=self.n_queries)
        for piece in (one, other):
            forgotten += np.where(piece.threshold == threshold, piece.forgotten, 0)
        return Kept(retrieved, query[kept], position[kept], score[kept], threshold, forgotten)

    def _check_type(self, score_type: str | None) -> None:
        if None not in (self.score_type, score_type) and self.score_type != score_type:
            raise InputError(
                f"scores of {score_type} and of {self.score_type} are rounded differently: use "
                "one type for all pieces"
            )

    def _check_known(self, wanted: tuple[Ints, Ints], row: Ints) -> None:
        """Raise an error for a document that may have been dropped."""
        if self.judged is None:
            return
        doubtful = (row < 0) & (self.kept.forgotten[wanted[0]] > 0)
        doubtful &= find_documents(self.judged, wanted) < 0
        if doubtful.any():
            i = int(np.flatnonzero(doubtful)[0])
            raise InputError(
                f"the document at position {wanted[1][i]} of query {wanted[0][i]} is not in the "
                f"`judged` documents of the counter, and may tie with rank {self.k}: give every "
                "judged document when you create the counter"
            )


def find_documents(documents: tuple[Ints, Ints], wanted: tuple[Ints, Ints]) -> Ints:
    """Return the index of each wanted document, by query and position; −1 if it is missing.

    >>> listed = np.array([0, 0, 1]), np.array([7, 3, 7])
    >>> find_documents(listed, (np.array([1, 1]), np.array([7, 3])))
    array([ 2, -1])
    """
    n = len(documents[0])
    _, place = np.unique(np.concatenate((documents[1], wanted[1])), return_inverse=True)
    key = np.concatenate((documents[0], wanted[0])) * len(place) + place
    order = np.argsort(key[:n], kind="stable")
    at = np.searchsorted(key[:n], key[n:], sorter=order)
    found = np.append(order, -1)[at]
    return np.where(np.append(key[:n], -1)[found] == key[n:], found, -1)


def _find_best(scores: Matrix, least: Floats | None, k: int) -> Found:
    """Find the documents that may be in the top k.

    A tensor is searched on its device, and only the documents found are copied to the CPU. An array
    is searched some queries at a time. `least` is the lowest score of each query that counts.
    """
    if not isinstance(scores, np.ndarray):
        is_eight_bit = scores.is_floating_point() and scores.element_size() == 1
        if is_eight_bit or str(scores.dtype) == "torch.bool":
            scores = scores.float()  # torch may not compare these types
        lowest = None if least is None else scores.new_tensor(least)
        found = _is_among_best(scores, lowest, k).nonzero(as_tuple=True)
        score = to_floats(scores[found])
        return found[0].cpu().numpy(), found[1].cpu().numpy(), score
    blocks = []
    step = max(1, BLOCK // scores.shape[1])
    for first in range(0, len(scores), step):
        block = to_floats(scores[first : first + step])
        # These are scores of the same type, so the cast is exact.
        floor = None if least is None else least[first : first + step].astype(block.dtype)
        query, column = _is_among_best(block, floor, k).nonzero()
        blocks.append((query + first, column, block[query, column]))
    query, column, score = map(np.concatenate, zip(*blocks, strict=True))
    return query, column, score


def _is_among_best(scores: M, least: M | None, k: int) -> M:
    """Return which scores are at least `least`; if there are many, only the `k` best."""
    reaching: M = scores == scores
    if not reaching.all():
        raise nan_error()
    if least is not None:
        reaching = scores >= least[:, None]
    if int(reaching.sum()) > CROWD * k * len(scores) and k <= scores.shape[1]:
        if isinstance(scores, np.ndarray):
            best = np.partition(scores, -k, axis=1)[:, -k, None]
        else:
            best = scores.topk(k, dim=1).values[:, -1:]
        reaching &= scores >= best
    return reaching
