"""Parquet files, damaged ones among them."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from deadheat.formats import frames
from deadheat.formats.content import PARQUET
from deadheat.formats.parquet_pages import WrongPagesError, check_pages
from deadheat.late import pl

_stderr = threading.Lock()


class DamagedParquetError(Exception):
    """A Parquet file that cannot be read; the message says why."""


def read_parquet(file: IO[bytes], *, all_columns: bool) -> pl.DataFrame:
    """Read the columns that `frames.is_known` knows, the others by name alone; or all of them."""
    check_parquet(file)
    with _reporting(file):
        lazy = pl.scan_parquet(file)
        names = lazy.collect_schema().names()
        read = [name for name in names if all_columns or frames.is_known(name)]
        frame = lazy.select(read).collect()
    return frames.with_names(frame, names)


def check_parquet(file: IO[bytes]) -> list[int]:
    """Refuse a damaged file; give how many rows each of its groups of rows has."""
    _check_footer(file)
    try:
        return check_pages(file)
    except WrongPagesError as error:
        raise DamagedParquetError(str(error)) from None


def column_types(file: IO[bytes]) -> dict[str, pl.DataType]:
    """Give the columns of a file that was checked."""
    with _reporting(file):
        return dict(pl.scan_parquet(file).collect_schema())


def read_rows(file: IO[bytes], columns: Iterable[str], start: int, rows: int) -> pl.DataFrame:
    """Read some columns and rows of a file that was checked."""
    with _reporting(file):
        return pl.scan_parquet(file).select(*columns).slice(start, rows).collect()


@contextmanager
def _reporting(file: IO[bytes]) -> Iterator[None]:
    """Say in a line why polars cannot read a file."""
    try:
        with _without_panic_reports(file):
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DamagedParquetError(" ".join(str(error).split())[:200]) from None


def _check_footer(file: IO[bytes]) -> None:
    """Refuse a file whose end is missing, or points to a footer that cannot be there."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    end = file.read(8)
    file.seek(0)
    if size < 12 or not end.endswith(PARQUET):
        raise DamagedParquetError("its end is missing; was it written, or copied, to the end?")
    if int.from_bytes(end[:4], "little") > size - 12:
        raise DamagedParquetError("its footer is longer than the file")


@contextmanager
def _without_panic_reports(file: IO[bytes]) -> Iterator[None]:
    """Keep what polars' threads say on standard error when a damaged file surprises them.

    They say it to the file descriptor, past Python. What else is said meanwhile comes after.
    """
    with _stderr, tempfile.TemporaryFile() as report:
        if _is_closed(2) or 2 in (report.fileno(), _descriptor(file)):  # no standard error
            yield
            return
        saved = os.dup(2)
        os.dup2(report.fileno(), 2)
        try:
            yield
        except pl.exceptions.PanicException:
            report.truncate(0)
            raise
        finally:
            os.dup2(saved, 2)
            report.seek(0)
            with suppress(OSError):
                os.write(saved, report.read())
            os.close(saved)


def _is_closed(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


def _descriptor(file: IO[bytes]) -> int | None:
    try:
        return file.fileno()
    except OSError:  # in memory
        return None
