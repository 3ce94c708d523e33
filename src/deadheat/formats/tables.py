"""Tables with named columns: polars, pandas, pyarrow, and iterables of tuples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.formats.columns import judgements_from_columns, run_from_columns
from deadheat.formats.shapes import Judgements, Run, text_id
from deadheat.numbers import exact_floats

QUERY = ("query_id", "query", "qid", "q_id", "topic", "topic_id")
DOC = ("doc_id", "corpus_id", "docno", "docid", "did", "doc", "document_id", "pid", "passage_id")
GRADE = ("relevance", "rel", "label", "grade", "judgement", "judgment")
SCORE = ("score", "sim", "similarity")
RANK = ("rank",)


def is_table(value: Any) -> bool:
    """Whether the value is a table of polars, pandas, pyarrow or something alike."""
    if isinstance(value, (pl.DataFrame, pl.LazyFrame)) or _is_pandas(value):
        return True
    # A single column (a Series) speaks Arrow, too, but is no table.
    return hasattr(value, "__arrow_c_stream__") and not hasattr(value, "to_numpy")


def judgements_from_table(source: str, table: Any) -> Judgements:
    """Read a table with a column each for query, document and grade."""
    frame = as_frame(source, table)
    # BEIR calls the grade of a judgement its score, too; only a rank gives a run away.
    if _column(frame, GRADE) is None and _column(frame, RANK) is not None:
        raise InputError(
            f"{source}: these look like scored documents, not judgements (columns "
            f"{', '.join(frame.columns)}); are judgements and run swapped?"
        )
    query, doc = column_ids(source, frame, QUERY), column_ids(source, frame, DOC)
    grade = _needed(source, frame, (*GRADE, *SCORE))
    return judgements_from_columns(source, query, doc, column_numbers(source, frame, grade, query))


def run_from_table(source: str, table: Any) -> Run:
    """Read a table with a column each for query, document and score, perhaps rank."""
    frame = as_frame(source, table)
    if _column(frame, SCORE) is None and _column(frame, GRADE) is not None:
        raise InputError(
            f"{source}: these look like judgements, not scored documents (columns "
            f"{', '.join(frame.columns)}); are judgements and run swapped?"
        )
    query, doc = column_ids(source, frame, QUERY), column_ids(source, frame, DOC)
    score = column_numbers(source, frame, _needed(source, frame, SCORE), query)
    rank_name = _column(frame, RANK)
    rank = None if rank_name is None else _ranks(frame[rank_name])
    return run_from_columns(source, query, doc, score, rank)


def judgements_from_tuples(source: str, rows: Iterable[Any]) -> Judgements:
    """Read (query, document, grade) tuples, or objects with these attributes."""
    return judgements_from_columns(source, *_from_tuples(source, rows, "relevance"))


def run_from_tuples(source: str, rows: Iterable[Any]) -> Run:
    """Read (query, document, score) tuples, or objects with these attributes."""
    return run_from_columns(source, *_from_tuples(source, rows, "score"))


def _from_tuples(
    source: str, rows: Iterable[Any], number: str
) -> tuple[pl.Series, pl.Series, NDArray[Any]]:
    names = ("query_id", "doc_id", number)
    columns: tuple[list[Any], ...] = ([], [], [])
    other = "score" if number == "relevance" else "relevance"
    for i, row in enumerate(rows):
        if hasattr(row, "query_id") and hasattr(row, other) and not hasattr(row, number):
            raise InputError(
                f"{source}: entry {i} has a {other} but no {number}; are judgements and run "
                "swapped?"
            )
        if isinstance(row, (str, bytes, Mapping)):
            raise InputError(
                f"{source}: entry {i} is not a tuple ({', '.join(names)}): {row!r}; give a file by "
                "its path, other rows as tuples or as a table"
            )
        try:
            values = [getattr(row, name) for name in names] if hasattr(row, "query_id") else row
            query, doc, value = values
            # An integer may be longer than a float can hold.
            columns[2].append(value if isinstance(value, (int, np.integer)) else float(value))
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise InputError(f"{source}: entry {i} is not ({', '.join(names)}): {row!r}") from None
        columns[0].append(text_id(query))
        columns[1].append(text_id(doc))
    query_ids, doc_ids = (pl.Series(ids, dtype=pl.String) for ids in columns[:2])
    return query_ids, doc_ids, exact_floats(columns[2])


def _is_pandas(value: Any) -> bool:
    return hasattr(value, "columns") and hasattr(value, "iloc")


def as_frame(source: str, table: Any) -> pl.DataFrame:
    """Give a table of any library as one of polars."""
    if isinstance(table, pl.DataFrame):
        return table
    try:
        if isinstance(table, pl.LazyFrame):
            return table.collect()
        if not _is_pandas(table):  # pyarrow and others that speak Arrow
            return pl.DataFrame(table)
        # pandas, column by column: needs no pyarrow, and NumPy types stay as they are.
        names = [str(name) for name in table.columns]
        return pl.DataFrame([_pandas_column(n, table.iloc[:, i]) for i, n in enumerate(names)])
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{source}: the table cannot be read ({error})") from None


def _pandas_column(name: str, column: Any) -> pl.Series:
    values = column.to_numpy()
    if values.dtype.kind == "f" and column.dtype == values.dtype:  # NaN is a value of its own
        return pl.Series(name, values)
    missing = column.isna().to_numpy()
    if values.dtype.kind == "O" or missing.any():
        values = [None if m else v for v, m in zip(column.tolist(), missing, strict=True)]
    try:
        return pl.Series(name, values)
    except (TypeError, ValueError, OverflowError):  # values of several types
        return pl.Series(name, values, dtype=pl.Object)


def _column(frame: pl.DataFrame, names: tuple[str, ...]) -> str | None:
    plain = {name.lower().strip().replace("-", "_"): name for name in reversed(frame.columns)}
    return next((plain[name] for name in names if name in plain), None)


def _needed(source: str, frame: pl.DataFrame, names: tuple[str, ...]) -> str:
    name = _column(frame, names)
    if name is None:
        raise InputError(
            f"{source}: there is no column {names[0]!r} (or {', '.join(names[1:])}) among "
            f"{', '.join(map(repr, frame.columns)) or 'no columns'}"
        )
    return name


def column_ids(source: str, frame: pl.DataFrame, names: tuple[str, ...]) -> pl.Series:
    """Give the column with one of these names as text."""
    name = _needed(source, frame, names)
    column = frame[name]
    if column.null_count():
        row = int(column.is_null().arg_max() or 0)
        raise InputError(f"{source}: the {name} of row {row + 1} is empty")
    if column.dtype in (pl.Binary, pl.Object):
        column = pl.Series(name, [text_id(value) for value in column.to_list()], pl.String)
    if column.dtype.is_nested():
        raise InputError(f"{source}: the column {name!r} holds {column.dtype}, not ids")
    text: pl.Series = column.cast(pl.String)
    return text


def column_numbers(source: str, frame: pl.DataFrame, name: str, query: pl.Series) -> NDArray[Any]:
    """Give a column of numbers, none of them missing."""
    column = frame[name]
    if column.dtype == pl.Object:  # numbers of several types, perhaps as text
        column = pl.Series(name, [_as_text(value) for value in column.to_list()], pl.String)
    if column.dtype == pl.String:
        numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    elif column.dtype.is_numeric():
        numbers = column
    elif column.dtype in (pl.Boolean, pl.Null):
        numbers = column.cast(pl.Float64)
    else:
        raise InputError(f"{source}: the column {name!r} holds {column.dtype}, not numbers")
    wrong = numbers.is_null()
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise InputError(
            f"{source}: the {name} of row {row + 1} (query {query[row]!r}) is not a number: "
            f"{column[row]!r}"
        )
    if numbers.dtype in (pl.Int128, pl.UInt128):  # NumPy has no such type
        return exact_floats(numbers.to_list())
    return np.asarray(numbers.to_numpy())


def _as_text(value: Any) -> str | None:
    try:
        return value if value is None else repr(float(value))
    except (TypeError, ValueError, OverflowError):
        return repr(value)


def _ranks(column: pl.Series) -> NDArray[np.int64] | None:
    """Ranks as whole numbers; None where they are none, which only the rule 'rank' minds."""
    try:
        ranks = column.cast(pl.Int64)
    except pl.exceptions.PolarsError:
        return None
    whole = not ranks.null_count() and (not column.dtype.is_float() or (ranks == column).all())
    return ranks.to_numpy() if whole else None
