"""Results as tables: for the terminal, Markdown, LaTeX, CSV, HTML and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deadheat.errors import InputError
from deadheat.result import Result

STYLES = ("table", "markdown", "latex", "csv", "json", "html")
COLUMNS = ("expected", "std", "worst", "best", "range", "oblivious", "bias")
TITLES = {"std": "± tie std"}
WORDS = ("run", "query", "measure", "format", "size", "tied by")
"""Titles of columns that hold words, not numbers."""


def render(
    results: Sequence[Result], style: str, *, percent: bool = False, per_query: bool = False
) -> str:
    """Write results in one of `STYLES`, several results side by side in one table."""
    if style == "json":
        data = [result.to_dict(per_query=per_query) for result in results]
        return json.dumps(data, indent=1, ensure_ascii=False)
    if style == "csv":
        return _csv(results, per_query=per_query)
    header, rows = _cells(results, percent=percent, per_query=per_query)
    if style == "table":
        return plain(_rich(results, header, rows))
    if style == "markdown":
        return markdown(header, rows)
    if style == "latex":
        return _latex(header, rows)
    if style == "html":
        return _html(results, header, rows)
    raise InputError(f"unknown table style {style!r}: use one of {', '.join(STYLES)}")


def rich_table(
    results: Sequence[Result], *, percent: bool = False, per_query: bool = False
) -> Table:
    """Build the table for a terminal."""
    header, rows = _cells(results, percent=percent, per_query=per_query)
    return _rich(results, header, rows)


def remarks(results: Sequence[Result]) -> list[str]:
    """Notes of the results, each once."""
    return list(dict.fromkeys(note for result in results for note in result.notes))


def number(value: float | None, column: str = "", *, percent: bool = False) -> str:
    """Give a number as readers see it, with its sign where the column shows a difference."""
    if value is None:
        return "–"
    text = f"{100 * value:.2f}" if percent else f"{value:.4f}"
    text = text.removeprefix("-") if float(text) == 0 else text
    return f"+{text}" if column in ("bias", "change") and float(text) > 0 else text


def _cells(
    results: Sequence[Result], *, percent: bool, per_query: bool
) -> tuple[list[str], list[list[str]]]:
    """Header and rows as text; a column says only what differs between rows."""
    several = len(results) > 1
    header = ["run"] * several + ["query"] * per_query + ["measure"]
    header += [TITLES.get(column, column) for column in COLUMNS]
    rows = []
    for result, short in zip(results, _names(results), strict=True):
        name = [short] * several
        if per_query:
            for row in result.per_query.iter_rows(named=True):
                values = [number(row[column], column, percent=percent) for column in COLUMNS]
                rows.append([*name, row["query_id"], row["measure"], *values])
        else:
            for summary in result:
                values = [
                    number(getattr(summary, column), column, percent=percent) for column in COLUMNS
                ]
                rows.append([*name, summary.measure, *values])
    return header, rows


def _names(results: Sequence[Result]) -> list[str]:
    """Names of the runs, without their folders where that leaves them distinct."""
    short = [Path(result.name).name for result in results]
    return short if len(set(short)) == len(short) else [result.name for result in results]


def _title(results: Sequence[Result]) -> str:
    counts = sorted({len(result.query_ids) for result in results})
    number = "–".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
    queries = f"{number} {'query' if counts[-1] == 1 else 'queries'}"
    return queries if len(results) > 1 else f"{_names(results)[0]} · {queries}"


def _rich(results: Sequence[Result], header: list[str], rows: list[list[str]]) -> Table:
    return rich_rows(header, rows, _title(results), "\n".join(remarks(results)))


def rich_rows(header: list[str], rows: list[list[str]], title: str, caption: str = "") -> Table:
    """Build a table for a terminal; rows with the same run, format or measure stand together."""
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for name in header:
        words = name in WORDS
        table.add_column(name, justify="left" if words else "right", no_wrap=not words)
    repeated = len({row[0] for row in rows}) < len(rows)
    sections = header[0] == "run" or (header[0] in ("format", "measure") and repeated)
    first = None
    for row in rows:
        same = sections and row[0] == first
        if sections and not same and first is not None:
            table.add_section()
        first = row[0]
        table.add_row(*(Text(cell) for cell in (["", *row[1:]] if same else row)))
    return table


def plain(content: Any, width: int | None = None) -> str:
    """Print to text without colour, as wide as the content is unless told."""

    def console(width: int) -> Console:
        return Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)

    page = console(width or console(1000).measure(content).maximum)
    page.print(content)
    output = page.file
    assert isinstance(output, io.StringIO)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table."""

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = ["---" if name in WORDS else "---:" for name in header]
    return "\n".join([line(header), line(rule), *map(line, rows)])


_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "·": r"$\cdot$",
}


def _latex(header: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str]) -> str:
        return " & ".join("".join(_LATEX.get(c, c) for c in cell) for cell in cells) + r" \\"

    words = sum(name in WORDS for name in header)
    columns = "l" * words + "r" * (len(header) - words)
    body = "\n".join(map(line, rows))
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{line(header)}\n\\midrule\n{body}\n"
        "\\bottomrule\n\\end{tabular}"
    )


def _csv(results: Sequence[Result], *, per_query: bool) -> str:
    """Full precision, and always with the run's name: for machines."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    if per_query:
        writer.writerow(["run", *results[0].per_query.columns])
        for result in results:
            writer.writerows([result.name, *row] for row in result.per_query.iter_rows())
    else:
        columns = [*COLUMNS, "sampling_error", "queries"]
        writer.writerow(["run", "measure", *columns])
        for result in results:
            for summary in result:
                values: list[Any] = [getattr(summary, column) for column in columns]
                writer.writerow([result.name, summary.measure, *values])
    return output.getvalue().rstrip("\n")


def _html(results: Sequence[Result], header: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    notes = "<br>".join(map(escape, remarks(results)))
    body = "".join(line(row, "td") for row in rows)
    return (
        f"<table><caption>{escape(_title(results))}</caption><thead>{line(header, 'th')}</thead>"
        f"<tbody>{body}</tbody></table><p><small>{notes}</small></p>"
    )
