"""Format the values of each kind of column as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from deadheat.errors import printable
from deadheat.tables.table import Kind, Table

DIGITS = 4
"""Decimals of a value of a measure; in percent there are two fewer."""
MISSING = "–"
MINUS = "−"


class Cell(NamedTuple):
    """The text of a cell."""

    significant: str
    faint: str = ""
    """The last digits, which are not significant because of ties."""
    bold: bool = False

    def __str__(self) -> str:
        """Return the text without colour: digits that are not significant become x."""
        return f"{self.significant}x" if self.faint else self.significant

    @property
    def full(self) -> str:
        """The text with all of its digits."""
        return self.significant + self.faint


def number(value: float | None, *, percent: bool = False, signed: bool = False) -> str:
    """Format a value of a measure: four decimals, or a percentage with two.

    >>> number(0.63571), number(0.63571, percent=True), number(-1e-9, signed=True), number(None)
    ('0.6357', '63.57', '0.0000', '–')
    >>> number(-0.0328, percent=True), number(0.0328, percent=True, signed=True)
    ('−3.28', '+3.28')
    """
    if value is None:
        return MISSING
    text = f"{100 * abs(value) if percent else abs(value):.{_digits(percent)}f}"
    if float(text) == 0:
        return text
    return f"{MINUS if value < 0 else '+' if signed else ''}{text}"


def standing_digits(std: float | None, *, percent: bool) -> int:
    """Count the decimals of a value that random tie-breaking does not change.

    >>> standing_digits(0.0113, percent=True), standing_digits(0.0003, percent=True)
    (0, 2)
    """
    if not std:
        return _digits(percent)
    return min(_digits(percent), max(0, -math.floor(math.log10(100 * std if percent else std))))


def _digits(percent: bool) -> int:
    return DIGITS - 2 if percent else DIGITS


def _significant(value: float, std: float | None, *, percent: bool, signed: bool = False) -> Cell:
    """Separate the digits that random tie-breaking does not change from the others."""
    text = number(value, percent=percent, signed=signed)
    meaningless = _digits(percent) - standing_digits(std, percent=percent)
    return Cell(text[:-meaningless], text[-meaningless:]) if meaningless and value else Cell(text)


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low}–{high}"


def _probability(p: float, method: str = "exact", error: float = 0.0, **_: bool) -> str:
    """Format a probability with its error; distinguish a certain 0 or 1 from a rounded one.

    >>> _probability(0.8204, "sampled", 0.0081), _probability(0.8204)
    ('0.820±0.009', '0.820')
    >>> _probability(0.999, "bound", 0.002), _probability(0.001, "bound", 0.002)
    ('≥0.997', '≤0.003')
    """
    if method == "certain":
        return f"{p:.0f}"
    if error and p + error >= 1:
        return "≥0.000" if p <= error else f"≥{math.floor(1000 * (p - error) + 1e-9) / 1000:.3f}"
    if error and p <= error:
        return f"≤{math.ceil(1000 * (p + error) - 1e-9) / 1000:.3f}"
    if p < 0.0005:
        return "<0.0005"
    if 0.9995 < p < 1:
        return ">0.9995"
    return f"{p:.3f}±{math.ceil(1000 * error) / 1000:.3f}" if error else f"{p:.3f}"


_signed = partial(number, signed=True)
WRITERS: dict[Kind, Callable[..., str | Cell]] = {
    "name": lambda text, **_: str(text),
    "word": lambda text, **_: str(text),
    "value": number,
    "signed": _signed,
    "significant": _significant,
    "significant signed": partial(_significant, signed=True),
    "span": lambda *ends, percent: _range(*(number(end, percent=percent) for end in ends)),
    "interval": lambda *ends, percent: (
        f"[{', '.join(_signed(end, percent=percent) for end in ends)}]"
    ),
    "count": lambda value, **_: f"{value:,}",
    "ranks": lambda best, worst, **_: _range(f"{best}", f"{worst}"),
    "share": lambda value, **_: f"{value:.1%}",
    "ratio": lambda value, **_: number(value),
    "distance": lambda value, **_: f"{value:.2g}".replace("-", MINUS),
    "probability": _probability,
    "flag": lambda value, **_: "yes" if value else "no",
}
"""Per kind: a function of the values of a cell and of `percent` that returns its text."""


def cell(kind: Kind, values: Sequence[object], *, percent: bool) -> Cell:
    """Format one cell of a table; a cell without a value is a dash."""
    written = MISSING if values[0] is None else WRITERS[kind](*values, percent=percent)
    return written if isinstance(written, Cell) else Cell(written)


def rows_of(table: Table, percent: bool) -> Iterator[list[Cell]]:
    """Yield the rows of a table as cells of text."""
    for row in table.frame.iter_rows(named=True):
        cells = []
        for column in table.columns:
            text = cell(column.kind, [row[name] for name in column.sources], percent=percent)
            if column.is_label:
                text = Cell(printable(text.full))
            cells.append(text._replace(bold=bool(column.bold and row[column.bold])))
        yield cells


def grouped_rows(table: Table, percent: bool) -> list[list[list[Cell]]]:
    """Return the rows in groups; only the first row of a group has the names that its rows share.

    If no two rows share their names, all rows are one group.
    """
    rows = list(rows_of(table, percent))
    groups = [list(group) for _, group in groupby(rows, lambda row: row[: table.grouped])]
    if len(groups) == len(rows):
        return [rows]
    blank = [Cell("")] * table.grouped
    return [[first, *(blank + row[table.grouped :] for row in rest)] for first, *rest in groups]


def headings(table: Table, join: str) -> list[str]:
    """Return the heading of each column, prefixed by the heading that it shares with others."""
    return [
        join.join(printable(text, keep="\n") for text in (column.over, column.heading) if text)
        for column in table.columns
    ]
