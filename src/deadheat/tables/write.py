"""Tables as text: terminal, Markdown, LaTeX, CSV, HTML, JSON."""

from __future__ import annotations

import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from deadheat.errors import InputError, printable
from deadheat.tables.cells import Cell, grouped_rows, headings, rows_of
from deadheat.tables.html import html_table
from deadheat.tables.table import Column, Heading, Prose, Table, Verbatim
from deadheat.tables.terminal import TerminalTable, fit

if TYPE_CHECKING:
    from rich.console import Group

Part = str | Table
"""A part of a document: a sentence, a heading or a table."""
P = TypeVar("P", bound=Part)


def render(
    parts: Sequence[Part], style: str, *, percent: bool = False, width: int | None = None
) -> str:
    """Return sentences and tables as text in one of `STYLES`.

    Parameters
    ----------
    parts
        Sentences and tables, in order. CSV and JSON contain only the frames of the tables.
    percent
        Whether to print 73.53 for 0.7353; CSV and JSON never do. Default: False.
    width
        Width of the terminal in columns. Default: the width of the tables.
    """
    if style not in STYLES:
        raise InputError(f"unknown table style {style!r}: use one of {', '.join(STYLES)}")
    if style == "table":
        return _plain(rich_parts(parts, percent=percent), width)
    frames = [part.frame for part in parts if isinstance(part, Table)]
    if style == "csv":
        return "\n\n".join(frame.write_csv().rstrip("\n") for frame in frames)
    if style == "json":
        rows = [frame.to_dicts() for frame in frames]
        return json.dumps(rows[0] if len(rows) == 1 else rows, indent=1, ensure_ascii=False)
    write_table, write_sentence = _WRITERS[style]
    if len(parts) == 1 and frames:  # a single table needs no heading
        parts = [replace(part, title="") for part in parts if isinstance(part, Table)]
    return "\n\n".join(
        write_table(part, percent) if isinstance(part, Table) else write_sentence(part)
        for part in map(_printable, parts)
    )


def rich_parts(parts: Sequence[Part], *, percent: bool = False) -> Group:
    """Return the parts for rich to print; tables adapt to the width of the terminal."""
    from rich.console import Group
    from rich.text import Text

    shown: list[str | Text | TerminalTable] = []
    for part in map(_printable, parts):
        if shown:
            shown.append("")
        if isinstance(part, Table):
            shown.append(TerminalTable(part, percent))
        else:  # as Text: square brackets in a name are not markup
            shown.append(Text(part, "bold" if isinstance(part, Heading) else ""))
    return Group(*shown)


class Printable(ABC):
    """Base class of results that print as sentences and tables in every style.

    Further options of a method are those of the class's `parts` or `to_dict`.
    """

    @abstractmethod
    def parts(self, *args: Any, **options: Any) -> Sequence[Part]:
        """Return the sentences and tables, in the order of printing."""

    @abstractmethod
    def to_dict(self, *args: Any, **options: Any) -> dict[str, object]:
        """Return everything as plain numbers, lists and strings."""

    def to_json(self, **options: Any) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(**options), indent=1, ensure_ascii=False)

    def to_csv(self, *args: Any, **options: Any) -> str:
        """Return comma-separated values in full precision."""
        return self._render("csv", **options)

    def to_markdown(self, *, percent: bool = False, **options: Any) -> str:
        """Return Markdown; `percent` writes 73.53 for 0.7353."""
        return self._render("markdown", percent=percent, **options)

    def to_latex(self, *, percent: bool = False, **options: Any) -> str:
        """Return LaTeX tables (booktabs); `percent` writes 73.53 for 0.7353."""
        return self._render("latex", percent=percent, **options)

    def _render(self, style: str, *, percent: bool = False, **options: Any) -> str:
        return render(self.parts(**options), style, percent=percent)

    def __str__(self) -> str:
        return self._render("table")

    def __rich__(self) -> Group:
        """Let rich print sentences and tables in colour."""
        return rich_parts(self.parts())

    def _repr_html_(self) -> str:
        return self._render("html")


def _plain(content: Group, width: int | None) -> str:
    """Return text without colour. Default width: that of the content."""
    from rich.console import Console

    output = io.StringIO()
    console = Console(
        file=output,
        width=1000,
        color_system=None,
        legacy_windows=False,
        force_jupyter=False,  # rich would show it in the notebook and return nothing
    )
    console.width = width or console.measure(content).maximum
    console.print(content)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


def _printable(part: P) -> P:
    """Escape control characters in titles, notes and sentences; `rows_of` does so in cells."""
    if isinstance(part, Table):
        notes = [printable(note, keep="\n") for note in part.notes]
        return replace(part, title=printable(part.title), notes=notes)
    return type(part)(printable(part, keep="\n"))


