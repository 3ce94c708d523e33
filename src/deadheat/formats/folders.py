"""A run in a folder of Parquet files: one list of documents per query, wherever its rows lie.

The files are read in the order of their names, piece by piece, so that what a folder holds need
not fit in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from deadheat.errors import InputError
from deadheat.formats import frames
from deadheat.formats.columns import run_from_columns
from deadheat.formats.parquet import (
    DamagedParquetError,
    check_parquet,
    column_types,
    read_rows,
)
from deadheat.formats.shapes import Origins, Run
from deadheat.late import pl

if TYPE_CHECKING:
    from typing import TypeGuard

ENDING = ".parquet"
_PIECE = 1 << 20
"""Rows that are read at a time; a group of rows of a file is read whole, however many it has."""


@dataclass(frozen=True)
class Piece:
    """Rows of one file that are read at a time."""

    file: int
    """The place of the file among those of the folder."""
    start: int
    rows: int


@dataclass(frozen=True)
class RunFolder:
    """Files of scored documents that are one run together."""

    source: str
    """The folder, for messages."""
    files: tuple[str, ...]
    """In the order in which their rows count."""
    pieces: tuple[Piece, ...]
    """What there is to read, in the same order."""
    score_type: pl.DataType
    """The type in which all scores are compared."""

    @property
    def rows(self) -> int:
        """Scored documents of all files."""
        return sum(piece.rows for piece in self.pieces)

    def read(self, piece: Piece) -> pl.DataFrame:
        """Read a piece: the columns query, doc, score and file, and rank where there are ranks."""
        path = self.files[piece.file]
        with _opened(path) as file:
            columns = _needed(path, column_types(file))
            frame = read_rows(file, columns.values(), piece.start, piece.rows)
        # Rows are counted from the first of the piece in what follows.
        source = path if piece.start == 0 else f"{path}, from row {piece.start + 1} on"
        query = frames.column_ids(source, frame, "query_id")
        score = frame[columns["score"]]
        frames.column_numbers(source, frame, score.name, query)  # refuses what is no number
        read = pl.DataFrame(
            {
                "query": query,
                "doc": frames.column_ids(source, frame, "doc_id"),
                "score": score.cast(self.score_type),
                "file": pl.Series([piece.file], dtype=pl.UInt32).new_from_index(0, len(frame)),
            }
        )
        ranks = frames.whole_ranks(frame[columns["rank"]]) if "rank" in columns else None
        return read if ranks is None else read.with_columns(rank=ranks)

    def whole(self) -> Run:
        """Read all files as one run in memory."""
        return self.run(map(self.read, self.pieces or [Piece(0, 0, 0)]))

    def run(self, pieces: Iterable[pl.DataFrame]) -> Run:
        """Make a run of what was read, in this order: all pieces, or all rows of some queries."""
        frame = pl.concat(pieces, how="diagonal")
        ranks = None
        if "rank" in frame.columns and not frame["rank"].null_count():
            ranks = frame["rank"].to_numpy()
        scores = frames.column_numbers(self.source, frame, "score", frame["query"])
        origins = Origins(self.files, frame["file"].to_numpy())
        return run_from_columns(self.source, frame["query"], frame["doc"], scores, ranks, origins)


def is_folder(run: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Whether a run is given by the path of a folder."""
    try:
        return isinstance(run, (str, os.PathLike)) and Path(run).is_dir()
    except (OSError, ValueError):  # no name of a file: reading will say so
        return False


def run_folder(path: str | os.PathLike[str]) -> RunFolder:
    """Look at all files of a folder: what they hold, and whether they go together.

    Every file in it and in its folders must be Parquet, but for hidden ones and those whose names
    begin with an underscore, by which other tools mark what they have written.
    """
    source = os.fspath(path)
    try:
        files = list(_files(Path(path)))
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
        with _opened(name) as file:
            groups = check_parquet(file)
            schema = column_types(file)
        types.setdefault(schema[_needed(name, schema)["score"]], name)
        pieces += _pieces(number, groups)
    return RunFolder(source, names, tuple(pieces), _common(types))


def _files(folder: Path) -> Iterator[Path]:
    """Files in the order of their names, those of folders inside where the folder's name stands."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_")):
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.name.lower().endswith(ENDING):
            yield path
        else:
            raise InputError(
                f"{folder}: this is a folder, not a file; a run may be a folder of Parquet files, "
                f"but {path.name!r} is none ({ENDING}); take it out, or give the files of several "
                "runs one by one"
            )


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file, and name it where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except DamagedParquetError as error:
        raise InputError(f"{path}: cannot be read as PARQUET: {error}") from None


def _needed(source: str, schema: dict[str, pl.DataType]) -> dict[str, str]:
    """The columns of a run by what they are."""
    empty = pl.DataFrame(schema=schema)
    columns = {
        name: frames.needed_column(source, empty, name) for name in ("query_id", "doc_id", "score")
    }
    rank = frames.find_column(empty, "rank")
    return columns if rank is None else columns | {"rank": rank}


def _pieces(file: int, groups: Iterable[int]) -> Iterator[Piece]:
    """Put groups of rows together, up to as many as are read at a time."""
    start = rows = 0
    for group in groups:
        if rows and rows + group > _PIECE:
            yield Piece(file, start, rows)
            start, rows = start + rows, 0
        rows += group
    if rows:
        yield Piece(file, start, rows)


def _common(types: dict[pl.DataType, str]) -> pl.DataType:
    """The type that holds all scores as they are."""
    if len(types) == 1:
        return next(iter(types))
    if all(type_.is_float() for type_ in types):
        return pl.Float64()
    (one, first), (other, second), *_ = types.items()
    raise InputError(
        f"{first} holds scores of the type {one}, {second} of the type {other}: give all files of "
        "a run the same type, so that scores can be compared exactly"
    )
