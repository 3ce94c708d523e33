"""Anatomy of a run's ties: the number of tied documents and the sizes of tie groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.formats import Run
from deadheat.scoring import FORMATS
from deadheat.ties import GroupSizes, round_scores, run_sizes

NEAR_ONE = 1e-4
"""Closer to 1 than this, one step of FP32 changes the logit by more than 0.0006."""


@dataclass(frozen=True)
class Anatomy:
    """The tie groups of a whole run, judged or not."""

    queries: int
    documents: int
    distinct: float
    """Share of distinct scores: distinct scores of each query, summed, divided by documents."""
    tied: int
    """Number of documents that have the same score as another document of their query."""
    sizes: dict[int, int]
    """Number of tie groups of each size; size 1 is a document that is not tied."""
    largest: int
    """Size of the largest tie group."""
    largest_query: str
    largest_score: float
    saturated: int
    """Number of tied documents whose score is closer to 1 than `NEAR_ONE`. It is counted only if
    scores approach 1 gradually, as saturating probabilities do."""
    end_tied: int
    """Number of lists that end inside a tie group: documents of that score may be cut off."""
    float32_pairs: int
    """Number of pairs of documents that are not tied, but would be with float32 scores."""


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
        float32_pairs=_pairs(run_sizes(cast)) - _pairs(groups),
    )


def _pairs(groups: GroupSizes) -> int:
    """Return the number of pairs of documents of a query with the same score."""
    return int((groups.size * (groups.size - 1) // 2).sum())
