"""Read arrays, tensors and lists of lists: scores and labels without ids."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat._internal.numbers import (
    LARGEST_GRADE,
    FloatArray,
    exact_scores,
    is_tensor,
    real_numbers,
    tensor_values,
)
from deadheat.errors import InputError
from deadheat.formats.types import Ints

LONGEST = 1 << 62
"""Positions in a list are below this, so that their sums and differences fit into 64 bits."""
MOST_RELEVANT = 50_000_000
"""Largest accepted total of `n_relevant` over all queries."""


@dataclass(frozen=True)
class Candidates:
    """Scores and grades of all queries, flattened."""

    scores: FloatArray
    """float32 or float64, with the order and the ties of the original scores."""
    grades: NDArray[np.generic]
    offsets: Ints
    """The candidates of query ``q`` are ``offsets[q]:offsets[q + 1]``."""
    exact: NDArray[np.object_] | None
    """The original scores if float64 cannot hold them; `scores` then has only their order."""


def flatten(scores: object, relevance: object) -> Candidates:
    """Flatten scores and grades of the shape ``[queries, candidates]``.

    >>> flatten([[0.5, 0.25], [0.75]], [[1, 0], [1]]).offsets
    array([0, 2, 3])
    """
    floats, exact, labels, offsets = flatten_rows(scores, "relevance", relevance)
    grades = read_grades("relevance", labels, offsets)
    if grades.ndim != 1:
        raise InputError("relevance must be one row of numbers per query, not deeper lists")
    return Candidates(floats, grades, offsets, exact)


def flatten_rows(
    scores: object, name: str, other: object
) -> tuple[FloatArray, NDArray[np.object_] | None, NDArray[np.generic] | list[object], Ints]:
    """Flatten scores and another array of the same shape; `name` is its name in messages.

    Both are ``[queries, k]``, or lists of rows. Returns the two outputs of `exact_scores`, the
    other array (a list if its rows were lists), and the offsets of the queries.

    >>> flatten_rows([[1, 0.5], []], "ids", [["a", "b"], []])
    (array([1. , 0.5]), None, ['a', 'b'], array([0, 2, 2]))
    """
    first, second = _read_rows("scores", scores), _read_rows(name, other)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        if first.shape != second.shape:
            shapes = f"scores {list(first.shape)} and {name} {list(second.shape)}"
            raise InputError(f"{shapes} differ in shape")
        offsets = np.arange(len(first) + 1, dtype=np.int64) * first.shape[1]
        return *exact_scores(first.reshape(-1)), second.reshape(-1), offsets
    if len(first) != len(second):
        raise InputError(f"{len(first)} queries have scores, {len(second)} have {name}")
    lengths = [len(row) for row in first]
    for q, (n, row) in enumerate(zip(lengths, second, strict=True)):
        if n != len(row):
            raise InputError(f"query {q}: scores of {n} documents, but {name} of {len(row)}")
    floats, exact = exact_scores(_join(first))
    if floats.ndim != 1:
        raise InputError("scores must be one row of numbers per query, not deeper lists")
    return floats, exact, _join(second), np.cumsum([0, *lengths], dtype=np.int64)


def _read_rows(name: str, rows: Any) -> NDArray[np.generic] | list[Any]:
    """Return a matrix, or a list of rows; raise `InputError` for anything else."""
    if is_tensor(rows):
        rows = tensor_values(name, rows)
    elif not isinstance(rows, (list, tuple)):
        rows = np.asanyarray(rows)
    if isinstance(rows, np.ndarray) and (rows.ndim != 1 or rows.dtype != object):
        if rows.ndim != 2:
            raise InputError(
                f"{name} must have the shape [queries, candidates], not {list(rows.shape)}; wrap a "
                "single query in a list"
            )
    else:
        rows = [tensor_values(name, row) if is_tensor(row) else row for row in rows]
        for q, row in enumerate(rows):
            is_array = getattr(row, "ndim", 0) == 1 and not np.ma.isMaskedArray(row)
            if not is_array and not isinstance(row, (list, tuple)):
                raise InputError(
                    f"{name} of query {q} must be a list, not {row!r:.60}; wrap a single query in "
                    "a list"
                )
    if not len(rows):
        raise InputError(f"{name} are empty: give at least one query")
    return rows  # type: ignore[no-any-return]


def _join(rows: Any) -> NDArray[np.generic] | list[object]:
    """Join rows: arrays of one type to an array, others to a list, which keeps the exact values."""
    types = {row.dtype if isinstance(row, np.ndarray) else None for row in rows}
    return (
        list(chain.from_iterable(rows)) if None in types or len(types) > 1 else np.concatenate(rows)
    )


def group_by_query(
    scores: object, relevance: object, query: object
) -> tuple[Candidates, list[object]]:
    """Group flat scores and grades by the query of each candidate.

    Queries are in the order of their first candidate. Also returns their ids.

    >>> candidates, queries = group_by_query([0.5, 0.75, 0.25], [1, 1, 0], [7, 3, 7])
    >>> candidates.scores, candidates.offsets, queries
    (array([0.5 , 0.25, 0.75]), array([0, 2, 3]), [7, 3])
    """
    (flat, exact), grades = exact_scores(scores), read_grades("relevance", relevance)
    queries, code = _query_codes(query)
    shapes = {"scores": flat.shape, "relevance": grades.shape, "query": code.shape}
    if len(set(shapes.values())) > 1 or flat.ndim != 1:
        given = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
        raise InputError(f"scores, relevance and query must be flat and of one length, not {given}")
    if not len(flat):
        raise InputError("scores are empty: give at least one query")
    if (np.diff(code) < 0).any():
        order = np.argsort(code, kind="stable")
        flat, grades, code = flat[order], grades[order], code[order]
        exact = None if exact is None else exact[order]
    offsets = np.searchsorted(code, np.arange(len(queries) + 1)).astype(np.int64)
    return Candidates(flat, grades, offsets, exact), queries


def _query_codes(query: Any) -> tuple[list[object], Ints]:
    """Return the distinct queries in order of appearance, and per candidate its query index."""
    if is_tensor(query):
        query = tensor_values("query", query)
    try:
        ids = query.tolist() if isinstance(query, np.ndarray) else list(query)
        index = {id_: i for i, id_ in enumerate(dict.fromkeys(ids))}
    except TypeError:  # not a sequence, or of more than one dimension
        raise InputError(
            f"query must be a flat sequence with the query of each candidate, not {query!r:.60}"
        ) from None
    return list(index), np.array([index[id_] for id_ in ids], np.int64)


def read_whole_numbers(name: str, values: ArrayLike, *, one: bool = False) -> Ints:
    """Return a new flat array of positions or indices; raise `InputError` for anything else.

    With `one`, a single number is accepted, too.
    """
    if is_tensor(values):
        values = tensor_values(name, values)
    try:
        array = np.asarray(values)
        with np.errstate(invalid="ignore"):  # NaN and infinity
            whole = np.array(array, np.int64)
        is_whole = array.dtype.kind not in "bcmM" and np.array_equal(whole, array)
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    is_flat = is_whole and (array.ndim == 1 or (one and array.ndim == 0))
    if not is_flat or not (whole.min(initial=0) >= 0 and whole.max(initial=0) < LONGEST):
        raise InputError(f"{name} must be one row of whole numbers from 0 on, not {values!r:.100}")
    return whole


def counts_per_query(name: str, given: ArrayLike, n: int) -> Ints:
    """Return whole numbers, one for each of `n` queries or one for all, as an array."""
    counts = read_whole_numbers(name, given, one=True)
    if counts.shape not in ((), (n,)):
        raise InputError(f"{name} must be one whole number, or one for each of the {n} queries")
    return np.broadcast_to(counts, n).astype(np.int64)


def unlisted_relevant(n_relevant: ArrayLike, listed: Ints) -> Ints:
    """Return, per query, the number of relevant documents that are not candidates."""
    given = counts_per_query("n_relevant", n_relevant, len(listed))
    most = given.sum(dtype=np.float64)
    if most > MOST_RELEVANT:
        raise InputError(
            f"n_relevant has {most:g} relevant documents in total, more than {MOST_RELEVANT:g}: "
            "give the number of each query"
        )
    unlisted = given - listed
    if (unlisted < 0).any():
        q = int(np.flatnonzero(unlisted < 0)[0])
        raise InputError(
            f"n_relevant of query {q} is smaller than its {listed[q]} relevant candidates"
        )
    return unlisted


def read_grades(name: str, values: object, offsets: Ints | None = None) -> NDArray[np.generic]:
    """Return grades as an array of numbers; `offsets` are those of the queries, for messages."""
    if is_tensor(values):
        values = tensor_values(name, values)
    try:
        grades = real_numbers(values)
        if grades.dtype.kind not in "biuf":
            grades = grades.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be numbers ({str(error).strip()})") from None
    if grades.dtype.kind == "f" and not float(np.max(np.abs(grades), initial=0)) <= LARGEST_GRADE:
        row = int(np.argmin(np.abs(grades.astype(np.float64)) <= LARGEST_GRADE))
        q = 0 if offsets is None else int(np.searchsorted(offsets, row, "right")) - 1
        place = row if offsets is None else [q, row - int(offsets[q])]
        raise InputError(f"{name} at {place}: a grade is {grades.flat[row]:g}, which is not valid")
    return grades
