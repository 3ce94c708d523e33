"""Cells of a page: their text as a fraction and in percent, and the marks of an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from deadheat.tables import Kind, Table, Tint, cell, headings, rows_of

APART = 2.0
"""Two marks of a scale this many hundredths apart are visibly different."""


class Texts(NamedTuple):
    """A text as a fraction, 0.7353, and in percent, 73.53."""

    fraction: str
    percent: str


class PageCell(NamedTuple):
    """A cell of a table of the page."""

    text: Texts
    sort: float | str | None
    """The number to sort by; nothing for words, the empty text where there is no number."""
    is_label: bool
    bold: bool
    tint: Tint | None
    marks: dict[str, float | None] | None
    """The interval that is drawn beside the text, if there is one."""


class PageTable(NamedTuple):
    """A table as the template writes it."""

    headings: list[tuple[str, bool]]
    """The heading of each column, and whether the column holds labels."""
    rows: list[list[PageCell]]
    notes: Sequence[str]


@dataclass(frozen=True)
class Scale:
    """An axis that the intervals of a column share, from 0 to 100."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Find the place of a value."""
        return round(100 * (value - self.low) / (self.high - self.low or 1.0), 3)


def texts(kind: Kind, *values: object) -> Texts:
    """Write a cell in both ways."""
    return Texts(*(cell(kind, values, percent=percent).full for percent in (False, True)))


def page_table(table: Table) -> PageTable:
    """Write every cell of a table in both ways."""
    frame, both = table.frame, zip(rows_of(table, False), rows_of(table, True), strict=True)
    scales = []
    for column in table.columns:
        ends = [x for name in column.bar or () for x in frame[name].drop_nulls()]
        scales.append(Scale(min(ends), max(ends)) if ends else None)
    rows = []
    for values, (fractions, percents) in zip(frame.iter_rows(named=True), both, strict=True):
        cells = []
        for column, scale, one, other in zip(
            table.columns, scales, fractions, percents, strict=True
        ):
            text = Texts(one.full, other.full)
            sort = _sort_key(column.kind, [values[name] for name in column.sources])
            bar = [values[name] for name in column.bar or ()]
            drawn = None if scale is None or None in bar else marks(scale, *bar)
            tint = column.tint(one.full)
            cells.append(PageCell(text, sort, column.is_label, one.bold, tint, drawn))
        rows.append(cells)
    heads = zip(headings(table, " "), table.columns, strict=True)
    return PageTable([(head, column.is_label) for head, column in heads], rows, table.notes)


def _sort_key(kind: Kind, values: Sequence[Any]) -> float | str | None:
    """Sort intervals by their width, and other numbers by themselves; last where there is none."""
    if kind in ("name", "word", "flag"):
        return None
    if None in values:
        return ""
    return float(values[1] - values[0] if kind in ("ranks", "span", "interval") else values[0])


def marks(
    scale: Scale, start: float, end: float, dot: float, cross: float | None = None
) -> dict[str, float | None]:
    """Return the places of an interval, its dot, and a cross if it is visibly elsewhere."""
    apart = cross is not None and abs(scale.place(cross) - scale.place(dot)) >= APART
    return {
        "start": scale.place(start),
        "end": scale.place(end),
        "dot": scale.place(dot),
        "cross": scale.place(cross) if apart and cross is not None else None,
    }
