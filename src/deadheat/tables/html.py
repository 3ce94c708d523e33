"""Tables as HTML with inline styles, for notebooks, mails and pages."""

from __future__ import annotations

from html import escape
from itertools import groupby

from deadheat.tables.cells import Cell
from deadheat.tables.table import Column, Table
from deadheat.tables.text import headings, rows_of

_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
_CAPTION = "text-align:left;font-weight:600;padding:4px 0"
_CELL = "padding:2px 10px;vertical-align:top;white-space:nowrap"
_LINE = ";border-top:1px solid #8886"
_TINTS = {"good": "#1a7f37", "bad": "#d1242f", "open": "#9a6700"}
_WIDTH = 90
"""The width of a bar in pixels."""


def html_table(table: Table, percent: bool) -> str:
    """Write a table with aligned numbers, and its notes below."""
    scales = {i: _scale(table, column) for i, column in enumerate(table.columns) if column.bar}
    frame = list(table.frame.iter_rows(named=True))
    lines = []
    written = zip(rows_of(table, percent), frame, strict=True)
    for _, group in groupby(written, lambda row: row[0][: table.grouped]):
        for n, (row, values) in enumerate(group):
            cells = []
            for i, (column, (cell, bold)) in enumerate(zip(table.columns, row, strict=True)):
                content = "" if n and i < table.grouped else _content(column, cell, bold)
                if column.bar is not None:
                    content += _bar([values[name] for name in column.bar], scales[i])
                align = "left" if column.is_label else "right"
                line = "" if n else _LINE
                cells.append(f'<td style="{_CELL};text-align:{align}{line}">{content}</td>')
            lines.append(f"<tr>{''.join(cells)}</tr>")
    heads = "".join(
        f'<th style="{_CELL};text-align:{"left" if column.is_label else "right"}">'
        f"{escape(heading)}</th>"
        for column, heading in zip(table.columns, headings(table, " "), strict=True)
    )
    return (
        f'<table style="{_TABLE}"><caption style="{_CAPTION}">{escape(table.title)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        f"<p><small>{'<br>'.join(map(escape, table.notes))}</small></p>"
    )


def _content(column: Column, cell: Cell, bold: bool) -> str:
    text = escape(cell.significant)
    if cell.faint:
        text += f'<span style="opacity:.45">{escape(cell.faint)}</span>'
    if (tint := column.tint(cell.full)) is not None:
        text = f'<span style="color:{_TINTS[tint]};font-weight:600">{text}</span>'
    return f"<b>{text}</b>" if bold else text


def _scale(table: Table, column: Column) -> tuple[float, float]:
    """The ends of the axis that all bars of a column share."""
    low, high, _ = column.bar or ("", "", "")
    lowest, highest = table.frame[low].min(), table.frame[high].max()
    if not (isinstance(lowest, float) and isinstance(highest, float)):
        return 0.0, 1.0
    room = (highest - lowest) * 0.05 or 0.01
    return lowest - room, highest + room


def _bar(values: list[float | None], scale: tuple[float, float]) -> str:
    """Draw an interval with a tick in it; a line at 0 where the axis passes it."""
    low, high, middle = values
    if low is None or high is None or middle is None:
        return ""
    begin, end = scale

    def place(value: float) -> float:
        return _WIDTH * (value - begin) / (end - begin)

    def box(left: float, width: float, top: int, height: int, colour: str) -> str:
        return (
            f'<span style="position:absolute;left:{left:.1f}px;width:{width:.1f}px;'
            f'top:{top}px;height:{height}px;background:{colour}"></span>'
        )

    parts = box(0, _WIDTH, 6, 1, "#8886")
    if begin < 0 < end:
        parts += box(place(0), 1, 0, 13, "#888")
    parts += box(place(low), max(place(high) - place(low), 1), 3, 7, "#4c8dd688")
    parts += box(place(middle) - 1, 2, 1, 11, "#1f5fa8")
    return (
        f'<span style="position:relative;display:inline-block;width:{_WIDTH}px;height:13px;'
        f'margin-left:8px;vertical-align:middle">{parts}</span>'
    )
