"""Tables that fit into the width of a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from deadheat.tables.cells import Cell
from deadheat.tables.table import Column, Table
from deadheat.tables.text import headings, rows_of

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement

ENOUGH = 12
"""Characters that names keep while there are columns to hide."""
LEAST = 6
"""Characters that names keep when no column is left to hide."""
_FRAME = 3
"""Characters around the text of a column."""
_STYLES = {"good": "green", "bad": "bold red", "open": "yellow"}


@dataclass(frozen=True)
class TerminalTable:
    """A table that adapts to the width of the terminal.

    In a narrow terminal, names that all rows share move to the title, columns are hidden in the
    order of their `Column.drop_priority`, and names are shortened in the middle; the last line
    names the hidden columns.
    """

    table: Table
    percent: bool = False

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Measure the width of the whole table."""
        from rich.measure import Measurement

        whole = _Form(self.table, self.percent)
        return Measurement(min(whole.width(), options.max_width), whole.width())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print the widest form that fits."""
        form, name_length = fit(self.table, self.percent, options.max_width)
        yield form.built(name_length, grey=console.color_system is not None)


@dataclass(frozen=True)
class _Form:
    """A table as text, with some or all of its columns."""

    table: Table
    percent: bool

    @cached_property
    def rows(self) -> list[list[tuple[Cell, bool]]]:
        """Cells as text, and whether each is bold."""
        return list(rows_of(self.table, self.percent))

    @cached_property
    def names(self) -> list[set[str]]:
        """The texts of each column of names."""
        of = [i for i, column in enumerate(self.table.columns) if column.kind == "name"]
        return [{row[i][0].full for row in self.rows} for i in of]

    @cached_property
    def _widths(self) -> list[tuple[int, int, bool]]:
        """Per column the width of its longest text and of its heading, and whether it has names."""
        from rich.cells import cell_len

        return [
            (
                max((cell_len(row[i][0].full) for row in self.rows), default=0),
                max(map(cell_len, heading.split("\n"))),
                self.table.columns[i].kind == "name",
            )
            for i, heading in enumerate(headings(self.table, "\n"))
        ]

    @property
    def longest_name(self) -> int:
        """The width of the longest name."""
        return max((longest for longest, _, is_name in self._widths if is_name), default=0)

    def width(self, name_length: int = 1000) -> int:
        """Give the width of the table with names of at most this length."""
        return 1 + sum(
            _FRAME + max(heading, min(longest, name_length) if is_name else longest)
            for longest, heading, is_name in self._widths
        )

    def built(self, name_length: int, *, grey: bool) -> Any:
        """Build what rich prints."""
        from rich.table import Table as RichTable
        from rich.text import Text

        table = self.table
        title = Text(table.title, "table.title", justify="left") if table.title else None
        caption = Text("\n".join(table.notes), "table.caption", justify="left")
        built = RichTable(
            title=title,
            caption=caption if table.notes else None,
            width=self.width(name_length),  # or rich would take it from the names
        )
        shorten = all(_distinct(texts, name_length) for texts in self.names)
        for column, heading in zip(table.columns, headings(table, "\n"), strict=True):
            folded = column.kind == "name" and not shorten
            built.add_column(
                Text(heading),  # a name in square brackets is no markup
                justify="left" if column.is_label else "right",
                no_wrap=not folded,
                overflow="fold" if folded else "ellipsis",
            )

        def text(cell: Cell, bold: bool, column: Column) -> Text:
            if column.kind == "name":
                return Text(shortened(cell.full, name_length) if shorten else cell.full)
            style = "bold" if bold else _STYLES.get(column.tint(cell.full) or "", "")
            if not (grey and cell.faint):
                return Text(str(cell), style)
            return Text.assemble((cell.significant, style), (cell.faint, "dim"))

        groups = [list(rows) for _, rows in groupby(self.rows, lambda row: row[: table.grouped])]
        for group in groups:
            for i, row in enumerate(group):
                shown = list(map(text, *zip(*row, strict=True), table.columns))
                if i:  # what the rows of a group share stands in its first
                    shown[: table.grouped] = [Text()] * table.grouped
                built.add_row(*shown)
            if table.grouped and len(groups) < len(self.rows):
                built.add_section()
        return built


def fit(table: Table, percent: bool, width: int) -> tuple[_Form, int]:
    """Choose the widest form that fits, and the length of its names."""
    for narrower in _forms(table, percent):
        form = _Form(narrower, percent)
        lengths = range(max(form.longest_name, LEAST), LEAST, -1)
        length = next((n for n in lengths if form.width(n) <= width), LEAST)
        if form.width(length) <= width and length >= min(form.longest_name, ENOUGH):
            break
    return form, length


def _forms(table: Table, percent: bool) -> Iterator[Table]:
    """Give the table, then narrower and narrower forms of it."""
    yield table
    if table.narrow is not None:
        yield from _forms(table.narrow, percent)
        return
    table = _shared_names_above(_broken_headings(table, percent), percent)
    yield table
    every = table
    while turns := {column.drop_priority for column in table.columns} - {0}:
        gone = [column for column in table.columns if column.drop_priority == min(turns)]
        kept = [column.instead if column in gone else column for column in table.columns]
        table = replace(table, columns=[column for column in kept if column is not None])
        yield _with_footer(table, every)
    while len(values := [column for column in table.columns if not column.is_label]) > 1:
        table = replace(table, columns=[c for c in table.columns if c is not values[-1]])
        yield _with_footer(table, every)


def _with_footer(table: Table, every: Table) -> Table:
    """Add a note that names the hidden columns."""
    shown = {source for column in table.columns for source in column.sources}
    hidden = [
        " ".join(column.heading.split())
        for column in every.columns
        if not shown.issuperset(column.sources)
    ]
    if not hidden:
        return table
    footer = f"hidden for lack of room: {', '.join(hidden)} (--wide shows all)"
    return replace(table, notes=[*table.notes, footer])


def _broken_headings(table: Table, percent: bool) -> Table:
    """Break headings between words where they are wider than their cells."""
    rows = list(rows_of(table, percent))
    columns = []
    for i, column in enumerate(table.columns):
        below = max((len(row[i][0].full) for row in rows), default=1)
        room = max(below, *map(len, column.heading.split()))
        columns.append(replace(column, title="\n".join(textwrap.wrap(column.heading, room))))
    return replace(table, columns=columns)


def _shared_names_above(table: Table, percent: bool) -> Table:
    """Move a name that all rows share to the title."""
    rows = list(rows_of(table, percent))
    shared = [
        column
        for i, column in enumerate(table.columns)
        if column.kind == "name" and len(rows) > 1 and len({row[i][0] for row in rows}) == 1
    ]
    said = [
        f"{' '.join(filter(None, (c.over, *c.heading.split())))} {rows[0][i][0].full}"
        for i, c in enumerate(table.columns)
        if c in shared
    ]
    return replace(
        table,
        columns=[column for column in table.columns if column not in shared],
        title=" · ".join(filter(None, (table.title, *said))),
        grouped=sum(column not in shared for column in table.columns[: table.grouped]),
    )


def shortened(name: str, length: int) -> str:
    """Leave out the middle of a name that is too long.

    >>> shortened("cross-encoder-bf16-native", 12), shortened("bm25", 12)
    ('cross-…ative', 'bm25')
    """
    from rich.cells import cell_len

    if cell_len(name) <= length:
        return name
    front, back = name[: length // 2], name[-((length - 1) // 2) :]
    while cell_len(front) + 1 + cell_len(back) > length:  # letters of double width
        front, back = (front[:-1], back) if len(front) > len(back) else (front, back[1:])
    return f"{front}…{back}"


def _distinct(names: set[str], length: int) -> bool:
    """Whether names that are shortened to this length remain distinct."""
    return len({shortened(name, length) for name in names}) == len(names)
