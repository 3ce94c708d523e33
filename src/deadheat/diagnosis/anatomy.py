"""Anatomy of a run's ties: how many documents share their score, and in how large groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.formats import Run
from deadheat.scoring import FORMATS
from deadheat.ties import GroupSizes, Ints, round_scores, run_sizes

NEAR_ONE = 1e-4
"""Nearer to 1, a step of FP32 is a step of more than 0.0006 in the logit."""


@dataclass(frozen=True)
class Anatomy:
    """The tie groups of a whole run, judged or not."""

    queries: int
    documents: int
    distinct: float
    """Share of distinct scores: those of each query, added up, divided by all documents."""
    tied: int
    """Documents that share their score with another of their query."""
    sizes: dict[int, int]
    """How many tie groups have each size; a size of 1 is a document that is not tied."""
    largest: int
    """Size of the largest tie group."""
    largest_query: str
    largest_score: float
    saturated: int
    """Tied documents with a score nearer to 1 than `NEAR_ONE`, where scores come close to 1
    gradually, as probabilities do that saturate."""
    end_tied: int
    """Lists that end inside a tie group: documents of the same score may have been cut off."""
    float32_pairs: int
    """Pairs of documents that are not tied, but would be after a cast of scores to float32."""
    float32_queries: int
    """Queries that have such pairs."""


def dissect(run: Run, groups: GroupSizes) -> Anatomy:
    """Count the tie groups of a run without NaN.

    >>> from deadheat.formats import read_run
    >>> run = read_run({"q": {"a": 0.5, "b": 0.5, "c": 0.25}})
    >>> dissect(run, run_sizes(run)).sizes
    {1: 1, 2: 1}
    """
    sizes, number = np.unique(groups.size, return_counts=True)
    largest = int(np.argmax(groups.size))
    cast, _ = round_scores(run, FORMATS["fp32"])
    added = _pairs(run_sizes(cast), run) - _pairs(groups, run)
    gradual = len(np.unique(groups.score[groups.score > 0.99])) > 2
    saturates = (groups.score > 1 - NEAR_ONE) & (groups.size > 1) & gradual
    saturates &= bool(np.all((groups.score >= 0) & (groups.score <= 1)))
    lowest = np.diff(groups.query, prepend=-1) > 0  # the group that ends each list
    return Anatomy(
        queries=len(run.query_ids),
        documents=groups.facts.documents,
        distinct=groups.facts.distinct / groups.facts.documents,
        tied=int(groups.size[groups.size > 1].sum()),
        sizes=dict(zip(sizes.tolist(), number.tolist(), strict=True)),
        largest=groups.facts.largest,
        largest_query=run.query_ids[groups.query[largest]],
        largest_score=float(groups.score[largest]),
        saturated=int(groups.size[saturates].sum()),
        end_tied=int((groups.size[lowest] > 1).sum()),
        float32_pairs=int(added.sum()),
        float32_queries=int((added > 0).sum()),
    )


def _pairs(groups: GroupSizes, run: Run) -> Ints:
    """Per query: pairs of documents with the same score."""
    pairs = groups.size * (groups.size - 1) // 2
    return np.bincount(groups.query, pairs, minlength=len(run.query_ids)).astype(np.int64)
