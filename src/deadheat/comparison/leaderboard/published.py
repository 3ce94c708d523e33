"""A board as it was published: its names, its numbers with the digits they were printed in."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from deadheat._lazy import pl
from deadheat.comparison.leaderboard.sources import Source
from deadheat.errors import InputError, one_line
from deadheat.formats.files import TABLES, run_tag, table_from_file
from deadheat.formats.frames import as_frame, is_table
from deadheat.measures import MEASURES, Measure
from deadheat.measures.parse import parse_measure
from deadheat.remarks import Remark, note

NAME_COLUMNS = ("tag", "run", "runid", "run_id", "runtag", "name", "system", "model", "method")
"""Headings over the names of runs; the first column holds them where there is none of these."""
NOT_MEASURES = ("rank", "place", "position", "#", "no", "no.", "year", "")
"""Headings of numbers that measure nothing."""
MISSING = ("", "-", "–", "—", "na", "n/a", "nan", "null", "none")
"""What stands where a number is missing."""
_LARGEST_POWER, _MOST_DECIMALS = 15, 100
"""Limits of a published number: below 10^16, and so many decimals."""


@dataclass(frozen=True)
class Cell:
    """A published number."""

    value: float
    unit: float
    """One in its last printed digit."""

    def met_by(self, value: float) -> bool:
        """Whether a value rounds to the number as it was printed.

        >>> Cell(0.784, 0.001).met_by(0.78449), Cell(0.784, 0.001).met_by(0.7846)
        (True, False)
        """
        return abs(value - self.value) <= self.unit * (0.5 + 1e-6)


@dataclass(frozen=True)
class PublishedColumn:
    """The numbers of one measure."""

    name: str
    """Its heading."""
    measure: Measure
    """What the heading says; the numbers may be of a variant."""
    cells: Mapping[str, Cell]
    """By the names of the board."""


@dataclass(frozen=True)
class PublishedBoard:
    """A board as it was published."""

    source: str
    names: list[str]
    """In the order of the board."""
    columns: list[PublishedColumn]
    words: dict[str, list[str | None]]
    """Columns that are no numbers, such as team or run type; a value per name."""


def read_published(
    board: Any,
    columns: Mapping[str, Any] | None = None,
    name_column: str | None = None,
) -> PublishedBoard:
    """Read a published board.

    Parameters
    ----------
    board
        A file (CSV, TSV, JSONL, Parquet), a table, or ``{run: {measure: number}}``.
    columns
        Measures of columns whose headings do not tell: ``{"rbp": "RBP(p=0.5)"}``; None in place
        of a measure leaves a column out.
    name_column
        The column of names, where it is neither called so nor the first.
    """
    source, frame = _text_frame(board)
    told = {heading: _told(measure) for heading, measure in (columns or {}).items()}
    for heading in [*told, *([] if name_column is None else [name_column])]:
        if heading not in frame.columns:
            raise InputError(
                f"{source}: there is no column {heading!r}; it has {_listed(frame.columns)}"
            )
    names_in = name_column or _name_column(frame)
    names = [" ".join((name or "").split()) for name in frame[names_in].to_list()]
    for row, name in enumerate(names):
        if not name:
            raise InputError(f"{source}: entry {row + 1} has no name in the column {names_in!r}")
        if names.index(name) < row:
            raise InputError(
                f"{source}: {name!r} is in the board twice (entries {names.index(name) + 1} and "
                f"{row + 1}): keep one"
            )
    measured, words = [], {}
    for heading in frame.columns:
        if heading == names_in:
            continue
        texts = frame[heading].to_list()
        measure = told[heading] if heading in told else _measure_of(source, heading, texts)
        if measure is not None:
            cells = _cells(source, heading, measure, names, texts)
            measured.append(PublishedColumn(heading, measure, cells))
        elif heading not in told and not _numeric(texts):
            words[heading] = texts
    if not measured:
        raise InputError(
            f"{source}: no column is a measure: it has {_listed(frame.columns)}; known are "
            f"{_known()}, with a cutoff such as nDCG@10"
        )
    return PublishedBoard(source, names, measured, words)


def mixed_digits(board: PublishedBoard) -> list[Remark]:
    """Note columns whose numbers were printed with different numbers of digits."""
    remarks = []
    for column in board.columns:
        units = {cell.unit for cell in column.cells.values()}
        if len(units) > 1:
            decimals = [round(-math.log10(unit)) for unit in units]
            pattern = (
                "{column}: printed with {fewest} to {most} decimals (of a fraction), and each "
                "number is held to its own"
            )
            numbers = {"fewest": min(decimals), "most": max(decimals)}
            remarks.append(note(pattern, column=column.name, **numbers))
    return remarks


def matched(
    board: PublishedBoard, sources: Sequence[Source]
) -> tuple[dict[str, str], list[str], list[str]]:
    """Find each run in the board: by the name of its file, else by the tag in it.

    Returns
    -------
    rows, unlisted, absent
        The board's name of each run by the run's own name; runs that are not in the board;
        names of the board of which there is no run.
    """
    rows: dict[str, str] = {}
    unlisted: list[str] = []
    for source in sources:
        row = next((name for name in _names_of(source) if name in board.names), None)
        if row is None:
            unlisted.append(source.name)
            continue
        for other, taken in rows.items():
            if taken == row:
                raise InputError(
                    f"{source.name} and {other} are both {row!r}, which is one row of "
                    f"{board.source}: leave one of them out, or give runs as {{name: run}}"
                )
        rows[source.name] = row
    absent = [name for name in board.names if name not in rows.values()]
    return rows, unlisted, absent


def _names_of(source: Source) -> Iterable[str]:
    """Names a run may have in a board, the likeliest first."""
    yield source.name
    if source.path is not None:
        yield source.path.name
        with contextlib.suppress(InputError):  # evaluating it will say what is wrong
            if tag := run_tag(source.path):
                yield tag


def _text_frame(board: Any) -> tuple[str, pl.DataFrame]:
    """Give the board with every cell as text, as it was printed."""
    if isinstance(board, (str, os.PathLike)):
        ending = Path(board).suffix.lower().removeprefix(".")
        frame = table_from_file(board, ending if ending in TABLES else "csv", all_columns=True)
        source = os.fspath(board)
    elif isinstance(board, Mapping):
        source, frame = "the published board", _mapping_frame("the published board", board)
    elif is_table(board):
        source, frame = "the published board", as_frame("the published board", board)
    else:
        raise InputError(f"a published board cannot be read from a {type(board).__name__}")
    if not len(frame):
        raise InputError(f"{source}: there is no run in it")
    return source, pl.DataFrame([_texts(source, column) for column in frame])


def _mapping_frame(source: str, board: Mapping[Any, Any]) -> pl.DataFrame:
    """Make a table of ``{run: {measure: number}}``."""
    for run, numbers in board.items():
        if not isinstance(numbers, Mapping):
            raise InputError(f"{source}: expected {{run: {{measure: number}}}} at {run!r:.60}")
    rows = [{"run": str(run), **numbers} for run, numbers in board.items()]
    try:
        return pl.DataFrame(rows, infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{source}: cannot be read as a table ({one_line(error)})") from None


def _texts(source: str, column: pl.Series) -> pl.Series:
    try:
        texts: pl.Series = column.cast(pl.String)
    except pl.exceptions.PolarsError:
        raise InputError(
            f"{source}: the column {column.name!r:.60} holds {column.dtype}, neither numbers nor "
            "words"
        ) from None
    return texts


def _told(measure: Any) -> Measure | None:
    return measure if measure is None or isinstance(measure, Measure) else parse_measure(measure)


def _name_column(frame: pl.DataFrame) -> str:
    headings = {heading.strip().lower(): heading for heading in reversed(frame.columns)}
    return next((headings[name] for name in NAME_COLUMNS if name in headings), frame.columns[0])


def _measure_of(source: str, heading: str, texts: list[str | None]) -> Measure | None:
    """Measure that a heading names; None over words and numbers of other kinds."""
    if not _numeric(texts):
        return None
    with contextlib.suppress(InputError):
        return parse_measure(heading)
    if heading.strip().lower() in NOT_MEASURES:
        return None
    raise InputError(
        f"{source}: the column {heading!r} holds numbers, but that is no measure (known: "
        f"{_known()}); say which it is with columns={{{heading!r}: 'nDCG@10'}} (--column "
        f"{heading}=nDCG@10), or leave it out with None (--column {heading}=)"
    )


def _numeric(texts: list[str | None]) -> bool:
    """Whether most of the cells that hold something hold numbers."""
    told = [text for text in texts if not _is_missing(text)]
    numbers = sum(_number(text) is not None for text in told)
    return bool(told) and 2 * numbers > len(told)


def _cells(
    source: str, heading: str, measure: Measure, names: list[str], texts: list[str | None]
) -> dict[str, Cell]:
    """Published numbers; percentages of a measure that cannot exceed 1 become shares."""
    numbers: dict[str, Decimal] = {}
    for row, (name, text) in enumerate(zip(names, texts, strict=True), start=1):
        if _is_missing(text):
            continue
        number = _number(text)
        if number is None:
            fault = "is not a number"
        elif number.adjusted() > _LARGEST_POWER or _exponent(number) < -_MOST_DECIMALS:
            fault = "is too large or has too many decimals to be a value of a measure"
        else:
            numbers[name] = number
            continue
        raise InputError(
            f"{source}: entry {row} ({name:.60}) has {text!r:.60} in the column {heading!r:.60}, "
            f"which {fault}"
        )
    beyond = not measure.can_exceed_one and max(numbers.values(), default=0) > 1
    percent = beyond or any("%" in (text or "") for text in texts)
    scale = 100 if percent else 1
    return {
        name: Cell(float(number) / scale, 10.0 ** _exponent(number) / scale)
        for name, number in numbers.items()
    }


def _number(text: str | None) -> Decimal | None:
    try:
        number = Decimal((text or "").strip().removesuffix("%").strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _exponent(number: Decimal) -> int:
    return int(number.as_tuple().exponent)


def _is_missing(text: str | None) -> bool:
    return text is None or text.strip().lower() in MISSING


def _known() -> str:
    return ", ".join(measure.name for measure in MEASURES)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
