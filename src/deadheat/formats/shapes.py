"""The one shape that judgements and runs have inside deadheat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.formats.ids import id_column, text_id, with_text_ids
from deadheat.formats.keys import places_of
from deadheat.late import pl
from deadheat.numbers import rounded

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Origins:
    """Which of several files each row of a run was read from."""

    files: Sequence[str]
    number: NDArray[Any]
    """Per row: the place of its file among them."""

    def __getitem__(self, rows: Any) -> Origins:
        return Origins(self.files, self.number[rows])

    def names(self, *rows: int) -> str:
        """Name the files of some rows, each once."""
        return " and ".join(dict.fromkeys(self.files[int(self.number[row])] for row in rows))


@dataclass(frozen=True)
class Judgements:
    """Judged documents of all queries, the queries in the order of the source."""

    source: str
    """What the judgements were read from, for messages."""
    query_ids: list[str]
    offsets: Ints
    """The judgements of query ``q`` are ``offsets[q]:offsets[q + 1]``."""
    doc_ids: pl.Series
    grades: NDArray[np.float64]
    numbered: bool = False
    """Whether the queries were given as whole numbers."""

    def part(self, start: int, stop: int) -> Judgements:
        """Judgements of the queries ``start … stop − 1`` alone."""
        first, last = self.offsets[start], self.offsets[stop]
        return replace(
            self,
            query_ids=self.query_ids[start:stop],
            offsets=self.offsets[start : stop + 1] - first,
            doc_ids=self.doc_ids[int(first) : int(last)],
            grades=self.grades[first:last],
        )

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Give ``{query: {document: grade}}``, as BEIR, pytrec_eval and ranx take it."""
        return _by_query(self.query_ids, self.offsets, self.doc_ids, self.grades)

    @cached_property
    def _listed_ids(self) -> list[str]:
        return self.doc_ids.to_list()

    def named(self, rows: Ints, documents: Documents) -> pl.Series | list[str]:
        """Ids of the documents of these judgements, as `documents` are best asked for them."""
        if not isinstance(documents, DictDocuments):
            return self.doc_ids.gather(rows)
        ids = self._listed_ids
        return [ids[row] for row in rows.tolist()]


class Documents(Protocol):
    """The documents of a run, one per row."""

    def ids(self, rows: Ints) -> pl.Series:
        """Ids of the documents in these rows."""

    def find(self, queries: Ints, doc_ids: pl.Series) -> Ints:
        """Row of each document in the list of its query, −1 where it was not retrieved."""


