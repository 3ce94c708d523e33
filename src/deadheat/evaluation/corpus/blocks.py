"""The second pass over a corpus: documents are scored in blocks of one shape, and counted."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from threading import Lock
from typing import Protocol, TypeVar

import numpy as np

from deadheat._internal.numbers import exact_floats
from deadheat._internal.threads import Barrier, Items, share_work
from deadheat.engines import Pool, Progress
from deadheat.errors import InputError
from deadheat.evaluation.corpus.chunks import Chunk, Shard, join_chunks
from deadheat.scoring import Matrix, Products, single_thread_blas
from deadheat.ties import (
    Counts,
    Floats,
    Ints,
    JudgedDocuments,
    JudgedLists,
    SizeCounter,
    count_columns,
    find_columns,
)

BLOCK_SCORES = 1 << 21
"""Scores of a block, about."""
MIN_DOCUMENTS, MAX_DOCUMENTS = 1 << 10, 1 << 13
"""Documents of a block, whatever the number of queries."""
LARGEST_NOISE = 1 / 32
"""Of the largest score: no rounding, not even to BF16, moves a score further."""

BlockCallback = Callable[[Ints, Matrix], None]
"""Called with the positions and the scores of every block, in any order and by any thread."""


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


def share_blocks(
    products: Products, blocks: Items[T], documents: int, work: Callable[[T], R]
) -> list[R]:
    """Process blocks in threads, each product in one of them; return the results in order.

    `documents` is how many there are, about: few need fewer threads.
    """
    with single_thread_blas(products.queries) as (threads, begin):
        needed = -(-documents // block_length(products.n_queries))
        return list(share_work(work, blocks, max(1, min(threads, needed)), begin))


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


def score_chunk(products: Products, chunk: Chunk) -> Matrix:
    """Score every query with the documents of a chunk that fits into a block."""
    [scores] = share_blocks(products, lambda _: [chunk], 1, lambda c: score_block(products, c))
    return scores


def score_judged(products: Products, judged: Chunk, lists: JudgedLists, row: Ints) -> Floats:
    """Score the judged documents of all lists, before the others and in blocks like theirs.

    Parameters
    ----------
    judged
        The judged documents of the corpus, in the order of positions.
    row
        Per query of `lists`: its row of the query embeddings, where it has one.
    """
    found = np.empty(len(lists.position))

    def look_up(block: Chunk) -> None:
        scores = score_block(products, block)
        column, inside = find_columns(block.positions, lists.position)
        found[inside] = exact_floats(scores[row[lists.query[inside]], column[inside]])

    length = block_length(products.n_queries)
    share_blocks(products, lambda _: cut_blocks([judged], length), len(judged), look_up)
    return found


def score_shards(
    products: Products,
    shards: Sequence[Shard],
    make_counter: Callable[[], C],
    progress: Progress | None = None,
) -> list[C]:
    """Score the documents of shards in threads; return a counter of each thread's scores.

    The first pass has seen the shards. Progress is reported by block.
    """
    length, documents = block_length(products.n_queries), count_documents(shards)
    counters: list[C] = []
    idle: list[tuple[C, Matrix | None]] = []
    """The counters that no thread uses, each with memory for the scores of a block."""
    counted, lock = 0, Lock()

    def blocks(barrier: Barrier) -> Iterator[Chunk]:
        # A chain keeps no reference to a chunk while the next one is made.
        chunks = chain.from_iterable(shard.read(products, barrier) for shard in shards)
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


@dataclass
class ShardCounts:
    """Counts of some documents of a corpus; those of all of its shards add up."""

    counts: Counts
    """Per judged document: candidates above, equal, and tied before it."""
    changed: int
    """Judged documents whose score was not that computed first."""
    sizes: SizeCounter
    """Of all tie groups, where they are counted."""

    def __add__(self, other: ShardCounts) -> ShardCounts:
        return ShardCounts(
            self.counts + other.counts, self.changed + other.changed, self.sizes + other.sizes
        )


class JudgedCounter:
    """Counts documents for the judged ones.

    Parameters
    ----------
    documents
        The judged documents with the scores that were computed first.
    row
        Per query: its row of the query embeddings, −1 where it has none.
    exact_rows
        Rows of the query embeddings whose tie groups are all counted: all, or none.
    """

    def __init__(
        self,
        documents: JudgedDocuments,
        row: Ints,
        exact_rows: int,
        on_block: BlockCallback | None = None,
    ) -> None:
        self._documents, self._row, self._on_block = documents, row, on_block
        self._is_exact = exact_rows > 0
        counts = np.zeros((3, len(documents.query)), np.int64)
        self.found = ShardCounts(counts, 0, SizeCounter(exact_rows))

    def update(self, scores: Matrix, *, positions: Ints) -> None:
        """Count the documents of a block."""
        own = self._documents
        column, inside = find_columns(positions, own.position)
        seen = np.flatnonzero(inside)
        if len(seen):
            self._restore(scores, seen, column[seen])
        self.found.counts += count_columns(scores, self._row, own.offsets, own.score, column)
        if self._is_exact:
            self.found.sizes.update(scores)
        if self._on_block is not None:
            self._on_block(positions, scores)

    def _restore(self, scores: Matrix, seen: Ints, column: Ints) -> None:
        """Put the scores computed first in their documents' places; count those that differed."""
        own = self._documents
        row, first = self._row[own.query[seen]], own.score[seen]
        found = exact_floats(scores[row, column])
        other = np.flatnonzero(found != first)
        if not len(other):
            return
        far = np.flatnonzero(np.abs(found - first) > LARGEST_NOISE * np.abs(own.score).max())
        if len(far):
            i = int(far[0])
            raise InputError(
                f"the document at position {own.position[seen[i]]:,} of the corpus has the score "
                f"{found[i]:g} for a query, and had {first[i]:g} when it was passed first: chunks "
                "must give the same every time"
            )
        places = row[other], column[other]
        if isinstance(scores, np.ndarray):
            scores[places] = first[other]
        else:
            scores[places] = scores.new_tensor(first[other])
        self.found.changed += len(other)


MakeCounter = Callable[[], JudgedCounter]


def count_shards(
    make_counter: MakeCounter,
    products: Products,
    shards: Sequence[Shard],
    progress: Progress | None = None,
) -> ShardCounts:
    """Count the documents of shards in threads of this process, which share all blocks."""
    counters = score_shards(products, shards, make_counter, progress)
    return reduce(operator.add, (counter.found for counter in counters))


def count_shard(make_counter: MakeCounter, products: Products, shard: Shard) -> ShardCounts:
    """Count the documents of one shard."""
    return count_shards(make_counter, products, [shard])


def count_in_pool(
    make_counter: MakeCounter,
    pool: Pool,
    shards: Sequence[Shard],
    progress: Progress | None = None,
) -> ShardCounts:
    """Count the documents of shards, each by a worker; progress is reported by shard."""
    counted, total = list[Shard](), make_counter().found
    for shard, counts in pool.results(shards, partial(count_shard, make_counter)):
        total += counts
        counted.append(shard)
        if progress is not None:
            progress("counting", count_documents(counted), count_documents(shards))
    return total


def count_documents(shards: Iterable[Shard]) -> int:
    """Return how many documents the first pass found in shards."""
    return sum(shard.documents or 0 for shard in shards)
