"""Tables that fit into the width of a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import TYPE_CHECKING

from deadheat._internal.lazy import pl
from deadheat.tables.cells import Cell, grouped_rows, headings, rows_of
from deadheat.tables.table import Column, Table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement

NAME = 12
"""Names are not folded below this many characters while there are columns to hide."""
_FRAME = 3
"""Characters around the text of a column."""
_STYLES = {"good": "green", "bad": "bold red", "open": "yellow"}


@dataclass(frozen=True)
class TerminalTable:
    """A table that adapts to the width of the terminal.

    In a narrow terminal, names that all rows share move to the title, columns are hidden in the
    order of their `Column.drop_priority`, and words that all names share are left out. The last
    line lists the hidden columns.
    """

    table: Table
    percent: bool = False

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Measure the width of the whole table."""
        from rich.measure import Measurement

        width = _width(self.table, self.percent)
        return Measurement(min(width, options.max_width), width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print the widest form that fits; names that are too long for it are folded."""
        from rich.table import Table as RichTable
        from rich.text import Text

        table = fit(self.table, self.percent, options.max_width)
        caption = Text("\n".join(table.notes), "table.caption", justify="left")
        built = RichTable(
            title=Text(table.title, "table.title", justify="left") if table.title else None,
            caption=caption if table.notes else None,
            width=min(options.max_width, _width(table, self.percent)),
        )
        for column, heading in zip(table.columns, headings(table, "\n"), strict=True):
            built.add_column(
                Text(heading),  # square brackets in a name are not markup
                justify="left" if column.is_label else "right",
                no_wrap=column.kind != "name",
                overflow="fold" if column.kind == "name" else "ellipsis",
            )

        def text(cell: Cell, column: Column) -> Text:
            style = "bold" if cell.bold else _STYLES.get(column.tint(cell.full) or "", "")
            if console.color_system is None or not cell.faint:
                return Text(str(cell), style)
            return Text.assemble((cell.significant, style), (cell.faint, "dim"))

        for group in grouped_rows(table, self.percent):
            for row in group:
                built.add_row(*map(text, row, table.columns))
            built.add_section()
        yield built


def _width(table: Table, percent: bool, name_length: int = 1000) -> int:
    """Return the width of a table with names of at most a given length."""
    from rich.cells import cell_len

    rows = list(rows_of(table, percent))
    width = 1
    for i, heading in enumerate(headings(table, "\n")):
        longest = max((cell_len(row[i].full) for row in rows), default=0)
        if table.columns[i].kind == "name":
            longest = min(longest, name_length)
        width += _FRAME + max(longest, *map(cell_len, heading.split("\n")))
    return width


def fit(
    table: Table,
    percent: bool,
    width: int,
    name_length: int = NAME,
    way_out: str = "--wide shows all",
) -> Table:
    """Return the widest form of the table that fits; names are folded if necessary.

    Parameters
    ----------
    name_length
        Longer names lose their shared words, and may be folded to this length.
    way_out
        How to see hidden columns, for the note that lists them.
    """
    if _width(table, percent) <= width:
        return table
    if table.narrow is not None:
        return fit(table.narrow, percent, width, name_length, way_out)
    table = _strip_names(_condense(table, percent), name_length)
    columns, notes = list(table.columns), list(table.notes)
    while _width(replace(table, columns=columns), percent, name_length) > width:
        gone = _next_hidden(columns)
        if not gone:
            break
        kept = [column.instead if column in gone else column for column in columns]
        columns = [column for column in kept if column is not None]
    shown = {source for column in columns for source in column.sources}
    hidden = [column for column in table.columns if not shown.issuperset(column.sources)]
    if hidden:
        names = ", ".join(" ".join(column.heading.split()) for column in hidden)
        notes.append(f"hidden columns: {names} ({way_out})")
    return replace(table, columns=columns, notes=notes)


def _next_hidden(columns: Sequence[Column]) -> list[Column]:
    """Return the columns to hide next: those of the first priority, else the last value column."""
    if priorities := {column.drop_priority for column in columns} - {0}:
        return [column for column in columns if column.drop_priority == min(priorities)]
    return [column for column in columns if not column.is_label][1:][-1:]


def _condense(table: Table, percent: bool) -> Table:
    """Move names that all rows share to the title, and break headings wider than their cells."""
    rows = list(rows_of(table, percent))
    title, columns, grouped = [table.title], [], table.grouped
    for i, column in enumerate(table.columns):
        texts = {row[i].full for row in rows}
        if column.kind == "name" and len(rows) > 1 and len(texts) == 1:
            title.append(" ".join([column.over, *column.heading.split(), *texts]).strip())
            grouped -= i < table.grouped
        else:
            room = max(map(len, [*texts, "-", *column.heading.split()]))
            columns.append(replace(column, title="\n".join(textwrap.wrap(column.heading, room))))
    return replace(table, columns=columns, title=" · ".join(filter(None, title)), grouped=grouped)


def shorten_name(name: str, length: int) -> str:
    """Leave out the middle of a name that is too long.

    >>> shorten_name("cross-encoder-bf16-native", 12), shorten_name("bm25", 12)
    ('cross-…ative', 'bm25')
    """
    from rich.cells import cell_len, set_cell_size

    if cell_len(name) <= length:
        return name
    back = set_cell_size(name[::-1], (length - 1) // 2)[::-1]
    return f"{set_cell_size(name, length // 2)}…{back}"


def strip_shared(names: Iterable[str]) -> dict[str, str]:
    """Return names without the words that all of them begin and end with.

    >>> strip_shared(["reranker-bf16-native", "reranker-bf16-head"])
    {'reranker-bf16-native': '…-native', 'reranker-bf16-head': '…-head'}
    """
    distinct = list(dict.fromkeys(names))
    start = end = 0
    if len(distinct) > 1:
        start = _count_shared(distinct)
        end = _count_shared([name[start:][::-1] for name in distinct])
    return {
        name: "…" * (start > 0) + name[start : len(name) - end] + "…" * (end > 0)
        for name in distinct
    }


def _strip_names(table: Table, longest: int) -> Table:
    """Remove the shared words from names that are longer than `longest`."""
    frame = table.frame
    for column in table.columns:
        if column.kind == "name":
            names = frame[column.sources[0]].drop_nulls().to_list()
            if max(map(len, names), default=0) > longest:
                frame = frame.with_columns(pl.col(column.sources[0]).replace(strip_shared(names)))
    return replace(table, frame=frame)


def _count_shared(names: Sequence[str]) -> int:
    """Count the letters of the words that all names begin with, up to the mark after them."""
    shared = commonprefix(names)  # noqa: RUF071 (by letters, not by folders)
    return max(0, *(shared.rfind(mark) for mark in "-_./ "))
