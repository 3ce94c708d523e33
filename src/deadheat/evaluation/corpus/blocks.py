"""Score documents in blocks of a fixed shape, in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from deadheat._internal.threads import share_work
from deadheat.engines import Progress
from deadheat.errors import InputError
from deadheat.evaluation.corpus.chunks import Chunk, join_chunks
from deadheat.formats import text_id
from deadheat.scoring import Matrix, Products, single_thread_blas

BLOCK_SCORES = 1 << 21
"""Approximate number of scores in a block."""
MIN_DOCUMENTS, MAX_DOCUMENTS = 1 << 10, 1 << 13
"""Smallest and largest number of documents in a block."""

T = TypeVar("T")
R = TypeVar("R")
BlockCallback = Callable[[Chunk, Matrix], R]
"""Called in any thread with the documents of a block, in the order of positions, and their scores.

The scores are ``[queries, documents]``.
"""


def block_length(n_queries: int) -> int:
    """Return the number of documents in a block; it depends on the number of queries only.

    The last bits of a matrix product depend on the shape of the matrices. If all blocks have the
    same shape, a score depends only on its query and its document.

    >>> block_length(1), block_length(512), block_length(100_000)
    (8192, 4096, 1024)
    """
    fitting = BLOCK_SCORES // max(1, n_queries)
    return min(MAX_DOCUMENTS, max(MIN_DOCUMENTS, 1 << max(0, fitting.bit_length() - 1)))


def score_blocks(
    products: Products,
    chunks: Iterable[Chunk],
    documents: int,
    work: BlockCallback[R],
    progress: Progress | None = None,
) -> Iterator[R]:
    """Score documents in threads, call `work` with every block, and yield its results in order.

    `documents` is the number of documents; `progress` is called with the number counted so far.
    """

    def score(block: Chunk) -> tuple[int, R]:
        return len(block), work(block, score_block(products, block))

    done = 0
    blocks = cut_blocks(chunks, block_length(products.n_queries))
    for length, result in share_blocks(products, blocks, documents, score):
        done += length
        if progress is not None:
            progress("counting", done, documents)
        yield result


def cut_blocks(chunks: Iterable[Chunk], length: int) -> Iterator[Chunk]:
    """Copy the documents of all chunks into blocks of one length; the last may be shorter.

    It copies, because the caller may overwrite a chunk when it makes the next one.
    """
    parts: list[Chunk] = []
    missing = length
    for chunk in chunks:
        first = 0
        while first < len(chunk):
            last = min(first + missing, len(chunk))
            parts.append(chunk.take(slice(first, last)))
            missing -= last - first
            first = last
            if not missing:
                yield join_chunks(parts)
                parts, missing = [], length
        del chunk  # free the memory before the next one is made
    if parts:
        yield join_chunks(parts)


def share_blocks(
    products: Products, blocks: Iterable[T], documents: int, work: Callable[[T], R]
) -> Iterator[R]:
    """Process blocks in threads, one thread per product; yield the results in order."""
    with single_thread_blas(products.queries) as (threads, begin):
        needed = -(-documents // block_length(products.n_queries))
        yield from share_work(work, blocks, max(1, min(threads, needed)), begin)


def score_block(products: Products, block: Chunk) -> Matrix:
    """Score every query with the documents of a block; the product always has the same shape."""
    rows, length = block.embeddings, block_length(products.n_queries)
    if len(block) < length:
        rows = rows[np.arange(length) % len(block)]
    try:
        return products(rows)[:, : len(block)]
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
