"""Sort, count and group documents in plain NumPy.

This defines what `compiled_counting` computes. It is used if nothing is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Scores = NDArray[np.floating[Any]]
"""float32 or float64; some functions also accept float16 and bfloat16."""
Counts = NDArray[np.int64]
"""Three rows per document of interest: candidates above it, equal to it, and tied before it."""


def sort_documents(query: Ints, score: Scores, place: Ints, n_queries: int) -> tuple[Ints, Ints]:
    """Sort documents by query, score (high to low) and position.

    Returns
    -------
    order, offsets
        The indices of the documents in this order, and the offset of each query.
    """
    return np.lexsort((place, -score, query)), offsets_of(query, n_queries + 1)


def count_candidates(
    scores: Scores | NDArray[np.int16],
    starts: Ints,
    stops: Ints,
    offsets: Ints,
    values: Scores | NDArray[np.int16],
    rows: Ints,
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
        Per document: its score, and an index in ``scores``. Equal scores at smaller indices count
        as before the document.

    Returns
    -------
    Counts
        Candidates with a greater score, with an equal score (the document itself
        included), and with an equal score at an index smaller than ``rows``.
    """
    if scores.dtype == np.int16:
        scores, values = _order_bits(scores.view(np.int16)), _order_bits(values.view(np.int16))
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
        # A stable sort leaves the indices of equal scores ascending: find the row among them.
        value = is_group_start(ascending).cumsum()
        sorted_pairs = value * (len(list_) + 1) + order
        row = np.clip(rows[own] - starts[q], 0, len(list_))
        pair = np.append(value, 0)[left] * (len(list_) + 1) + row
        found = np.searchsorted(sorted_pairs, pair, "left")
        before[own] = np.where(left < right, found - left, 0)
    return counts


def group_documents(query: Ints, score: Scores, grade: Floats) -> tuple[Ints, Ints, Ints]:
    """Return the tie groups of documents that `sort_documents` has sorted.

    Returns
    -------
    first
        Per group: the index of its first document.
    group
        Per document: the index of its group.
    order
        The indices of the documents by group and, inside a group, by grade from high to low.
    """
    is_start = is_group_start(query, score)
    group = is_start.cumsum() - 1
    return is_start.nonzero()[0], group, np.lexsort((-grade, group))


def offsets_of(index: Ints, length: int) -> Ints:
    """Return the offset of the entries of each number below `length` in a sorted index.

    >>> offsets_of(np.array([0, 0, 2]), 3)
    array([0, 2, 2])
    """
    number = np.bincount(index, minlength=length)
    return number.cumsum() - number


def is_group_start(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """Return, per entry, whether its keys differ from those of the entry before it.

    >>> is_group_start(np.array([0, 0, 0, 1]), np.array([0.5, 0.5, 0.25, 0.25]))
    array([ True, False,  True,  True])
    """
    is_start = np.ones(len(keys[0]), bool)
    if len(is_start):
        is_start[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return is_start


def _order_bits(bits: NDArray[np.int16]) -> NDArray[np.int16]:
    """Convert the bits of 16-bit floats to integers of the same order.

    >>> _order_bits(np.array([-np.inf, -1, -0.0, 0, 1], np.float16).view(np.int16))
    array([-31744, -15360,      0,      0,  15360], dtype=int16)
    """
    return np.where(bits < 0, -(bits & 0x7FFF), bits)
