"""Chunks of a corpus as the caller gives them, checked, and the shards that they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np

from deadheat._lazy import pl
from deadheat.errors import InputError, one_line
from deadheat.formats.ids import id_column, text_id
from deadheat.numbers import is_tensor
from deadheat.scoring import Products
from deadheat.ties.checks import read_places, read_whole_numbers
from deadheat.ties.groups import Ints

OpenShard = Callable[[], Iterable[Any]]
"""Makes an iterator of chunks; called once for each pass.

An attribute ``reuses_buffers = False`` says that a chunk stays valid while later ones are made.
"""
Chunks = Iterable[Any] | OpenShard | Sequence[OpenShard]
Matrix = Any
"""A NumPy array or a torch tensor of two dimensions."""
Barrier = Callable[[], None]
"""Waits until all chunks and blocks that were given before are processed."""


@dataclass(frozen=True)
class Chunk:
    """Some documents of a corpus."""

    ids: Sequence[Any]
    """A list, or a range where the ids are consecutive numbers."""
    embeddings: Matrix
    positions: Ints
    """Per document: its place in the corpus."""
    rows: Ints | None = None
    """Per document, ascending: its row of the embeddings; None where each has its own."""
    has_positions: bool = False
    """Whether the caller gave the positions; otherwise documents follow one another."""
    number: int = 0
    """Of the chunk in its shard."""

    def __len__(self) -> int:
        return len(self.positions)

    def id_column(self) -> pl.Series:
        """Return the ids as a column of text."""
        if isinstance(self.ids, range):
            numbers = np.arange(self.ids.start, self.ids.stop, self.ids.step)
            texts: pl.Series = pl.Series(numbers).cast(pl.String)
            return texts
        column = None
        with suppress(TypeError):  # polars refuses all but text and None, which is not an id
            column = id_column(self.ids)
        if column is None or column.null_count():
            column = id_column(list(map(text_id, self.ids)))
        if (column == "").any():
            raise InputError("the id of a document is empty; give every document an id")
        return column

    def name(self, row: int) -> str:
        """Name the first document that has a row of the embeddings, for messages."""
        document = row if self.rows is None else int(np.searchsorted(self.rows, row))
        if self.rows is not None and self.rows[document : document + 1].tolist() != [row]:
            return "a row without a document"
        return f"document {text_id(self.ids[document])!r}"

    def part(self, first: int, last: int) -> Chunk:
        """Return the documents that have one of the rows from `first` to before `last`."""
        if self.rows is None:
            own, rows = slice(first, last), None
        else:
            own = slice(*np.searchsorted(self.rows, (first, last)).tolist())
            rows = self.rows[own] - first
        return Chunk(self.ids[own], self.embeddings[first:last], self.positions[own], rows)

    def copy(self) -> Chunk:
        """Return the chunk with embeddings of its own: the caller may overwrite those given."""
        rows = self.embeddings
        return replace(self, embeddings=rows.clone() if is_tensor(rows) else np.array(rows))

    def take(self, documents: Ints) -> Chunk:
        """Return some documents, with copies of their embeddings."""
        ids = [text_id(self.ids[document]) for document in documents.tolist()]
        embeddings = self.embeddings[documents if self.rows is None else self.rows[documents]]
        positions = self.positions[documents]
        return replace(self, ids=ids, embeddings=embeddings, positions=positions, rows=None)


@dataclass(frozen=True)
class Shard:
    """A run of chunks of a corpus, read in any process."""

    open: OpenShard
    name: str = "the corpus"
    """For messages."""
    number: int = 0
    start: int = 0
    """Documents before it, once the first pass has counted them."""
    documents: int = 0
    """Documents that the first pass found."""
    expected: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    """By the number of a chunk: ids of judged documents that the first pass found, by index."""

    def read(
        self, products: Products, start: int = 0, barrier: Barrier | None = None
    ) -> Iterator[Chunk]:
        """Yield the chunks, checked; `start` is the position of the first document.

        `barrier` is called before the next chunk is made, which may overwrite the last one, unless
        the shard says that it reuses no buffers.
        """
        reuses_buffers = getattr(self.open, "reuses_buffers", True)
        numbers = count()  # not enumerate, which keeps a reference to what it gave
        for given in self._open():
            number = next(numbers)
            try:
                chunk = _check_chunk(given, start, products, number)
            except InputError as error:
                raise InputError(f"chunk {number} of {self.name}: {error}") from None
            start += len(chunk)
            if len(chunk):
                yield chunk
            del given, chunk  # free the memory before the next chunk is made
            if barrier is not None and reuses_buffers:
                barrier()

    def read_again(self, products: Products, barrier: Barrier) -> Iterator[Chunk]:
        """Yield the chunks as `read` does; refuse others than those of the first pass."""
        missing, passed = dict(self.expected), 0
        for chunk in self.read(products, self.start, barrier):
            passed += len(chunk)
            for index, document in missing.pop(chunk.number, {}).items():
                if index >= len(chunk) or text_id(chunk.ids[index]) != document:
                    raise self._moved(document)
            yield chunk
            del chunk
        check_same_length(self.name, self.documents, passed)
        for ids in missing.values():
            raise self._moved(next(iter(ids.values())))

    def _moved(self, document: str) -> InputError:
        return InputError(
            f"document {document!r} is not where it was when {self.name} was passed first: chunks "
            "must give the same every time"
        )

    def _open(self) -> Iterator[Any]:
        try:
            chunks = self.open()
            if not isinstance(chunks, Iterable):
                raise InputError(
                    f"{self.name}: a function must make an iterator of chunks, not a "
                    f"{type(chunks).__name__}"
                )
            yield from chunks
        except OSError as error:
            raise InputError(f"{self.name} cannot be read ({one_line(error)})") from error


def check_same_length(name: str, documents: int, passed: int) -> None:
    """Refuse a corpus, or a shard, that has another number of documents in a later pass."""
    if passed != documents:
        raise InputError(
            f"{name} had {documents:,} documents when it was passed first and {passed:,} when it "
            "was passed again: chunks must give the same every time"
        )


def are_shards(chunks: Chunks) -> bool:
    """Whether chunks are made by functions, which can be called anywhere."""
    return callable(chunks) or (
        isinstance(chunks, Sequence) and len(chunks) > 0 and all(map(callable, chunks))
    )


def name_shards(shards: Sequence[OpenShard]) -> list[Shard]:
    """Number and name the shards of a corpus."""
    if len(shards) == 1:
        return [Shard(shards[0])]
    return [Shard(open, f"shard {i} of the corpus", i) for i, open in enumerate(shards)]


def open_shards(chunks: Chunks) -> list[OpenShard]:
    """Return the shards of a corpus, each a function; chunks in one iterable are one shard."""
    if callable(chunks):
        return [chunks]
    if not isinstance(chunks, Iterable):
        raise InputError(f"chunks must be an iterable of chunks, not a {type(chunks).__name__}")
    if isinstance(chunks, Iterator):
        raise InputError(
            "chunks can be passed only once, and the corpus is passed more often: give a list, or "
            "a function that makes the iterator (lambda: …)"
        )
    iterable: Any = chunks
    return list(iterable) if are_shards(chunks) else [_IterableShard(iterable)]


@dataclass(frozen=True)
class _IterableShard:
    """Chunks in an iterable; those of a list or a tuple exist all at once."""

    chunks: Iterable[Any]

    @property
    def reuses_buffers(self) -> bool:
        return not isinstance(self.chunks, (list, tuple))

    def __call__(self) -> Iterable[Any]:
        return self.chunks


def _check_chunk(given: Any, start: int, products: Products, number: int) -> Chunk:
    """Check a chunk; sort documents that share embeddings by row, others by position."""
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3, 4):
        raise InputError("a chunk must be (document_ids, embeddings)")
    ids, embeddings = given[:2]
    if isinstance(ids, (str, set, frozenset, Iterator)) or not isinstance(ids, Iterable):
        raise InputError(
            "document ids must be a sequence that can be read again, in the order of the "
            f"embeddings, not {ids!r:.40}"
        )
    if not isinstance(ids, range):  # a copy: the caller may overwrite the ids
        ids = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    if is_tensor(embeddings):
        embeddings = embeddings.detach()
    elif not isinstance(embeddings, np.ndarray):
        embeddings = np.asarray(embeddings)
    rows = read_whole_numbers("rows", given[3]) if len(given) == 4 else None
    if embeddings.ndim != 2 or len(ids) != len(embeddings if rows is None else rows):
        raise InputError(
            f"{len(ids)} document ids were given for embeddings of the shape "
            f"{list(embeddings.shape)}; a row for each document is needed"
        )
    if rows is not None and rows.max(initial=-1) >= len(embeddings):
        raise InputError(f"rows name row {rows.max()} of {len(embeddings)} embeddings")
    if len(ids):
        products.check(embeddings)
    has_positions = len(given) > 2 and given[2] is not None
    positions = np.arange(start, start + len(ids))
    if has_positions:
        positions = read_places(0, given[2], len(ids))
    if rows is not None:
        order = np.argsort(rows, kind="stable")
        ids, positions, rows = [ids[i] for i in order.tolist()], positions[order], rows[order]
        if len(rows) == len(embeddings) and (np.diff(rows) == 1).all():
            rows = None
    if rows is None and (np.diff(positions) < 0).any():
        order = np.argsort(positions)
        ids, positions = [ids[i] for i in order.tolist()], positions[order]
        embeddings = embeddings[order]
    return Chunk(ids, embeddings, positions, rows, has_positions, number)
