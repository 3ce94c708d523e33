"""Read files: open them, find their format, and parse them."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections import Counter
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

from deadheat._internal.lazy import pl
from deadheat.errors import InputError, suggest
from deadheat.formats import trec
from deadheat.formats.columns import Columns
from deadheat.formats.content import PARQUET, as_plain_text, read_content
from deadheat.formats.frames import (
    ALIASES,
    column_ids,
    column_of,
    find_column,
    is_known,
    table_columns,
    with_names,
)
from deadheat.formats.ids import is_unicode
from deadheat.formats.lines import run_from_lines
from deadheat.formats.parquet import read_parquet
from deadheat.formats.types import Run

COMPRESSED = (".gz", ".zst", ".xz")
"""File name endings of compressed files."""
TABLES = ("parquet", "jsonl", "csv", "tsv")
"""The formats with named columns."""


def read_file(
    path: str | os.PathLike[str], what: str, *, with_ranks: bool = False
) -> tuple[str, dict[str, object] | Columns | Run]:
    """Read a TREC file, BEIR TSV, JSON, JSONL, CSV or Parquet, compressed or not.

    A run in TSV without column names has the columns query, document, rank and score. A line of a
    run in JSONL is a scored document, or a query and its hits.

    Parameters
    ----------
    what
        ``relevance`` for judgements, ``score`` for a run.
    with_ranks
        Also read the ranks of a TREC run.

    Returns
    -------
    source, rows
        The name for messages; and a JSON object, columns, or the run of a plain TREC file.
    """
    source, file = _open(path)
    kind = _kind(source, file)
    if kind in TABLES:
        frame = _table(source, file, kind)
        hits = find_column(frame, "hits") if what == "score" and kind == "jsonl" else None
        if hits is not None and find_column(frame, "doc_id") is None:
            return source, _hits_by_query(source, frame, hits)
        return source, table_columns(source, frame, what)
    with file:
        data = file.read()
    if kind == "json":
        return source, _object(source, data)
    fields = trec.QRELS_FIELDS if what == "relevance" else trec.run_fields(data)
    keep = ("query_id", "doc_id", what, "rank") if with_ranks else ("query_id", "doc_id", what)
    run = None if with_ranks or what == "relevance" else run_from_lines(source, data, fields)
    if run is not None:
        return source, run
    return source, table_columns(source, trec.read_lines(source, data, fields, what, keep), what)


def run_tag(path: str | os.PathLike[str]) -> str | None:
    """Return the tag in the first line of a TREC run; None if there is none."""
    source, file = _open(path)
    with file:
        if _kind(source, file) != "trec":
            return None
        first = next(trec.skip_comments(file), b"")
    fields = first.split()
    return fields[-1].decode(errors="replace") if len(fields) == len(trec.RUN_FIELDS) else None


def table_from_file(
    path: str | os.PathLike[str], kind: str | None = None, *, all_columns: bool = False
) -> pl.DataFrame:
    """Read a file with named columns, compressed or not.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input.
    kind
        One of `TABLES`. Default: detected from content and name.
    all_columns
        Also read columns that are not in `frames.ALIASES`; in datasets they may be images.
        Otherwise these columns are empty.
    """
    source, file = _open(path)
    kind = kind or _kind(source, file)
    if kind not in TABLES:
        raise InputError(f"{source}: expected named columns (Parquet, JSONL, CSV or TSV)")
    return _table(source, file, kind, all_columns=all_columns)


def _open(path: str | os.PathLike[str]) -> tuple[str, IO[bytes]]:
    """Return the name for messages, and the decompressed content as a file.

    A Parquet file is opened, any other file is read into memory. polars does not get the path,
    because it would read ``g[1]`` as a pattern that matches ``g1``.
    """
    if os.fspath(path) == "-":
        source = "standard input"
        if sys.stdin is None:
            raise InputError(f"{source}: this is closed")
        return source, read_content(source, sys.stdin.buffer)
    # Bytes of a name that are not UTF-8 are escaped.
    source = os.fsencode(path).decode(errors="backslashreplace")
    try:
        file = Path(path).open("rb")  # noqa: SIM115
        if file.seekable() and file.peek().startswith(PARQUET):  # a pipe is not
            return source, file
        with file:
            return source, read_content(source, file)
    except FileNotFoundError:
        hint = _suggest_file(Path(source))
        raise InputError(f"{source:.200}: there is no such file{hint}") from None
    except OSError as error:
        raise InputError(f"{source:.200}: cannot be read ({error.strerror})") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{source!r:.200}: this is not a file name ({error})") from None


def _suggest_file(path: Path) -> str:
    """Return a suggestion with a similar file name in the same folder."""
    try:
        beside = [file.name for file in path.parent.iterdir()]
    except OSError:
        return ""
    return suggest(path.name, beside)


def _kind(source: str, file: IO[bytes]) -> str:
    """Return the format: by the content if that is clear, else by the file name."""
    head = file.read(4)
    file.seek(0)
    if head == PARQUET:
        return "parquet"
    first = next(trec.skip_comments(file), b"")
    file.seek(0)
    name = Path(source).name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    if first.lstrip().startswith(b"{"):
        return "json" if name.endswith(".json") or not _is_json_line(first) else "jsonl"
    if name.endswith(".csv"):
        return "csv"
    # A header names columns.
    columns = first.strip().lower().replace(b"-", b"_").split(b"\t")
    ids = (*ALIASES["query_id"], *ALIASES["doc_id"])
    return "tsv" if sum(alias.encode() in columns for alias in ids) >= 2 else "trec"


def _is_json_line(line: bytes) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and not all(
        isinstance(value, (dict, list)) for value in row.values()
    )


def _object(at: str, data: bytes) -> dict[str, object]:
    """Read a JSON object; `at` is its location, the start of a message."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=_distinct)
    except UnicodeDecodeError:
        raise InputError(f"{at}: not UTF-8 text; convert the file to UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{at}: not valid JSON ({error}): {trec.quote_line(data)}") from None
    if not isinstance(value, dict):
        raise InputError(f"{at}: expected a JSON object, found {trec.quote_line(data)}")
    return value


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object from its pairs; raise an error for a repeated key."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice!r:.60} appears twice in one JSON object")
    return mapping