@dataclass(frozen=True)
class Run:
    """Scored documents of all queries, in the order of the source."""

    source: str
    """What the run was read from, for messages."""
    query_ids: list[str]
    offsets: Ints
    """The documents of query ``q`` are the rows ``offsets[q]:offsets[q + 1]``."""
    scores: NDArray[Any]
    """Per row: float32 or float64 of the order and the ties of the scores given."""
    documents: Documents = field(repr=False)
    ranks: Ints | None = None
    """The rank column, where the source has one and it was asked for."""
    complete: bool = False
    """Whether each list is known to hold every candidate there is."""
    exact: NDArray[Any] | None = field(default=None, repr=False)
    """Where `scores` are only places, because float64 cannot hold the scores: the scores given."""
    beyond: Ints | None = None
    """Per query, where known: documents that tie with the last of the list and are not in it."""
    origins: Origins | None = field(default=None, repr=False)
    """The files that the rows come from, where there are several."""

    def origin(self, row: int) -> str:
        """What a row was read from, for messages."""
        return self.source if self.origins is None else self.origins.names(row)

    @property
    def rounded(self) -> NDArray[Any]:
        """Per row: the score given, rounded to float64 where it cannot be held."""
        return self.scores if self.exact is None else rounded(self.exact)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Give ``{query: {document: score}}``, as BEIR, pytrec_eval and ranx take it."""
        ids = self.documents.ids(np.arange(self.offsets[-1]))
        return _by_query(self.query_ids, self.offsets, ids, self.rounded)

    @cached_property
    def query_index(self) -> dict[str, int]:
        """Index of each query id."""
        return {query: i for i, query in enumerate(self.query_ids)}


@dataclass(frozen=True)
class ColumnDocuments:
    """Documents from a column of ids; refuses a document that one query lists twice."""

    source: str
    query_ids: Sequence[str]
    offsets: Ints
    doc_ids: pl.Series
    origins: Origins | None = None

    def __post_init__(self) -> None:
        # Sorting 64-bit keys of (query, hash of the id) finds candidates for a duplicate.
        query = self._query.astype(np.uint64)
        keys = (query << np.uint64(40)) | (self.doc_ids.hash().to_numpy() >> np.uint64(24))
        sorted_keys = np.sort(keys)
        twice = sorted_keys[1:][sorted_keys[1:] == sorted_keys[:-1]]
        for row in np.flatnonzero(np.isin(keys, twice)) if len(twice) else ():
            q = self._query[row]
            start, stop = int(self.offsets[q]), int(self.offsets[q + 1])
            same = (self.doc_ids[start:stop] == self.doc_ids[int(row)]).arg_true().to_list()
            if len(same) > 1:
                origins = self.origins
                files = self.source if origins is None else origins[start:stop].names(*same)
                raise InputError(
                    f"{files}: query {self.query_ids[q]!r} lists document "
                    f"{self.doc_ids[int(row)]!r} more than once; keep one score for it"
                )

    @property
    def _query(self) -> NDArray[np.int32]:
        return np.repeat(np.arange(len(self.query_ids), dtype=np.int32), np.diff(self.offsets))

    def ids(self, rows: Ints) -> pl.Series:
        """Ids of the documents in these rows."""
        return self.doc_ids.gather(rows)

    def find(self, queries: Ints, doc_ids: pl.Series) -> Ints:
        """Row of each document in the list of its query, −1 where it was not retrieved."""
        sought = pl.DataFrame({"query": queries.astype(np.int32), "doc": doc_ids}).with_row_index(
            "place"
        )
        rows = pl.DataFrame({"query": self._query, "doc": self.doc_ids}).with_row_index("row")
        # Few documents are judged: a look-up of the id alone leaves little to join.
        retrieved = rows.filter(pl.col("doc").is_in(doc_ids.unique().implode())).join(
            sought, on=["query", "doc"]
        )
        row = np.full(len(queries), -1, np.int64)
        row[retrieved["place"].to_numpy()] = retrieved["row"].to_numpy()
        return row


@dataclass(frozen=True)
class DictDocuments:
    """Documents that are the keys of a dictionary per query."""

    source: str
    query_ids: Sequence[str]
    offsets: Ints
    lists: Sequence[dict[Any, Any]]

    def ids(self, rows: Ints) -> pl.Series:
        """Ids of the documents in these rows."""
        query = np.searchsorted(self.offsets, rows, "right") - 1
        keys = {q: list(self.lists[q]) for q in np.unique(query).tolist()}
        place = rows - self.offsets[query]
        ids = [
            text_id(keys[q][i], self.source)
            for q, i in zip(query.tolist(), place.tolist(), strict=True)
        ]
        return id_column(ids)

    def find(self, queries: Ints, doc_ids: pl.Series | list[str]) -> Ints:
        """Row of each document in the list of its query, −1 where it was not retrieved."""
        new = np.ones(len(queries), bool)
        new[1:] = queries[1:] != queries[:-1]
        first = new.nonzero()[0]
        bounds = [*first.tolist(), len(queries)]
        ids = doc_ids if isinstance(doc_ids, list) else doc_ids.to_list()
        places: list[int] = []
        for q, a, b in zip(queries[first].tolist(), bounds, bounds[1:], strict=False):
            wanted = dict(zip(ids[a:b], range(b - a), strict=True))
            places += self.places(q, wanted)
        place = np.array(places, np.int64)
        return np.where(place >= 0, place + self.offsets[queries], -1)

    def places(self, q: int, wanted: dict[str, int]) -> list[int]:
        """Place of each of the wanted documents in the list of query `q`, −1 where it is not."""
        found = places_of(self.lists[q], wanted)
        return places_of(self._as_text(q), wanted) or [] if found is None else found

    def _as_text(self, q: int) -> dict[str, Any]:
        """List of query `q` with ids that are not text written as text."""
        return with_text_ids(self.lists[q], f"{self.source}, query {self.query_ids[q]!r}")


@dataclass(frozen=True)
class SharedDocuments:
    """Documents that every query lists, all in the same order: a corpus."""

    doc_ids: pl.Series

    @cached_property
    def _position(self) -> dict[str, int]:
        return {doc: i for i, doc in enumerate(self.doc_ids.to_list())}

    def ids(self, rows: Ints) -> pl.Series:
        """Ids of the documents in these rows."""
        return self.doc_ids.gather(rows % len(self.doc_ids))

    def find(self, queries: Ints, doc_ids: pl.Series) -> Ints:
        """Row of each document in the list of its query, −1 where the corpus lacks it."""
        position = np.array([self._position.get(doc, -1) for doc in doc_ids.to_list()], np.int64)
        return np.where(position >= 0, position + queries * len(self.doc_ids), -1)


def _by_query(
    query_ids: Sequence[str], offsets: Ints, doc_ids: pl.Series, numbers: NDArray[Any]
) -> dict[str, dict[str, float]]:
    ids, values, bounds = doc_ids.to_list(), numbers.tolist(), offsets.tolist()
    return {
        query: dict(zip(ids[start:stop], values[start:stop], strict=True))
        for query, start, stop in zip(query_ids, bounds[:-1], bounds[1:], strict=True)
    }