def _markdown_text(text: str) -> str:
    """Escape a line of text in Markdown: emphasis, links and HTML."""
    text = re.sub(r"([\\|<*`&]|\](?=[(\[:]))", r"\\\1", " ".join(text.split()))
    text = re.sub(r"(?i)\b(https?|ftp)://", r"\1\://", text)  # some readers link bare addresses
    return re.sub(r"(?i)\b(www)\.", r"\1\.", text)


def _markdown(table: Table, percent: bool) -> str:
    lines = [
        map(_markdown_text, headings(table, " ")),
        ("---" if column.is_label else "---:" for column in table.columns),
    ]
    for row in rows_of(table, percent):
        texts = ((_markdown_text(str(cell)), cell.bold) for cell in row)
        lines.append(f"**{text}**" if bold else text for text, bold in texts)
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    title = [f"## {_markdown_text(table.title)}"] if table.title else []
    return "\n\n".join([*title, rows, *map(_markdown_text, table.notes)])


def _markdown_sentence(text: str) -> str:
    if isinstance(text, Verbatim):
        return "\n".join(f"    {line}" for line in text.split("\n"))
    escaped = "\n".join(map(_markdown_text, text.split("\n")))
    return f"# {escaped}" if isinstance(text, Heading) else escaped


PAGE = 95
"""Largest row of a LaTeX table, in characters: the full width of a two-column page at 10 pt."""
_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {
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
        "|": r"\textbar{}",
        "…": r"\dots{}",
    }
)


def _latex_text(text: str) -> str:
    escaped = " ".join(printable(text).split()).translate(_LATEX)
    # After the end of a line these would be its arguments.
    return f"{{{escaped[0]}}}{escaped[1:]}" if escaped.startswith(("[", "*")) else escaped


def _latex_cell(cell: Cell) -> str:
    text = _latex_text(cell.significant)
    if cell.faint:
        text += rf"\textcolor{{gray}}{{{_latex_text(cell.faint)}}}"
    return rf"\textbf{{{text}}}" if cell.bold else text


def _latex_heading(columns: Sequence[Column]) -> list[str]:
    """Return one line of headings, and a line above it if columns share a heading."""
    below = []
    for column in columns:
        words = [_latex_text(line) for line in column.heading.split("\n")]
        side, stacked = "l" if column.is_label else "r", r" \\ ".join(words)
        below.append(rf"\shortstack[{side}]{{{stacked}}}" if len(words) > 1 else stacked)
    if not any(column.over for column in columns):
        return [" & ".join(below)]
    above = []
    for over, group in groupby(columns, key=lambda column: column.over):
        n = len(list(group))
        shared = rf"\multicolumn{{{n}}}{{c}}{{{_latex_text(over)}}}"
        above += [shared] if over and n > 1 else [_latex_text(over)] * n
    return [" & ".join(above), " & ".join(below)]


def _latex(table: Table, percent: bool) -> str:
    """Write a LaTeX table (booktabs) that fits a page, its notes as comments below.

    A table that is too wide loses the columns that are hidden first in a narrow terminal. Groups of
    rows are ruled off, and digits that are not significant are grey.
    """
    table = fit(table, percent, PAGE, name_length=1000, way_out="csv has all")
    lines = [
        *([_comment(table.title)] if table.title else []),
        rf"\begin{{tabular}}{{{''.join('l' if c.is_label else 'r' for c in table.columns)}}}",
        r"\toprule",
        *(rf"{heading} \\" for heading in _latex_heading(table.columns)),
    ]
    for group in grouped_rows(table, percent):
        lines.append(r"\midrule")
        lines += [" & ".join(map(_latex_cell, row)) + r" \\" for row in group]
    lines += [r"\bottomrule", r"\end{tabular}", *map(_comment, table.notes)]
    text = "\n".join(lines)
    packages = "booktabs,xcolor" if r"\textcolor" in text else "booktabs"
    return f"% \\usepackage{{{packages}}}\n{text}"


def _comment(text: str) -> str:
    return "% " + " ".join(text.split())


def _latex_sentence(text: str) -> str:
    if isinstance(text, Verbatim):
        return text
    return _latex_text(text) if isinstance(text, Prose) else _comment(text)


def _html_sentence(text: str) -> str:
    tag = {Heading: "h1", Verbatim: "pre"}.get(type(text), "p")
    return f"<{tag}>{escape(text)}</{tag}>"


_WRITERS: dict[str, tuple[Callable[[Table, bool], str], Callable[[str], str]]] = {
    "markdown": (_markdown, _markdown_sentence),
    "latex": (_latex, _latex_sentence),
    "html": (html_table, _html_sentence),
}
"""Per style: the writers of tables and of sentences."""
STYLES = ("table", "markdown", "latex", "csv", "json", "html")
"""The styles in which a table can be written."""
