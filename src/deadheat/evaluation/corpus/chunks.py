"""Read the chunks and shards of a corpus, and cut them into blocks of one size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

import numpy as np

from deadheat._internal.numbers import is_tensor
from deadheat._internal.packages import require
from deadheat._internal.threads import share_work
from deadheat.errors import InputError, one_line
from deadheat.formats import read_whole_numbers, text_id
from deadheat.scoring import Matrix, Products, single_thread_blas
from deadheat.ties import Ints, read_places

BLOCK_SCORES = 1 << 21
"""Approximate number of scores in a block."""
MIN_DOCUMENTS, MAX_DOCUMENTS = 1 << 10, 1 << 13
"""Smallest and largest number of documents in a block."""

OpenShard = Callable[[], Iterable[object]]
"""Returns an iterator of chunks; called once per pass."""
Chunks = Iterable[object] | OpenShard | Sequence[OpenShard]

R = TypeVar("R")


@dataclass(frozen=True)
class Chunk:
    """Some documents of a corpus; also a block, whose positions are ascending."""

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

    def take(self, own: slice | Ints) -> Chunk:
        """Return some documents, with a copy of their embeddings, one row per document."""
        vectors = self.embeddings[own if self.rows is None else self.rows[own]]
        return replace(
            self,
            ids=self.ids[own] if isinstance(own, slice) else [self.ids[i] for i in own.tolist()],
            embeddings=np.array(vectors, order="C")
            if isinstance(vectors, np.ndarray)
            else vectors.clone().contiguous(),
            positions=self.positions[own],
            rows=None,
        )


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
    stage: int | None = None
    """1 or 2: which of the two embeddings of each document to read; None if there is one."""

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
                    if self.stage is not None:
                        given = _select_stage(given, self.stage)
                    chunk = _read_chunk(given, start, products, name)
                except InputError as error:
                    raise InputError(f"{name}: {error}") from None
                start += len(chunk.positions)
                if len(chunk.positions):
                    yield chunk
                del given, chunk  # free the memory before the next chunk is made
        except OSError as error:
            raise InputError(f"{self.name} cannot be read ({one_line(error)})") from error
        if self.documents not in (None, start - self.start):
            raise InputError(
                f"{self.name} had {self.documents:,} documents in the first pass and "
                f"{start - self.start:,} in a later one: chunks must be the same in every pass"
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


def _select_stage(given: object, stage: int) -> tuple[object, object]:
    """Return the ids and one of the embeddings of a chunk for two stages."""
    if not isinstance(given, (tuple, list)) or len(given) != 3:
        raise InputError("a chunk must be (document_ids, first_embeddings, second_embeddings)")
    return given[0], given[stage]


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


def block_length(n_queries: int) -> int:
    """Return the number of documents in a block; it depends on the number of queries only.

    The last bits of a matrix product depend on the shape of the matrices. If all blocks have the
    same shape, a score depends only on its query and its document.

    >>> block_length(1), block_length(512), block_length(100_000)
    (8192, 4096, 1024)
    """
    fitting = BLOCK_SCORES // max(1, n_queries)
    return min(MAX_DOCUMENTS, max(MIN_DOCUMENTS, 1 << max(0, fitting.bit_length() - 1)))


def cut_blocks(products: Products, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Copy the documents of all chunks into blocks of one length; the last may be shorter.

    It copies, because the caller may overwrite a chunk when it makes the next one.
    """
    length = block_length(products.n_queries)
    parts: list[Chunk] = []
    missing = length
    for chunk in chunks:
        n, first = len(chunk.positions), 0
        while first < n:
            last = min(first + missing, n)
            parts.append(chunk.take(slice(first, last)))
            missing -= last - first
            first = last
            if not missing:
                yield _join_parts(parts)
                parts, missing = [], length
        del chunk  # free the memory before the next one is made
    if parts:
        yield _join_parts(parts)


def _join_parts(parts: Sequence[Chunk]) -> Chunk:
    """Return the documents of several chunks in the order of positions; none has `rows`."""
    block = parts[0]
    if len(parts) > 1:
        vectors = [part.embeddings for part in parts]
        is_array = isinstance(vectors[0], np.ndarray)
        join = np.concatenate if is_array else require("torch", "a corpus of tensors").cat
        ids = list(chain.from_iterable(part.ids for part in parts))
        block = Chunk(ids, join(vectors), np.concatenate([part.positions for part in parts]))
    if (np.diff(block.positions) < 0).any():
        return block.take(np.argsort(block.positions))
    return block


def map_blocks(
    products: Products, chunks: Iterable[Chunk], work: Callable[[Chunk], R]
) -> Iterator[R]:
    """Process chunks as blocks in threads, one product per thread; yield the results in order.

    The calling thread cuts the blocks.
    """
    with single_thread_blas(products.queries) as (threads, begin):
        yield from share_work(work, cut_blocks(products, chunks), threads, begin)


def score_blocks(products: Products, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, Matrix]]:
    """Score every query with all documents in threads; yield the blocks with their scores."""
    return map_blocks(products, chunks, lambda block: (block, score_block(products, block)))


def score_block(products: Products, block: Chunk) -> Matrix:
    """Score every query with the documents of a block; the product always has the same shape."""
    rows, n, length = block.embeddings, len(block.positions), block_length(products.n_queries)
    if n < length:
        rows = rows[np.arange(length) % n]
    try:
        return products(rows)[:, :n]
    except InputError as error:
        raise InputError(f"{_name_document(products, block)}: {error}") from None


def _name_document(products: Products, block: Chunk) -> str:
    """Return the name of the first document of a block that cannot be scored."""
    for row, name in enumerate(block.ids):
        try:
            products(block.embeddings[row : row + 1])
        except InputError:
            return f"document {text_id(name)!r}"
    return f"the block of document {text_id(block.ids[0])!r}"
