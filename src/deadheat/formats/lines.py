"""The fast reader of TREC runs: ASCII, decimal scores.

It reads the data once and copies no ids: a document is identified by the offset of its id, its
length and a hash. `trec.py` reads all other runs, and all runs if nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import LARGEST_WHOLE
from deadheat._internal.packages import available_cores
from deadheat._internal.threads import share_work
from deadheat.formats.columns import group_stretches
from deadheat.formats.ids import id_column
from deadheat.formats.types import Documents, Ints, Run, repeated_document

compiled: Any
try:
    compiled = import_module("deadheat.formats.compiled_lines")
except ImportError:  # no C compiler when deadheat was installed
    compiled = None

_COLUMN_TYPES = (np.int64, np.int32, np.uint32, np.float64)
"""Per line: the offset of the document id, its length and its hash; and the score."""
_PIECE = 1 << 24
"""Smallest number of bytes per thread."""


@dataclass(frozen=True)
class LineDocuments(Documents):
    """Documents in the lines of a file; raises an error if a query lists one twice."""

    source: str
    query_ids: Sequence[str]
    offsets: Ints
    data: bytes = field(repr=False)
    starts: Ints
    """Per document: the offset of its id in the data."""
    lengths: NDArray[np.int32]
    hashes: NDArray[np.uint32]

    def __post_init__(self) -> None:
        twice = compiled.first_twice(
            self.data, self.starts, self.lengths, self.hashes, self.offsets
        )
        if twice is not None:
            q = int(np.searchsorted(self.offsets, twice[0], "right")) - 1
            raise repeated_document(self.source, self.query_ids[q], self._id(twice[0]))

    def ids(self, rows: Ints) -> pl.Series:
        """Return the ids of the documents in these rows."""
        return id_column([self._id(row) for row in np.asarray(rows).tolist()])

    def find(self, queries: Ints, doc_ids: list[str]) -> Ints:
        """Return the row of each document in the list of its query, −1 if it was not retrieved."""
        ids = [doc.encode() for doc in doc_ids]
        ends = np.cumsum([0, *map(len, ids)], dtype=np.int64)
        found: Ints = compiled.find(
            self.data,
            self.starts,
            self.lengths,
            self.hashes,
            self.offsets,
            np.asarray(queries, np.int64),
            b"".join(ids),
            ends,
        )
        return found

    def _id(self, row: int) -> str:
        start = int(self.starts[row])
        return self.data[start : start + int(self.lengths[row])].decode()


def run_from_lines(source: str, data: bytes, fields: Sequence[str]) -> Run | None:
    """Read a run, with one thread per core; None if `trec.py` must read it.

    Parameters
    ----------
    fields
        The fields of a line; the first is the query. They include ``doc_id`` and ``score``.
    """
    if compiled is None:
        return None
    doc, score = fields.index("doc_id"), fields.index("score")

    def read(bounds: tuple[int, int]) -> tuple[list[str], Ints, list[NDArray[np.generic]]] | None:
        """Return the query and length of each stretch of lines with one query; and the columns."""
        lines = compiled.count_lines(data, *bounds) + 1
        columns = [np.empty(lines, type_) for type_ in _COLUMN_TYPES]
        found = compiled.scan(data, *bounds, len(fields), doc, score, *columns)
        if found is None:
            return None
        rows, stretches = found
        queries = [data[start : start + length].decode() for _, start, length in stretches.tolist()]
        lengths = np.diff(stretches[:, 0], append=rows)
        return queries, lengths, [column[:rows] for column in columns]

    bounds = list(pairwise(_cuts(data)))
    found = list(share_work(read, bounds, len(bounds)))
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    queries, lengths, by_part = zip(*parts, strict=True)
    columns = [np.concatenate(column) for column in zip(*by_part, strict=True)]
    scores = columns[-1]
    if not len(scores) or max(scores.max(), -scores.min()) >= LARGEST_WHOLE:
        return None
    stretches = pl.Series(list(chain.from_iterable(queries)), dtype=pl.String)
    query_ids, offsets, order = group_stretches(stretches, np.concatenate(lengths))
    if order is not None:
        columns = [column[order] for column in columns]
    *places, scores = columns
    documents = LineDocuments(source, query_ids, offsets, data, *places)
    return Run(source, query_ids, offsets, scores, documents)


def _cuts(data: bytes) -> list[int]:
    """Return the offsets at which the data is split between threads: ends of lines."""
    parts = max(1, min(available_cores(), len(data) // _PIECE))
    cuts = [0]
    for i in range(1, parts):
        end = data.find(b"\n", max(cuts[-1], len(data) * i // parts)) + 1
        if cuts[-1] < end < len(data):
            cuts.append(end)
    return [*cuts, len(data)]
