"""Counting and grouping in plain NumPy: the definition, and what runs where none is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.ties.groups import Floats, Ints, begins, falling, firsts

Counts = NDArray[np.int64]
"""Per document of interest, in three rows: candidates above, equal, and tied before it."""


def count_candidates(
    scores: NDArray[Any], starts: Ints, stops: Ints, offsets: Ints, values: NDArray[Any], rows: Ints
) -> Counts:
    """Count the candidates above, equal to and tied before each document of interest.

    Parameters
    ----------
    scores
        Scores of the candidates of all queries, no NaN: float32, float64, or int16, which stands
        for the bits of float16 or bfloat16 (`scores` and `values` alike).
    starts, stops
        The candidates of query ``q`` are ``scores[starts[q]:stops[q]]``.
    offsets
        The documents of interest of query ``q`` are ``offsets[q]:offsets[q + 1]`` in the
        arrays below, ordered by value, high to low, and by row where values are equal.
    values, rows
        Score of each document, and the index in ``scores`` before which an equal score
        counts as standing before the document.

    Returns
    -------
    Counts
        Candidates with a greater score, with an equal score (the document itself
        included), and with an equal score at an index smaller than ``rows``.
    """
    if scores.dtype == np.int16:
        scores, values = _whole_numbers(scores), _whole_numbers(values)
    counts = np.zeros((3, len(values)), np.int64)
    above, equal, before = counts
    for q in np.flatnonzero(np.diff(offsets)):
        own = slice(offsets[q], offsets[q + 1])
        list_ = scores[starts[q] : stops[q]]
        order = np.argsort(list_, kind="stable")
        ascending = list_[order]
        left = np.searchsorted(ascending, values[own], "left")
        right = np.searchsorted(ascending, values[own], "right")
        above[own] = len(list_) - right
        equal[own] = right - left
        # Inside a run of equal scores a stable sort leaves the indices ascending.
        row = rows[own] - starts[q]
        for i, (low, high) in enumerate(zip(left, right, strict=True), start=int(offsets[q])):
            before[i] = np.searchsorted(order[low:high], row[i - offsets[q]], "left")
    return counts


def group_lists(
    scores: NDArray[Any], starts: Ints, stops: Ints, query: Ints, position: Ints, grade: Floats
) -> tuple[Ints, Ints, Ints, Ints, Ints, Floats]:
    """Find the tie groups of lists in memory, with ranks under the rule "input order".

    Parameters
    ----------
    scores, starts, stops
        As for `count_candidates`, float32 or float64.
    query, position, grade
        Per document of interest, in the order of queries: its query, its place in the query's list,
        and its grade.

    Returns
    -------
    tuple
        `query`, `above` and `size`, per group, and `group`, `rank` and `grade`, per document, as
        `TieGroups` has them.
    """
    score = scores[starts[query] + position]
    order = falling(query, score, position)
    query, position, score, grade = query[order], position[order], score[order], grade[order]
    offsets, rows = firsts(query, len(starts) + 1), starts[query] + position
    above, equal, before = count_candidates(scores, starts, stops, offsets, score, rows)
    new = begins(query, score)
    group, rank = new.cumsum() - 1, above + 1 + before
    order = np.lexsort((-grade, group))
    return query[new], above[new], equal[new], group, rank[order], grade[order]


def _whole_numbers(bits: NDArray[np.int16]) -> NDArray[np.int16]:
    """Give whole numbers in the order of the floats whose bits are given: a sign and a magnitude.

    >>> _whole_numbers(np.array([-np.inf, -1, -0.0, 0, 1], np.float16).view(np.int16))
    array([-31744, -15360,      0,      0,  15360], dtype=int16)
    """
    return np.where(bits < 0, -(bits & 0x7FFF), bits)
