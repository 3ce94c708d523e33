"""Leaderboards as one sortable, searchable web page with intervals of values and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deadheat._internal.lazy import pl
from deadheat.comparison.leaderboard import (
    Leaderboard,
    error_lines,
    row_columns,
    summary_table,
    winner_parts,
)
from deadheat.report.findings import describe_leaderboard
from deadheat.report.page.cells import PageTable, page_table
from deadheat.report.page.leading import leading_table
from deadheat.report.page.shell import write_page
from deadheat.tables import Table

_BARS = {
    "expected": ("worst", "best", "expected", "× value"),
    "best_rank": ("best_rank", "worst_rank", "rank", "× rank"),
}
"""Columns that have an interval next to their number, and the values of its marks."""


def render_leaderboards(boards: Sequence[Leaderboard]) -> str:
    """Return the page as HTML. It needs no network; its tables need no JavaScript."""
    return write_page(
        "leaderboard",
        title=" · ".join(board.name for board in boards[:3]),
        boards=[_board(board, i) for i, board in enumerate(boards)],
    )


def _board(board: Leaderboard, index: int) -> dict[str, Any]:
    """Return the values of the template for one board."""
    names = [repr(measure) for measure in board.measures]
    summaries = {
        name: {repr(m): result[m] for m, result in entry.results.items()}
        for name, entry in board.entries.items()
    }
    ordered = sorted(summaries.items(), key=lambda item: -item[1][names[0]].expected)
    return {
        "id": f"board-{index}",
        "name": board.name,
        "finding": describe_leaderboard(board),
        "rules": [str(rule) for rule in board.rules],
        "warnings": board.warnings,
        "notes": board.notes,
        "summary": page_table(summary_table(board)),
        "errors": error_lines(board),
        "winners": [
            page_table(part) if isinstance(part, Table) else part for part in winner_parts(board)
        ],
        "leading": leading_table(dict(ordered), names),
        "measures": {name: _measure(board, name) for name in names},
    }


def _measure(board: Leaderboard, measure: str) -> PageTable:
    """Return the rows of one measure, with the intervals of values and ranks."""
    unknown = {row["measure"] for row in board.unknown_definitions}
    # A number that is not reproduced is not comparable with the values that ties allow.
    is_met = pl.col("reproduced") & (measure not in unknown)
    rows = board.rows.filter(measure=measure).with_columns(
        pl.when(is_met).then("published").otherwise("oblivious").alias("× value"),
        pl.when(is_met).then("published_rank").alias("× rank"),
    )
    columns = [
        replace(column, bar=_BARS.get(column.sources[0], ())) for column in row_columns(board, rows)
    ]
    columns.sort(key=lambda column: column.of != "run")
    return page_table(Table(rows, columns))
