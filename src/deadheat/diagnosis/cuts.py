"""Lists cut inside a tie group: bounds that hold whichever documents were cut."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deadheat.measures import VIEWS, Measure
from deadheat.ties import Floats, Ints, TieGroups


@dataclass(frozen=True)
class CutBounds:
    """Bounds of a mean over queries that hold whichever documents were cut."""

    measure: str
    lists: int
    """Cut lists whose last tie group can move the measure."""
    worst: float
    best: float


def cut_lists(groups: TieGroups) -> NDArray[np.bool_]:
    """Per query: does its list end inside a tie group, with relevant documents missing.

    Other lists are taken to be complete, as `evaluate` does.
    """
    if groups.end_size is None:  # the lists are known to be complete
        return np.zeros(groups.n_queries, bool)
    return (groups.end_size > 1) & groups.lacks_relevant


def cut_bounds(
    groups: TieGroups, unretrieved: tuple[Ints, Floats], measures: list[Measure]
) -> list[CutBounds]:
    """Bound each measure over all ways to complete the last tie group of cut lists, if any.

    The group may have held any number of further documents, among them any of the
    `unretrieved` judged ones. A measure is best when it held all of these and its relevant
    documents come first, at ranks ``c+1 …``; worst when it held so many others that its own
    all stand past the cutoff. Both may be what happened: the bounds are exact, for every
    measure with a cutoff and for R-Precision, whose cutoff is N. Without a cutoff a list is
    read to the length it was given in, as if that were the cutoff: exact for lists of that
    length, but a longer list may score more.
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
    """Groups after documents joined those that stand below `above` others in their query.

    Best ranks can be asked of what is returned, worst ranks cannot: the groups did not grow.
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
