"""Tables in a local folder: Parquet, JSON lines, CSV and TSV, plain or gzipped."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from deadheat.datasets.tables import COLUMNS, Table, concatenate
from deadheat.errors import InputError

_FILE_NAME = re.compile(
    r"(?P<stem>.+?)(?:-\d+-of-(?P<shards>\d+))?"
    r"\.(?P<format>parquet|jsonl|ndjson|csv|tsv)(?:\.gz)?"
)


class FolderSource:
    """The tables of a folder: flat files, or one folder per table with a file per split.

    Parameters
    ----------
    path
        ``corpus.jsonl`` or ``corpus/test-00000-of-00001.parquet`` or ``qrels/test.tsv``
        inside a folder, or a single file of ``query``, ``positive``, ``negative`` rows.
    """

    revision: str | None = None

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        top: dict[str, dict[str, list[Path]]] = {}
        folders: dict[str, dict[str, list[Path]]] = {}
        for stem, paths in _by_stem([path] if path.is_file() else path.iterdir()).items():
            top[stem] = {"": paths}
        for folder in sorted(path.iterdir()) if path.is_dir() else []:
            if folder.is_dir() and (splits := _by_stem(folder.iterdir())):
                # A repository with one table keeps it in `data`; the hub calls it `default`.
                folders["default" if folder.name == "data" else folder.name] = splits
        if any(name.endswith("corpus") for name in [*top, *folders]):
            twice = sorted(top.keys() & folders.keys())
            if twice:
                raise InputError(
                    f"{self.where} holds both a file and a folder called {twice[0]!r}; remove one"
                )
            self._tables = top | folders
        else:
            rows = {stem: paths[""] for stem, paths in top.items()}
            self._tables = folders | ({"default": rows} if rows else {})

    def tables(self) -> list[str]:
        """Names of the tables found."""
        return sorted(self._tables)

    def splits(self, table: str) -> list[str]:
        """Return the splits of a table; a flat file has one, with an empty name."""
        return sorted(self._tables[table])

    def read(self, table: str, split: str) -> Table:
        """Columns of one split of a table, as Python values."""
        return concatenate([_read_file(path) for path in self._tables[table][split]])


def _by_stem(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Group data files by the name before shard number and extension, shards in order."""
    found: dict[str, list[Path]] = defaultdict(list)
    expected: dict[str, int] = {}
    for path in sorted(paths):
        match = _FILE_NAME.fullmatch(path.name)
        if match is not None and path.is_file():
            found[match["stem"]].append(path)
            expected[match["stem"]] = int(match["shards"] or 1)
    for stem, shards in found.items():
        if len(shards) != expected[stem]:
            names = ", ".join(shard.name for shard in shards)
            raise InputError(
                f"{shards[0].parent} should hold {expected[stem]} file(s) of {stem!r} but holds "
                f"{names}; add what is missing or remove what is double"
            )
    return dict(found)


def _read_file(path: Path) -> Table:
    match = _FILE_NAME.fullmatch(path.name)
    file_format = match["format"] if match else ""
    try:
        if file_format in ("jsonl", "ndjson"):
            return _read_json_lines(path)
        if file_format == "parquet":
            names = pl.read_parquet_schema(path).keys()
            frame = pl.read_parquet(path, columns=sorted(names & COLUMNS))
            return frame.to_dict(as_series=False) | {name: [] for name in names - COLUMNS}
        tabs = file_format == "tsv"
        frame = pl.read_csv(
            path,
            separator="\t" if tabs else ",",
            quote_char=None if tabs else '"',
            infer_schema=False,
        )
        return frame.to_dict(as_series=False)
    except (pl.exceptions.PolarsError, OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path} cannot be read: {reason}; write it again") from error


def _read_json_lines(path: Path) -> Table:
    """One object per line; a column missing from some lines is filled with ``None``."""
    opener = gzip.open if path.suffix == ".gz" else open
    table: Table = {}
    rows = 0
    with opener(path, "rt", encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                reason = getattr(error, "msg", error)
                raise InputError(
                    f"{path}, line {number}: not JSON ({reason}); correct or remove the line"
                ) from error
            if not isinstance(row, dict):
                raise InputError(
                    f"{path}, line {number}: expected a JSON object, found {line.strip()[:40]!r}"
                )
            for name in row.keys() - table.keys():
                table[name] = [None] * rows
            for name in table.keys() & COLUMNS:
                table[name].append(row.get(name))
            rows += 1
    return table
