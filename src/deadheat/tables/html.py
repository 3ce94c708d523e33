"""Tables as HTML with inline styles, for notebooks, mails and pages."""

from __future__ import annotations

from html import escape

from deadheat.tables.cells import Cell, grouped_rows, headings
from deadheat.tables.table import Column, Table

_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
_CAPTION = "text-align:left;font-weight:600;padding:4px 0"
_CELL = "padding:2px 10px;vertical-align:top;white-space:nowrap;text-align:"
_LINE = ";border-top:1px solid #8886"
_TINTS = {"good": "#1a7f37", "bad": "#d1242f", "open": "#9a6700"}


def html_table(table: Table, percent: bool) -> str:
    """Return a table with aligned numbers, and its notes below."""
    styles = [_CELL + ("left" if column.is_label else "right") for column in table.columns]
    heads = "".join(
        f'<th style="{style}">{escape(heading)}</th>'
        for style, heading in zip(styles, headings(table, " "), strict=True)
    )
    lines = []
    for group in grouped_rows(table, percent):
        for n, row in enumerate(group):
            line = "" if n else _LINE
            cells = (
                f'<td style="{style}{line}">{_content(column, cell)}</td>'
                for style, column, cell in zip(styles, table.columns, row, strict=True)
            )
            lines.append(f"<tr>{''.join(cells)}</tr>")
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
