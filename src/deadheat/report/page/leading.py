"""The first table of a page: systems as rows, measures as columns, with copies to paste."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from deadheat._internal.lazy import pl
from deadheat.errors import printable
from deadheat.evaluation import SPAN, VIEW_COLUMNS, Summary
from deadheat.report.page.cells import page_table
from deadheat.tables import Column, Table, render

Summaries = Mapping[str, Mapping[str, Summary]]
"""Summaries by system and measure; a measure that was not evaluated is missing."""


def leading_table(summaries: Summaries, measures: Sequence[str]) -> dict[str, Any]:
    """Return the table of a page and its copies.

    Parameters
    ----------
    summaries
        Summaries of all systems, in the order of the rows. A value can be marked as the highest in
        every tie order only if all systems have the same number of queries.
    measures
        The columns.
    """
    rows, names = [], Column("system", "name")
    for name, own in summaries.items():
        row: dict[str, Any] = {"system": printable(name)}  # one line for any name
        for measure in measures:
            summary = own.get(measure)
            for view in ("expected", "worst", "best", "oblivious"):
                row[f"{measure} {view}"] = summary and getattr(summary, view)
            rivals = [s[measure] for n, s in summaries.items() if n != name and measure in s]
            row[f"{measure} certain"] = (
                summary is not None
                and all(rival.queries == summary.queries for rival in rivals)
                and summary.is_highest(rivals)
            )
        rows.append(row)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    shown, copied = [names], [names]
    for measure in measures:
        expected = replace(
            VIEW_COLUMNS["expected"],
            of=f"{measure} expected",
            title=measure,
            bold=f"{measure} certain",
            bar=tuple(f"{measure} {view}" for view in ("worst", "best", "expected", "oblivious")),
        )
        ends = (f"{measure} worst", f"{measure} best")
        shown.append(expected)
        copied += [
            replace(expected, title="expected", over=measure),
            replace(SPAN, of=ends, over=measure),
        ]
    return {"table": page_table(Table(frame, shown)), "copies": _copies(Table(frame, copied))}


def _copies(table: Table) -> dict[str, list[dict[str, list[str]]]]:
    """Return per style the table as fractions and in percent: lines before, of and after rows.

    The page sorts the lines of rows like its table before it copies them.
    """

    def split(style: str, percent: bool) -> dict[str, list[str]]:
        lines = render([table], style, percent=percent).split("\n")
        last = lines.index(r"\bottomrule") if style == "latex" else len(lines)
        first = last - len(table.frame)
        return {"head": lines[:first], "rows": lines[first:last], "foot": lines[last:]}

    styles = {"Markdown": "markdown", "LaTeX": "latex", "CSV": "csv"}
    return {name: [split(style, False), split(style, True)] for name, style in styles.items()}
