"""The second pass over a corpus: every document is counted for the judged ones."""

from __future__ import annotations

import hashlib
import operator
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from deadheat._internal.numbers import exact_floats
from deadheat.engines import Pool, Progress
from deadheat.errors import InputError
from deadheat.evaluation.corpus.blocks import (
    block_length,
    cut_blocks,
    score_block,
    score_shards,
    share_blocks,
)
from deadheat.evaluation.corpus.chunks import Chunk, Shard
from deadheat.scoring import Matrix, Products
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

LARGEST_NOISE = 1 / 32
"""Of the largest score: no rounding, not even to BF16, moves a score further."""

BlockCallback = Callable[[Ints, Matrix], None]
"""Called with the positions and the scores of every block, in any order and by any thread."""


@dataclass(frozen=True)
class JudgedScores:
    """The judged documents with the scores that were computed first."""

    documents: JudgedDocuments
    row: Ints
    """Per query: its row of the query embeddings, −1 where it has none."""
    exact_rows: int
    """Rows of the query embeddings whose tie groups are all counted: all, or none."""


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
    """Counts documents for the judged ones."""

    def __init__(self, judged: JudgedScores, on_block: BlockCallback | None = None) -> None:
        self._judged = judged
        self._on_block = on_block
        counts = np.zeros((3, len(judged.documents.query)), np.int64)
        self.found = ShardCounts(counts, 0, SizeCounter(judged.exact_rows))

    def update(self, scores: Matrix, *, positions: Ints) -> None:
        """Count the documents of a block."""
        own = self._judged.documents
        column, inside = find_columns(positions, own.position)
        seen = np.flatnonzero(inside)
        if len(seen):
            self._restore(scores, seen, column[seen])
        self.found.counts += count_columns(scores, self._judged.row, own.offsets, own.score, column)
        if self._judged.exact_rows:
            self.found.sizes.update(scores)
        if self._on_block is not None:
            self._on_block(positions, scores)

    def _restore(self, scores: Matrix, seen: Ints, column: Ints) -> None:
        """Put the scores computed first in their documents' places; count those that differed."""
        own = self._judged.documents
        row, first = self._judged.row[own.query[seen]], own.score[seen]
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
    wanted = judged.take(np.searchsorted(judged.positions, np.unique(lists.position)))

    def look_up(block: Chunk) -> None:
        scores = score_block(products, block)
        column, inside = find_columns(block.positions, lists.position)
        found[inside] = exact_floats(scores[row[lists.query[inside]], column[inside]])

    length = block_length(products.n_queries)
    share_blocks(products, lambda _: cut_blocks([wanted], length), len(wanted), look_up)
    return found


@dataclass(frozen=True)
class ShardWorker:
    """Runs tasks on shards, one after the other, in any process.

    `digest` is that of the products of the process that began the work, where that is another one.
    """

    products: Products
    digest: str | None = None

    def __post_init__(self) -> None:
        if self.digest is not None and digest_products(self.products) != self.digest:
            raise InputError(
                f"products on {platform.node()} differ in their last bits from those of the "
                "machine that began the work, as those of another kind of processor do: the result "
                "would depend on who counted what; use machines of one kind"
            )

    def __call__(self, shard: Shard, task: Callable[[Products, Shard], object]) -> object:
        """Run a task on a shard."""
        return task(self.products, shard)


def digest_products(products: Products) -> str:
    """Digest the products of all queries with one another, computed as those of a block."""
    rows = products.queries[np.arange(block_length(products.n_queries)) % len(products.queries)]
    [scores] = share_blocks(products, lambda _: [rows], 1, products.multiply)
    return hashlib.sha256(np.ascontiguousarray(exact_floats(scores)).tobytes()).hexdigest()


def count_shards(
    judged: JudgedScores,
    products: Products,
    shards: Sequence[Shard],
    on_block: BlockCallback | None = None,
    progress: Progress | None = None,
) -> ShardCounts:
    """Count the documents of shards in threads of this process, which share all blocks."""
    make_counter = partial(JudgedCounter, judged, on_block)
    counters = score_shards(products, shards, make_counter, progress)
    return reduce(operator.add, (counter.found for counter in counters))


def count_shard(judged: JudgedScores, products: Products, shard: Shard) -> ShardCounts:
    """Count the documents of one shard."""
    return count_shards(judged, products, [shard])


def count_in_pool(
    judged: JudgedScores, pool: Pool, shards: Sequence[Shard], progress: Progress | None = None
) -> ShardCounts:
    """Count the documents of shards, each by a worker; progress is reported by shard."""
    counted, documents = 0, sum(shard.documents for shard in shards)
    total = JudgedCounter(judged).found
    for shard, counts in pool.results(shards, partial(count_shard, judged)):
        total += counts
        counted += shard.documents
        if progress is not None:
            progress("counting", counted, documents)
    return total
