"""Arrays, tensors and lists of lists: scores and labels without ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat._internal.numbers import (
    LARGEST_GRADE,
    FloatArray,
    exact_floats,
    exact_scores,
    is_tensor,
    real_numbers,
    rounded,
    tensor_values,
)
from deadheat.errors import InputError
from deadheat.formats.ids import text_id
from deadheat.formats.types import Ints

_KEPT = 1 << 16
"""Up to so many query names are cached for the next call."""
MOST_RELEVANT = 50_000_000
"""Relevant documents of all queries, where only their number is given; more is an error."""


@dataclass(frozen=True)
class Candidates:
    """Scores and grades of all queries, flattened."""

    scores: FloatArray
    """float32 or float64 with the order and the ties of the scores given."""
    grades: NDArray[Any]
    offsets: Ints
    """The candidates of query ``q`` are ``offsets[q]:offsets[q + 1]``."""
    exact: NDArray[np.object_] | None
    """The scores given, where float64 cannot hold them and `scores` only has their order."""

    def has_fractions(self) -> bool:
        """Whether one of the first grades is a fraction."""
        return self.grades.dtype.kind == "f" and bool((self.grades[:10_000] % 1).any())

    @property
    def rounded(self) -> FloatArray:
        """The scores given, rounded to float64 where it cannot hold them."""
        return self.scores if self.exact is None else rounded(self.exact)


def are_whole(numbers: object) -> bool:
    """Whether numbers were given in a type of whole numbers, as labels are.

    >>> are_whole([[1, 0], [2]]), are_whole([[1.0, 0.0]]), are_whole(np.array([[True]]))
    (True, False, True)
    """
    if is_tensor(numbers):
        return not (numbers.is_floating_point() or numbers.is_complex())
    if isinstance(numbers, (list, tuple)):
        return bool(numbers) and all(map(are_whole, numbers[:100]))
    return isinstance(numbers, int) or getattr(numbers, "dtype", np.dtype(float)).kind in "biu"


def flatten(scores: object, relevance: object) -> Candidates:
    """Flatten scores and grades of the shape ``[queries, candidates]``.

    >>> flatten([[0.5, 0.25], [0.75]], [[1, 0], [1]]).offsets
    array([0, 2, 3])
    """
    if any(isinstance(rows, (list, tuple)) and rows for rows in (scores, relevance)):
        return _flatten_ragged(scores, relevance)
    (flat, exact), grades = exact_scores(scores), _grades(relevance)
    if flat.ndim != 2:
        raise InputError(
            f"scores must have the shape [queries, candidates], not {list(flat.shape)}; "
            "wrap a single query in a list"
        )
    if flat.shape != grades.shape:
        raise InputError(
            f"scores {list(flat.shape)} and relevance {list(grades.shape)} differ in shape"
        )
    if not len(flat):
        raise InputError("there is no query in the scores")
    offsets = np.arange(len(flat) + 1, dtype=np.int64) * flat.shape[1]
    exact = None if exact is None else exact.reshape(-1)
    return Candidates(flat.reshape(-1), grades.reshape(-1), offsets, exact)


def grouped(scores: object, relevance: object, query: Any) -> tuple[Candidates, list[Any]]:
    """Group flat scores and grades by the query of each candidate.

    Queries are in the order in which they first appear; their ids are returned, too.

    >>> candidates, queries = grouped([0.5, 0.75, 0.25], [1, 1, 0], [7, 3, 7])
    >>> candidates.scores, candidates.offsets, queries
    (array([0.5 , 0.25, 0.75]), array([0, 2, 3]), [7, 3])
    """
    (flat, exact), grades = exact_scores(scores), _grades(relevance)
    queries, code = _query_codes(query)
    shapes = {"scores": flat.shape, "relevance": grades.shape, "query": code.shape}
    if len(set(shapes.values())) > 1 or flat.ndim != 1:
        given = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
        raise InputError(f"scores, relevance and query must be flat and of one length, not {given}")
    if not len(flat):
        raise InputError("there is no query in the scores")
    if (np.diff(code) < 0).any():
        order = np.argsort(code, kind="stable")
        flat, grades, code = flat[order], grades[order], code[order]
        exact = None if exact is None else exact[order]
    offsets = np.searchsorted(code, np.arange(len(queries) + 1)).astype(np.int64)
    return Candidates(flat, grades, offsets, exact), queries


def _query_codes(query: Any) -> tuple[list[Any], Ints]:
    """Return the distinct queries in order of appearance, and per candidate the index of its."""
    if is_tensor(query):
        query = tensor_values("query", query)
    if isinstance(query, (str, bytes)) or not hasattr(query, "__len__"):
        raise InputError(f"query must be a row with a query for each candidate, not {query!r:.60}")
    ids = query if isinstance(query, (list, tuple)) else np.asarray(query)
    names = ids
    if isinstance(ids, (list, tuple)) or ids.dtype.kind not in "iu" or ids.ndim != 1:
        texts = [text_id(value, f"query of candidate {i}") for i, value in enumerate(ids)]
        names = np.array(texts, object)
    _, first, code = np.unique(names, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    places = first[by_appearance]
    own = ids[places].tolist() if names is ids else [ids[i] for i in places.tolist()]
    return own, np.argsort(by_appearance)[code]


def query_names(query_ids: Sequence[object] | None, n: int) -> list[str]:
    """Return the names of `n` queries: as given, or their numbers."""
    if query_ids is None:
        return list(_numbers(n) if n <= _KEPT else map(str, range(n)))
    if isinstance(query_ids, str) or not isinstance(query_ids, Iterable):
        raise InputError(f"query_ids must name each of the {n} queries, not be {query_ids!r}")
    names = [text_id(q, "query_ids") for q in query_ids]
    if len(names) != n:
        raise InputError(f"{len(names)} query_ids were given for {n} queries")
    if len(set(names)) != n:
        raise InputError("query_ids names a query twice")
    return names


@lru_cache(maxsize=4)
def _numbers(n: int) -> tuple[str, ...]:
    return tuple(map(str, range(n)))


def counts_per_query(name: str, given: object, n: int) -> Ints:
    """Return whole numbers, one for each of `n` queries or one for all, as an array."""
    if is_tensor(given):
        given = tensor_values(name, given)
    try:
        counts = np.asarray(given)
    except (TypeError, ValueError):  # lists of different lengths
        counts = np.empty(0)
    if counts.shape not in ((), (n,)) or counts.dtype.kind not in "iu":
        raise InputError(f"{name} must be a whole number for each of the {n} queries")
    return np.broadcast_to(counts, n).astype(np.int64)


def unlisted_relevant(n_relevant: ArrayLike, listed: Ints) -> Ints:
    """Per query: relevant documents that are not among its candidates."""
    given = counts_per_query("n_relevant", n_relevant, len(listed))
    most = given.sum(dtype=np.float64)
    if most > MOST_RELEVANT:
        raise InputError(
            f"n_relevant counts {most:g} relevant documents, which is beyond {MOST_RELEVANT:g}: is "
            "it the number for each query?"
        )
    unlisted = given - listed
    if (unlisted < 0).any():
        q = int(np.flatnonzero(unlisted < 0)[0])
        raise InputError(
            f"n_relevant of query {q} is smaller than its {listed[q]} relevant candidates"
        )
    return unlisted


def _flatten_ragged(scores: Any, relevance: Any) -> Candidates:
    for name, rows in (("scores", scores), ("relevance", relevance)):
        if not hasattr(rows, "__len__") or not hasattr(rows, "__getitem__"):
            raise InputError(
                f"{name} must have a row for each query, not be a {type(rows).__name__}"
            )
    if len(scores) != len(relevance):
        raise InputError(f"scores have {len(scores)} queries, relevance has {len(relevance)}")
    parts = []
    for q, (row, labels) in enumerate(zip(scores, relevance, strict=True)):
        try:
            (floats, exact), grades = exact_scores(row), _grades(labels)
        except InputError as error:
            raise InputError(f"query {q}: {error}") from None
        if floats.ndim != 1 or floats.shape != grades.shape:
            raise InputError(
                f"query {q}: scores {list(floats.shape)} and relevance {list(grades.shape)} "
                "must be two rows of the same length"
                + ("; wrap a single query in a list" if floats.ndim == 0 else "")
            )
        parts.append((floats, grades, floats if exact is None else exact))
    offsets = np.cumsum([0, *(len(part[0]) for part in parts)], dtype=np.int64)
    flat, grades, exact = map(np.concatenate, zip(*parts, strict=True))
    return Candidates(flat, grades, offsets, exact if exact.dtype.kind == "O" else None)


def _grades(relevance: object) -> NDArray[Any]:
    """Labels as an array of numbers."""
    if is_tensor(relevance):
        relevance = exact_floats(relevance)
    try:
        grades = real_numbers(relevance)
        if grades.dtype.kind not in "biuf":
            grades = grades.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"relevance must be numbers ({str(error).strip()})") from None
    if grades.dtype.kind == "f" and not float(np.max(np.abs(grades), initial=0)) <= LARGEST_GRADE:
        wide = np.abs(grades.astype(np.float64))
        place = np.argwhere(~(wide <= LARGEST_GRADE))[0].tolist()
        raise InputError(f"the relevance label at {place} is {grades[tuple(place)]}: no grade")
    return grades
