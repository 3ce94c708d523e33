"""Tie groups: all that a measure ever sees of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.ties import counting
from deadheat.ties.numpy_counting import Counts, Floats as Floats, Ints as Ints, Scores, offsets_of


class JudgedDocuments(NamedTuple):
    """Documents of interest, sorted by query, by score from high to low, and by position."""

    n_queries: int
    query: Ints
    """Per document: index of its query."""
    score: Scores
    """Per document: its score."""
    grade: Floats
    """Per document: its grade."""
    position: Ints
    """Per document: its place in its query's list, starting at 0; 0 where it is not known."""
    offsets: Ints
    """The documents of query ``q`` are ``offsets[q]:offsets[q + 1]``."""
    unretrieved: tuple[Ints, Floats]
    """Query and grade of the documents of interest that are not in their query's list."""

    @classmethod
    def sort(
        cls,
        n_queries: int,
        query: Ints,
        score: Scores,
        grade: Floats,
        position: Ints,
        unretrieved: tuple[Ints, Floats],
    ) -> JudgedDocuments:
        """Sort documents that are given in any order."""
        order, offsets = counting.active.sort_documents(query, score, position, n_queries)
        columns = query[order], score[order], grade[order], position[order]
        return cls(n_queries, *columns, offsets, unretrieved)


_ARRAYS = {
    "groups": ("query", "above", "size"),
    "documents": ("group", "grade", "rank"),
    "ideal": ("ideal_query", "ideal_grade"),
    "queries": ("retrieved",),
    "queries, where known": ("end_above", "end_size", "zeros"),
}
"""The arrays of tie groups by what they have an entry for."""
_INDEXED = {"query": "retrieved", "ideal_query": "retrieved", "group": "size"}
"""Arrays of indices, and an array with an entry for each thing that they index."""


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
    """Per query: candidates above the group that ends the list, where that can matter."""
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
    derived: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Arrays that measures computed from the others, and share."""

    @classmethod
    def from_counts(
        cls,
        documents: JudgedDocuments,
        counts: Counts,
        retrieved: Ints,
        *,
        rank: Ints | None = None,
        ranked: bool = True,
        end: tuple[Ints, Ints] | tuple[None, None] = (None, None),
        top_grade: float | None = None,
        known: int | None = None,
    ) -> TieGroups:
        """Build the tie groups of documents whose candidates were counted.

        Parameters
        ----------
        counts
            Per document, in three rows: candidates above, equal, and tied before it.
        retrieved
            Per query: number of candidates.
        rank
            Per document: its rank under the tie rule; input order, as counted, unless given.
        ranked
            Whether ranks are known. If not, the documents of interest of a group are its first.
        end
            ``(above, size)`` of the group that ends each query's list.
        top_grade, known
            As the fields of this class.
        """
        query, grade = documents.query, documents.grade
        above, equal, before = counts
        first, group, order = counting.active.group_documents(query, documents.score, grade)
        if rank is None:
            rank = above + 1 + (before if ranked else np.arange(len(group)) - first[group])
        ideal_query, ideal_grade = query, grade
        if len(documents.unretrieved[0]):
            ideal_query = np.concatenate((query, documents.unretrieved[0]))
            ideal_grade = np.concatenate((grade, documents.unretrieved[1]))
        positive = ideal_grade > 0
        if np.count_nonzero(positive) < len(positive):
            zeros = np.bincount(ideal_query[ideal_grade == 0], minlength=len(retrieved))
            ideal_query, ideal_grade = ideal_query[positive], ideal_grade[positive]
        else:
            zeros = np.zeros(len(retrieved), np.int64)
        # Equal grades of a query need no order: any place will do.
        by_grade, _ = counting.active.sort_documents(
            ideal_query, ideal_grade, ideal_query, len(retrieved)
        )
        return cls(
            query=query[first],
            above=above[first],
            size=equal[first],
            group=group,
            grade=grade[order],
            rank=rank[order],
            retrieved=retrieved,
            ideal_query=ideal_query[by_grade],
            ideal_grade=ideal_grade[by_grade],
            end_above=end[0],
            end_size=end[1],
            zeros=zeros,
            top_grade=top_grade,
            ranked=ranked,
            known=known,
        )

    @cached_property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.retrieved)

    def __getstate__(self) -> dict[str, object]:
        """Return what makes the groups; what was derived from them is derived again."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init} | {"derived": {}}

    @classmethod
    def concat(cls, parts: Sequence[TieGroups]) -> TieGroups:
        """Put the groups of different queries under one another, as if counted together."""

        def join(name: str) -> NDArray[Any] | None:
            arrays = [getattr(part, name) for part in parts]
            if any(array is None for array in arrays):
                return None
            if name in _INDEXED:
                starts = accumulate((len(getattr(p, _INDEXED[name])) for p in parts), initial=0)
                arrays = [array + start for array, start in zip(arrays, starts, strict=False)]
            return np.concatenate(arrays)

        arrays: dict[str, Any] = {name: join(name) for kind in _ARRAYS.values() for name in kind}
        return cls(
            **arrays,
            top_grade=max((p.top_grade for p in parts if p.top_grade is not None), default=None),
            ranked=all(part.ranked for part in parts),
            known=min((part.known for part in parts if part.known is not None), default=None),
        )

    def take(self, queries: Ints) -> TieGroups:
        """Return the groups of these queries, in this order."""

        def number(chosen: Ints, n: int) -> Ints:
            """Per thing of `n`: its place among those chosen, −1 where it has none."""
            places = np.full(n, -1)
            places[chosen] = np.arange(len(chosen))
            return places

        def keep(places: Ints) -> Ints:
            """Return the indices of entries that have a place, in the order of places."""
            index = np.flatnonzero(places >= 0)
            return index[np.argsort(places[index], kind="stable")]

        place = number(queries, self.n_queries)
        groups = keep(place[self.query])
        group_place = number(groups, len(self.size))
        kept = {
            "groups": groups,
            "documents": keep(group_place[self.group]),
            "ideal": keep(place[self.ideal_query]),
            "queries": queries,
            "queries, where known": queries,
        }
        arrays: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[kept[kind]]
            for kind, names in _ARRAYS.items()
            for name in names
        }
        for name, counted in _INDEXED.items():
            arrays[name] = (place if counted == "retrieved" else group_place)[arrays[name]]
        return replace(self, **arrays, top_grade=self.max_grade)

    @cached_property
    def document_query(self) -> Ints:
        """Per document: index of its query."""
        return self.query[self.group]

    @cached_property
    def first_document(self) -> Ints:
        """Per group: index of its first document, one of its highest grade."""
        return offsets_of(self.group, len(self.size))

    @cached_property
    def _index(self) -> Ints:
        """Per document: its index inside its group, 0 for the highest grade."""
        return np.arange(len(self.group)) - self.first_document[self.group]

    @property
    def best_rank(self) -> Ints:
        """Per document: its rank when every group lists its highest grades first."""
        return self.above[self.group] + 1 + self._index

    @property
    def worst_rank(self) -> Ints:
        """Per document: its rank when every group lists its highest grades last."""
        return (self.above + self.size)[self.group] - self._index

    @cached_property
    def deepest(self) -> int:
        """The longest list; the longest ideal ranking if that is longer."""
        ends = self.above + self.size  # groups that were made to grow are longer than their lists
        ideal = np.bincount(self.ideal_query)
        return int(max(array.max(initial=0) for array in (self.retrieved, ends, ideal)))

    @cached_property
    def max_grade(self) -> float:
        """The highest grade of the judgements, 0 if no grade is positive."""
        own = float(self.ideal_grade.max(initial=0.0))
        return own if self.top_grade is None else max(own, self.top_grade)

    @property
    def lacks_relevant(self) -> NDArray[np.bool_]:
        """Per query: whether a relevant document was not retrieved."""
        found = np.bincount(self.query[self.group[self.grade > 0]], minlength=self.n_queries)
        return np.asarray(found < np.bincount(self.ideal_query, minlength=self.n_queries))

    def is_relevant(self, rel: float | None) -> NDArray[np.bool_]:
        """Per document: does its grade reach `rel`, or is it positive where `rel` is None."""
        return reaches(self.grade, rel)

    def n_relevant(self, rel: float | None) -> Floats:
        """Per query: relevant documents the judgements know, retrieved or not (``N``)."""
        query = self.ideal_query
        if rel is not None:
            query = query[self.ideal_grade >= rel]
        return np.bincount(query, minlength=self.n_queries).astype(np.float64)

    def n_nonrelevant(self, rel: float | None) -> Floats:
        """Per query: documents judged not relevant, retrieved or not."""
        if self.zeros is None:
            raise InputError("these tie groups do not know the judged documents of grade 0")
        return self.zeros + self.n_relevant(None) - self.n_relevant(rel)


