"""A table of text, and every way to write it."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deadheat.errors import InputError

STYLES = ("table", "markdown", "latex", "csv", "json", "html")
WORDS = ("run", "query", "measure", "A", "B", "system", "verdict")
"""Columns of words: flush left, and wrapped in a narrow terminal."""


@dataclass(frozen=True)
class Grid:
    """Cells as text under a header."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str
    notes: Sequence[str] = ()
    grouped: int = 0
    """Rows that agree in this many first columns stand together, in a terminal."""

    def render(self, style: str) -> str:
        """Write the table in one of `STYLES` that show text."""
        if style == "table":
            return self._plain()
        if style == "markdown":
            return self._markdown()
        if style == "latex":
            return self._latex()
        if style == "html":
            return self._html()
        raise InputError(f"unknown table style {style!r}: use one of {', '.join(STYLES)}")

    def rich(self) -> Table:
        """Build the table for a terminal."""
        # As Text: a name in square brackets is no markup.
        title = Text(self.title, "table.title", justify="left")
        caption = Text("\n".join(self.notes), "table.caption", justify="left")
        table = Table(title=title, caption=caption)
        for name in self.header:
            words = name in WORDS
            table.add_column(name, justify="left" if words else "right", no_wrap=not words)
        before: Sequence[str] = ()
        for row in self.rows:
            group, rest = row[: self.grouped], row[self.grouped :]
            if self.grouped and before and group != before:
                table.add_section()
            shown = [""] * self.grouped if group == before else group
            before = group
            table.add_row(*map(Text, [*shown, *rest]))
        return table

    def _plain(self) -> str:
        table = self.rich()
        output = io.StringIO()

        def console(width: int) -> Console:
            return Console(
                file=output,
                width=width,
                color_system=None,
                legacy_windows=False,
                force_jupyter=False,  # rich would show it in the notebook and return nothing
            )

        console(console(1000).measure(table).maximum).print(table)
        return "\n".join(line.rstrip() for line in output.getvalue().splitlines())

    def _markdown(self) -> str:
        def line(cells: Sequence[str]) -> str:
            escaped = (re.sub(r"([\\|<*`])", r"\\\1", " ".join(cell.split())) for cell in cells)
            return "| " + " | ".join(escaped) + " |"

        rule = ["---" if name in WORDS else "---:" for name in self.header]
        return "\n".join([line(self.header), line(rule), *map(line, self.rows)])

    def _latex(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return " & ".join("".join(_LATEX.get(c, c) for c in cell) for cell in cells) + r" \\"

        columns = "".join("l" if name in WORDS else "r" for name in self.header)
        body = "\n".join(map(line, self.rows))
        return (
            f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{line(self.header)}\n\\midrule\n{body}\n"
            "\\bottomrule\n\\end{tabular}"
        )

    def _html(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        notes = "<br>".join(map(escape, self.notes))
        body = "".join(line(row, "td") for row in self.rows)
        return (
            f"<table><caption>{escape(self.title)}</caption><thead>{line(self.header, 'th')}"
            f"</thead><tbody>{body}</tbody></table><p><small>{notes}</small></p>"
        )


_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "−": "$-$",
    "·": r"$\cdot$",
    "≈": r"$\approx$",
    "<": "$<$",
    ">": "$>$",
}


def number(value: float | None, *, percent: bool = False, signed: bool = False) -> str:
    """Write a value of a measure: four decimals, or a percentage with two."""
    if value is None:
        return "–"
    text = f"{100 * value:.2f}" if percent else f"{value:.4f}"
    text = text.removeprefix("-") if float(text) == 0 else text
    return f"+{text}" if signed and float(text) > 0 else text


def counted_queries(*counts: int) -> str:
    """How many queries, from the fewest to the most."""
    number = "–".join(f"{count:,}" for count in dict.fromkeys((min(counts), max(counts))))
    return f"{number} {'query' if max(counts) == 1 else 'queries'}"
