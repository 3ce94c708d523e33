"""Tie groups: all that a measure ever sees of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class TieGroups:
    """The tie groups that hold documents of interest, for all queries at once.

    Documents of interest are the relevant ones (all judged ones, where a measure asks for
    them). The arrays are of three lengths: one entry per group, per retrieved document of
    interest, or per query. Groups stand in the order of queries and, inside a query, of
    scores, high to low; documents in the order of groups and, inside a group, of grades,
    high to low.
    """

    query: Ints
    """Per group: index of its query."""
    above: Ints
    """Per group: candidates scored strictly above it (``c``)."""
    size: Ints
    """Per group: candidates in it (``g``)."""
    group: Ints
    """Per document: index of its group."""
    grade: Floats
    """Per document: its grade."""
    rank: Ints
    """Per document: its rank under the tie rule, starting at 1."""
    retrieved: Ints
    """Per query: number of candidates."""
    ideal_query: Ints
    """Query of every document with a positive grade, retrieved or not, in order of queries."""
    ideal_grade: Floats
    """Its grade; inside a query from high to low."""
    end_above: Ints | None = None
    """Per query: candidates above the group that ends the list, where it was looked at."""
    end_size: Ints | None = None
    """Per query: candidates in the group that ends the list."""
    zeros: Ints | None = None
    """Per query: documents of interest of grade 0, retrieved or not."""
    top_grade: float | None = None
    """The highest grade of the judgements, where other queries may hold it."""
    ranked: bool = True
    """Whether `rank` follows a rule; if not, documents of interest come first in their group."""
    known: int | None = None
    """The last place of each list that is known, where that is not the whole list."""
    _memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.retrieved)

    def __getstate__(self) -> dict[str, Any]:
        """Give what makes the groups; what was derived from them is derived again."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init} | {"_memo": {}}

    @classmethod
    def concat(cls, parts: Sequence[TieGroups]) -> TieGroups:
        """Put the groups of different queries under one another, as if counted together."""

        def joined(name: str, counted: str | None = None) -> Any:
            """Entries of all parts; what counts things counts on from part to part."""
            arrays = [getattr(part, name) for part in parts]
            if any(array is None for array in arrays):
                return None
            if counted is not None:
                lengths = [len(getattr(part, counted)) for part in parts]
                starts = np.cumsum([0, *lengths[:-1]])
                arrays = [array + start for array, start in zip(arrays, starts, strict=True)]
            return np.concatenate(arrays)

        known = [part.top_grade for part in parts if part.top_grade is not None]
        return cls(
            query=joined("query", counted="retrieved"),
            group=joined("group", counted="size"),
            ideal_query=joined("ideal_query", counted="retrieved"),
            **{
                name: joined(name)
                for name in ("above", "size", "grade", "rank", "retrieved", "ideal_grade")
            },
            **{name: joined(name) for name in ("end_above", "end_size", "zeros")},
            top_grade=max(known, default=None),
            ranked=all(part.ranked for part in parts),
            known=min((part.known for part in parts if part.known is not None), default=None),
        )

    def memo(self, key: Any, compute: Callable[[], T]) -> T:
        """Compute a derived array once; measures share it."""
        if key not in self._memo:
            self._memo[key] = compute()
        value: T = self._memo[key]
        return value

    @cached_property
    def document_query(self) -> Ints:
        """Per document: index of its query."""
        return self.query[self.group]

    @cached_property
    def first_document(self) -> Ints:
        """Per group: index of its first document, one of its highest grade."""
        return firsts(self.group, len(self.size))

    @cached_property
    def first_group(self) -> Ints:
        """Per query: index of its first group; that of the next query's where it has none."""
        return firsts(self.query, self.n_queries)

    @cached_property
    def _index(self) -> Ints:
        """Per document: its index inside its group, 0 for the highest grade."""
        return np.arange(len(self.group)) - self.first_document[self.group]

    @cached_property
    def best_rank(self) -> Ints:
        """Per document: its rank when every group lists its highest grades first."""
        return self.above[self.group] + 1 + self._index

    @cached_property
    def worst_rank(self) -> Ints:
        """Per document: its rank when every group lists its highest grades last."""
        return (self.above + self.size)[self.group] - self._index

    @cached_property
    def ranks(self) -> Ints:
        """Per document, in three rows: its best, its worst, and its rank under the tie rule."""
        return np.array((self.best_rank, self.worst_rank, self.rank))

    @cached_property
    def tied(self) -> NDArray[np.bool_] | None:
        """Per query: does a document of interest share its score; None if none does."""
        query = self.query[self.size > 1]
        return np.bincount(query, minlength=self.n_queries) > 0 if len(query) else None

    @cached_property
    def max_grade(self) -> float:
        """The highest grade of the judgements, 0 if no grade is positive."""
        own = float(self.ideal_grade.max(initial=0.0))
        return own if self.top_grade is None else max(own, self.top_grade)

    @cached_property
    def ideal_rank(self) -> Ints:
        """Rank of every document with a positive grade in the ideal ranking of its query."""
        first = firsts(self.ideal_query, self.n_queries)
        return np.arange(1, len(self.ideal_query) + 1) - first[self.ideal_query]

    def is_relevant(self, rel: float | None) -> NDArray[np.bool_]:
        """Per document: does its grade reach `rel`, or is it positive where `rel` is None."""
        return self.memo(("is_relevant", rel), lambda: reaches(self.grade, rel))

    def relevant(self, rel: float | None) -> Floats:
        """Per group: relevant documents in it (``r``)."""
        return self.memo(("relevant", rel), lambda: self.sum_groups(self.is_relevant(rel)))

    def relevant_above(self, rel: float | None) -> Floats:
        """Per group: relevant documents scored strictly above it (``R``)."""
        return self.memo(("relevant_above", rel), lambda: self.sum_above(self.relevant(rel)))

    def relevant_documents(self, rel: float | None) -> tuple[Ints, Ints]:
        """Give the index of every relevant document, and its query."""

        def compute() -> tuple[Ints, Ints]:
            index = self.is_relevant(rel).nonzero()[0]
            return index, self.document_query[index]

        return self.memo(("relevant_documents", rel), compute)

    def n_relevant(self, rel: float | None) -> Floats:
        """Per query: relevant documents the judgements know, retrieved or not (``N``)."""

        def compute() -> Floats:
            return self.sum_queries(reaches(self.ideal_grade, rel), self.ideal_query)

        return self.memo(("n_relevant", rel), compute)

    def is_nonrelevant(self, rel: float | None) -> NDArray[np.bool_]:
        """Per document: was it judged not relevant; a grade below 0 is no judgement."""
        return np.asarray((self.grade >= 0) & ~self.is_relevant(rel))

    def n_nonrelevant(self, rel: float | None) -> Floats:
        """Per query: documents judged not relevant, retrieved or not."""
        if self.zeros is None:
            raise InputError("these tie groups do not know the judged documents of grade 0")
        return self.zeros + self.n_relevant(None) - self.n_relevant(rel)

    def sum_groups(self, values: NDArray[Any]) -> Floats:
        """Add up a value per document for each group."""
        return _sums(self.group, values, len(self.size))

    def sum_above(self, values: Floats) -> Floats:
        """Per group: a value per group, added up over the groups above it in its query."""
        earlier = values.cumsum() - values
        return np.asarray(earlier - earlier[self.first_group[self.query]])

    def sum_queries(self, values: NDArray[Any], query: Ints | None = None) -> Floats:
        """Add up a value per group (or per entry of `query`) for each query.

        Of several rows of values, each row is added up for itself.
        """
        query = self.query if query is None else query
        if values.ndim == 1:
            return _sums(query, values, self.n_queries)
        return np.array([_sums(query, row, self.n_queries) for row in values])


