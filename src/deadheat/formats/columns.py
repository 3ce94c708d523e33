"""Build judgements and runs from columns of ids and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat._lazy import pl
from deadheat.errors import InputError
from deadheat.formats.types import ColumnDocuments, Ints, Judgements, Origins, Run
from deadheat.numbers import LARGEST_GRADE, exact_scores, rounded


def judgements_from_columns(
    source: str,
    query: pl.Series,
    doc: pl.Series,
    grade: NDArray[Any],
    *,
    numbered: bool = False,
) -> Judgements:
    """Group judgements by query; refuse conflicting grades, drop exact repetitions.

    `numbered` says that the queries were given as whole numbers.
    """
    grade = rounded(grade) if grade.dtype.kind == "O" else np.asarray(grade, np.float64)
    if not len(query):
        raise InputError(f"{source}: there are no judgements in it")
    check_grades(source, grade, lambda row: (query[row], doc[row]))
    frame = pl.DataFrame({"query": query, "doc": doc, "grade": grade})
    if frame.select(pl.struct("query", "doc").is_duplicated().any()).item():
        frame = frame.unique(maintain_order=True)
        twice = frame.filter(pl.struct("query", "doc").is_duplicated())
        if len(twice):
            q, d = twice[0, "query"], twice[0, "doc"]
            grades = twice.filter(query=q, doc=d)["grade"].to_list()
            raise InputError(
                f"{source}: document {d!r} of query {q!r} is judged with different grades "
                f"({', '.join(f'{g:g}' for g in grades)}); keep one of them"
            )
    query_ids, offsets, order = _group(frame["query"])
    if order is not None:
        frame = frame[order]
    sorted_grade = frame["grade"].to_numpy()
    return Judgements(source, query_ids, offsets, frame["doc"], sorted_grade, numbered)


def check_grades(
    source: str, grades: NDArray[np.float64], place: Callable[[int], tuple[str, str]]
) -> None:
    """Refuse NaN, infinite and huge grades; `place` gives the query and the document of a row."""
    wrong = ~(np.abs(grades) <= LARGEST_GRADE)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        query, doc = place(row)
        value = "NaN" if np.isnan(grades[row]) else f"{grades[row]:g}"
        raise InputError(
            f"{source}: the grade of document {doc!r} of query {query!r} is {value}, which is no "
            "grade; correct it or remove the row"
        )


def run_from_columns(
    source: str,
    query: pl.Series,
    doc: pl.Series,
    score: NDArray[Any],
    rank: NDArray[Any] | None = None,
    origins: Origins | None = None,
) -> Run:
    """Group scored documents by query; refuse a document that a query lists twice.

    `origins` has the file of each row, where there are several.
    """
    if not len(query):
        raise InputError(f"{source}: there are no scored documents in it")
    scores, exact = exact_scores(score)
    ranks = None if rank is None else np.asarray(rank, np.int64)
    query_ids, offsets, order = _group(query)
    if order is not None:
        doc, scores = doc.gather(order), scores[order]
        ranks = None if ranks is None else ranks[order]
        exact = None if exact is None else exact[order]
        origins = None if origins is None else origins[order]
    documents = ColumnDocuments(source, query_ids, offsets, doc, origins)
    return Run(source, query_ids, offsets, scores, documents, ranks, exact=exact, origins=origins)


def _group(query: pl.Series) -> tuple[list[str], Ints, Ints | None]:
    """Apply `group_stretches` to a column of queries."""
    stretches = query.rle().struct.unnest()
    return group_stretches(stretches["value"], stretches["len"].to_numpy())


def group_stretches(query: pl.Series, lengths: NDArray[Any]) -> tuple[list[str], Ints, Ints | None]:
    """Give the distinct queries, their offsets, and the order that sorts the rows by query.

    Queries are in the order of their first row. The order is None if the rows of each query are
    adjacent already, as in nearly every file.

    Parameters
    ----------
    query, lengths
        Per stretch of adjacent rows of one query: the query, and the number of rows.
    """
    distinct = query.unique(maintain_order=True)
    order = None
    if len(distinct) < len(query):
        numbered = pl.DataFrame({"query": distinct}).with_row_index("code")
        stretches = pl.DataFrame({"query": query})
        codes = stretches.join(numbered, on="query", maintain_order="left")["code"].to_numpy()
        order = np.argsort(np.repeat(codes, lengths), kind="stable")
        lengths = np.bincount(codes, lengths, minlength=len(distinct))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return distinct.to_list(), offsets, order
