"""Tables with named columns: polars, pandas, pyarrow, and iterables of tuples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.formats.columns import judgements_from_columns, run_from_columns
from deadheat.formats.shapes import Judgements, Run, text_id

QUERY = ("query_id", "query", "qid", "q_id", "topic", "topic_id")
DOC = ("doc_id", "corpus_id", "docno", "docid", "did", "doc", "document_id", "pid", "passage_id")
GRADE = ("relevance", "rel", "label", "grade", "judgement", "judgment")
SCORE = ("score", "sim", "similarity")
RANK = ("rank",)


def is_table(value: Any) -> bool:
    """Whether the value is a table of polars, pandas, pyarrow or something alike."""
    return isinstance(value, pl.DataFrame) or (
        hasattr(value, "__arrow_c_stream__") or hasattr(value, "to_numpy")
    )


def judgements_from_table(source: str, table: Any) -> Judgements:
    """Read a table with a column each for query, document and grade."""
    frame = as_frame(table)
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
    frame = as_frame(table)
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
    return judgements_from_table(source, _from_tuples(source, rows, "relevance"))


def run_from_tuples(source: str, rows: Iterable[Any]) -> Run:
    """Read (query, document, score) tuples, or objects with these attributes."""
    return run_from_table(source, _from_tuples(source, rows, "score"))


def _from_tuples(source: str, rows: Iterable[Any], number: str) -> pl.DataFrame:
    names = ("query_id", "doc_id", number)
    columns: tuple[list[Any], ...] = ([], [], [])
    other = "score" if number == "relevance" else "relevance"
    for i, row in enumerate(rows):
        if hasattr(row, "query_id") and hasattr(row, other) and not hasattr(row, number):
            raise InputError(
                f"{source}: entry {i} has a {other} but no {number}; are judgements and run "
                "swapped?"
            )
        try:
            values = [getattr(row, name) for name in names] if hasattr(row, "query_id") else row[:3]
            query, doc, value = values
            columns[2].append(float(value))
        except (AttributeError, TypeError, ValueError, KeyError):
            raise InputError(f"{source}: entry {i} is not ({', '.join(names)}): {row!r}") from None
        columns[0].append(text_id(query))
        columns[1].append(text_id(doc))
    data = dict(zip(names, columns, strict=True))
    return pl.DataFrame(data, {names[0]: pl.String, names[1]: pl.String, number: pl.Float64})


def as_frame(table: Any) -> pl.DataFrame:
    """Give a table of any library as one of polars."""
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if hasattr(table, "column_names"):  # pyarrow
        return pl.DataFrame(pl.from_arrow(table))
    # pandas, column by column: needs no pyarrow, and NumPy types stay as they are.
    return pl.DataFrame(
        {str(name): pl.Series(str(name), _pandas_column(table[name])) for name in table.columns}
    )


def _pandas_column(column: Any) -> Any:
    values = column.to_numpy()
    return values.tolist() if values.dtype.kind == "O" else values


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
    text: pl.Series = column.cast(pl.String)
    return text


def column_numbers(source: str, frame: pl.DataFrame, name: str, query: pl.Series) -> NDArray[Any]:
    """Give a column of numbers, none of them missing."""
    column = frame[name]
    if column.dtype == pl.String:
        numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
        wrong = numbers.is_null()
    else:
        try:
            numbers = column if column.dtype.is_numeric() else column.cast(pl.Float64)
        except pl.exceptions.PolarsError:
            raise InputError(
                f"{source}: the column {name!r} holds {column.dtype}, not numbers"
            ) from None
        wrong = numbers.is_null()
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise InputError(
            f"{source}: the {name} of row {row + 1} (query {query[row]!r}) is not a number: "
            f"{column[row]!r}"
        )
    return np.asarray(numbers.to_numpy())


def _ranks(column: pl.Series) -> NDArray[np.int64] | None:
    """Ranks as whole numbers; None where they are none, which only the rule 'rank' minds."""
    try:
        return column.cast(pl.Int64).to_numpy() if not column.null_count() else None
    except pl.exceptions.PolarsError:
        return None
