"""Tables in a local folder: Parquet, JSON lines, CSV and TSV, plain or compressed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from deadheat._lazy import pl
from deadheat.errors import InputError
from deadheat.formats.files import COMPRESSED, TABLES, table_from_file
from deadheat.formats.frames import column_of

Splits: TypeAlias = dict[str, list[tuple[Path, str]]]
"""Files of each split, with their formats."""
_FORMATS = {**{name: name for name in TABLES}, "ndjson": "jsonl"}
_FILE_NAME = re.compile(
    r"(?P<stem>.+?)(?:-\d+-of-(?P<shards>\d+))?"
    rf"\.(?P<format>{'|'.join(_FORMATS)})(?:{'|'.join(map(re.escape, COMPRESSED))})?"
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
        self.location = str(path)
        top: dict[str, Splits] = {}
        folders: dict[str, Splits] = {}
        for stem, files in _group_by_stem([path] if path.is_file() else path.iterdir()).items():
            top[stem] = {"": files}
        for folder in sorted(path.iterdir()) if path.is_dir() else []:
            if folder.is_dir() and (splits := _group_by_stem(folder.iterdir())):
                # A repository with one table keeps it in `data`; the hub calls it `default`.
                folders["default" if folder.name == "data" else folder.name] = splits
        if any(name.endswith("corpus") for name in [*top, *folders]):
            twice = sorted(top.keys() & folders.keys())
            if twice:
                raise InputError(
                    f"{self.location} holds both a file and a folder called {twice[0]!r}: remove "
                    "one"
                )
            self._tables = top | folders
        else:
            rows = {stem: splits[""] for stem, splits in top.items()}
            self._tables = folders | ({"default": rows} if rows else {})

    def tables(self) -> list[str]:
        """Names of the tables in the folder."""
        return sorted(self._tables)

    def splits(self, table: str) -> list[str]:
        """Return the splits of a table; a flat file has one, with an empty name."""
        return sorted(self._tables[table])

    def read(self, table: str, split: str) -> pl.DataFrame:
        """Read the shards of one split of a table, in their order."""
        shards = [table_from_file(path, kind) for path, kind in self._tables[table][split]]
        try:
            return pl.concat(shards, how="diagonal")
        except pl.exceptions.PolarsError:  # a column has another type in another shard
            return _stack_rows(shards)


def _stack_rows(shards: list[pl.DataFrame]) -> pl.DataFrame:
    """Put the rows of all shards under one another, every value as it is."""
    names = dict.fromkeys(name for shard in shards for name in shard.columns)
    rows = [row for shard in shards for row in shard.iter_rows(named=True)]
    return pl.DataFrame([column_of(name, [row.get(name) for row in rows]) for name in names])


def _group_by_stem(paths: Iterable[Path]) -> Splits:
    """Group data files by the name before shard number and extension, shards in order."""
    groups: Splits = defaultdict(list)
    expected: dict[str, int] = {}
    for path in sorted(paths):
        match = _FILE_NAME.fullmatch(path.name)
        if match is not None and path.is_file():
            groups[match["stem"]].append((path, _FORMATS[match["format"]]))
            expected[match["stem"]] = int(match["shards"] or 1)
    for stem, shards in groups.items():
        if len(shards) != expected[stem]:
            names = ", ".join(shard.name for shard, _ in shards)
            raise InputError(
                f"{shards[0][0].parent} should hold {expected[stem]} file(s) of {stem!r} but holds "
                f"{names}; add what is missing or remove what is double"
            )
    return dict(groups)
