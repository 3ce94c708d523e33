"""Tables as text: terminal, Markdown, LaTeX, CSV, HTML, JSON."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from deadheat.errors import InputError, printable
from deadheat.tables.html import html_table
from deadheat.tables.table import Column, Heading, Prose, Table, Verbatim
from deadheat.tables.terminal import TerminalTable
from deadheat.tables.text import headings, rows_of

if TYPE_CHECKING:
    from rich.console import RenderableType

Part = str | Table
"""A part of a document: a sentence, a heading or a table."""


def render(
    parts: Sequence[Part], style: str, *, percent: bool = False, width: int | None = None
) -> str:
    """Write sentences and tables in one of `STYLES`.

    Parameters
    ----------
    parts
        In the order they are read. CSV and JSON hold the frames of the tables alone.
    percent
        73.53 for 0.7353, in the styles for people.
    width
        Columns of the terminal; as wide as the tables are unless given.
    """
    if style not in STYLES:
        raise InputError(f"unknown table style {style!r}: use one of {', '.join(STYLES)}")
    if style == "table":
        return plain(rich_parts(parts, percent=percent), width)
    tables = [part for part in parts if isinstance(part, Table)]
    if style == "json":
        rows = [table.frame.to_dicts() for table in tables]
        return json.dumps(rows[0] if len(rows) == 1 else rows, indent=1, ensure_ascii=False)
    if style == "csv":
        return "\n\n".join(table.frame.write_csv().rstrip("\n") for table in tables)
    table_writer, sentence_writer = _WRITERS[style]
    parts, tables = list(map(_printable, parts)), list(map(_printable, tables))
    if len(parts) == 1 and tables:  # on its own it goes under a heading of the reader's
        return table_writer(replace(tables[0], title=""), percent)
    return "\n\n".join(
        table_writer(part, percent) if isinstance(part, Table) else sentence_writer(part)
        for part in parts
    )


def rich_parts(parts: Sequence[Part], *, percent: bool = False) -> RenderableType:
    """Build what rich prints to a terminal; tables fit themselves to its width."""
    from rich.console import Group
    from rich.text import Text

    shown: list[Any] = []
    for part in map(_printable, parts):
        if shown:
            shown.append("")
        if isinstance(part, Table):
            shown.append(TerminalTable(part, percent))
        else:  # as Text: a name in square brackets is no markup
            shown.append(Text(part, "bold" if isinstance(part, Heading) else ""))
    return Group(*shown)


def plain(content: RenderableType, width: int | None = None) -> str:
    """Print to text without colour, as wide as the content is unless told."""
    from rich.console import Console

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


P = TypeVar("P", bound=Part)


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
    escaped = _markdown_text
    lines = [
        [escaped(heading) for heading in headings(table, " ")],
        ["---" if column.is_label else "---:" for column in table.columns],
        *(
            [f"**{escaped(str(c))}**" if bold else escaped(str(c)) for c, bold in row]
            for row in rows_of(table, percent)
        ),
    ]
    rows = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    heading = [f"## {escaped(table.title)}"] if table.title else []
    return "\n\n".join([*heading, rows, *map(escaped, table.notes)])


_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
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


def _latex_text(text: str) -> str:
    text = " ".join(printable(text).split())
    escaped = "".join(_LATEX.get(character, character) for character in text)
    # After the end of a line these would be its arguments.
    return f"{{{escaped[0]}}}{escaped[1:]}" if escaped.startswith(("[", "*")) else escaped


def _latex_heading(columns: Sequence[Column]) -> list[str]:
    """One line of headings, and one above it where columns share a heading."""
    below = [column.latex or _latex_text(column.heading) for column in columns]
    if not any(column.over for column in columns):
        return [" & ".join(below)]
    above = []
    for over, group in groupby(columns, key=lambda column: column.over):
        n = len(list(group))
        shared = rf"\multicolumn{{{n}}}{{c}}{{{_latex_text(over)}}}"
        above += [shared] if over and n > 1 else [_latex_text(over)] * n
    return [" & ".join(above), " & ".join(below)]


def _latex(table: Table, percent: bool) -> str:
    """Write a LaTeX table (booktabs), its notes as comments below.

    A name that the row above has, too, is left blank, and groups of rows are ruled off.
    """
    alignment = "".join("l" if column.is_label else "r" for column in table.columns)
    groups = []
    above: list[str] = []
    for _, group in groupby(rows_of(table, percent), lambda row: row[: table.grouped]):
        lines = []
        for row in group:
            texts = ((_latex_text(str(cell)), bold) for cell, bold in row)
            cells = [rf"\textbf{{{text}}}" if bold else text for text, bold in texts]
            names = cells[: table.grouped]
            both = takewhile(lambda pair: pair[0] == pair[1], zip(names, above, strict=False))
            repeated = len(list(both))
            cells[:repeated] = [""] * repeated
            above = names
            lines.append(" & ".join(cells) + r" \\")
        groups.append("\n".join(lines))
    apart = "\n\\midrule\n" if any("\n" in group for group in groups) and table.grouped else "\n"
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        *(rf"{heading} \\" for heading in _latex_heading(table.columns)),
        r"\midrule",
        apart.join(groups),
        r"\bottomrule",
        r"\end{tabular}",
        *(_comment(text) for text in table.notes),
    ]
    return "\n".join(lines)


def _comment(text: str) -> str:
    return "% " + " ".join(text.split())


def _latex_sentence(text: str) -> str:
    if isinstance(text, Prose):
        return _latex_text(text)
    return "\n".join(map(_comment, text.split("\n") if isinstance(text, Verbatim) else [text]))


def _markdown_sentence(text: str) -> str:
    if isinstance(text, Verbatim):
        return "\n".join(f"    {line}" for line in text.split("\n"))
    escaped = "\n".join(map(_markdown_text, text.split("\n")))
    return f"# {escaped}" if isinstance(text, Heading) else escaped


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
