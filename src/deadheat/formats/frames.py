"""Read tables with named columns (polars, pandas, pyarrow, files) and iterables of tuples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import LARGEST_WHOLE, SPACE, Number, Numbers, as_array, number
from deadheat.errors import InputError
from deadheat.formats.columns import Columns
from deadheat.formats.ids import are_numbers, id_column, text_id
from deadheat.formats.types import Ints

_DOC_ID = ("document_id", "pid", "passage_id")
_SAME = ("rank", "text", "title", "instruction", "query", "positive", "negative")
ALIASES = {
    "query_id": ("query_id", "query", "qid", "q_id", "topic", "topic_id"),
    "doc_id": ("doc_id", "corpus_id", "docno", "docid", "did", "doc", *_DOC_ID),
    "relevance": ("relevance", "rel", "label", "grade", "judgement", "judgment"),
    "score": ("score", "sim", "similarity"),
    "hits": ("hits", "results", "matches"),
    "id": ("_id", "id"),
    "doc_ids": ("doc_ids", "corpus_ids"),
    **{name: (name,) for name in _SAME},
}
"""Every column that runs, judgements and datasets use, and the names it may have.

Upper case equals lower case, and a hyphen equals an underscore.
"""


def is_table(value: object) -> bool:
    """Return whether the value is a table of polars, pandas or pyarrow, or exports Arrow data."""
    if isinstance(value, (pl.DataFrame, pl.LazyFrame)) or _is_pandas(value):
        return True
    # A single column (a Series) exports Arrow data, too.
    return hasattr(value, "__arrow_c_stream__") and not hasattr(value, "to_numpy")


def table_columns(source: str, table: object, what: str) -> Columns:
    """Read a table with columns for query, document and `what`.

    Parameters
    ----------
    what
        ``relevance`` for judgements, ``score`` for a run, which may also have a column of ranks.
    """
    frame = as_frame(source, table)
    # BEIR calls the grade of a judgement its score, too; only a run has ranks.
    names, other = (
        (("relevance", "score"), "rank") if what == "relevance" else ((what,), "relevance")
    )
    if find_column(frame, what) is None and find_column(frame, other) is not None:
        raise InputError(
            f"{source}: there is no column {what!r}, but one of {other}s (columns "
            f"{', '.join(frame.columns)}); are judgements and run swapped?"
        )
    query, doc = column_ids(source, frame, "query_id"), column_ids(source, frame, "doc_id")
    numbered = frame[needed_column(source, frame, "query_id")].dtype.is_integer()
    numbers = column_numbers(source, frame, needed_column(source, frame, *names), query)
    column = find_column(frame, "rank") if what == "score" else None
    ranks = None if column is None else _whole_ranks(frame[column])
    return Columns(query, doc, numbers, ranks, numbered)


def tuple_columns(source: str, rows: Iterable[Any], what: str) -> Columns:
    """Read tuples (query, document, `what`), or objects with these attributes."""
    names = ("query_id", "doc_id", what)
    numbered = True
    queries: list[str] = []
    docs: list[str] = []
    numbers: list[Number] = []
    for i, row in enumerate(rows):
        at = f"{source}: entry {i}"
        try:
            if isinstance(row, (str, bytes, Mapping)):
                raise TypeError
            query, doc, value = (getattr(row, n) for n in names) if hasattr(row, names[0]) else row
            numbers.append(number(value))
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise InputError(
                f"{at} is not ({', '.join(names)}): {row!r:.200}; give rows as such tuples or as a "
                "table, a file by its path"
            ) from None
        queries.append(text_id(query, at))
        docs.append(text_id(doc, at))
        numbered = numbered and are_numbers([query])
    return Columns(id_column(queries), id_column(docs), as_array(numbers), None, numbered)


def _is_pandas(value: object) -> bool:
    return hasattr(value, "columns") and hasattr(value, "iloc")


def as_frame(source: str, table: Any) -> pl.DataFrame:
    """Convert a table of any library to polars."""
    if isinstance(table, pl.DataFrame):
        return table
    try:
        if isinstance(table, pl.LazyFrame):
            return table.collect()
        if not _is_pandas(table):  # pyarrow and others that export Arrow data
            return pl.DataFrame(table)
        # Column by column this needs no pyarrow, and keeps NumPy types.
        names = [str(name) for name in table.columns]
        return pl.DataFrame([_pandas_column(n, table.iloc[:, i]) for i, n in enumerate(names)])
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{source}: the table cannot be read ({error})") from None


def _pandas_column(name: str, column: Any) -> pl.Series:
    values = column.to_numpy()
    if (
        values.dtype.kind == "f" and column.dtype == values.dtype
    ):  # keeps NaN, which is not a missing value
        return pl.Series(name, values)
    missing = column.isna().to_numpy()
    if values.dtype.kind == "O" or missing.any():
        values = [None if m else v for v, m in zip(column.tolist(), missing, strict=True)]
    return column_of(name, values)


def column_of(name: str, values: Any) -> pl.Series:
    """Build a column; values of several types stay Python objects.

    polars would convert fractions to floats, and also whole numbers in a column with floats.
    """
    types = set(map(type, values)) - {type(None)} if isinstance(values, list) else ()
    try:
        if len(types) <= 1 and Fraction not in types:
            return pl.Series(name, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        pass
    return pl.Series(name, values, dtype=pl.Object)


def with_names(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Add an empty column for each of these names that was not read."""
    unread = [name for name in names if name not in frame.columns]
    return frame.with_columns(pl.lit(None).alias(name) for name in unread)


