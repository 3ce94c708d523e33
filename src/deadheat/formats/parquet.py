"""Read Parquet files with polars; a damaged file is an `InputError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from deadheat._internal.lazy import pl
from deadheat.errors import InputError
from deadheat.formats import frames


@contextmanager
def scan_parquet(source: str, file: IO[bytes]) -> Iterator[pl.LazyFrame]:
    """Scan a file; inside the block, errors of polars become an `InputError`.

    polars reports a panic on standard error before it raises the exception that is caught here.
    """
    try:
        yield pl.scan_parquet(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{source}: cannot be read as Parquet: {reason}") from None


def read_parquet(source: str, file: IO[bytes], *, all_columns: bool) -> pl.DataFrame:
    """Read the columns of `frames.ALIASES`, with the others empty; or read all columns."""
    with scan_parquet(source, file) as lazy:
        names = lazy.collect_schema().names()
        read = [name for name in names if all_columns or frames.is_known(name)]
        return frames.with_names(lazy.select(read).collect(), names)
