"""Read and check the chunks and shards of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import is_tensor
from deadheat._internal.packages import require
from deadheat.errors import InputError, one_line
from deadheat.formats import id_column, read_whole_numbers, text_id
from deadheat.scoring import Matrix, Products
from deadheat.ties import Ints, read_places

OpenShard = Callable[[], Iterable[object]]
"""Returns an iterator of chunks; called once per pass."""
Chunks = Iterable[object] | OpenShard | Sequence[OpenShard]


@dataclass(frozen=True)
class Chunk:
    """Some documents of a corpus."""

    ids: Sequence[object]
    """A list; or a range, if the ids are consecutive numbers."""
    embeddings: Matrix
    positions: Ints
    """Per document: its position in the corpus."""
    rows: Ints | None = None
    """Per document: its row of the embeddings; None if document i has row i."""
    has_positions: bool = False
    """Whether the caller gave the positions; otherwise documents are consecutive."""
    name: str = ""
    """Name for messages."""

    def __len__(self) -> int:
        return len(self.positions)

    def id_column(self) -> pl.Series:
        """Return the ids as a column of text."""
        if isinstance(self.ids, range):
            column: pl.Series = pl.Series(np.array(self.ids)).cast(pl.String)
        else:
            column = id_column([d if type(d) is str else text_id(d) for d in self.ids])
        if (column == "").any():
            raise InputError(f"{self.name}: the id of a document is empty")
        return column

    def take(self, own: slice | Ints) -> Chunk:
        """Return some documents, with a copy of their embeddings, one row per document."""
        vectors = self.embeddings[own if self.rows is None else self.rows[own]]
        return Chunk(
            self.ids[own] if isinstance(own, slice) else [self.ids[i] for i in own.tolist()],
            np.array(vectors, order="C")
            if isinstance(vectors, np.ndarray)
            else vectors.clone().contiguous(),
            self.positions[own],
            has_positions=self.has_positions,
            name=self.name,
        )


def join_chunks(chunks: Sequence[Chunk]) -> Chunk:
    """Return the documents of several chunks in the order of positions; none has `rows`."""
    joined = chunks[0]
    if len(chunks) > 1:
        vectors = [chunk.embeddings for chunk in chunks]
        if isinstance(vectors[0], np.ndarray):
            embeddings: Matrix = np.concatenate(vectors)
        else:
            embeddings = require("torch", "a corpus of tensors").cat(vectors)
        ids = list(chain.from_iterable(chunk.ids for chunk in chunks))
        joined = Chunk(ids, embeddings, np.concatenate([chunk.positions for chunk in chunks]))
    if (np.diff(joined.positions) < 0).any():
        return joined.take(np.argsort(joined.positions))
    return joined


@dataclass(frozen=True)
class Shard:
    """Consecutive chunks of a corpus, which any process can read."""

    open: OpenShard
    name: str = "the corpus"
    """Name for messages."""
    number: int = 0
    start: int = 0
    """Number of documents before it; set after the first pass."""
    documents: int | None = None
    """Number of documents in the first pass; later passes must find the same number."""

    def read(self, products: Products) -> Iterator[Chunk]:
        """Yield the checked chunks. The next chunk may overwrite the memory of the previous one."""
        start, number = self.start, -1
        try:
            chunks = self.open()
            if not isinstance(chunks, Iterable):
                raise InputError(
                    f"{self.name}: a function must return an iterator of chunks, not a "
                    f"{type(chunks).__name__}"
                )
            for given in chunks:  # enumerate would keep a reference to the chunk
                number += 1
                name = f"chunk {number} of {self.name}"
                try:
                    chunk = _read_chunk(given, start, products, name)
                except InputError as error:
                    raise InputError(f"{name}: {error}") from None
                start += len(chunk)
                if len(chunk):
                    yield chunk
                del given, chunk  # free the memory before the next chunk is made
        except OSError as error:
            raise InputError(f"{self.name} cannot be read ({one_line(error)})") from error
        if self.documents is not None:
            check_same_length(self.name, self.documents, start - self.start)


def check_same_length(name: str, documents: int, passed: int) -> None:
    """Raise an error if a later pass finds another number of documents."""
    if passed != documents:
        raise InputError(
            f"{name} had {documents:,} documents in the first pass and {passed:,} in a later "
            "one: chunks must be the same in every pass"
        )


def open_shards(chunks: Chunks, *, is_local: bool = True) -> list[Shard]:
    """Return the shards of a corpus. An iterable of chunks is one shard, and must be local."""
    functions = [chunks] if callable(chunks) else chunks
    if isinstance(functions, Sequence) and functions and all(map(callable, functions)):
        if len(functions) == 1:
            return [Shard(functions[0])]
        return [Shard(open, f"shard {n} of the corpus", n) for n, open in enumerate(functions)]
    if not isinstance(chunks, Iterable):
        raise InputError(f"chunks must be an iterable of chunks, not a {type(chunks).__name__}")
    if isinstance(chunks, Iterator):
        raise InputError(
            "chunks is an iterator, which can be read only once, but the corpus is read several "
            "times: give a list, or a function that returns the iterator (lambda: …)"
        )
    if not is_local:
        raise InputError(
            "chunks cannot be sent to the workers of an engine, which open the corpus themselves: "
            "give a function that returns an iterator of chunks, or a list of such functions, one "
            "per shard"
        )
    return [Shard(chunks.__iter__)]


def _read_chunk(given: object, start: int, products: Products, name: str) -> Chunk:
    """Check a chunk; positions count from `start` unless they are given."""
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3, 4):
        raise InputError("a chunk must be (document_ids, embeddings)")
    ids, embeddings, places, rows = (*given, None, None)[:4]
    if isinstance(ids, (str, set, frozenset, Iterator)) or not isinstance(ids, Iterable):
        raise InputError(
            "document ids must be a sequence that can be read again, in the order of the "
            f"embeddings, not {ids!r:.40}"
        )
    if not isinstance(ids, range):  # a copy: the caller may overwrite the ids
        ids = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    if not isinstance(embeddings, np.ndarray):
        embeddings = embeddings.detach() if is_tensor(embeddings) else np.asarray(embeddings)
    n = len(ids)
    if rows is not None:
        rows = read_whole_numbers("rows", rows)
        if rows.max(initial=-1) >= len(embeddings):
            raise InputError(
                f"rows has row {rows.max()}, but there are {len(embeddings)} embeddings"
            )
    if embeddings.ndim != 2 or n != len(embeddings if rows is None else rows):
        raise InputError(
            f"{n} document ids were given for embeddings of the shape "
            f"{list(embeddings.shape)}: give one row per document"
        )
    if n:
        products.check(embeddings)
    positions = np.arange(start, start + n) if places is None else read_places(0, places, n)
    return Chunk(ids, embeddings, positions, rows, places is not None, name)
