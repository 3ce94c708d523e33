"""Check the arguments of counters before counting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat._internal.numbers import check_number
from deadheat.errors import InputError
from deadheat.formats import read_grades, read_whole_numbers
from deadheat.ties.counting import to_floats
from deadheat.ties.groups import ARRAYS, INDEXED, JudgedDocuments, TieGroups
from deadheat.ties.numpy_counting import Floats, Ints, is_group_start


def read_documents(
    n_queries: int,
    query: ArrayLike,
    score: ArrayLike,
    grade: ArrayLike,
    position: ArrayLike,
    unretrieved: tuple[ArrayLike, ArrayLike],
) -> JudgedDocuments:
    """Check and sort the judged documents; see `TieCounter`."""
    n_queries = check_number("n_queries", n_queries, least=0)
    queries = read_query_indices("query", query, n_queries)
    scores, grades = to_floats(score), read_document_grades(grade)
    positions = read_whole_numbers("position", position)
    if scores.ndim != 1 and scores.size:
        raise InputError(f"score must be flat, not of the shape {list(scores.shape)}")
    scores = scores.reshape(-1)
    check_lengths("documents", query=queries, score=scores, grade=grades, position=positions)
    if np.isnan(scores).any():
        raise InputError("the score of a judged document is NaN")
    if (twice := find_twice(queries, positions)) is not None:
        raise InputError(
            f"two documents of query {queries[twice]} have position {positions[twice]}: give each "
            "its own position"
        )
    absent = read_query_indices("unretrieved", unretrieved[0], n_queries)
    absent_grades = read_document_grades(unretrieved[1])
    check_lengths("unretrieved", query=absent, grade=absent_grades)
    order = np.lexsort((absent_grades, absent))
    unretrieved = absent[order], absent_grades[order]
    return JudgedDocuments.sort(n_queries, queries, scores, grades, positions, unretrieved)


def check_lengths(what: str, **columns: NDArray[Any]) -> None:
    """Raise an error if flat arrays, named by their keywords, differ in length."""
    lengths = [len(column) for column in columns.values()]
    if len(set(lengths)) > 1:
        raise InputError(
            f"{what}: {', '.join(columns)} must have the same length, not "
            f"{', '.join(map(str, lengths))}"
        )


def read_places(start: int, positions: ArrayLike | None, n: int) -> Ints:
    """Return the positions in the lists of the `n` columns of a piece."""
    if positions is None:
        [first] = read_whole_numbers("start", [start])
        return int(first) + np.arange(n)
    place = read_whole_numbers("positions", positions)
    if np.any(start) or not len(place) == len(np.unique(place)) == n:
        raise InputError(
            f"positions must give each of the {n} columns a position of its own, not {len(place)} "
            "positions or one twice; leave start out"
        )
    return place


def nan_error() -> InputError:
    """Return the error for a NaN score."""
    return InputError("a score is NaN, which cannot be ranked: correct the scores")


def read_query_indices(name: str, values: ArrayLike, n_queries: int) -> Ints:
    """Return indices of queries; raise `InputError` unless all are below `n_queries`."""
    query = read_whole_numbers(name, values)
    if len(query) and query.max() >= n_queries:
        raise InputError(
            f"{name} has the query index {query.max()}, but there are {n_queries} queries: use "
            "indices from 0"
        )
    return query


def read_document_grades(values: ArrayLike) -> Floats:
    """Return grades as floats, one per document."""
    return np.array(read_grades("grades", values), np.float64).reshape(-1)


def find_twice(query: Ints, position: Ints) -> int | None:
    """Return the index of a document with the query and position of another; None if unique."""
    order = np.lexsort((position, query))
    same = np.flatnonzero(~is_group_start(query[order], position[order]))
    return int(order[same[0]]) if len(same) else None


def check_groups(groups: TieGroups) -> TieGroups:
    """Return the groups with arrays for kernels; raise `InputError` for inconsistent groups."""

    def refuse_if(wrong: bool | np.bool_, what: str) -> None:
        if wrong:
            raise InputError(f"these tie groups {what}")

    arrays: dict[str, Any] = {}
    for kind in ("groups", "documents", "ideal", "queries"):
        for name in ARRAYS[kind]:
            dtype = np.float64 if name.endswith("grade") else np.int64
            arrays[name] = np.ascontiguousarray(getattr(groups, name), dtype)
        lengths = {len(arrays[name]) for name in ARRAYS[kind]}
        refuse_if(len(lengths) > 1, "have arrays that differ in length")
    groups = replace(groups, **arrays)
    for name, indexed in INDEXED.items():
        ends = np.concatenate(([0], arrays[name], [len(arrays[indexed]) - 1]))
        is_sorted = not len(arrays[name]) or (np.diff(ends) >= 0).all()
        refuse_if(not is_sorted, "are not sorted by query and group")
    group, end = groups.group, groups.above + groups.size
    rising = (np.diff(groups.grade) > 0) & (np.diff(group) == 0)
    refuse_if(rising.any(), "have a group whose grades are not sorted from high to low")
    outside = (groups.rank <= groups.above[group]) | (groups.rank > end[group])
    crowded = np.bincount(group, minlength=len(end)) > groups.size
    refuse_if(
        outside.any() or (crowded | (groups.above < 0)).any(),
        "have a document whose rank is outside of its group",
    )
    refuse_if(
        (end > groups.retrieved[groups.query]).any(),
        "have a group that is longer than the list of its query",
    )
    return groups
