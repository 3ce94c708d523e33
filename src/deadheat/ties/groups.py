"""Tie groups: all that a measure ever sees of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.ties.counting import Bounds, Counts, count_lists, group_documents, sort_documents
from deadheat.ties.numpy_counting import Floats as Floats
from deadheat.ties.numpy_counting import Ints as Ints
from deadheat.ties.numpy_counting import offsets_of

T = TypeVar("T")


class JudgedDocuments(NamedTuple):
    """Documents of interest, sorted by query, by score from high to low, and by position."""

    n_queries: int
    query: Ints
    """Per document: index of its query."""
    score: NDArray[Any]
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
        score: NDArray[Any],
        grade: Floats,
        position: Ints,
        unretrieved: tuple[Ints, Floats],
    ) -> JudgedDocuments:
        """Sort documents that are given in any order."""
        order, offsets = sort_documents(query, score, position, n_queries)
        return cls(
            n_queries,
            query[order],
            score[order],
            grade[order],
            position[order],
            offsets,
            unretrieved,
        )

    def rescore(self, scores: NDArray[Any], bounds: Bounds) -> JudgedDocuments:
        """Sort the documents by other scores, which `bounds` divides into lists."""
        score = scores[self.rows(bounds)]
        return self.sort(
            self.n_queries, self.query, score, self.grade, self.position, self.unretrieved
        )

    def count_candidates(self, scores: NDArray[Any], bounds: Bounds) -> Counts:
        """Count the candidates above, equal to and tied before each document."""
        return count_lists(scores, bounds, self.offsets, self.score, self.rows(bounds))

    def rows(self, bounds: Bounds) -> Ints:
        """Per document: its index among the scores that `bounds` divides into lists."""
        return self.position + bounds[0][self.query]


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

    @classmethod
    def from_counts(
        cls,
        documents: JudgedDocuments,
        counts: Counts,
        retrieved: Ints,
        *,
        rank: Ints | None = None,
        ranked: bool = True,
        end: tuple[Ints, Ints] | None = None,
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
        above, equal, before = counts
        first, group, order = group_documents(documents.query, documents.score, documents.grade)
        if rank is None:
            rank = above + 1 + (before if ranked else np.arange(len(group)) - first[group])
        ideal_query, ideal_grade, zeros = _list_known_grades(documents)
        end_above, end_size = end or (None, None)
        return cls(
            query=documents.query[first],
            above=above[first],
            size=equal[first],
            group=group,
            grade=documents.grade[order],
            rank=rank[order],
            retrieved=retrieved,
            ideal_query=ideal_query,
            ideal_grade=ideal_grade,
            end_above=end_above,
            end_size=end_size,
            zeros=zeros,
            top_grade=top_grade,
            ranked=ranked,
            known=known,
        )

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

    def take(self, queries: Ints) -> TieGroups:
        """Return the groups of these queries, in this order."""
        place = np.full(self.n_queries, -1)
        place[queries] = np.arange(len(queries))

        def kept(entries: Ints) -> Ints:
            """Return the indices of entries that have a place, in the order of places."""
            index = np.flatnonzero(entries >= 0)
            return index[np.argsort(entries[index], kind="stable")]

        group = kept(place[self.query])
        group_place = np.full(len(self.size), -1)
        group_place[group] = np.arange(len(group))
        document, ideal = kept(group_place[self.group]), kept(place[self.ideal_query])
        per_query: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[queries]
            for name in ("retrieved", "end_above", "end_size", "zeros")
        }
        return replace(
            self,
            query=place[self.query[group]],
            above=self.above[group],
            size=self.size[group],
            group=group_place[self.group[document]],
            grade=self.grade[document],
            rank=self.rank[document],
            ideal_query=place[self.ideal_query[ideal]],
            ideal_grade=self.ideal_grade[ideal],
            top_grade=self.max_grade,
            **per_query,
        )

    def forget(self) -> None:
        """Free the derived arrays."""
        self._memo.clear()

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
        return offsets_of(self.group, len(self.size))

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

    def is_relevant(self, rel: float | None) -> NDArray[np.bool_]:
        """Per document: does its grade reach `rel`, or is it positive where `rel` is None."""
        return self.memo(("is_relevant", rel), lambda: reaches(self.grade, rel))

    def relevant(self, rel: float | None) -> Floats:
        """Per group: relevant documents in it (``r``)."""
        return self.memo(("relevant", rel), lambda: self.sum_groups(self.is_relevant(rel)))

    def n_relevant(self, rel: float | None) -> Floats:
        """Per query: relevant documents the judgements know, retrieved or not (``N``)."""

        def compute() -> Floats:
            return self.sum_queries(reaches(self.ideal_grade, rel), self.ideal_query)

        return self.memo(("n_relevant", rel), compute)

    def n_nonrelevant(self, rel: float | None) -> Floats:
        """Per query: documents judged not relevant, retrieved or not."""
        if self.zeros is None:
            raise InputError("these tie groups do not know the judged documents of grade 0")
        return self.zeros + self.n_relevant(None) - self.n_relevant(rel)

    def sum_groups(self, values: NDArray[Any]) -> Floats:
        """Add up a value per document for each group."""
        return _sums(self.group, values, len(self.size))

    def sum_queries(self, values: NDArray[Any], query: Ints | None = None) -> Floats:
        """Add up a value per group (or per entry of `query`) for each query."""
        return _sums(self.query if query is None else query, values, self.n_queries)


def check_groups(groups: TieGroups) -> TieGroups:
    """Return the groups with arrays as kernels read them; refuse groups that no lists have."""
    arrays: dict[str, Any] = {
        f.name: np.ascontiguousarray(
            getattr(groups, f.name), np.int64 if f.type == "Ints" else np.float64
        )
        for f in fields(groups)
        if f.type in ("Ints", "Floats")
    }
    groups = replace(groups, **arrays)
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
    rising = np.diff(groups.grade) > 0
    if (rising & (np.diff(per_document) == 0)).any():
        raise InputError("these tie groups hold a group whose grades are not from high to low")
    documents = np.bincount(per_document, minlength=len(per_group))
    first = groups.above[per_document] < groups.rank
    last = groups.rank <= (groups.above + groups.size)[per_document]
    if not (first & last).all() or (documents > groups.size).any() or (groups.above < 0).any():
        raise InputError("these tie groups hold a document outside of its group's places")
    if ((groups.above + groups.size) > groups.retrieved[per_group]).any():
        raise InputError("these tie groups hold a group that is longer than its query's list")
    return groups


def reaches(grade: Floats, rel: float | None) -> NDArray[np.bool_]:
    """Tell which grades count as relevant: at least `rel`, or positive where `rel` is None."""
    return np.asarray(grade > 0 if rel is None else grade >= rel)


def _sums(index: Ints, values: NDArray[Any], length: int) -> Floats:
    weights = values.astype(np.float64, copy=False)
    return np.bincount(index, weights, length).astype(np.float64, copy=False)


def _list_known_grades(documents: JudgedDocuments) -> tuple[Ints, Floats, Ints]:
    """List the grades that the judgements know, retrieved or not.

    Returns
    -------
    ideal_query, ideal_grade
        Of every document of a positive grade: query by query, from high to low.
    zeros
        Per query: documents of grade 0.
    """
    query, grade = documents.query, documents.grade
    if len(documents.unretrieved[0]):
        query = np.concatenate((query, documents.unretrieved[0]))
        grade = np.concatenate((grade, documents.unretrieved[1]))
    zeros = np.zeros(documents.n_queries, np.int64)
    positive = grade > 0
    if np.count_nonzero(positive) < len(grade):
        zeros += np.bincount(query[grade == 0], minlength=len(zeros))
        query, grade = query[positive], grade[positive]
    order, _ = sort_documents(query, grade, np.arange(len(query)), len(zeros))
    return query[order], grade[order], zeros
