"""A table of text, and every way to write it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from deadheat.errors import InputError

STYLES = ("table", "markdown", "latex", "csv", "json", "html")
WORDS = (
    *("run", "query", "measure", "A", "B", "system", "verdict", "format", "tied by"),
    *("dataset", "model", "model dtype", "regime"),
)
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
    stacked: bool = False
    """Whether long titles of columns are broken into lines, in a terminal."""
    bold: frozenset[tuple[int, int]] = frozenset()
    """Cells that stand out, as (row, column)."""

    def render(self, style: str) -> str:
        """Write the table in one of `STYLES` that show text."""
        if style == "table":
            return plain(self.rich())
        if style == "markdown":
            return self.markdown()
        if style == "latex":
            return self.latex()
        if style == "html":
            return self._html()
        raise InputError(f"unknown table style {style!r}: use one of {', '.join(STYLES)}")

    def rich(self) -> Table:
        """Build the table for a terminal."""
        # As Text: a name in square brackets is no markup.
        title = Text(self.title, "table.title", justify="left") if self.title else None
        caption = Text("\n".join(self.notes), "table.caption", justify="left")
        table = Table(title=title, caption=caption if self.notes else None)
        for name in self.header:
            words = name in WORDS
            heading = name.replace(" ", "\n") if self.stacked else name
            table.add_column(heading, justify="left" if words else "right", no_wrap=not words)
        before: Sequence[str] = ()
        for i, row in enumerate(self.rows):
            group, rest = row[: self.grouped], row[self.grouped :]
            if self.grouped and before and group != before:
                table.add_section()
            shown = [""] * self.grouped if group == before else group
            before = group
            cells = enumerate([*shown, *rest])
            table.add_row(*(Text(c, "bold" if (i, j) in self.bold else "") for j, c in cells))
        return table

    def _marked(self, line: Callable[[Sequence[str]], list[str]], mark: str) -> list[list[str]]:
        """Rows written by `line`, with `mark` around the cells that stand out."""
        return [
            [mark.format(c) if (i, j) in self.bold else c for j, c in enumerate(line(row))]
            for i, row in enumerate(self.rows)
        ]

    def markdown(self) -> str:
        """Write a Markdown table."""

        def escaped(cells: Sequence[str]) -> list[str]:
            return [re.sub(r"([\\|<*`])", r"\\\1", " ".join(cell.split())) for cell in cells]

        rule = ["---" if name in WORDS else "---:" for name in self.header]
        lines = [escaped(self.header), rule, *self._marked(escaped, "**{}**")]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def latex(self, heading: Sequence[str] | None = None) -> str:
        """Write a LaTeX table (booktabs); `heading` are lines in place of the header."""
        columns = "".join("l" if name in WORDS else "r" for name in self.header)
        lines = heading or [" & ".join(map(latex_text, self.header))]
        rows = self._marked(lambda row: list(map(latex_text, row)), r"\textbf{{{}}}")
        body = "\n".join(
            [*(f"{line} \\\\" for line in lines), r"\midrule"]
            + [" & ".join(row) + r" \\" for row in rows]
        )
        return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}"

    def _html(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"

        def escaped(cells: Sequence[str]) -> list[str]:
            return list(map(escape, cells))

        notes = "<br>".join(escaped(self.notes))
        body = "".join(line(row, "td") for row in self._marked(escaped, "<b>{}</b>"))
        return (
            f"<table><caption>{escape(self.title)}</caption><thead>"
            f"{line(escaped(self.header), 'th')}</thead><tbody>{body}</tbody></table>"
            f"<p><small>{notes}</small></p>"
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
    "×": r"$\times$",
    "<": "$<$",
    ">": "$>$",
}


def latex_text(text: str) -> str:
    """Write plain text in LaTeX."""
    return "".join(_LATEX.get(character, character) for character in text)


def plain(content: RenderableType, width: int | None = None) -> str:
    """Print to text without colour, as wide as the content is unless told."""
    output = io.StringIO()

    def console(width: int) -> Console:
        return Console(
            file=output,
            width=width,
            color_system=None,
            legacy_windows=False,
            force_jupyter=False,  # rich would show it in the notebook and return nothing
        )

    console(width or console(1000).measure(content).maximum).print(content)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


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
