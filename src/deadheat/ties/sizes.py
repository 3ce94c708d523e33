"""Sizes of all tie groups of lists, judged or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from deadheat._internal.numbers import exact_floats
from deadheat.formats import Run
from deadheat.provenance import ScoreFacts
from deadheat.ties.lists import rank_nan
from deadheat.ties.numpy_counting import Ints, Scores, is_group_start


@dataclass(frozen=True)
class GroupSizes:
    """All tie groups of some lists; an untied document is a group of one."""

    query: Ints
    """Per group: index of its query. Groups are sorted by query."""
    score: Scores
    """Per group: the score of its documents, from low to high inside a query."""
    size: Ints
    """Per group: number of documents."""

    @property
    def facts(self) -> ScoreFacts:
        """Documents, distinct scores, and the size of the largest group."""
        return ScoreFacts(int(self.size.sum()), len(self.size), int(self.size.max(initial=0)))


class SizeCounter:
    """Count all tie groups of lists that arrive in pieces; stores every distinct score."""

    def __init__(self, n_queries: int) -> None:
        self._sizes: list[Counter[float]] = [Counter() for _ in range(n_queries)]

    def update(self, scores: Iterable[object]) -> None:
        """Count one piece of every query's list: ``[n_queries, n]``, without NaN."""
        for sizes, row in zip(self._sizes, scores, strict=True):
            values, counts = np.unique(exact_floats(row, by_place=False), return_counts=True)
            sizes.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def __iadd__(self, other: SizeCounter) -> SizeCounter:
        """Add the pieces that another counter has counted."""
        for own, added in zip(self._sizes, other._sizes, strict=True):
            own.update(added)
        return self

    @property
    def facts(self) -> ScoreFacts:
        """Documents, distinct scores, and the size of the largest group."""
        return ScoreFacts(
            sum(sum(sizes.values()) for sizes in self._sizes),
            sum(map(len, self._sizes)),
            max((max(sizes.values(), default=0) for sizes in self._sizes), default=0),
        )


def run_sizes(run: Run) -> GroupSizes:
    """Return the tie groups of a run; raise an error for NaN scores.

    >>> from deadheat.formats import read_run
    >>> sizes = run_sizes(read_run({"q1": {"a": 0.5, "b": 0.25, "c": 0.5}, "q2": {"a": 0.75}}))
    >>> sizes.query, sizes.score, sizes.size
    (array([0, 0, 1]), array([0.25, 0.5 , 0.75]), array([1, 2, 1]))
    """
    scores, bounds = rank_nan(run, "refuse").scores, run.offsets
    ascending = np.concatenate([np.sort(scores[a:b]) for a, b in pairwise(bounds.tolist())])
    query = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    first = np.flatnonzero(is_group_start(query, ascending))
    return GroupSizes(query[first], ascending[first], np.diff(first, append=len(ascending)))
