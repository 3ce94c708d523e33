"""Tables as HTML with inline styles, for notebooks, mails and pages."""

from __future__ import annotations

from html import escape
from itertools import groupby

from deadheat.tables.cells import Cell, headings, rows_of
from deadheat.tables.table import Column, Table

_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
_CAPTION = "text-align:left;font-weight:600;padding:4px 0"
_CELL = "padding:2px 10px;vertical-align:top;white-space:nowrap;text-align:"
_LINE = ";border-top:1px solid #8886"
_TINTS = {"good": "#1a7f37", "bad": "#d1242f", "open": "#9a6700"}
_WIDTH = 90
"""The width of a bar in pixels."""


def html_table(table: Table, percent: bool) -> str:
    """Write a table with aligned numbers, and its notes below."""
    styles = [_CELL + ("left" if column.is_label else "right") for column in table.columns]
    bars = [_bars(table, column) for column in table.columns]
    lines = []
    rows = enumerate(rows_of(table, percent))
    for _, group in groupby(rows, lambda row: row[1][: table.grouped]):
        for n, (place, row) in enumerate(group):
            cells = []
            for i, column in enumerate(table.columns):
                content = "" if n and i < table.grouped else _content(column, row[i])
                line = "" if n else _LINE
                cells.append(f'<td style="{styles[i]}{line}">{content}{bars[i][place]}</td>')
            lines.append(f"<tr>{''.join(cells)}</tr>")
    heads = "".join(
        f'<th style="{style}">{escape(heading)}</th>'
        for style, heading in zip(styles, headings(table, " "), strict=True)
    )
    return (
        f'<table style="{_TABLE}"><caption style="{_CAPTION}">{escape(table.title)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        f"<p><small>{'<br>'.join(map(escape, table.notes))}</small></p>"
    )


def _content(column: Column, cell: Cell) -> str:
    text = escape(cell.significant)
    if cell.faint:
        text += f'<span style="opacity:.45">{escape(cell.faint)}</span>'
    if (tint := column.tint(cell.full)) is not None:
        text = f'<span style="color:{_TINTS[tint]};font-weight:600">{text}</span>'
    return f"<b>{text}</b>" if cell.bold else text


def _bars(table: Table, column: Column) -> list[str]:
    """Draw the interval of each row, with a tick in it, on an axis that the column shares.

    A line marks 0 where the axis passes it.
    """
    values = [] if column.bar is None else table.frame.select(column.bar).rows()
    known = [row for row in values if None not in row]
    if not known:
        return [""] * len(table.frame)
    lowest, highest = float(min(row[0] for row in known)), float(max(row[1] for row in known))
    room = (highest - lowest) * 0.05 or 0.01
    begin, end = lowest - room, highest + room

    def place(value: float) -> float:
        return _WIDTH * (value - begin) / (end - begin)

    def box(left: float, width: float, top: int, height: int, colour: str) -> str:
        return (
            f'<span style="position:absolute;left:{left:.1f}px;width:{width:.1f}px;'
            f'top:{top}px;height:{height}px;background:{colour}"></span>'
        )

    def bar(low: float, high: float, middle: float) -> str:
        parts = box(0, _WIDTH, 6, 1, "#8886")
        if begin < 0 < end:
            parts += box(place(0), 1, 0, 13, "#888")
        parts += box(place(low), max(place(high) - place(low), 1), 3, 7, "#4c8dd688")
        parts += box(place(middle) - 1, 2, 1, 11, "#1f5fa8")
        return (
            f'<span style="position:relative;display:inline-block;width:{_WIDTH}px;height:13px;'
            f'margin-left:8px;vertical-align:middle">{parts}</span>'
        )

    return ["" if None in row else bar(*row) for row in values]
