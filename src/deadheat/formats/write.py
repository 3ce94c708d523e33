"""Write tables as TREC files without loss of digits, and as Parquet."""

from __future__ import annotations

import io
import re
from urllib.parse import quote

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import Numbers, exact_floats
from deadheat.formats.frames import column_ids, column_numbers, needed_column

_ESCAPED = r"[\s\x1c-\x1f\x00%]|^[#{\uFEFF]"
"""Characters that end an id, or that change the format of a file that starts with them.

The pattern is the same for Python and for polars, whose ``\\s`` lacks four characters.
"""


def trec_run(frame: pl.DataFrame, tag: str = "deadheat") -> bytes:
    """Write a table as the lines of a TREC run.

    Parameters
    ----------
    frame
        Columns of queries, documents and scores, with any name that `deadheat.read_run` accepts.
    tag
        The name of the run, in its last column.

    Returns
    -------
    bytes
        Queries are in the order of their first rows, and their documents best first, NaN last.
        Equal scores keep the order of the frame, so that the tie rule ``input`` gives the same.
        Scores have all digits; ids are written by `trec_id`.
    """
    query, doc = column_ids("run", frame, "query_id"), column_ids("run", frame, "doc_id")
    score = column_numbers("run", frame, needed_column("run", frame, "score"), query)
    rows = pl.DataFrame(
        {
            "query_id": _trec_ids(query),
            "iteration": "Q0",
            "doc_id": _trec_ids(doc),
            "score": _digits(score),
            "tag": trec_id(tag),
        }
    )
    ranked = (
        rows.with_row_index("row")
        .with_columns(
            query=pl.col("row").first().over("query_id"),
            value=pl.Series(exact_floats(score)).cast(pl.Float64).fill_nan(None),
        )
        .sort("query", "value", descending=[False, True], nulls_last=True, maintain_order=True)
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("query"))
    )
    return _lines(ranked.select("query_id", "iteration", "doc_id", "rank", "score", "tag"))


def trec_qrels(frame: pl.DataFrame) -> bytes:
    """Return the lines of TREC judgements, in the order of the frame.

    `frame` has columns with any names that `deadheat.read_qrels` accepts. Grades have all digits;
    whole numbers have no decimals.
    """
    query, doc = column_ids("qrels", frame, "query_id"), column_ids("qrels", frame, "doc_id")
    column = needed_column("qrels", frame, "relevance", "score")
    grade = pl.Series(column_numbers("qrels", frame, column, query), dtype=pl.Float64)
    rows = pl.DataFrame(
        {
            "query_id": _trec_ids(query),
            "iteration": "0",
            "doc_id": _trec_ids(doc),
            "relevance": grade.cast(pl.String).str.strip_suffix(".0"),
        }
    )
    return _lines(rows)


def trec_id(name: str) -> str:
    """Escape an id for TREC files; different ids stay different.

    White space, ``%`` and characters that cannot start a line are escaped as in URLs.

    >>> trec_id("how to"), trec_id("#1"), trec_id("d7")
    ('how%20to', '%231', 'd7')
    """
    return re.sub(_ESCAPED, lambda match: quote(match[0]), name)


def to_parquet(frame: pl.DataFrame) -> bytes:
    """Write a table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _digits(score: Numbers) -> pl.Series:
    """Write scores with all digits."""
    if score.dtype.kind == "O":  # numbers that float64 may not hold; whole numbers stay whole
        return pl.Series([str(x if isinstance(x, int) else float(x)) for x in score.tolist()])
    # The digits that identify a float32 do not identify the same number in float64.
    return pl.Series(score.astype(np.float64) if score.dtype.kind == "f" else score)


def _trec_ids(ids: pl.Series) -> pl.Series:
    if not ids.str.contains(_ESCAPED).any():
        return ids
    return pl.Series([trec_id(name) for name in ids.to_list()])


def _lines(rows: pl.DataFrame) -> bytes:
    return rows.write_csv(include_header=False, separator=" ", quote_style="never").encode()
