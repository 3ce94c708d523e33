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
_BAR = "display:inline-block;width:90px;height:7px;margin-left:8px"


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
    """Draw the interval of each row on an axis that the column shares."""
    rows = [] if column.bar is None else table.frame.select(column.bar[:2]).rows()
    known = [end for row in rows for end in row if end is not None]
    if not known:
        return [""] * len(table.frame)
    begin, width = min(known), max(known) - min(known) or 1.0

    def bar(*ends: float) -> str:
        low, high = (f"{98 * (end - begin) / width + 2 * i:.1f}%" for i, end in enumerate(ends))
        shades = f"#8883 {low},#4c8dd6 {low} {high},#8883 {high}"
        return f'<span style="{_BAR};background:linear-gradient(90deg,{shades})"></span>'

    return ["" if None in row else bar(*row) for row in rows]
