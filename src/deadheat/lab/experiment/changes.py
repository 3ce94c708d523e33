"""How many scores change, and how far, where the same forward pass is computed in several ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import exact_floats
from deadheat._internal.threads import Barrier
from deadheat.engines import Engine
from deadheat.errors import InputError
from deadheat.evaluation.corpus import (
    Chunk,
    Shard,
    StoredShard,
    block_length,
    check_same_length,
    cut_blocks,
    score_block,
    share_blocks,
)
from deadheat.provenance import Record
from deadheat.scoring import Matrix, Products
from deadheat.ties import Ints

PIECE = 1 << 16
"""Texts whose scores are compared in one piece of work."""


@dataclass(frozen=True)
class Changes(Record):
    """Scores that are not the same in all variants; those of different documents add up."""

    scores: int = 0
    """Scores that were compared: of every query with every document."""
    changed: int = 0
    farthest: float = 0.0
    """The farthest that one of them moved."""

    def __add__(self, other: Changes) -> Changes:
        return Changes(
            self.scores + other.scores,
            self.changed + other.changed,
            max(self.farthest, other.farthest),
        )

    def __post_init__(self) -> None:
        if not 0 <= self.changed <= self.scores or not self.farthest >= 0:
            raise InputError(f"{self} is impossible")

    @property
    def share(self) -> float | None:
        """Of the scores that were compared: how many changed; None where there were none."""
        return self.changed / self.scores if self.scores else None


def compare_scores(frames: Sequence[pl.DataFrame]) -> Changes:
    """Compare stored scores: of each variant query_id, doc_id and score.

    Where each variant keeps its own best documents, those that all of them keep are compared.
    """
    together = pl.concat(frames).group_by(["query_id", "doc_id"]).agg("score")
    of_all = together.filter(pl.col("score").list.len() == len(frames))
    scores = of_all["score"].cast(pl.List(pl.Float64)).list
    moved = (scores.max() - scores.min()).to_numpy()
    return Changes(len(moved), int(np.count_nonzero(moved)), float(moved.max(initial=0)))


@dataclass(frozen=True)
class StoredEmbeddings:
    """What one variant stores: queries, and the parts that hold a row for each text."""

    queries: Products
    parts: Sequence[StoredShard]

    def blocks(self, first: int, last: int, barrier: Barrier) -> Iterator[Chunk]:
        """Yield the rows from `first` to before `last`, in blocks of one length."""
        rows = _Rows(self.parts, first, last)
        shard = Shard(rows, reuses_buffers=False, start=first, documents=last - first)
        return cut_blocks(shard.read(self.queries, barrier), block_length(self.queries.n_queries))


@dataclass(frozen=True)
class _Rows:
    """Some rows of stored parts, whichever files they lie in."""

    parts: Sequence[StoredShard]
    first: int
    last: int

    def __call__(self) -> Iterator[tuple[range, Matrix]]:
        for part in self.parts:
            yield from part.between(self.first, self.last)


def compare_embeddings(
    variants: Sequence[StoredEmbeddings],
    documents: Ints,
    engine: Engine,
    progress: Callable[[int, int], None] | None = None,
) -> Changes:
    """Compare scores that are too many to be stored: multiply the embeddings of all variants again.

    The texts of every variant are in the same order. Memory holds, for each thread, a block of
    embeddings and one of scores of every variant, and what they are compared in.

    Parameters
    ----------
    documents
        Per text: how many documents have it.
    engine
        Where the parts are read and multiplied.
    progress
        Called with how many texts were compared, and how many there are.
    """
    texts = len(documents)
    for variant in variants:
        check_same_length("the stored embeddings", texts, sum(p.documents for p in variant.parts))
    pieces = [
        _CompareTask(first, documents[first : first + PIECE]) for first in range(0, texts, PIECE)
    ]
    compared = Changes()
    done = 0
    with engine.pool(_CompareWorker(variants)) as pool:
        for piece, changes in pool.results(pieces):
            compared += changes
            done += len(piece.documents)
            if progress is not None:
                progress(done, texts)
    return compared


@dataclass(frozen=True)
class _CompareTask:
    """Consecutive texts, which are compared together."""

    first: int
    documents: Ints

    @property
    def last(self) -> int:
        return self.first + len(self.documents)

    @property
    def name(self) -> str:
        return f"comparing texts {self.first:,} to {self.last - 1:,}"


@dataclass(frozen=True)
class _CompareWorker:
    """Makes a worker that compares the scores of texts, in any process."""

    variants: Sequence[StoredEmbeddings]

    def __call__(self) -> Callable[[_CompareTask], Changes]:
        return self._compare

    def _compare(self, texts: _CompareTask) -> Changes:
        def blocks(barrier: Barrier) -> Iterator[tuple[Chunk, ...]]:
            every = [variant.blocks(texts.first, texts.last, barrier) for variant in self.variants]
            return zip(*every, strict=True)

        def compare(own: tuple[Chunk, ...]) -> Changes:
            text = own[0].positions - texts.first
            floats = [
                exact_floats(score_block(variant.queries, block))[:, : len(text)]
                for variant, block in zip(self.variants, own, strict=True)
            ]
            highest, lowest = reduce(np.maximum, floats), reduce(np.minimum, floats)
            moved = np.subtract(highest, lowest, dtype=np.float64)
            documents = texts.documents[text]
            return Changes(
                len(moved) * int(documents.sum()),
                int(np.count_nonzero(moved, axis=0) @ documents),
                float(moved.max(initial=0)),
            )

        queries = self.variants[0].queries
        return sum(share_blocks(queries, blocks, len(texts.documents), compare), Changes())
