"""Files: where the bytes come from, and which format they are in."""

from __future__ import annotations

import io
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import IO, Any

from deadheat.errors import InputError
from deadheat.formats import frames, trec
from deadheat.formats.columns import judgements_from_columns, run_from_columns
from deadheat.formats.content import PARQUET, as_it_is, content
from deadheat.formats.dicts import judgements_from_dict, run_from_dict
from deadheat.formats.ids import is_unicode
from deadheat.formats.lines import run_from_lines
from deadheat.formats.parquet import DamagedParquetError, read_parquet
from deadheat.formats.shapes import Judgements, Run
from deadheat.late import pl

COMPRESSED = (".gz", ".zst", ".xz")
"""How the names of compressed files end."""
TABLES = ("parquet", "jsonl", "csv", "tsv")
"""The formats of named columns."""


def judgements_from_file(path: str | os.PathLike[str]) -> Judgements:
    """Read TREC qrels, BEIR TSV, JSON, JSONL, CSV or Parquet, compressed or not."""
    source, file = _open(path)
    kind = _kind(source, file)
    if kind in TABLES:
        return frames.judgements_from_table(source, _table(source, file, kind))
    with file:
        data = file.read()
    if kind == "json":
        return judgements_from_dict(source, _json(source, data))
    keep = ("query_id", "doc_id", "relevance")
    frame = trec.read_lines(source, data, trec.QRELS_FIELDS, "relevance", keep)
    query, doc = frame["query_id"], frame["doc_id"]
    grades = frames.column_numbers(source, frame, "relevance", query)
    return judgements_from_columns(source, query, doc, grades)


def run_from_file(path: str | os.PathLike[str], *, with_ranks: bool = False) -> Run:
    """Read a TREC run, JSON, JSONL, CSV, TSV or Parquet, compressed or not.

    A TSV without names of columns holds query, document, rank and score.
    """
    source, file = _open(path)
    kind = _kind(source, file)
    if kind in TABLES:
        return frames.run_from_table(source, _table(source, file, kind))
    with file:
        data = file.read()
    if kind == "json":
        return run_from_dict(source, _json(source, data))
    fields = trec.run_fields(data)
    if not with_ranks and (run := run_from_lines(source, data, fields)) is not None:
        return run
    keep = ("query_id", "doc_id", "score") + (("rank",) if with_ranks else ())
    frame = trec.read_lines(source, data, fields, "score", keep)
    del data
    ranks = trec.whole_numbers(source, frame["rank"]) if with_ranks else None
    query = frame["query_id"]
    scores = frames.column_numbers(source, frame, "score", query)
    return run_from_columns(source, query, frame["doc_id"], scores, ranks)


def run_tag(path: str | os.PathLike[str]) -> str | None:
    """Read the tag in the first line of a TREC run; None where there is none."""
    source, file = _open(path)
    with file:
        if _kind(source, file) != "trec":
            return None
        first = next((line for line in file if line.strip() and not line.startswith(b"#")), b"")
    fields = first.split()
    return fields[-1].decode(errors="replace") if len(fields) == len(trec.RUN_FIELDS) else None


def table_from_file(
    path: str | os.PathLike[str], kind: str | None = None, *, all_columns: bool = False
) -> pl.DataFrame:
    """Read a file of named columns, compressed or not.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input.
    kind
        One of `TABLES`; what content and name tell unless given.
    all_columns
        Also read columns that `frames.is_known` does not know. Otherwise they are there by name
        alone, for in datasets they may hold images.
    """
    source, file = _open(path)
    kind = kind or _kind(source, file)
    if kind not in TABLES:
        raise InputError(f"{source}: expected named columns (Parquet, JSONL, CSV or TSV)")
    return _table(source, file, kind, all_columns=all_columns)


def _open(path: str | os.PathLike[str]) -> tuple[str, IO[bytes]]:
    """Name for messages, and the decompressed content as a file.

    Parquet stays on disk until it is known which columns are read; all else is in memory. Never
    give the path itself to polars, which takes it for a pattern: ``g[1]`` for ``g1``.
    """
    if os.fspath(path) == "-":
        source = "standard input"
        if sys.stdin is None:
            raise InputError(f"{source}: it is closed")
        return source, content(source, sys.stdin.buffer)
    # A name that is not UTF-8 is shown as far as it is.
    source = os.fsencode(path).decode(errors="backslashreplace")
    try:
        file = Path(path).open("rb")  # noqa: SIM115
        if file.seekable() and file.peek().startswith(PARQUET):  # a pipe is not
            return source, file
        with file:
            return source, content(source, file)
    except FileNotFoundError:
        raise InputError(f"{source:.200}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{source}: this is a folder, not a file") from None
    except OSError as error:
        raise InputError(f"{source:.200}: cannot be read ({error.strerror})") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{source!r:.200}: this is no name of a file ({error})") from None


