"""Headings and cells of a table as text, for every style."""

from __future__ import annotations

from collections.abc import Iterator

from deadheat.errors import printable
from deadheat.tables.cells import Cell, cell
from deadheat.tables.table import Table


def rows_of(table: Table, percent: bool) -> Iterator[list[tuple[Cell, bool]]]:
    """Give rows of cells as text, and whether each is bold."""
    for row in table.frame.iter_rows(named=True):
        cells = []
        for column in table.columns:
            text = cell(column.kind, [row[name] for name in column.sources], percent=percent)
            if column.is_label:
                text = Cell(printable(column.words.get(text.full, text.full)))
            cells.append((text, bool(column.bold and row[column.bold])))
        yield cells


def headings(table: Table, join: str) -> list[str]:
    """Give the heading of each column, after the heading that it shares with others."""
    return [
        join.join(printable(text, keep="\n") for text in (column.over, column.heading) if text)
        for column in table.columns
    ]
