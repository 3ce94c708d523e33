"""Files: where the bytes come from, and which format they are in."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import re
import sys
import zlib
from pathlib import Path
from typing import Any

import polars as pl

from deadheat.errors import InputError
from deadheat.formats import tables, trec
from deadheat.formats.columns import judgements_from_columns, run_from_columns
from deadheat.formats.dicts import judgements_from_dict, run_from_dict
from deadheat.formats.shapes import Judgements, Run

_COMPRESSED = (".gz", ".zst", ".xz")


def judgements_from_file(path: str | os.PathLike[str]) -> Judgements:
    """Read TREC qrels, BEIR TSV, JSON, JSONL, CSV or Parquet, compressed or not."""
    source, data, kind = _open(path)
    if kind == "json":
        return judgements_from_dict(source, _json(source, data))
    if kind != "trec":
        return judgements_from_table(source, data, kind)
    keep = ("query_id", "doc_id", "relevance")
    frame = trec.read_lines(source, data, trec.QRELS_FIELDS, "relevance", keep)
    return judgements_from_columns(
        source, frame["query_id"], frame["doc_id"], frame["relevance"].to_numpy()
    )


def judgements_from_table(source: str, data: bytes, kind: str) -> Judgements:
    """Read judgements with named columns."""
    return tables.judgements_from_table(source, _table(source, data, kind))


def run_from_file(path: str | os.PathLike[str], *, with_ranks: bool = False) -> Run:
    """Read a TREC run, JSON, JSONL, CSV, TSV or Parquet, compressed or not."""
    source, data, kind = _open(path)
    if kind == "json":
        return run_from_dict(source, _json(source, data))
    if kind != "trec":
        return tables.run_from_table(source, _table(source, data, kind))
    keep = ("query_id", "doc_id", "score") + (("rank",) if with_ranks else ())
    frame = trec.read_lines(source, data, trec.RUN_FIELDS, "score", keep)
    del data
    ranks = trec.whole_numbers(source, frame["rank"]) if with_ranks else None
    return run_from_columns(
        source, frame["query_id"], frame["doc_id"], frame["score"].to_numpy(), ranks
    )


def _open(path: str | os.PathLike[str]) -> tuple[str, bytes, str]:
    """Name for messages, decompressed bytes, and format."""
    if os.fspath(path) == "-":
        source = "standard input"
        if sys.stdin is None:
            raise InputError(f"{source}: it is closed")
        data = sys.stdin.buffer.read()
    else:
        # A name that is not UTF-8 is shown as far as it is.
        source = os.fsencode(path).decode(errors="backslashreplace")
        try:
            data = Path(path).read_bytes()
        except FileNotFoundError:
            raise InputError(f"{source}: there is no such file") from None
        except IsADirectoryError:
            raise InputError(f"{source}: this is a folder, not a file") from None
        except OSError as error:
            raise InputError(f"{source}: cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise InputError(f"{source!r}: this is no name of a file ({error})") from None
    data = _decompress(source, data).removeprefix(b"\xef\xbb\xbf")  # a byte order mark
    if not data or data.isspace():
        raise InputError(f"{source}: the file is empty")
    return source, data, _kind(source, data)


def _decompress(source: str, data: bytes) -> bytes:
    try:
        if data.startswith(b"\x1f\x8b"):
            return gzip.decompress(data)
        if data.startswith(b"\xfd7zXZ\x00"):
            return lzma.decompress(data)
        if data.startswith(b"\x28\xb5\x2f\xfd"):
            return _zstd(data)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise InputError(f"{source}: the compressed data is damaged ({error})") from None
    return data


def _zstd(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd

        try:
            return bytes(zstd.decompress(data))
        except zstd.ZstdError as error:
            raise ValueError(error) from None
    import zstandard

    parts = []
    try:
        while data:  # frame by frame
            frame = zstandard.ZstdDecompressor().decompressobj()
            parts.append(frame.decompress(data))
            if not frame.eof:
                raise ValueError("the file ends in the middle of it")
            data = frame.unused_data
    except zstandard.ZstdError as error:
        raise ValueError(error) from None
    return b"".join(parts)


def _kind(source: str, data: bytes) -> str:
    """Format by content where it is plain, else by the name of the file."""
    if data.startswith(b"PAR1"):
        return "parquet"
    head = data[:4096]
    if b"\0" in head:
        raise InputError(f"{source}: this is a binary file that deadheat does not know")
    first = next((x for x in head.splitlines() if x.strip() and not x.startswith(b"#")), b"")
    name = Path(source).name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    if first.lstrip().startswith(b"{"):
        return "jsonl" if _is_json_line(first) and not name.endswith(".json") else "json"
    if name.endswith(".csv"):
        return "csv"
    # A header: names of columns where a TREC file has its numbers.
    columns = re.split(rb"\t", first.strip().lower().replace(b"-", b"_"))
    known = {name.encode() for name in (*tables.QUERY, *tables.DOC)}
    return "tsv" if len(columns) > 1 and len(known.intersection(columns)) >= 2 else "trec"


def _is_json_line(line: bytes) -> bool:
    try:
        row = json.loads(line)
    except ValueError:
        return False
    return isinstance(row, dict) and not all(isinstance(value, dict) for value in row.values())


def _json(source: str, data: bytes) -> dict[str, Any]:
    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InputError(f"{source}: the key {twice!r} appears twice in one JSON object")
        return found

    try:
        value = json.loads(data, object_pairs_hook=no_duplicates)
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(f"{source}: not UTF-8 text; convert the file to UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{source}: expected a JSON object {{query: {{document: number}}}}")
    return value


def _table(source: str, data: bytes, kind: str) -> pl.DataFrame:
    try:
        if kind == "parquet":
            return pl.read_parquet(io.BytesIO(data))
        if kind == "jsonl":
            return pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
        # Ids stay text: 007 is not 7.
        return pl.read_csv(data, separator="\t" if kind == "tsv" else ",", infer_schema=False)
    except pl.exceptions.PolarsError as error:
        where, reason = _fault(data, kind) or ("", " ".join(str(error).split())[:200])
        raise InputError(f"{source}{where}: cannot be read as {kind.upper()}: {reason}") from None


def _fault(data: bytes, kind: str) -> tuple[str, str] | None:
    """Place and nature of the first fault in a table that polars refused."""
    if kind == "parquet":
        return None
    width = None
    for i, line in enumerate(data.split(b"\n"), start=1):
        where = f", line {i}"
        try:
            text = line.decode().rstrip("\r")
        except UnicodeDecodeError:
            return where, "not UTF-8 text; convert the file to UTF-8"
        if not text.strip():
            continue
        shown = repr(text if len(text) <= 100 else text[:97] + "…")
        if kind == "jsonl":
            try:
                row = json.loads(text)
            except (ValueError, RecursionError) as error:
                return where, f"not valid JSON ({error}): {shown}"
            if not isinstance(row, dict):
                return where, f"not a JSON object: {shown}"
        elif '"' in text:  # a quoted field may go on in the next line
            return None
        else:
            found = text.count("\t" if kind == "tsv" else ",") + 1
            width = width or found
            if found != width:
                return where, f"expected {width} fields, found {found}: {shown}"
    return None
