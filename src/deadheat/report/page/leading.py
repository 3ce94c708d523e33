"""The table that a page begins with: systems as rows, measures as columns, and copies of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from deadheat._internal.lazy import pl
from deadheat.errors import printable
from deadheat.evaluation import SPAN, VIEW_COLUMNS, Summary
from deadheat.report.page.cells import Scale, Texts, marks, texts
from deadheat.tables import Column, Table, render

Summaries = Mapping[str, Mapping[str, Summary]]
"""By system and measure; nothing where a system was not evaluated in a measure."""
COPIES = ("markdown", "latex", "csv")
"""The styles that the table can be copied in."""


class Value(NamedTuple):
    """A cell of the table."""

    text: Texts
    sort: float
    certain: bool
    """Whether it is the highest of its column whatever the tie-break."""
    marks: dict[str, float | None]


def leading_table(summaries: Summaries, measures: Sequence[str]) -> dict[str, Any]:
    """Return headings, rows and copies; the highest expectation in the first measure comes first.

    Parameters
    ----------
    summaries
        Of all systems. A value can be the highest whatever the tie-break only where all were
        evaluated on equally many queries.
    measures
        The columns.
    """
    ordered = _by_first(summaries, measures)
    scales = {measure: _scale(ordered, measure) for measure in measures}
    certain = {measure: _certain(ordered, measure) for measure in measures}
    return {
        "measures": list(measures),
        "rows": [
            (name, [_value(own.get(m), scales[m], certain[m] == name) for m in measures])
            for name, own in ordered.items()
        ],
        "copies": _copies(_table(ordered, measures, certain)),
    }


def _certain(summaries: Summaries, measure: str) -> str | None:
    """Name the system whose value is the highest whatever the tie-break, if there is one."""
    values = {name: own[measure] for name, own in summaries.items() if measure in own}
    if len({summary.queries for summary in values.values()}) > 1:
        return None
    for name, summary in values.items():
        if summary.is_highest(rival for other, rival in values.items() if other != name):
            return name
    return None


def _by_first(summaries: Summaries, measures: Sequence[str]) -> dict[str, Mapping[str, Summary]]:
    def expected(own: Mapping[str, Summary]) -> float:
        return own[measures[0]].expected if measures and measures[0] in own else -1.0

    return dict(sorted(summaries.items(), key=lambda item: -expected(item[1])))


def _scale(summaries: Summaries, measure: str) -> Scale:
    own = [summary[measure] for summary in summaries.values() if measure in summary]
    ends = [(s.worst, s.best, s.oblivious) for s in own] or [(0.0, 1.0, 0.0)]
    return Scale(min(map(min, ends)), max(map(max, ends)))


def _value(summary: Summary | None, scale: Scale, certain: bool) -> Value | None:
    if summary is None:
        return None
    text = texts("value", summary.expected)
    drawn = marks(scale, summary.worst, summary.best, summary.expected, summary.oblivious)
    return Value(text, summary.expected, certain, drawn)


def _copies(table: Table) -> dict[str, list[dict[str, list[str]]]]:
    """Per style the table as a fraction and in percent: lines before, of and after the rows."""
    copies: dict[str, list[dict[str, list[str]]]] = {style: [] for style in COPIES}
    for style in COPIES:
        for percent in (False, True):
            lines = render([table], style, percent=percent).split("\n")
            last = lines.index(r"\bottomrule") if style == "latex" else len(lines)
            first = last - len(table.frame)
            parts = {"head": lines[:first], "rows": lines[first:last], "foot": lines[last:]}
            copies[style].append(parts)
    return copies


def _table(
    summaries: Summaries, measures: Sequence[str], certain: Mapping[str, str | None]
) -> Table:
    """The same as a table for papers: the expected value of each measure, and worst to best."""
    rows = []
    for name, own in summaries.items():
        row: dict[str, Any] = {"system": printable(name)}  # one line, whatever its name
        for measure in measures:
            summary = own.get(measure)
            for view in ("expected", "worst", "best", "oblivious"):
                row[f"{measure} {view}"] = summary and getattr(summary, view)
            row[f"{measure} certain"] = certain[measure] == name
        rows.append(row)
    columns = [Column("system", "name")]
    for measure in measures:
        expected = replace(
            VIEW_COLUMNS["expected"],
            of=f"{measure} expected",
            title=VIEW_COLUMNS["expected"].heading,
            over=measure,
            bold=f"{measure} certain",
        )
        ends = (f"{measure} worst", f"{measure} best")
        columns += [expected, replace(SPAN, of=ends, over=measure)]
    return Table(pl.DataFrame(rows, infer_schema_length=None), columns)
