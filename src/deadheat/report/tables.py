"""Results as tables: for the terminal, Markdown, LaTeX, CSV, HTML and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from deadheat.report.grid import STYLES, Grid, counted_queries, number
from deadheat.result import Result, short_names

__all__ = ["COLUMNS", "STYLES", "TITLES", "remarks", "render", "rich_table"]

COLUMNS = ("expected", "std", "worst", "best", "range", "oblivious", "bias")
TITLES = {"std": "± tie std"}


def render(
    results: Sequence[Result], style: str, *, percent: bool = False, per_query: bool = False
) -> str:
    """Write results in one of `STYLES`, several results side by side in one table."""
    if style == "json":
        data = [result.to_dict(per_query=per_query) for result in results]
        return json.dumps(data, indent=1, ensure_ascii=False)
    if style == "csv":
        return _csv(results, per_query=per_query)
    return _grid(results, percent=percent, per_query=per_query).render(style)


def rich_table(
    results: Sequence[Result], *, percent: bool = False, per_query: bool = False
) -> Table:
    """Build the table for a terminal."""
    return _grid(results, percent=percent, per_query=per_query).rich()


def remarks(results: Sequence[Result]) -> list[str]:
    """Notes of the results, each once."""
    return list(dict.fromkeys(note for result in results for note in result.notes))


def _grid(results: Sequence[Result], *, percent: bool, per_query: bool) -> Grid:
    """Header and rows as text; a column says only what differs between rows."""

    def cell(value: float | None, column: str) -> str:
        return number(value, percent=percent, signed=column == "bias")

    several = len(results) > 1
    header = ["run"] * several + ["query"] * per_query + ["measure"]
    header += [TITLES.get(column, column) for column in COLUMNS]
    rows = []
    for result, short in zip(results, short_names(results), strict=True):
        name = [short] * several
        if per_query:
            for row in result.per_query.iter_rows(named=True):
                values = [cell(row[column], column) for column in COLUMNS]
                rows.append([*name, row["query_id"], row["measure"], *values])
        else:
            for summary in result:
                values = [cell(getattr(summary, column), column) for column in COLUMNS]
                rows.append([*name, summary.measure, *values])
    return Grid(header, rows, _title(results), remarks(results), grouped=int(several))


def _title(results: Sequence[Result]) -> str:
    queries = counted_queries(*(len(result.query_ids) for result in results))
    return queries if len(results) > 1 else f"{short_names(results)[0]} · {queries}"


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
