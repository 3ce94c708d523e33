"""Read a published board: the names of runs, and numbers with their printed digits."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import Remark, counted, some, warning
from deadheat.comparison.leaderboard.sources import PathLike
from deadheat.comparison.statistics import ranks
from deadheat.errors import InputError, one_line
from deadheat.formats import (
    TABLES,
    RunLike,
    TableLike,
    as_frame,
    is_table,
    run_tag,
    table_from_file,
)
from deadheat.measures import MEASURES, Measure, parse_measure

NAME_COLUMNS = ("tag", "run", "runid", "run_id", "runtag", "name", "system", "model", "method")
"""Headings of the column of run names; without one of these, the first column is used."""
NOT_MEASURES = ("rank", "place", "position", "#", "no", "no.", "year", "")
"""Headings of columns of numbers that are not measures."""
MISSING = ("", "-", "–", "—", "na", "n/a", "nan", "null", "none")
"""Texts that mean a missing number."""
PublishedLike = PathLike | TableLike | Mapping[str, Mapping[str, object]]
"""Types of a published board: a file, a table, or ``{run: {measure: number}}``."""


@dataclass(frozen=True, eq=False)
class PublishedColumn:
    """The numbers of one measure."""

    name: str
    """Its heading."""
    measure: Measure
    """The measure that the heading names; the numbers may be those of a variant."""
    numbers: pl.DataFrame
    """In the order of the board: ``published``, the number; ``unit``, one unit of its last printed
    digit, such as 0.001 for 0.784; and ``published_rank``. A missing number is null."""


@dataclass(frozen=True)
class PublishedBoard:
    """A board as it was published."""

    source: str
    names: list[str]
    """Names of the runs, in the order of the board."""
    columns: list[PublishedColumn]
    words: pl.DataFrame
    """Columns of words, such as team or run type, in the order of the board."""


def select_rows(table: pl.DataFrame, rows: Sequence[int | None]) -> pl.DataFrame:
    """Return rows of a table of a board; a row of None has no values."""
    return table.select(pl.all().gather(pl.Series(rows, dtype=pl.UInt32)))


def is_met(values: Any, published: Any, unit: Any) -> Any:
    """Return whether values round to published numbers; for arrays and for polars expressions."""
    return abs(values - published) <= unit * (0.5 + 1e-6)


def read_published(
    board: PublishedLike,
    columns: Mapping[str, str | Measure | None] | None = None,
    name_column: str | None = None,
) -> PublishedBoard:
    """Read a published board.

    Parameters
    ----------
    board
        A file (CSV, TSV, JSONL, Parquet), a table, or ``{run: {measure: number}}``.
    columns
        Measures of columns whose headings are no measures: ``{"rbp": "RBP(p=0.5)"}``; None drops
        a column.
    name_column
        The column of names. Default: a column with a usual heading such as "run", else the first.
    """
    source, frame = _read_texts(board)
    given = {
        heading: parse_measure(measure) if isinstance(measure, str) else measure
        for heading, measure in (columns or {}).items()
    }
    has = ", ".join(map(repr, frame.columns))
    known = ", ".join(measure.name for measure in MEASURES)
    headings = {heading.strip().lower(): heading for heading in reversed(frame.columns)}
    usual = [headings[name] for name in NAME_COLUMNS if name in headings]
    names_in = name_column or [*usual, *frame.columns][0]
    for heading in (*given, names_in):
        if heading not in frame.columns:
            raise InputError(f"{source}: there is no column {heading!r}; use one of {has}")
    names = _check_names(source, names_in, frame[names_in].to_list())
    measured, words = [], []
    dropped = [heading for heading, measure in given.items() if measure is None]
    for heading in frame.drop({names_in, *dropped}).columns:
        texts = frame[heading].to_list()
        measure = given.get(heading) or _measure_named(heading)
        if measure is not None:
            measured.append(_read_column(source, heading, measure, names, texts))
        elif not _are_numbers(texts):
            words.append(heading)
        elif heading.strip().lower() not in NOT_MEASURES:
            raise InputError(
                f"{source}: the column {heading!r} contains numbers, but its heading is not a "
                f"measure ({known}); name the measure with columns={{{heading!r}: 'nDCG@10'}} "
                f"(--column {heading}=nDCG@10), or drop the column with None (--column {heading}=)"
            )
    if not measured:
        raise InputError(
            f"{source}: no heading is a measure (columns: {has}); rename a column to one of "
            f"{known}, with a cutoff such as nDCG@10"
        )
    return PublishedBoard(source, names, measured, frame.select(words))


def _read_texts(board: PublishedLike) -> tuple[str, pl.DataFrame]:
    """Return the source of a board, and the board with every cell as its printed text."""
    source = "the published board"
    if isinstance(board, (str, os.PathLike)):
        source = os.fspath(board)
        ending = Path(board).suffix.lower().removeprefix(".")
        frame = table_from_file(board, ending if ending in TABLES else "csv", all_columns=True)
    elif isinstance(board, Mapping):
        rows = []
        for run, numbers in board.items():
            if not isinstance(numbers, Mapping):
                raise InputError(f"{source}: expected {{run: {{measure: number}}}} at {run!r:.60}")
            given = {"run": run, **numbers}.items()
            rows.append({str(k): None if v is None else str(v) for k, v in given})
        frame = pl.DataFrame(rows, infer_schema_length=None)
    elif is_table(board):
        frame = as_frame(source, board)
    else:
        raise InputError(f"a published board cannot be read from {type(board).__name__}")
    if not len(frame):
        raise InputError(f"{source}: there is no run in it")
    try:
        return source, frame.cast(pl.String)
    except pl.exceptions.PolarsError as error:
        fault = f"{source}: a column contains neither numbers nor words ({one_line(error)})"
        raise InputError(fault) from None


def _check_names(source: str, heading: str, texts: Sequence[str | None]) -> list[str]:
    """Return the names of the runs; refuse missing and repeated names."""
    names = [" ".join((text or "").split()) for text in texts]
    for row, name in enumerate(names):
        if not name or names.index(name) < row:
            raise InputError(
                f"{source}: entry {row + 1} has the name {name!r} in the column {heading!r}, but "
                "each run needs a unique name"
            )
    return names


def _measure_named(heading: str) -> Measure | None:
    """Return the measure that a heading names, if it names one."""
    try:
        return parse_measure(heading)
    except InputError:
        return None


def _are_numbers(texts: Iterable[str | None]) -> bool:
    """Return whether more than half of the texts that are not missing are numbers."""
    stated = [_number(text) is not None for text in texts if not _is_missing(text)]
    return 2 * sum(stated) > len(stated)


def _read_column(
    source: str,
    heading: str,
    measure: Measure,
    names: Sequence[str],
    texts: Sequence[str | None],
) -> PublishedColumn:
    """Read published numbers; percentages of a measure of at most 1 become fractions."""
    values, units = np.full((2, len(texts)), np.nan)
    for row, text in enumerate(texts):
        if _is_missing(text):
            continue
        if (number := _number(text)) is None:
            raise InputError(
                f"{source}: entry {row + 1} ({names[row]:.60}) has {text!r:.60} in the column "
                f"{heading!r:.60}, which is not a value of a measure; correct it or leave it empty"
            )
        values[row], units[row] = float(number), 10.0 ** int(number.as_tuple().exponent)
    above_one = bool((values > 1).any()) and not measure.can_exceed_one
    scale = 100 if above_one or any("%" in (text or "") for text in texts) else 1
    values /= scale
    numbers = {"published": values, "unit": units / scale, "published_rank": ranks(values)}
    stated = pl.when(pl.col("published").is_not_null())
    frame = pl.DataFrame(numbers, nan_to_null=True)
    return PublishedColumn(heading, measure, frame.with_columns(stated.then("published_rank")))


def _number(text: str | None) -> Decimal | None:
    """Read a number that has at most 16 digits before and 100 after the point."""
    with contextlib.suppress(InvalidOperation):
        number = Decimal((text or "").strip().removesuffix("%").strip())
        exponent = number.as_tuple().exponent
        if isinstance(exponent, int) and exponent >= -100 and number.adjusted() <= 15:
            return number
    return None


def _is_missing(text: str | None) -> bool:
    return text is None or text.strip().lower() in MISSING


def match_runs(
    board: PublishedBoard, runs: Mapping[str, RunLike]
) -> tuple[dict[str, int], list[Remark]]:
    """Find each run in the board by its file name, else by the tag in the file.

    Returns
    -------
    rows, remarks
        A dict from the run's name to its row in the board, and remarks on runs that are only in
        the board or only among the files.
    """
    places = {name: row for row, name in enumerate(board.names)}
    matched: dict[int, str] = {}
    for name, run in runs.items():
        row = next((places[other] for other in _board_names(name, run) if other in places), None)
        if row is not None and matched.setdefault(row, name) != name:
            raise InputError(
                f"{name} and {matched[row]} both match the row {board.names[row]!r} of "
                f"{board.source}; leave one of them out, or give runs as {{name: run}}"
            )
    if not matched:
        raise InputError(
            f"no run is in {board.source}: the first run is called {next(iter(runs))!r}, the "
            f"first name of the board is {board.names[0]!r}; use the same names"
        )
    rows = {name: row for row, name in matched.items()}
    remarks = []
    if left := [name for name in runs if name not in rows]:
        remarks.append(warning(f"{counted(len(left), 'run')} not in the board: {some(left)}"))
    if left := [name for name, row in places.items() if row not in matched]:
        text = f"{counted(len(left), 'run')} of the board without a run file: {some(left)}"
        remarks.append(warning(text))
    return rows, remarks


def _board_names(name: str, run: RunLike) -> Iterator[str]:
    """Yield the names that a run may have in a board, most likely first."""
    yield name
    if isinstance(run, (str, os.PathLike)):
        yield Path(run).name
        with contextlib.suppress(InputError):  # evaluating the run reports the error
            if tag := run_tag(run):
                yield tag