def is_known(column: str) -> bool:
    """Return whether `ALIASES` has a column of this name."""
    return any(_plain(column) in names for names in ALIASES.values())


def find_column(frame: pl.DataFrame, *names: str) -> str | None:
    """Return the column that has an alias of the first of these names, else of the next."""
    columns = {_plain(column): column for column in reversed(frame.columns)}
    aliases = (alias for name in names for alias in ALIASES[name])
    return next((columns[alias] for alias in aliases if alias in columns), None)


def needed_column(source: str, frame: pl.DataFrame, *names: str) -> str:
    """Return a column like `find_column`; raise an error if it is missing."""
    column = find_column(frame, *names)
    if column is None:
        first, *others = (alias for name in names for alias in ALIASES[name])
        alternatives = f" (or {', '.join(others)})" if others else ""
        raise InputError(
            f"{source}: there is no column {first!r}{alternatives} among "
            f"{', '.join(map(repr, frame.columns)) or 'no columns'}; rename one column to {first!r}"
        )
    return column


def _plain(column: str) -> str:
    return column.lower().strip().replace("-", "_")


def casts_to_ids(dtype: pl.DataType) -> bool:
    """Return whether polars writes values of this type like `text_id`."""
    is_text = dtype in (pl.String, pl.Categorical, pl.Enum)
    return is_text or dtype.is_integer() or dtype.is_decimal()


def column_ids(source: str, frame: pl.DataFrame, name: str) -> pl.Series:
    """Return the column of this name as text; raise an error for rows without an id."""
    name = needed_column(source, frame, name)
    column = frame[name]
    if casts_to_ids(column.dtype):
        ids: pl.Series = column.cast(pl.String)
    else:
        values = [
            None if value is None else text_id(value, f"{source}: the {name} of row {row}")
            for row, value in enumerate(column.to_list(), start=1)
        ]
        ids = pl.Series(name, values, pl.String)
    empty = ids.is_null() | (ids == "")
    if empty.any():
        row = int(empty.arg_max() or 0)
        raise InputError(f"{source}: the {name} of row {row + 1} is empty; give every row an id")
    return ids


def column_numbers(source: str, frame: pl.DataFrame, name: str, query: pl.Series) -> Numbers:
    """Return the column with exactly this name as numbers; raise an error for missing numbers.

    Text is parsed by `number`. `query` has the query of each row, for messages.
    Numbers that float64 may not hold are Python numbers in an array of objects.
    """
    column = read = frame[name]
    dtype = column.dtype
    is_exact = dtype.is_numeric() and dtype not in (pl.Int128, pl.UInt128)  # unknown to NumPy
    if dtype == pl.String:
        read = column.str.strip_chars(SPACE).cast(pl.Float64, strict=False)
        is_exact = not (read.abs() >= LARGEST_WHOLE).any()
    elif dtype.is_decimal() or dtype == pl.Boolean:
        read = column.cast(pl.Float64)
        is_exact = read.n_unique() == column.n_unique()
    if is_exact and not read.null_count():
        return read.to_numpy()
    numbers: list[Number] = []
    try:
        numbers.extend(map(number, column.to_list()))
    except (TypeError, ValueError, OverflowError):
        row = len(numbers)
        raise InputError(
            f"{source}: the {name} of row {row + 1} (query {query[row]!r}) is not a number: "
            f"{column[row]!r:.60}; correct it or remove the row"
        ) from None
    return as_array(numbers)


def _whole_ranks(column: pl.Series) -> Ints | None:
    """Return ranks as whole numbers; None if they are not. Only the rule 'rank' needs them."""
    try:
        ranks = column.cast(pl.Int64)
    except pl.exceptions.PolarsError:
        return None
    whole = not ranks.null_count() and (not column.dtype.is_float() or (ranks == column).all())
    return ranks.to_numpy() if whole else None
