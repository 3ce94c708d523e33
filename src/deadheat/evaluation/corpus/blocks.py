"""Blocks of documents, all of one shape, and their scores, computed in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from threading import Lock
from typing import Protocol, TypeVar

import numpy as np

from deadheat.engines import Barrier, Items, Progress, share_work
from deadheat.errors import InputError
from deadheat.evaluation.corpus.chunks import Chunk, Shard, join_chunks
from deadheat.scoring import Matrix, Products, single_thread_blas
from deadheat.ties import Ints

BLOCK_SCORES = 1 << 21
"""Scores of a block, about."""
MIN_DOCUMENTS, MAX_DOCUMENTS = 1 << 10, 1 << 13
"""Documents of a block, whatever the number of queries."""


class ScoreCounter(Protocol):
    """Counts scores that come in pieces."""

    def update(self, scores: Matrix, *, positions: Ints) -> None:
        """Count scores ``[queries, documents]`` of documents at ascending positions."""


T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C", bound=ScoreCounter)


def block_length(n_queries: int) -> int:
    """Return how many documents are multiplied at once.

    It depends on the number of queries alone. The last bits of a product depend on the shape of
    the matrices; in blocks of one shape, as `Products` multiplies them, a score depends on its
    query and its document alone.

    >>> block_length(1), block_length(512), block_length(100_000)
    (8192, 4096, 1024)
    """
    fitting = BLOCK_SCORES // max(1, n_queries)
    return min(MAX_DOCUMENTS, max(MIN_DOCUMENTS, 1 << max(0, fitting.bit_length() - 1)))


def cut_blocks(chunks: Iterable[Chunk], length: int) -> Iterator[Chunk]:
    """Cut the rows of all chunks into blocks of one length; the last may be shorter."""
    parts: list[Chunk] = []
    missing = length
    for chunk in chunks:
        first, rows = 0, len(chunk.embeddings)
        while rows - first >= missing:
            parts.append(chunk.part(first, first + missing))
            yield join_chunks(parts) if len(parts) > 1 else parts[0]
            first += missing
            parts, missing = [], length
        if first < rows:
            # A copy: the caller may overwrite the chunk before the block is complete.
            parts.append(join_chunks([chunk.part(first, rows)]))
            missing -= rows - first
        del chunk  # free the memory before the next one is made
    if parts:
        yield join_chunks(parts)


def score_shards(
    products: Products,
    shards: Sequence[Shard],
    make_counter: Callable[[], C],
    progress: Progress | None = None,
) -> list[C]:
    """Score the documents of shards in threads; return a counter of each thread's scores.

    The first pass has seen the shards. Progress is reported by block.
    """
    length, documents = block_length(products.n_queries), sum(shard.documents for shard in shards)
    counters: list[C] = []
    idle: list[tuple[C, Matrix | None]] = []
    """The counters that no thread uses, each with memory for the scores of a block."""
    counted, lock = 0, Lock()

    def blocks(barrier: Barrier) -> Iterator[Chunk]:
        # A chain keeps no reference to a chunk while the next one is made.
        chunks = chain.from_iterable(shard.read_again(products, barrier) for shard in shards)
        return cut_blocks(chunks, length)

    def count(block: Chunk) -> None:
        nonlocal counted
        try:
            counter, memory = idle.pop()
        except IndexError:
            counter, memory = make_counter(), None
            counters.append(counter)
        scores = score_block(products, block, memory)
        for positions, own in _list_scores(block, scores, length):
            counter.update(own, positions=positions)
        idle.append((counter, scores))
        with lock:
            counted += len(block)
            if progress is not None:
                progress("counting", counted, documents)

    share_blocks(products, blocks, documents, count)
    return counters or [make_counter()]


def _list_scores(block: Chunk, scores: Matrix, length: int) -> Iterator[tuple[Ints, Matrix]]:
    """Yield the scores of documents in the order of positions, at most `length` at once."""
    order = np.argsort(block.positions, kind="stable")
    positions, rows = block.positions[order], block.rows[order]
    if len(rows) <= length and (rows == np.arange(len(rows))).all():
        yield positions, scores[:, : len(rows)]
        return
    for start in range(0, len(rows), length):
        some = slice(start, start + length)
        yield positions[some], scores[:, rows[some]]


def share_blocks(
    products: Products, blocks: Items[T], documents: int, work: Callable[[T], R]
) -> list[R]:
    """Process blocks in threads, each product in one of them; return the results in order.

    `documents` is how many there are, about: few need fewer threads.
    """
    with single_thread_blas(products.queries) as (threads, begin):
        needed = -(-documents // block_length(products.n_queries))
        return share_work(work, blocks, max(1, min(threads, needed)), begin)


def score_chunk(products: Products, chunk: Chunk) -> Matrix:
    """Score every query with the documents of a chunk that fits into a block."""
    [scores] = share_blocks(products, lambda _: [chunk], 1, lambda c: score_block(products, c))
    return scores


def score_block(products: Products, block: Chunk, out: Matrix | None = None) -> Matrix:
    """Score every query with the rows of a block, always in a product of the same shape.

    The scores of rows beyond those of the block mean nothing. `out` is an earlier result that is
    not needed any more.
    """
    rows, length = block.embeddings, block_length(products.n_queries)
    if len(rows) < length:
        rows = rows[np.arange(length) % len(rows)]
    elif isinstance(rows, np.ndarray):
        rows = np.ascontiguousarray(rows)
    else:
        rows = rows.contiguous()
    try:
        return products(rows, out)
    except InputError as error:
        raise InputError(f"{_name_culprit(products, block)}: {error}") from None


def _name_culprit(products: Products, block: Chunk) -> str:
    """Name the document of a block that cannot be scored."""
    for row in range(len(block.embeddings)):
        try:
            products(block.embeddings[row : row + 1])
        except InputError:
            return block.name(row)
    return f"the block of {block.name(0)}"
