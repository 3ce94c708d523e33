"""Blocks of documents, all of one shape, and their scores, computed in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from deadheat.engines.threads import Items, share_work
from deadheat.errors import InputError
from deadheat.evaluation.corpus.chunks import Chunk, Matrix
from deadheat.numbers import is_tensor
from deadheat.scoring import Products
from deadheat.scoring.threads import single_thread_blas
from deadheat.ties.groups import Ints

T = TypeVar("T")
B = TypeVar("B")
BLOCK_SCORES = 1 << 21
"""Scores of a block, about."""
MIN_DOCUMENTS, MAX_DOCUMENTS = 1 << 10, 1 << 13
"""Documents of a block, whatever the number of queries."""

Scored = tuple[Ints, Any]
"""Positions of some documents, ascending, and their scores ``[queries, documents]``."""


def block_length(n_queries: int) -> int:
    """Return how many documents are multiplied at once.

    It depends on the number of queries alone. The last bits of a product depend on the shape of
    the matrices; in blocks of one shape a score depends on its query and its document alone.

    >>> block_length(1), block_length(512), block_length(100_000)
    (8192, 4096, 1024)
    """
    fitting = BLOCK_SCORES // max(1, n_queries)
    return min(MAX_DOCUMENTS, max(MIN_DOCUMENTS, 1 << max(0, fitting.bit_length() - 1)))


@dataclass(frozen=True)
class Block:
    """Documents that are multiplied at once: parts of chunks, one after the other."""

    parts: list[Chunk]

    @property
    def positions(self) -> Ints:
        """Per document: its place in the corpus."""
        return np.concatenate([part.positions for part in self.parts])

    def embeddings(self, length: int) -> Matrix:
        """Return `length` rows; copies of the first fill what the parts leave empty."""
        rows = self.parts[0].embeddings
        if len(rows) == length:
            return rows.contiguous() if is_tensor(rows) else np.ascontiguousarray(rows)
        shape = (length, rows.shape[1])
        filled = rows.new_empty(shape) if is_tensor(rows) else np.empty(shape, rows.dtype)
        first = 0
        for part in self.parts:
            last = first + len(part.embeddings)
            filled[first:last] = part.embeddings
            first = last
        filled[first:] = filled[0]
        return filled

    def split(self, scores: Matrix, length: int) -> Iterator[Scored]:
        """Yield the scores of the documents in the order of positions, at most `length` at once."""
        positions, columns = self.positions, []
        first = 0
        for part in self.parts:
            rows = np.arange(len(part)) if part.rows is None else part.rows
            columns.append(first + rows)
            first += len(part.embeddings)
        column = np.concatenate(columns)
        if (np.diff(positions) < 0).any():
            order = np.argsort(positions)
            positions, column = positions[order], column[order]
        if len(column) <= length and (column == np.arange(len(column))).all():
            yield positions, scores[:, : len(column)]
            return
        for start in range(0, len(column), length):
            some = slice(start, start + length)
            yield positions[some], scores[:, column[some]]


def cut_blocks(chunks: Iterable[Chunk], length: int) -> Iterator[Block]:
    """Cut the rows of all chunks into blocks of one length; the last may be shorter."""
    parts: list[Chunk] = []
    missing = length
    for chunk in chunks:
        first, rows = 0, len(chunk.embeddings)
        while rows - first >= missing:
            yield Block([*parts, chunk.part(first, first + missing)])
            first += missing
            parts, missing = [], length
        if first < rows:
            parts.append(chunk.part(first, rows).copy())
            missing -= rows - first
        del chunk  # free its memory before the next one is made
    if parts:
        yield Block(parts)


def share_scores(
    products: Products, chunks: Items[Chunk], documents: int, work: Callable[[Iterator[Scored]], T]
) -> list[T]:
    """Score all documents of chunks in threads; return what each thread makes of its scores.

    `work` is called in every thread with the scores of its blocks, which are overwritten by those
    of the next. `documents` is how many there are, about.
    """
    length = block_length(len(products))

    def score(blocks: Iterator[Block]) -> Iterator[Scored]:
        scores = None
        for block in blocks:
            scores = score_block(products, block, scores)
            yield from block.split(scores, length)
            del block  # free the memory of its chunks while the next one is waited for

    return share_blocks(
        products,
        lambda barrier: cut_blocks(chunks(barrier), length),
        documents,
        lambda blocks: work(score(blocks)),
    )


def share_blocks(
    products: Products, blocks: Items[B], documents: int, work: Callable[[Iterator[B]], T]
) -> list[T]:
    """Let threads share blocks, each product in one thread; return what each thread makes."""
    with single_thread_blas(products.queries) as plan:
        needed = -(-documents // block_length(len(products)))
        return share_work(work, blocks, max(1, min(plan.threads, needed)), plan.begin)


def score_chunk(products: Products, chunk: Chunk) -> Matrix:
    """Score every query with the documents of a chunk that fits into a block."""
    [scores] = share_scores(products, lambda _: [chunk], 1, lambda scored: next(scored)[1])
    return scores


def score_block(products: Products, block: Block, out: Matrix | None = None) -> Matrix:
    """Score every query with the rows of a block, always in a product of the same shape.

    The scores of the rows that the block lacks mean nothing. `out` is an earlier result that is
    not needed any more.
    """
    try:
        return products(block.embeddings(block_length(len(products))), out)
    except InputError as error:
        raise InputError(f"{_name_culprit(products, block)}: {error}") from None


def _name_culprit(products: Products, block: Block) -> str:
    """Name the document of a block that cannot be scored."""
    for part in block.parts:
        for row in range(len(part.embeddings)):
            try:
                products(part.embeddings[row : row + 1])
            except InputError:
                return part.name(row)
    return f"the block of {block.parts[0].name(0)}"