def check_groups(groups: TieGroups) -> TieGroups:
    """Return the groups with arrays as kernels read them; refuse groups that no lists have."""

    def refuse_if(wrong: bool | np.bool_, what: str) -> None:
        if wrong:
            raise InputError(f"these tie groups {what}")

    arrays: dict[str, Any] = {}
    for kind in ("groups", "documents", "ideal", "queries"):
        for name in _ARRAYS[kind]:
            dtype = np.float64 if name.endswith("grade") else np.int64
            arrays[name] = np.ascontiguousarray(getattr(groups, name), dtype)
        lengths = {len(arrays[name]) for name in _ARRAYS[kind]}
        refuse_if(len(lengths) > 1, "hold arrays that differ in length")
    groups = replace(groups, **arrays)
    for name, indexed in _INDEXED.items():
        ends = np.concatenate(([0], arrays[name], [len(arrays[indexed]) - 1]))
        is_sorted = not len(arrays[name]) or (np.diff(ends) >= 0).all()
        refuse_if(not is_sorted, "are not in the order of queries and groups")
    group, end = groups.group, groups.above + groups.size
    rising = (np.diff(groups.grade) > 0) & (np.diff(group) == 0)
    refuse_if(rising.any(), "hold a group whose grades are not from high to low")
    outside = (groups.rank <= groups.above[group]) | (groups.rank > end[group])
    crowded = np.bincount(group, minlength=len(end)) > groups.size
    refuse_if(
        outside.any() or (crowded | (groups.above < 0)).any(),
        "hold a document outside of its group's places",
    )
    refuse_if(
        (end > groups.retrieved[groups.query]).any(),
        "hold a group that is longer than its query's list",
    )
    return groups


def reaches(grade: Floats, rel: float | None) -> NDArray[np.bool_]:
    """Per grade: whether it counts as relevant, at least `rel`, or positive where `rel` is None."""
    return np.asarray(grade > 0 if rel is None else grade >= rel)
