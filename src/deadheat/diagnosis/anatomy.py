"""Anatomy of a run's ties: how many documents share their score, and in how large groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.formats import Run


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
    end_tied: int
    """Lists that end inside a tie group: documents of the same score may have been cut off."""


def dissect(run: Run) -> Anatomy:
    """Count the tie groups of a run without NaN.

    >>> from deadheat.formats import read_run
    >>> dissect(read_run({"q": {"a": 0.5, "b": 0.5, "c": 0.25}})).sizes
    {1: 1, 2: 1}
    """
    starts = run.offsets[:-1][np.diff(run.offsets) > 0]
    ascending = np.concatenate([np.sort(list_) for list_ in np.split(run.scores, starts[1:])])
    new = np.ones(len(ascending), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    new[starts] = True
    first = np.flatnonzero(new)
    size = np.diff(first, append=len(ascending))
    sizes, groups = np.unique(size, return_counts=True)
    at = int(first[np.argmax(size)])
    return Anatomy(
        queries=len(run.query_ids),
        documents=len(ascending),
        distinct=len(first) / len(ascending),
        tied=int(size[size > 1].sum()),
        sizes=dict(zip(sizes.tolist(), groups.tolist(), strict=True)),
        largest=int(size.max()),
        largest_query=run.query_ids[int(np.searchsorted(run.offsets, at, "right")) - 1],
        largest_score=float(ascending[at]),
        end_tied=int((size[np.searchsorted(first, starts)] > 1).sum()),
    )
