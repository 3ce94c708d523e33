"""The fast reader of TREC runs: ASCII, decimal scores, rows mostly grouped by query.

It makes one pass and copies no ids: a document is known by the offset of its id in the data, its
length and a hash. `trec.py` reads all other runs, and every run where nothing was compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat._lazy import pl
from deadheat.errors import InputError
from deadheat.formats.columns import group_stretches
from deadheat.formats.ids import id_column
from deadheat.formats.types import Documents, Ints, Run
from deadheat.numbers import LARGEST_WHOLE
from deadheat.packages import available_cores

compiled: Any
try:
    compiled = import_module("deadheat.formats.compiled_lines")
except ImportError:  # no C compiler when deadheat was installed
    compiled = None

_PIECE = 1 << 24
"""Bytes per thread, at least."""
_MIN_STRETCH = 8
"""Adjacent rows of one query, on average, in a file that is read here."""
_MIN_CERTAIN = 20
"""At most one in so many scores may need Python's own conversion."""


@dataclass(frozen=True)
class LineDocuments(Documents):
    """Documents in the lines of a file; refuses one that a query lists twice."""

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
            row = twice[0]
            q = int(np.searchsorted(self.offsets, row, "right")) - 1
            raise InputError(
                f"{self.source}: query {self.query_ids[q]!r} lists document {self._id(row)!r} more "
                "than once; keep one score for it"
            )

    def ids(self, rows: Ints) -> pl.Series:
        """Ids of the documents in these rows."""
        return id_column([self._id(row) for row in np.asarray(rows).tolist()])

    def find(self, queries: Ints, doc_ids: pl.Series) -> Ints:
        """Row of each document in the list of its query, −1 where it was not retrieved."""
        ids = [doc.encode() for doc in doc_ids.to_list()]
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
    """Read a run; None if `trec.py` must read it.

    Parameters
    ----------
    fields
        The fields of a line: the query first, among others ``doc_id`` and ``score``.
    """
    if compiled is None:
        return None
    lines = _scan(data, len(fields), fields.index("doc_id"), fields.index("score"))
    if lines is None or not len(lines.scores) or not _are_plain(lines):
        return None
    texts = [data[start : start + length].decode() for _, start, length in lines.queries.tolist()]
    lengths = np.diff(lines.queries[:, 0], append=len(lines.scores))
    query_ids, offsets, order = group_stretches(pl.Series(texts, dtype=pl.String), lengths)
    columns = lines.columns if order is None else tuple(column[order] for column in lines.columns)
    *places, scores = columns
    documents = LineDocuments(source, query_ids, offsets, data, *places)
    return Run(source, query_ids, offsets, scores, documents)


@dataclass(frozen=True)
class _Lines:
    """Columns with an entry per line, and the stretches of adjacent lines of one query."""

    columns: tuple[NDArray[Any], ...]
    """The offset of the document id, its length and its hash; and the score."""
    queries: Ints
    """Per stretch: its first row, and the offset and the length of its query in the data."""

    @property
    def scores(self) -> NDArray[np.float64]:
        """The scores."""
        return self.columns[-1]


def _some(columns: Sequence[NDArray[Any]], start: int, stop: int) -> tuple[NDArray[Any], ...]:
    return tuple(column[start:stop] for column in columns)


def _scan(data: bytes, fields: int, doc: int, score: int) -> _Lines | None:
    """Read all lines, in as many threads as there are cores."""
    from concurrent.futures import ThreadPoolExecutor  # it takes a while to import

    stretches = list(pairwise(_cuts(data)))
    with ThreadPoolExecutor(len(stretches)) as threads:
        counts = list(threads.map(lambda part: compiled.count_lines(data, *part), stretches))
        counts[-1] += not data.endswith(b"\n")
        firsts = np.cumsum([0, *counts]).tolist()
        arrays = [
            np.empty(firsts[-1], type_) for type_ in (np.int64, np.int32, np.uint32, np.float64)
        ]

        def read(i: int) -> Any:
            columns = _some(arrays, firsts[i], firsts[i + 1])
            return compiled.scan(data, *stretches[i], fields, doc, score, *columns)

        found = list(threads.map(read, range(len(stretches))))
    if any(part is None for part in found):
        return None
    rows = [part[0] for part in found]
    if sum(len(part[2]) for part in found) > sum(rows) / _MIN_CERTAIN:
        return None
    for first, (_, _, unsure) in zip(firsts, found, strict=False):
        for row, start, length in unsure.tolist():
            arrays[-1][first + row] = float(data[start : start + length])
    queries = _join_stretches(data, [part[1] for part in found], rows)
    if rows == counts:
        return _Lines(tuple(arrays), queries)
    filled = [_some(arrays, first, first + n) for first, n in zip(firsts, rows, strict=False)]
    return _Lines(tuple(map(np.concatenate, zip(*filled, strict=True))), queries)


def _join_stretches(data: bytes, parts: Sequence[Ints], rows: Sequence[int]) -> Ints:
    """Join the stretches of all parts; a query that continues in the next part is one stretch."""
    joined: list[Ints] = []
    before = b""
    for part, start in zip(parts, np.cumsum([0, *rows[:-1]]).tolist(), strict=True):
        if not len(part):
            continue
        texts = [data[at : at + length] for _, at, length in part[[0, -1]].tolist()]
        joined.append(part[int(texts[0] == before) :] + np.array([start, 0, 0]))
        before = texts[1]
    return np.concatenate(joined) if joined else np.empty((0, 3), np.int64)


def _cuts(data: bytes) -> list[int]:
    """Give the offsets at which the data is split between threads: ends of lines."""
    parts = max(1, min(available_cores(), len(data) // _PIECE))
    cuts = [0]
    for i in range(1, parts):
        end = data.find(b"\n", max(cuts[-1], len(data) * i // parts)) + 1
        if cuts[-1] < end < len(data):
            cuts.append(end)
    return [*cuts, len(data)]


def _are_plain(lines: _Lines) -> bool:
    """Whether float64 holds the scores, and rows are mostly grouped by query."""
    largest = max(float(lines.scores.max()), -float(lines.scores.min()))
    return largest < LARGEST_WHOLE and len(lines.queries) <= max(
        1000, len(lines.scores) // _MIN_STRETCH
    )
