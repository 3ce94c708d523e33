"""Read a run from a folder of Parquet files, which together need not fit in memory.

The rows of a query may be in several files; their order is that of the file names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deadheat._internal.lazy import pl
from deadheat.errors import InputError
from deadheat.formats import frames
from deadheat.formats.columns import Columns
from deadheat.formats.parquet import scan_parquet
from deadheat.formats.types import Run

if TYPE_CHECKING:
    from typing import TypeGuard

ENDING = ".parquet"
_PIECE = 1 << 20
"""Number of rows that are read at a time."""


@dataclass(frozen=True)
class Piece:
    """Rows of one file that are read together."""

    file: int
    """The index of the file."""
    start: int
    rows: int


@dataclass(frozen=True)
class RunFolder:
    """Files of scored documents that together are one run."""

    source: str
    """Name of the folder for messages."""
    files: tuple[str, ...]
    """Paths of the files, sorted by name."""
    pieces: tuple[Piece, ...]
    """All rows, in the order of the files."""

    @property
    def rows(self) -> int:
        """Number of scored documents in all files."""
        return sum(piece.rows for piece in self.pieces)

    def read(self, piece: Piece) -> Columns:
        """Read a piece."""
        path = self.files[piece.file]
        with _scan(path) as (lazy, _):
            frame = lazy.slice(piece.start, piece.rows).collect()
        # In later messages, row numbers start at the first row of the piece.
        source = path if piece.start == 0 else f"{path}, from row {piece.start + 1} on"
        return frames.table_columns(source, frame, "score")

    def whole(self) -> Run:
        """Read all files as one run in memory."""
        return self.select(None)

    def select(self, query_ids: Sequence[str] | None) -> Run:
        """Read all rows of some queries, or of all (None), as a run in memory."""
        wanted = None if query_ids is None else pl.Series(query_ids, dtype=pl.String).implode()
        files = [_read_file(path, wanted) for path in self.files]
        query, doc, numbers, ranks, _ = zip(*files, strict=True)
        return Columns(
            pl.concat(query),
            pl.concat(doc),
            np.concatenate(numbers),
            None if any(own is None for own in ranks) else np.concatenate(ranks),
        ).to_run(self.source)


def _read_file(path: str, wanted: pl.Series | None) -> Columns:
    """Read the rows of a file, or those of the wanted queries."""
    with _scan(path) as (lazy, columns):
        name = columns["query_id"]
        if wanted is not None and frames.casts_to_ids(lazy.collect_schema()[name]):
            lazy = lazy.filter(pl.col(name).cast(pl.String).is_in(wanted))
        frame = lazy.collect(engine="streaming")
    if wanted is not None:
        frame = frame.filter(frames.column_ids(path, frame, "query_id").is_in(wanted))
    return frames.table_columns(path, frame, "score")


def is_folder(run: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a run is the path of a folder."""
    return isinstance(run, (str, os.PathLike)) and os.path.isdir(run)  # noqa: PTH112


def run_folder(path: str | os.PathLike[str]) -> RunFolder:
    """Find the files of a folder, and check that their columns and types match.

    Every file in it and in its subfolders must be Parquet, except hidden files and those whose
    names start with an underscore, which other tools use for markers.
    """
    source = os.fspath(path)
    try:
        files = list(_list_files(Path(path)))
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror})") from None
    names = tuple(map(str, files))
    if not files:
        raise InputError(
            f"{source}: this is a folder, not a file, and there is no Parquet file ({ENDING}) in it"
        )
    pieces: list[Piece] = []
    types: dict[pl.DataType, str] = {}
    for number, name in enumerate(names):
        with _scan(name) as (lazy, columns):
            types.setdefault(lazy.collect_schema()[columns["score"]], name)
            rows = lazy.select(pl.len()).collect().item()
        pieces += [
            Piece(number, start, min(_PIECE, rows - start)) for start in range(0, rows, _PIECE)
        ]
    if len(types) > 1 and not all(type_.is_float() for type_ in types):
        (one, first), (other, second), *_ = types.items()
        raise InputError(
            f"{first} has scores of the type {one}, {second} of the type {other}: use one type in "
            "all files of a run, so that scores can be compared exactly"
        )
    return RunFolder(source, names, tuple(pieces))


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield files sorted by name; subfolders are sorted among the files."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_")):
            continue
        if path.is_dir():
            yield from _list_files(path)
        elif path.name.lower().endswith(ENDING):
            yield path
        else:
            raise InputError(
                f"{folder}: this is a folder, not a file; a run may be a folder of Parquet files "
                f"({ENDING}), but {path.name!r} is another file; remove it, or give the files of "
                "several runs one by one"
            )


@contextmanager
def _scan(path: str) -> Iterator[tuple[pl.LazyFrame, dict[str, str]]]:
    """Scan the columns of a run in a file; yield them, and their names by content.

    The error for a file that cannot be read has its name.
    """
    try:
        with Path(path).open("rb") as file, scan_parquet(path, file) as lazy:
            empty = pl.DataFrame(schema=lazy.collect_schema())
            needed = ("query_id", "doc_id", "score")
            columns = {name: frames.needed_column(path, empty, name) for name in needed}
            rank = frames.find_column(empty, "rank")
            if rank is not None:
                columns["rank"] = rank
            yield lazy.select(*columns.values()), columns
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
