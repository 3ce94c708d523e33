"""Chunks of a corpus as the caller gives them, checked, and the shards that they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import cast

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import is_tensor
from deadheat._internal.packages import require
from deadheat._internal.threads import Barrier
from deadheat.errors import InputError, one_line
from deadheat.formats import id_column, text_id
from deadheat.scoring import Matrix, Products
from deadheat.ties import Ints, read_places, read_whole_numbers

OpenShard = Callable[[], Iterable[object]]
"""Makes an iterator of chunks; called once for each pass.

An attribute ``reuses_buffers = False`` says that a chunk stays valid while later ones are made.
"""
Chunks = Iterable[object] | OpenShard | Sequence[OpenShard]


@dataclass(frozen=True)
class Chunk:
    """Some documents of a corpus."""

    ids: Sequence[object]
    """A list, or a range where the ids are consecutive numbers."""
    embeddings: Matrix
    positions: Ints
    """Per document: its place in the corpus."""
    rows: Ints
    """Per document, ascending: its row of the embeddings."""
    has_positions: bool = False
    """Whether the caller gave the positions; otherwise documents follow one another."""
    number: int = 0
    """Of the chunk in its shard."""

    def __len__(self) -> int:
        return len(self.positions)

    def id_column(self) -> pl.Series:
        """Return the ids as a column of text."""
        if isinstance(self.ids, range):
            numbers: pl.Series = pl.Series(np.array(self.ids)).cast(pl.String)
            return numbers
        if set(map(type, self.ids)) == {str}:
            column = id_column(cast("list[str]", self.ids))
        else:
            column = id_column([text_id(name) for name in self.ids])
        if (column == "").any():
            raise InputError("the id of a document is empty; give every document an id")
        return column

    def name(self, row: int) -> str:
        """Name the first document that has a row of the embeddings, for messages."""
        document = int(np.searchsorted(self.rows, row))
        if self.rows[document : document + 1].tolist() != [row]:
            return "a row without a document"
        return f"document {text_id(self.ids[document])!r}"

    def part(self, first: int, last: int) -> Chunk:
        """Return the documents that have one of the rows from `first` to before `last`."""
        own = slice(*np.searchsorted(self.rows, (first, last)).tolist())
        embeddings = self.embeddings[first:last]
        return Chunk(self.ids[own], embeddings, self.positions[own], self.rows[own] - first)

    def take(self, documents: Ints) -> Chunk:
        """Return some documents, with copies of their embeddings."""
        return replace(
            self,
            ids=[self.ids[document] for document in documents.tolist()],
            embeddings=self.embeddings[self.rows[documents]],
            positions=self.positions[documents],
            rows=np.arange(len(documents)),
        )


def join_chunks(chunks: Sequence[Chunk]) -> Chunk:
    """Return the documents of several chunks as one, with copies of their embeddings."""
    vectors = [chunk.embeddings for chunk in chunks]
    if isinstance(vectors[0], np.ndarray):
        embeddings: Matrix = np.concatenate(vectors)
    else:
        embeddings = require("torch", "a corpus of tensors").cat(vectors)
    starts = np.cumsum([0, *map(len, vectors)])
    return Chunk(
        list(chain.from_iterable(chunk.ids for chunk in chunks)),
        embeddings,
        np.concatenate([chunk.positions for chunk in chunks]),
        np.concatenate([start + chunk.rows for start, chunk in zip(starts, chunks, strict=False)]),
    )


@dataclass(frozen=True)
class Shard:
    """A run of chunks of a corpus, read in any process."""

    open: OpenShard
    name: str = "the corpus"
    """For messages."""
    number: int = 0
    reuses_buffers: bool = True
    """Whether a chunk may be overwritten when the next one is made."""
    start: int = 0
    """Documents before it, once the first pass has counted them."""
    documents: int | None = None
    """Documents that the first pass found; later passes must find as many."""
    expected: Mapping[int, Sequence[tuple[int, object, int]]] = field(default_factory=dict)
    """By the number of a chunk: index, id and position of the judged documents found first."""

    def read(self, products: Products, barrier: Barrier | None = None) -> Iterator[Chunk]:
        """Yield the chunks, checked; refuse others than those of the first pass.

        `barrier` is called before a chunk is made that may overwrite the last one.
        """
        start, number, missing = self.start, -1, dict(self.expected)
        try:
            chunks = self.open()
            if not isinstance(chunks, Iterable):
                raise InputError(
                    f"{self.name}: a function must make an iterator of chunks, not a "
                    f"{type(chunks).__name__}"
                )
            for given in chunks:  # not enumerate, which keeps a reference to what it gave
                number += 1
                try:
                    chunk = _check_chunk(given, start, products, number)
                except InputError as error:
                    raise InputError(f"chunk {number} of {self.name}: {error}") from None
                start += len(chunk)
                for index, name, position in missing.pop(number, ()):
                    own = slice(index, index + 1)
                    found = map(text_id, chunk.ids[own]), chunk.positions[own].tolist()
                    if list(zip(*found, strict=True)) != [(name, position)]:
                        raise self._moved(name)
                if len(chunk):
                    yield chunk
                del given, chunk  # free the memory before the next chunk is made
                if barrier is not None and self.reuses_buffers:
                    barrier()
        except OSError as error:
            raise InputError(f"{self.name} cannot be read ({one_line(error)})") from error
        if self.documents is not None:
            check_same_length(self.name, self.documents, start - self.start)
        for (_, name, _), *_ in missing.values():
            raise self._moved(name)

    def _moved(self, document: object) -> InputError:
        return InputError(
            f"document {document!r} is not where it was when {self.name} was passed first: chunks "
            "must give the same every time"
        )


def check_same_length(name: str, documents: int, passed: int) -> None:
    """Refuse a corpus, or a shard, that has another number of documents in a later pass."""
    if passed != documents:
        raise InputError(
            f"{name} had {documents:,} documents when it was passed first and {passed:,} when it "
            "was passed again: chunks must give the same every time"
        )


def open_shards(chunks: Chunks, *, is_local: bool = True) -> list[Shard]:
    """Return the shards of a corpus; chunks in one iterable are one shard, which must be local."""
    functions = [chunks] if callable(chunks) else chunks
    if isinstance(functions, Sequence) and functions and all(map(callable, functions)):
        several = len(functions) > 1
        return [
            Shard(
                open,
                f"shard {number} of the corpus" if several else "the corpus",
                number,
                getattr(open, "reuses_buffers", True),
            )
            for number, open in enumerate(functions)
        ]
    if not isinstance(chunks, Iterable):
        raise InputError(f"chunks must be an iterable of chunks, not a {type(chunks).__name__}")
    if isinstance(chunks, Iterator):
        raise InputError(
            "chunks can be passed only once, and the corpus is passed more often: give a list, or "
            "a function that makes the iterator (lambda: …)"
        )
    if not is_local:
        raise InputError(
            "an engine reads a corpus where it lies: give chunks as a function that makes an "
            "iterator of them, or as a list of such functions, one for each shard"
        )
    return [Shard(chunks.__iter__, reuses_buffers=not isinstance(chunks, (list, tuple)))]


def _check_chunk(given: object, start: int, products: Products, number: int) -> Chunk:
    """Check a chunk; sort documents that share embeddings by row, others by position."""
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3, 4):
        raise InputError("a chunk must be (document_ids, embeddings)")
    ids, embeddings, places, given_rows = (*given, None, None)[:4]
    if isinstance(ids, (str, set, frozenset, Iterator)) or not isinstance(ids, Iterable):
        raise InputError(
            "document ids must be a sequence that can be read again, in the order of the "
            f"embeddings, not {ids!r:.40}"
        )
    if not isinstance(ids, range):  # a copy: the caller may overwrite the ids
        ids = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    embeddings = embeddings.detach() if is_tensor(embeddings) else np.asarray(embeddings)
    n = len(ids)
    rows = np.arange(n) if given_rows is None else read_whole_numbers("rows", given_rows)
    if embeddings.ndim != 2 or n != len(embeddings if given_rows is None else rows):
        raise InputError(
            f"{n} document ids were given for embeddings of the shape "
            f"{list(embeddings.shape)}; a row for each document is needed"
        )
    if rows.max(initial=-1) >= len(embeddings):
        raise InputError(f"rows name row {rows.max()} of {len(embeddings)} embeddings")
    if n:
        products.check(embeddings)
    positions = np.arange(start, start + n) if places is None else read_places(0, places, n)
    if (np.diff(rows) < 0).any():
        order = np.argsort(rows, kind="stable")
        ids, positions, rows = [ids[i] for i in order.tolist()], positions[order], rows[order]
    return Chunk(ids, embeddings, positions, rows, places is not None, number)
