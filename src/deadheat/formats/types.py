"""The internal types of judgements and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import LARGEST_GRADE, FloatArray, rounded
from deadheat.errors import InputError
from deadheat.formats.ids import id_column
from deadheat.formats.keys import places_of

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Judgements:
    """Judged documents of all queries, in the order of the source."""

    source: str
    """Source of the judgements, for messages."""
    query_ids: list[str]
    offsets: Ints
    """The judgements of query ``q`` are ``offsets[q]:offsets[q + 1]``."""
    doc_ids: list[str]
    """Per judgement: the id of its document."""
    grades: NDArray[np.float64]
    numbered: bool = False
    """Whether the queries were given as whole numbers."""
    max_grade: float = -1
    """The highest grade of all judgements, also if this is a part of them. Default: computed."""
    query: Ints = field(init=False, repr=False)
    """Per judgement: the index of its query."""
    has_relevant: NDArray[np.bool_] = field(init=False, repr=False)
    """Per query: whether one of its documents is relevant."""

    def __post_init__(self) -> None:
        """Derive the fields that are not given, and check the grades."""
        if self.max_grade < 0:  # not a part of judgements that were checked already
            if not len(self.grades):
                raise InputError(f"{self.source}: there are no judgements")
            self._check_grades()
            object.__setattr__(self, "max_grade", float(self.grades.max(initial=0)))
        n_queries = len(self.query_ids)
        query = np.arange(n_queries).repeat(self.offsets[1:] - self.offsets[:-1])
        n_relevant = np.bincount(query[self.grades > 0], minlength=n_queries)
        object.__setattr__(self, "query", query)
        object.__setattr__(self, "has_relevant", n_relevant > 0)

    def _check_grades(self) -> None:
        """Raise an error for the first grade that is NaN, infinite or too large."""
        is_valid = np.abs(self.grades) <= LARGEST_GRADE
        if is_valid.all():
            return
        row = int(np.argmin(is_valid))
        query = self.query_ids[int(np.searchsorted(self.offsets, row, "right")) - 1]
        value = "NaN" if np.isnan(self.grades[row]) else f"{self.grades[row]:g}"
        raise InputError(
            f"{self.source}: the grade of document {self.doc_ids[row]!r} of query {query!r} "
            f"is {value}, which is not valid; correct it or remove the row"
        )

    def part(self, start: int, stop: int) -> Judgements:
        """Return the judgements of the queries ``start … stop − 1`` only."""
        first, last = self.offsets[start], self.offsets[stop]
        return replace(
            self,
            query_ids=self.query_ids[start:stop],
            offsets=self.offsets[start : stop + 1] - first,
            doc_ids=self.doc_ids[first:last],
            grades=self.grades[first:last],
        )

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return ``{query: {document: grade}}``, the form of BEIR, pytrec_eval and ranx."""
        return _by_query(self.query_ids, self.offsets, self.doc_ids, self.grades)


class Documents(Protocol):
    """The documents of a run, one per row."""

    def ids(self, rows: Ints) -> pl.Series:
        """Ids of the documents in these rows."""

    def find(self, queries: Ints, doc_ids: list[str]) -> Ints:
        """Row of each document in the list of its query, −1 where it was not retrieved."""


