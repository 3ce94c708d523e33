"""Count scores that change, and how far, if a forward pass is computed with other settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import exact_floats
from deadheat.errors import InputError
from deadheat.evaluation.corpus import (
    Chunk,
    Shard,
    cut_blocks,
    map_blocks,
    score_block,
)
from deadheat.formats import StoredShard
from deadheat.scoring import Products
from deadheat.ties import Ints


class Changes(NamedTuple):
    """The scores that differ between variants: their number and largest difference."""

    scores: int
    """Number of compared scores."""
    changed: int
    farthest: float
    """Largest difference of one score between variants."""


def compare_scores(frames: Sequence[pl.DataFrame]) -> Changes:
    """Compare stored scores; each frame has query_id, doc_id and score.

    If each variant keeps its own best documents, only documents of all variants are compared.
    """
    together = pl.concat(frames).group_by(["query_id", "doc_id"]).agg("score")
    of_all = together.filter(pl.col("score").list.len() == len(frames))
    scores = of_all["score"].cast(pl.List(pl.Float64)).list
    moved = (scores.max() - scores.min()).to_numpy()
    return Changes(len(moved), int(np.count_nonzero(moved)), float(moved.max(initial=0)))


def compare_embeddings(
    variants: Sequence[tuple[Products, Sequence[StoredShard]]],
    documents: Ints,
) -> Changes:
    """Compare scores that are too many to be stored: compute them again from the embeddings.

    The texts of every variant are in the same order. Each thread needs memory for one block of
    embeddings and one block of scores of every variant, and for their comparison.

    Parameters
    ----------
    variants
        Per variant: its queries, and the stored parts, which have a row per text.
    documents
        Per text: the number of documents with this text.
    """
    texts = len(documents)
    for _, parts in variants:
        if (stored := sum(part.documents for part in parts)) != texts:
            raise InputError(f"{texts:,} texts have {stored:,} stored embeddings: run it again")
    queries = variants[0][0]

    def read(products: Products, parts: Sequence[StoredShard]) -> Iterator[Chunk]:
        shard = Shard(lambda: (chunk for part in parts for chunk in part()))
        return cut_blocks(products, shard.read(products))

    def compare(own: tuple[Chunk, ...]) -> Changes:
        text = own[0].positions
        floats = [
            exact_floats(score_block(products, block))
            for (products, _), block in zip(variants, own, strict=True)
        ]
        highest, lowest = reduce(np.maximum, floats), reduce(np.minimum, floats)
        moved = np.subtract(highest, lowest, dtype=np.float64)
        return Changes(
            len(moved) * int(documents[text].sum()),
            int(np.count_nonzero(moved, axis=0) @ documents[text]),
            float(moved.max(initial=0)),
        )

    blocks = zip(*(read(*variant) for variant in variants), strict=True)
    scores, changed, farthest = zip(*map_blocks(queries, blocks, texts, compare), strict=True)
    return Changes(sum(scores), sum(changed), max(farthest))
