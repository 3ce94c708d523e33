"""The documents of a corpus in blocks of one shape, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from deadheat.engines.threads import Items, shared
from deadheat.errors import InputError
from deadheat.evaluation.corpus_chunks import Chunk
from deadheat.numbers import is_tensor
from deadheat.scoring import Products
from deadheat.scoring.threads import one_thread_each
from deadheat.ties.groups import Ints

T = TypeVar("T")
B = TypeVar("B")
SCORES = 1 << 21
"""Scores of a block: as many documents are multiplied at once as give so many."""
FEWEST, MOST = 1 << 10, 1 << 13
"""Documents of a block, whatever the number of queries."""

Work = Callable[[Iterator[tuple[Ints, Any]]], T]
"""Makes something of positions and scores, block by block."""


def block_length(n_queries: int) -> int:
    """Documents that are multiplied at once.

    It depends on the number of queries alone. The last bits of a product depend on the shape of
    the matrices; in blocks of one shape a score depends on its query and its document alone,
    wherever the document stands and whoever multiplies it.

    >>> block_length(1), block_length(512), block_length(100_000)
    (8192, 4096, 1024)
    """
    room = SCORES // max(1, n_queries)
    return min(MOST, max(FEWEST, 1 << max(0, room.bit_length() - 1)))


@dataclass(frozen=True)
class Block:
    """Rows that are multiplied at once: parts of chunks, one after the other."""

    parts: list[Chunk]

    def embeddings(self, length: int) -> Any:
        """Give `length` rows; copies of the first fill what the parts leave empty."""
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

    def spread(self, scores: Any, length: int) -> Iterator[tuple[Ints, Any]]:
        """Give positions, ascending, and scores of the documents, at most `length` at a time."""
        position = np.concatenate([part.positions for part in self.parts])
        column = np.concatenate([*self._columns()])
        if (np.diff(position) < 0).any():
            order = np.argsort(position)
            position, column = position[order], column[order]
        if len(column) <= length and (column == np.arange(len(column))).all():
            yield position, scores[:, : len(column)]
            return
        for start in range(0, len(column), length):
            some = slice(start, start + length)
            yield position[some], scores[:, column[some]]

    def _columns(self) -> Iterator[Ints]:
        """Per document of each part: its row among those of the block."""
        first = 0
        for part in self.parts:
            rows = np.arange(len(part)) if part.rows is None else part.rows
            yield first + rows
            first += len(part.embeddings)


def cut(chunks: Iterable[Chunk], length: int) -> Iterator[Block]:
    """Cut the rows of all chunks into blocks of one length; the last may be shorter."""
    parts: list[Chunk] = []
    room = length
    for chunk in chunks:
        first, rows = 0, len(chunk.embeddings)
        while rows - first >= room:
            yield Block([*parts, chunk.part(first, first + room)])
            first += room
            parts, room = [], length
        if first < rows:
            parts.append(chunk.part(first, rows).detached())
            room -= rows - first
        del chunk
    if parts:
        yield Block(parts)


def shared_scores(
    products: Products, blocks: Items[Block], documents: int, work: Work[T]
) -> list[T]:
    """Let threads share the scores of so many documents, each product in one thread.

    `work` is called in every thread with positions and scores of the blocks that fall to it, block
    by block; the scores of a block are overwritten by those of the next. What each thread makes of
    its blocks is given back.
    """
    length = block_length(len(products))

    def scored(own: Iterator[Block]) -> Iterator[tuple[Ints, Any]]:
        scores = None
        for block in own:
            scores = score_block(products, block, scores)
            yield from block.spread(scores, length)
            del block  # not held, nor the chunks it is of, while another one is waited for

    return shared_blocks(products, blocks, documents, lambda own: work(scored(own)))


def shared_blocks(
    products: Products, blocks: Items[B], documents: int, work: Callable[[Iterator[B]], T]
) -> list[T]:
    """Let threads share the blocks of so many documents, each product in one thread.

    `work` is called in every thread with the blocks that fall to it, whatever they are.
    """
    with one_thread_each(products.queries) as side_by_side:
        needed = -(-documents // block_length(len(products)))
        threads = max(1, min(side_by_side.threads, needed))
        return shared(work, blocks, threads, side_by_side.begin)


def score_chunk(products: Products, chunk: Chunk) -> Any:
    """Score every query with the documents of a chunk, not more than a block holds."""
    block = Block([chunk])
    [scores] = shared_scores(products, lambda _: [block], 1, lambda own: next(own)[1])
    return scores


def score_block(products: Products, block: Block, out: Any = None) -> Any:
    """Score every query with the rows of a block, always in a product of the same shape.

    The scores of the rows that the block lacks mean nothing. `out` is an earlier answer that is
    not needed any more.
    """
    try:
        return products(block.embeddings(block_length(len(products))), out)
    except InputError as error:
        raise InputError(f"{_culprit(products, block)}: {error}") from None


def _culprit(products: Products, block: Block) -> str:
    """Name the document of a block that cannot be scored."""
    for part in block.parts:
        for row in range(len(part.embeddings)):
            try:
                products(part.embeddings[row : row + 1])
            except InputError:
                return part.name(row)
    ends = block.parts[0], block.parts[-1]
    return f"document {ends[0].id(0)!r} to document {ends[1].id(len(ends[1]) - 1)!r}"