def check_groups(groups: TieGroups) -> None:
    """Refuse groups that no ranked lists have, such as wrong ones made by hand."""
    n, per_group, per_document = groups.n_queries, groups.query, groups.group
    lengths = (
        len(per_group) == len(groups.above) == len(groups.size)
        and len(per_document) == len(groups.grade) == len(groups.rank)
        and len(groups.ideal_query) == len(groups.ideal_grade)
    )
    if not lengths:
        raise InputError("these tie groups hold arrays that differ in length")
    indices = (
        (per_group, n),
        (per_document, len(per_group)),
        (groups.ideal_query, n),
    )
    for index, limit in indices:
        if len(index) and (index[0] < 0 or index[-1] >= limit or (np.diff(index) < 0).any()):
            raise InputError("these tie groups are not in the order of queries and groups")
    documents = np.bincount(per_document, minlength=len(per_group))
    first = groups.above[per_document] < groups.rank
    last = groups.rank <= (groups.above + groups.size)[per_document]
    if not (first & last).all() or (documents > groups.size).any() or (groups.above < 0).any():
        raise InputError("these tie groups hold a document outside of its group's places")
    if ((groups.above + groups.size) > groups.retrieved[per_group]).any():
        raise InputError("these tie groups hold a group that is longer than its query's list")


def reaches(grade: Floats, rel: float | None) -> NDArray[np.bool_]:
    """Tell which grades count as relevant: at least `rel`, or positive where `rel` is None."""
    return np.asarray(grade > 0 if rel is None else grade >= rel)


def falling(query: Ints, score: NDArray[Any], place: Ints) -> Ints:
    """Order documents by query and, inside it, by score, high to low; equal ones by their place."""
    return np.lexsort((place, -score, query))


def firsts(index: Ints, length: int) -> Ints:
    """Where each of `length` things begins, in entries that stand in the order of these things.

    >>> firsts(np.array([0, 0, 2]), 3)
    array([0, 2, 2])
    """
    number = np.bincount(index, minlength=length)
    return number.cumsum() - number


def begins(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """Per entry: is it the first of those that stand together and have the same keys.

    >>> begins(np.array([0, 0, 0, 1]), np.array([0.5, 0.5, 0.25, 0.25]))
    array([ True, False,  True,  True])
    """
    first = np.empty(len(keys[0]), bool)
    first[:1], later = True, first[1:]
    np.not_equal(keys[0][1:], keys[0][:-1], out=later)
    for key in keys[1:]:
        later |= key[1:] != key[:-1]
    return first


def _sums(index: Ints, values: NDArray[Any], length: int) -> Floats:
    weights = values.astype(np.float64, copy=False)
    return np.bincount(index, weights, length).astype(np.float64, copy=False)
