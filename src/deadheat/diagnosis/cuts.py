"""Bounds for lists cut inside a tie group: they hold for all documents that may have been cut."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deadheat.measures import VIEWS, Measure
from deadheat.ties import Floats, Ints, TieGroups


@dataclass(frozen=True)
class CutBounds:
    """Bounds of a mean over queries that hold for all documents that may have been cut."""

    measure: str
    lists: int
    """Number of cut lists whose last tie group can move the measure."""
    worst: float
    best: float


def cut_lists(groups: TieGroups) -> NDArray[np.bool_]:
    """Return for each query whether its list ends in a tie group and misses relevant documents.

    Other lists are assumed to be complete, as in `evaluate`.
    """
    if groups.end_size is None:  # the lists are known to be complete
        return np.zeros(groups.n_queries, bool)
    return (groups.end_size > 1) & groups.lacks_relevant


def cut_bounds(
    groups: TieGroups, unretrieved: tuple[Ints, Floats], measures: list[Measure]
) -> list[CutBounds]:
    """Bound each measure over all ways to complete the last tie group of cut lists, if any.

    The complete group may contain any number of further documents, including any of the
    `unretrieved` judged documents. A measure is best if the group contains all of these and its
    relevant documents come first, at ranks ``c+1 …``. It is worst if the group contains so many
    other documents that all documents of the given group are ranked below the cutoff. Both cases
    are possible, so the bounds are exact for every measure with a cutoff, and for R-Precision,
    whose cutoff is N. For a measure without a cutoff, the given length of the list is the cutoff:
    the bounds are exact for lists of that length, but a longer list may score more.
    """
    cut, n = cut_lists(groups), groups.retrieved
    if groups.end_above is None or groups.end_size is None or not cut.any():
        return []
    end_above = groups.end_above
    far = max([int(n.max()), *(measure.cutoff or 0 for measure in measures)])
    last = cut[groups.query] & (groups.above + groups.size == n[groups.query])
    pushed = replace(groups, size=groups.size + far * last)
    cut_off = cut[unretrieved[0]]
    query, grade = unretrieved[0][cut_off], unretrieved[1][cut_off]
    filled = _join(groups, query, grade, groups.end_above[query], groups.end_size[query])

    def value(measure: Measure, completed: TieGroups, rank: Ints, more: Ints) -> float:
        longer = n if measure.cutoff is None else n + more
        completed = replace(completed, rank=rank, retrieved=longer)
        oblivious = measure.views(completed)[VIEWS.index("oblivious")]
        return float(oblivious.mean())

    bounds = []
    for measure in measures:
        lists = int((cut & (measure.at_stake(groups, end_above) > 0)).sum())
        lost = value(measure, pushed, pushed.worst_rank, far * cut)
        found = value(measure, filled, filled.best_rank, np.bincount(query, minlength=len(n)))
        bounds.append(CutBounds(repr(measure), lists, *sorted((lost, found))))
    return bounds


def _join(groups: TieGroups, query: Ints, grade: Floats, above: Ints, size: Ints) -> TieGroups:
    """Return the groups after documents joined the groups below `above` others in their query.

    The returned groups are valid for best ranks only, not for worst ranks: their sizes are the
    old ones.
    """
    above = np.concatenate((groups.above[groups.group], above))
    size = np.concatenate((groups.size[groups.group], size))
    query = np.concatenate((groups.document_query, query))
    grade = np.concatenate((groups.grade, grade))
    order = np.lexsort((-grade, above, query))
    query, above, size, grade = query[order], above[order], size[order], grade[order]
    new = np.diff(query, prepend=-1) + np.abs(np.diff(above, prepend=-1)) > 0
    return replace(
        groups,
        query=query[new],
        above=above[new],
        size=size[new],
        group=np.cumsum(new) - 1,
        grade=grade,
    )