def _table(source: str, file: IO[bytes], kind: str, *, all_columns: bool = False) -> pl.DataFrame:
    """Read and close a file with named columns; see `table_from_file`."""
    with file:
        if kind == "parquet":
            return read_parquet(source, file, all_columns=all_columns)
        data = file.read()
    if kind == "jsonl":
        return _json_frame(source, data, all_columns=all_columns)
    # Ids stay text: 007 is not 7. A quote in TSV is an ordinary character.
    separator, quote = ("\t", None) if kind == "tsv" else (",", '"')
    try:
        return pl.read_csv(
            as_plain_text(data), separator=separator, quote_char=quote, infer_schema=False
        )
    except pl.exceptions.PolarsError as error:
        reason = _find_fault(data, separator, quote) or " ".join(str(error).split())[:200]
        raise InputError(f"{source}: cannot be read as {kind.upper()}: {reason}") from None


def _json_frame(source: str, data: bytes, *, all_columns: bool) -> pl.DataFrame:
    """Build a table from an object per line; a missing column of a row is empty.

    The reader of polars would convert values of other types to text.
    """
    lines = enumerate(io.BytesIO(data), start=1)
    rows = [_object(f"{source}, line {i}", line) for i, line in lines if not line.isspace()]
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    for name in names:
        if not is_unicode(name):
            raise InputError(f"{source}: the column name {name!r:.60} cannot be written as UTF-8")
    read: dict[str, Any] = {
        name: [r.get(name) for r in rows] for name in names if all_columns or is_known(name)
    }
    hits = find_column(pl.DataFrame(schema=names), "hits")
    if hits is not None and list in set(map(type, read[hits])):
        read[hits] = pl.Series(hits, read[hits], pl.Object)  # dicts of any keys
    return with_names(pl.DataFrame(list(map(column_of, read, read.values()))), names)


def _hits_by_query(source: str, frame: pl.DataFrame, column: str) -> dict[str, object]:
    """Return the hits of each query, from its row."""
    queries = column_ids(source, frame, "query_id")
    if not queries.is_unique().all():
        twice = queries.filter(queries.is_duplicated())[0]
        raise InputError(f"{source}: query {twice!r} has several rows; put all its hits into one")
    return dict(zip(queries.to_list(), frame[column].to_list(), strict=True))


def _find_fault(data: bytes, separator: str, quote: str | None) -> str | None:
    """Return the line and a description of the first error in a table that polars cannot read."""
    try:
        text = io.StringIO(data.decode(), newline="")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"line {line} is not UTF-8 text; convert the file to UTF-8"
    rows = csv.reader(
        text,
        delimiter=separator,
        quoting=csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL,
    )
    with suppress(csv.Error, StopIteration):
        width = len(next(rows))
        for row in rows:
            if len(row) > width:
                return f"line {rows.line_num} has {len(row)} fields, the first line {width}: {row}"
    return None
