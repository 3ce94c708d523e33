"""Sizes of all tie groups of lists, judged or not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

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