def _kind(source: str, file: IO[bytes]) -> str:
    """Format by content where it is plain, else by the name of the file."""
    head = file.read(4)
    file.seek(0)
    if head == PARQUET:
        return "parquet"
    first = next((line for line in file if line.strip() and not line.startswith(b"#")), b"")
    file.seek(0)
    name = Path(source).name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    if first.lstrip().startswith(b"{"):
        return "json" if name.endswith(".json") or not _is_json_line(first) else "jsonl"
    if name.endswith(".csv"):
        return "csv"
    # A header: names of columns where a TREC file has its numbers.
    columns = first.strip().lower().replace(b"-", b"_").split(b"\t")
    ids = (*frames.ALIASES["query_id"], *frames.ALIASES["doc_id"])
    return "tsv" if sum(alias.encode() in columns for alias in ids) >= 2 else "trec"


def _is_json_line(line: bytes) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and not all(isinstance(value, dict) for value in row.values())


def _json(source: str, data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data, object_pairs_hook=_distinct)
    except UnicodeDecodeError:
        raise InputError(f"{source}: not UTF-8 text; convert the file to UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{source}: expected a JSON object {{query: {{document: number}}}}")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Give the object of these pairs; refuse one that says a thing twice."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice!r:.60} appears twice in one JSON object")
    return mapping


def _table(source: str, file: IO[bytes], kind: str, *, all_columns: bool = False) -> pl.DataFrame:
    """Read and close a file of named columns; see `table_from_file`."""
    data = b""
    try:
        with file:
            if kind == "parquet":
                return read_parquet(file, all_columns=all_columns)
            data = file.read()
        if kind == "jsonl":
            return _json_lines(source, data, all_columns)
        # Ids stay text: 007 is not 7. A quote in TSV is a character like any other.
        separator, quote = ("\t", None) if kind == "tsv" else (",", '"')
        return pl.read_csv(
            as_it_is(data), separator=separator, quote_char=quote, infer_schema=False
        )
    except (pl.exceptions.PolarsError, DamagedParquetError) as error:
        line, reason = _fault(data, kind) or ("", " ".join(str(error).split())[:200])
        raise InputError(f"{source}{line}: cannot be read as {kind.upper()}: {reason}") from None


def _json_lines(source: str, data: bytes, all_columns: bool) -> pl.DataFrame:
    """Read an object per line; a column that a line lacks is empty there.

    Not by polars, which would make text of what is no text.
    """
    names: set[str] = set()
    columns: dict[str, list[Any]] = {}
    rows = 0
    for number, line in enumerate(io.BytesIO(data), start=1):
        if line.isspace():
            continue
        row = _object(source, number, line)
        if not names.issuperset(row):
            new = [name for name in row if name not in names]
            if not all(map(is_unicode, new)):
                raise InputError(
                    f"{source}, line {number}: the name of a column is no text that UTF-8 can "
                    f"write: {trec.shown(line)}; correct it"
                )
            names.update(new)
            columns |= {name: [None] * rows for name in new if all_columns or frames.is_known(name)}
        for name, values in columns.items():
            values.append(row.get(name))
        rows += 1
    frame = pl.DataFrame([frames.column_of(name, values) for name, values in columns.items()])
    return frames.with_names(frame, sorted(names))


def _object(source: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode(), object_pairs_hook=_distinct)
        if isinstance(row, dict):
            return row
        fault = "expected a JSON object, found"
    except UnicodeDecodeError:
        fault = "not UTF-8 text:"
    except (ValueError, RecursionError) as error:
        fault = f"not JSON ({getattr(error, 'msg', error)}):"
    raise InputError(
        f"{source}, line {number}: {fault} {trec.shown(line)}; correct or remove the line"
    )


def _fault(data: bytes, kind: str) -> tuple[str, str] | None:
    """Place and nature of the first fault in CSV or TSV that polars refused."""
    width = None
    for number, line in enumerate(io.BytesIO(data), start=1):
        location = f", line {number}"
        try:
            text = line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            return location, "not UTF-8 text; convert the file to UTF-8"
        if not text.strip():
            continue
        if kind == "csv" and '"' in text:  # a quoted field may go on in the next line
            return None
        fields = text.count("\t" if kind == "tsv" else ",") + 1
        width = width or fields
        if fields != width:
            return location, f"expected {width} fields, found {fields}: {trec.shown(line)}"
    return None
