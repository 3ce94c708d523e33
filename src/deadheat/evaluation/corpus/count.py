"""Count the scores of documents for the judged ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from deadheat._internal.numbers import exact_floats
from deadheat.engines import Progress
from deadheat.errors import InputError
from deadheat.evaluation.corpus.blocks import BlockCallback, score_blocks
from deadheat.evaluation.corpus.chunks import Chunk, Shard
from deadheat.scoring import Matrix, Products
from deadheat.ties import Counts, Ints, JudgedDocuments, SizeCounter, count_columns, find_columns


@dataclass
class CorpusCounts:
    """Counts of some documents of a corpus; those of all documents add up."""

    documents: int
    """Documents that were counted."""
    counts: Counts
    """Per judged document: candidates above, equal, and tied before it."""
    seen: int
    """Judged documents that were counted, once for every query that they are judged for."""
    changed: int
    """Those whose score was not that computed first."""
    sizes: SizeCounter
    """Of all tie groups, where they are counted."""

    def __iadd__(self, other: CorpusCounts) -> CorpusCounts:
        self.documents += other.documents
        self.counts += other.counts
        self.seen += other.seen
        self.changed += other.changed
        self.sizes += other.sizes
        return self


@dataclass(frozen=True)
class CountTask:
    """Counts the documents of shards; sent to every process that counts."""

    documents: JudgedDocuments
    """The judged documents, with the scores that were computed first."""
    row: Ints
    """Per query: its row of the query embeddings, −1 where it has none."""
    noise: float
    """How far a score may be from the one computed first, which is then used."""
    exact_ties: bool
    """Whether all tie groups are counted."""
    on_block: BlockCallback[object] | None = None
    progress: Progress | None = None
    """Called with every block that was counted."""

    def __call__(self, products: Products, shards: Sequence[Shard]) -> CorpusCounts:
        """Count the documents of shards in threads, which share all blocks."""
        total = self.count_nothing(products)
        documents = sum(shard.documents or 0 for shard in shards)
        chunks = chain.from_iterable(shard.read(products) for shard in shards)
        for own in score_blocks(products, chunks, documents, self.count_block):
            total += own
            if self.progress is not None:
                self.progress("counting", total.documents, documents)
        return total

    def count_nothing(self, products: Products) -> CorpusCounts:
        """Return the counts of no documents."""
        counts = np.zeros((3, len(self.documents.query)), np.int64)
        return CorpusCounts(0, counts, 0, 0, SizeCounter(products.n_queries))

    def count_block(self, block: Chunk, scores: Matrix) -> CorpusCounts:
        """Count the documents of a block."""
        own = self.documents
        column, inside = find_columns(block.positions, own.position)
        seen = np.flatnonzero(inside)
        places = self.row[own.query[seen]], column[seen]
        found, first = exact_floats(scores[places]), own.score[seen]
        far = np.flatnonzero(np.abs(found - first) > self.noise)
        if len(far):
            i = int(far[0])
            raise InputError(
                f"the document at position {own.position[seen[i]]:,} of the corpus has the score "
                f"{found[i]:g} for a query, and had {first[i]:g} in the first pass: chunks must "
                "be the same in every pass"
            )
        changed = int(np.count_nonzero(found != first))
        if changed:
            if isinstance(scores, np.ndarray):
                scores[places] = first
            else:
                scores[places] = scores.new_tensor(first)
        sizes = SizeCounter(len(scores))
        if self.exact_ties:
            sizes.update(scores)
        if self.on_block is not None:
            self.on_block(block, scores)
        counts = count_columns(scores, self.row, own.offsets, own.score, column)
        return CorpusCounts(len(block), counts, len(seen), changed, sizes)
