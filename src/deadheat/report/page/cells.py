"""Cells of a page: their text as a fraction and in percent, and the marks of an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from deadheat.tables import Column, Kind, Table, cell, headings, rows_of

APART = 2.0
"""Smallest distance of two visibly different marks, in hundredths of a scale."""


class Texts(NamedTuple):
    """A text as a fraction, 0.7353, and in percent, 73.53."""

    fraction: str
    percent: str


class Axis(NamedTuple):
    """An axis that the intervals of a column share, from 0 to 100."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return the place of a value."""
        return round(100 * (value - self.low) / (self.high - self.low or 1.0), 3)

    def marks(
        self, start: float, end: float, dot: float, cross: float | None = None
    ) -> dict[str, float | None]:
        """Return the positions of an interval, its dot, and a cross if it is visibly different."""
        apart = cross is not None and abs(self.place(cross) - self.place(dot)) >= APART
        return {
            "start": self.place(start),
            "end": self.place(end),
            "dot": self.place(dot),
            "cross": self.place(cross) if apart and cross is not None else None,
        }


class PageCell(NamedTuple):
    """A cell of a table of the page."""

    column: Column
    text: Texts
    sort: float | str | None
    """The number to sort by; None for words, the empty text for a missing number."""
    bold: bool
    marks: dict[str, float | None] | None
    """The interval that is drawn next to the text, if any."""


class PageTable(NamedTuple):
    """A table in the form of the template."""

    headings: list[tuple[str, bool]]
    """The heading of each column, and whether the column has labels."""
    rows: list[list[PageCell]]
    notes: Sequence[str]


def texts(kind: Kind, *values: object) -> Texts:
    """Format a cell as a fraction and in percent."""
    return Texts(*(cell(kind, values, percent=percent).full for percent in (False, True)))


def page_table(table: Table) -> PageTable:
    """Format every cell of a table as a fraction and in percent."""
    scales = {}
    for column in table.columns:
        ends = [x for name in column.bar for x in table.frame[name].drop_nulls()]
        scales[column.of] = Axis(min(ends), max(ends)) if ends else None
    rows = []
    for values, *both in zip(
        table.frame.iter_rows(named=True),
        rows_of(table, False),
        rows_of(table, True),
        strict=True,
    ):
        cells = []
        for column, one, other in zip(table.columns, *both, strict=True):
            sort = _sort_key(column, [values[name] for name in column.sources])
            scale, bar = scales[column.of], [values[name] for name in column.bar]
            marks = None if scale is None or None in bar[:3] else scale.marks(*bar)
            cells.append(PageCell(column, Texts(one.full, other.full), sort, one.bold, marks))
        rows.append(cells)
    heads = zip(headings(table, " "), table.columns, strict=True)
    return PageTable([(head, column.is_label) for head, column in heads], rows, table.notes)


def _sort_key(column: Column, values: Sequence[Any]) -> float | str | None:
    """Return the sort key: the width of an interval, or the number; missing numbers are last."""
    if column.is_label or column.kind == "flag":
        return None
    if None in values:
        return ""
    is_interval = column.kind in ("ranks", "span", "interval")
    return float(values[1] - values[0] if is_interval else values[0])
