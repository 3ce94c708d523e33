"""Sort, count and group documents: compiled where possible, in NumPy elsewhere, on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.numbers import exact_floats, half_floats, is_tensor
from deadheat.ties.numpy_counting import Counts as Counts
from deadheat.ties.numpy_counting import Floats, Ints
from deadheat.ties.torch_counting import count_tensor

try:
    import deadheat.ties.compiled_counting as _active

    BACKEND = "compiled"
except ImportError:  # no C compiler when deadheat was installed
    import deadheat.ties.numpy_counting as _active

    BACKEND = "numpy"

Bounds = tuple[Ints, Ints]
"""``(starts, stops)``: the scores of query ``q`` are ``scores[starts[q]:stops[q]]``."""


def sort_documents(
    query: Ints, score: NDArray[Any], place: Ints, n_queries: int
) -> tuple[Ints, Ints]:
    """Sort documents by query, score and place; see `numpy_counting.sort_documents`."""
    found: tuple[Ints, Ints] = _active.sort_documents(query, score, place, n_queries)
    return found


def group_documents(query: Ints, score: NDArray[Any], grade: Floats) -> tuple[Ints, Ints, Ints]:
    """Find the tie groups of sorted documents; see `numpy_counting.group_documents`."""
    found: tuple[Ints, Ints, Ints] = _active.group_documents(query, score, grade)
    return found


def count_lists(
    scores: NDArray[Any], bounds: Bounds, offsets: Ints, values: NDArray[Any], rows: Ints
) -> Counts:
    """Count the candidates of lists; see `numpy_counting.count_candidates`.

    `scores` and `values` may be of different float types.
    """
    if scores.dtype != values.dtype:
        with np.errstate(over="ignore"):  # too large for the type: not equal, and widened
            narrow = values.astype(scores.dtype)
        if np.array_equal(narrow, values):
            values = narrow
        else:
            scores, values = scores.astype(np.float64), values.astype(np.float64)
    flat, values = np.ascontiguousarray(scores), np.ascontiguousarray(values)
    if flat.dtype.itemsize == 2:
        flat, values = flat.view(np.int16), values.view(np.int16)
    counts: Counts = _active.count_candidates(flat, *bounds, offsets, values, rows)
    return counts


def count_columns(
    scores: Any, rows: Ints, offsets: Ints, values: NDArray[Any], column: Ints
) -> Counts:
    """Count the candidates above, equal to and tied before each document of interest.

    Parameters
    ----------
    scores
        ``[rows, n]``, an array or a tensor on any device, without NaN.
    rows
        Per query: the row of its scores. A query without documents may have any.
    offsets, values
        As for `numpy_counting.count_candidates`.
    column
        Per document: the column before which an equal score stands before it.
    """
    if is_tensor(scores) and scores.device.type != "cpu":
        return count_tensor(scores[rows], offsets, values, column)
    n = scores.shape[1]
    starts = np.maximum(rows, 0) * n
    before = column + starts.repeat(np.diff(offsets))
    return count_lists(flatten_scores(scores), (starts, starts + n), offsets, values, before)


def find_columns(place: Ints, position: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Find documents among columns.

    Parameters
    ----------
    place
        Per column, ascending: its place in the lists.
    position
        Per document: its place.

    Returns
    -------
    column, inside
        Per document: the column before which an equal score stands before it, and whether that
        column is its own.
    """
    column = np.searchsorted(place, position)
    inside = column < len(place)
    inside[inside] = place[column[inside]] == position[inside]
    return column, inside


def flatten_scores(scores: Any) -> NDArray[Any]:
    """Return scores in one row: 16-bit floats as they are, others as float32 or float64."""
    floats = half_floats(scores)
    if floats is None:
        floats = exact_floats(scores, by_place=False)
    return np.ascontiguousarray(floats).reshape(-1)


def has_nan(scores: NDArray[Any]) -> bool:
    """Tell whether a score is NaN; `scores` are such as `flatten_scores` returns."""
    if not scores.size:
        return False
    if scores.dtype.itemsize != 2:
        return bool(np.isnan(np.min(scores)))
    # The bits of a NaN are beyond those of an infinity.
    ends = np.array([np.inf, -np.inf], scores.dtype)
    positive = scores.view(np.int16).max() > ends.view(np.int16)[0]
    return bool(positive or scores.view(np.uint16).max() > ends.view(np.uint16)[1])