@dataclass(frozen=True, eq=False)
class Run:
    """Scored documents of all queries, in the order of the source."""

    source: str
    """Source of the run, for messages."""
    query_ids: list[str]
    offsets: Ints
    """The documents of query ``q`` are the rows ``offsets[q]:offsets[q + 1]``."""
    scores: FloatArray
    """Per row: float32 or float64, with the order and the ties of the original scores."""
    documents: Documents = field(repr=False)
    ranks: Ints | None = None
    """The rank column, if the source has one and it was requested."""
    complete: bool = False
    """Whether each list is known to be complete: nothing was cut off."""
    exact: NDArray[np.object_] | NDArray[np.float64] | None = field(default=None, repr=False)
    """The original scores if float64 cannot hold them; `scores` then has only their order."""
    n_tied_beyond_cut: Ints | None = None
    """Per query: number of unlisted documents that tie with the last one; None if unknown."""

    @property
    def rounded(self) -> FloatArray:
        """Per row: the original score, rounded to float64 if that cannot hold it."""
        return self.scores if self.exact is None else rounded(self.exact)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return ``{query: {document: score}}``, the form of BEIR, pytrec_eval and ranx."""
        ids = self.documents.ids(np.arange(self.offsets[-1]))
        return _by_query(self.query_ids, self.offsets, ids.to_list(), self.rounded)

    @cached_property
    def query_index(self) -> dict[str, int]:
        """Index of each query id."""
        return {query: i for i, query in enumerate(self.query_ids)}


def repeated_document(source: str, query: str, doc: str) -> InputError:
    """Return the error for a document that a query lists more than once."""
    return InputError(
        f"{source}: query {query!r} lists document {doc!r} more than once; keep one score for it"
    )


@dataclass(frozen=True)
class ColumnDocuments(Documents):
    """Documents from a column of ids; raises an error if a query lists one twice."""

    source: str
    query_ids: Sequence[str]
    offsets: Ints
    doc_ids: pl.Series

    def __post_init__(self) -> None:
        # Sorting 64-bit keys of (query, hash of the id) is faster than comparing the ids, and finds
        # candidates for a duplicate.
        rows = self._rows
        query = rows["query"].to_numpy().astype(np.uint64)
        keys = (query << np.uint64(40)) | (self.doc_ids.hash().to_numpy() >> np.uint64(24))
        sorted_keys = np.sort(keys)
        if not (sorted_keys[1:] == sorted_keys[:-1]).any():
            return
        if (twice := rows.is_duplicated()).any():
            number, doc = rows.row(int(twice.arg_max() or 0))
            raise repeated_document(self.source, self.query_ids[number], doc)

    @property
    def _rows(self) -> pl.DataFrame:
        query = np.repeat(np.arange(len(self.query_ids), dtype=np.int32), np.diff(self.offsets))
        return pl.DataFrame({"query": query, "doc": self.doc_ids})

    def ids(self, rows: Ints) -> pl.Series:
        """Ids of the documents in these rows."""
        return self.doc_ids.gather(rows)

    def find(self, queries: Ints, doc_ids: list[str]) -> Ints:
        """Row of each document in the list of its query, −1 where it was not retrieved."""
        ids = id_column(doc_ids)
        sought = pl.DataFrame({"query": queries.astype(np.int32), "doc": ids})
        rows = self._rows.with_row_index("row")
        # Few documents are judged, so filtering by id first leaves little to join.
        retrieved = rows.filter(pl.col("doc").is_in(ids.unique().implode())).join(
            sought.with_row_index("place"), on=["query", "doc"]
        )
        row = np.full(len(queries), -1, np.int64)
        row[retrieved["place"].to_numpy()] = retrieved["row"].to_numpy()
        return row


@dataclass(frozen=True)
class DictDocuments(Documents):
    """Documents that are the keys of a dictionary per query, all of them text."""

    offsets: Ints
    lists: Sequence[dict[object, object]]

    def ids(self, rows: Ints) -> pl.Series:
        """Ids of the documents in these rows."""
        query = np.searchsorted(self.offsets, rows, "right") - 1
        keys = {q: list(self.lists[q]) for q in np.unique(query).tolist()}
        place = rows - self.offsets[query]
        pairs = zip(query.tolist(), place.tolist(), strict=True)
        return id_column([str(keys[q][i]) for q, i in pairs])

    def find(self, queries: Ints, doc_ids: list[str]) -> Ints:
        """Row of each document in the list of its query, −1 where it was not retrieved."""
        bounds = [0, *((queries[1:] != queries[:-1]).nonzero()[0] + 1).tolist(), len(queries)]
        found: list[int] = []
        for a, b in pairwise(bounds if len(queries) else ()):
            wanted = dict(zip(doc_ids[a:b], range(b - a), strict=True))
            found += places_of(self.lists[int(queries[a])], wanted)
        place = np.array(found, np.int64)
        return np.where(place >= 0, place + self.offsets[queries], -1)


@dataclass(frozen=True)
class SharedDocuments(Documents):
    """Documents that every query lists, all in the same order: a corpus."""

    doc_ids: pl.Series

    @cached_property
    def _position(self) -> dict[str, int]:
        return {doc: i for i, doc in enumerate(self.doc_ids.to_list())}

    def ids(self, rows: Ints) -> pl.Series:
        """Ids of the documents in these rows."""
        return self.doc_ids.gather(rows % len(self.doc_ids))

    def find(self, queries: Ints, doc_ids: list[str]) -> Ints:
        """Return the row of each document in the list of its query, −1 if it is missing."""
        position = np.array([self._position.get(doc, -1) for doc in doc_ids], np.int64)
        return np.where(position >= 0, position + queries * len(self.doc_ids), -1)


def _by_query(
    query_ids: Sequence[str], offsets: Ints, ids: list[str], numbers: FloatArray
) -> dict[str, dict[str, float]]:
    values, bounds = numbers.tolist(), offsets.tolist()
    return {
        query: dict(zip(ids[start:stop], values[start:stop], strict=True))
        for query, start, stop in zip(query_ids, bounds[:-1], bounds[1:], strict=True)
    }
