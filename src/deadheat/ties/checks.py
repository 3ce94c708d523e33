"""What callers say of lists and documents, checked before anything is counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.numbers import LARGEST_GRADE, exact_floats, is_tensor, tensor_values
from deadheat.ties.groups import Floats, Ints
from deadheat.ties.scores import Bounds

LONGEST = 1 << 62
"""Places in a list are below this: their sums and differences fit into 64 bits."""


def whole_numbers(name: str, values: Any, *, one: bool = False) -> Ints:
    """Take places or indices as a row of integers of its own, or say why not.

    With `one` a single number is taken as it is.
    """
    if is_tensor(values):
        values = tensor_values(name, values)
    try:
        array = np.asarray(values)
        if array.size == 0:
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu":
            rounded = array.astype(np.float64)
            if array.dtype.kind == "b" or not (np.floor(rounded) == array).all():
                raise ValueError(f"not {array.dtype}")
            array = rounded
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be whole numbers ({str(error).strip()})") from None
    if array.ndim != 1 and not (one and array.ndim == 0):
        raise InputError(f"{name} must be one row of whole numbers, not {list(array.shape)}")
    if array.size and not (array.min() >= 0 and array.max() < LONGEST):
        wrong = array.min() if array.min() < 0 else array.max()
        raise InputError(f"{name} must be whole numbers from 0 on, not {wrong}")
    return np.array(array, np.int64)


def places(start: Any, positions: Any, n: int) -> Ints:
    """Places in the lists of the `n` columns of a piece."""
    if positions is None:
        first = whole_numbers("start", start, one=True)
        if first.ndim:
            raise InputError(f"start must be one place, not {len(first)}")
        return int(first) + np.arange(n)
    place = whole_numbers("positions", positions)
    if len(place) != n:
        raise InputError(
            f"positions must give a place for each of the {n} columns, not {len(place)}"
        )
    if len(np.unique(place)) < n:
        raise InputError("positions names a place twice")
    return place


def list_starts(start: Any, n_queries: int) -> Ints:
    """Per query: the place in its list of the first score of a piece."""
    first = whole_numbers("start", start, one=True)
    if first.shape not in ((), (n_queries,)):
        raise InputError(
            f"start must be one place, or one for each of the {n_queries} queries, not {len(first)}"
        )
    return np.broadcast_to(first, n_queries)


def number_array(scores: Any) -> NDArray[Any]:
    """Take scores as an array of numbers in their own type, or say why not."""
    try:
        array = np.asarray(scores)
    except ValueError as error:
        raise InputError(f"scores must be one array of numbers ({error})") from None
    return array if array.dtype.kind in "biufV" else exact_floats(scores, by_place=False)


def nan_score() -> InputError:
    """Say that a score cannot be ranked."""
    return InputError("a score is NaN: a NaN has no place in a ranking")


def check_number(name: str, number: Any, *, least: int) -> int:
    """Take a whole number, `least` or more."""
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    if not whole or number < least:
        raise InputError(f"{name} must be a whole number, {least} or more, not {number!r}")
    return int(number)


def query_indices(name: str, values: Any, n_queries: int) -> Ints:
    """Take indices of queries."""
    query = whole_numbers(name, values)
    if len(query) and query.max() >= n_queries:
        raise InputError(
            f"{name} holds the query index {query.max()}, which is not below {n_queries}, the "
            "number of queries"
        )
    return query


def grade_values(values: Any) -> Floats:
    """Take grades, one for each document."""
    if is_tensor(values):
        values = tensor_values("grade", values)
    try:
        grade = np.array(values, np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"grades must be numbers ({str(error).strip()})") from None
    wrong = ~(np.abs(grade) <= LARGEST_GRADE)
    if wrong.any():
        raise InputError(
            f"a grade is {grade[wrong][0]:g}, which is no grade: mend it or leave it out"
        )
    return grade


def check_distinct(query: Ints, position: Ints) -> None:
    """Refuse two documents of one query at the same place."""
    order = np.lexsort((position, query))
    same = (np.diff(query[order]) == 0) & (np.diff(position[order]) == 0)
    if same.any():
        i = order[np.flatnonzero(same)[0]]
        raise InputError(
            f"two documents of query {query[i]} stand at position {position[i]}: give each its own "
            "place, or none of them any"
        )


def list_bounds(bounds: Any, scores: NDArray[Any], n_queries: int) -> Bounds:
    """Take the bounds of lists that lie inside the scores."""
    if scores.ndim != 1:
        raise InputError(f"with bounds the scores are one row, not {list(scores.shape)}")
    try:
        first, last = bounds
    except (TypeError, ValueError):
        raise InputError("bounds must be a pair: where lists start, and where they stop") from None
    starts, stops = whole_numbers("bounds", first), whole_numbers("bounds", last)
    if not len(starts) == len(stops) == n_queries:
        raise InputError(
            f"bounds must hold a start and a stop for each of the {n_queries} queries, not "
            f"{len(starts)} and {len(stops)}"
        )
    wrong = np.flatnonzero((starts > stops) | (stops > len(scores)))
    if len(wrong):
        q = int(wrong[0])
        raise InputError(
            f"the bounds of query {q} are {starts[q]} and {stops[q]}: a list must start before it "
            f"stops, inside the {len(scores)} scores"
        )
    return starts, stops


def check_tolerance(tie_tolerance: object) -> None:
    """Refuse what is not a distance of scores."""
    if not isinstance(tie_tolerance, (int, float, np.number)) or not tie_tolerance >= 0:
        raise InputError(f"tie_tolerance must be a number, 0 or more, not {tie_tolerance!r}")
