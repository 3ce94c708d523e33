"""Leaderboards as one web page: sortable, searchable, an interval of values and ranks per run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deadheat._internal.lazy import pl
from deadheat.comparison.leaderboard import (
    Leaderboard,
    error_lines,
    row_columns,
    summary_table,
    winner_parts,
)
from deadheat.errors import InputError
from deadheat.report.findings import describe_leaderboard
from deadheat.report.page.cells import Scale, marks, page_table
from deadheat.report.page.leading import leading_table
from deadheat.report.page.shell import as_json, written
from deadheat.tables import Table, number

FACETS = 40
"""Up to so many distinct words, a column of a board can be chosen from."""
COLOURS = 8
"""Up to so many groups have colours of their own."""


def render_leaderboards(boards: Sequence[Leaderboard]) -> str:
    """Write the page; it needs no network, and its tables no JavaScript."""
    if not boards:
        raise InputError("there is no leaderboard to report")
    shown = [_board(board, i) for i, board in enumerate(boards)]
    return written(
        "leaderboard.html",
        title=" · ".join(board.name for board in boards[:3]),
        styles=("page.css", "leaderboard.css"),
        scripts=("page.js", "tables.js", "leaderboard.js"),
        boards=shown,
        copies=as_json([board["leading"].pop("copies") for board in shown]),
    )


def _board(board: Leaderboard, index: int) -> dict[str, Any]:
    """Return the values of the template for one board."""
    facets, colours = _facets(board), _colours(board)
    names = [repr(measure) for measure in board.measures]
    summaries = {
        name: {repr(m): result[m] for m, result in entry.results.items()}
        for name, entry in board.entries.items()
    }
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
        "facets": facets,
        "colours": colours,
        "leading": leading_table(summaries, names),
        "measures": [_measure(board, name, list(facets), colours) for name in names],
    }


def _facets(board: Leaderboard) -> dict[str, list[str]]:
    """Columns of words that tell runs apart, but not every run from all others."""
    rows = board.ranking()
    words = {name: rows[name].drop_nulls().unique().sort().to_list() for name in board.words}
    return {
        name: values
        for name, values in words.items()
        if 1 < len(values) <= FACETS and (len(values) < len(rows) or name == board.group)
    }


def _colours(board: Leaderboard) -> dict[str, int]:
    """Number of the colour of every group, in the official order; none if there are too many."""
    if board.group is None:
        return {}
    names = board.ranking()[board.group].drop_nulls().unique(maintain_order=True)
    return {name: i for i, name in enumerate(names)} if len(names) <= COLOURS else {}


def _measure(
    board: Leaderboard, measure: str, facets: list[str], colours: dict[str, int]
) -> dict[str, Any]:
    """Rows of one measure, with the places of their marks on the scales of the table."""
    rows = board.rows.filter(measure=measure)
    values = Scale(*_ends(rows))
    ranks = Scale(0.5, max([len(rows), *rows["published_rank"].drop_nulls().to_list()]) + 0.5)
    columns = sorted(row_columns(board, rows), key=lambda column: column.of != "run")
    table = page_table(Table(rows, columns))
    unknown = {row["measure"] for row in board.unknown_definitions}
    drawn = []
    for row in rows.to_dicts():
        # A number that is not met is on another scale than the values that ties allow.
        is_met = row["reproduced"] and measure not in unknown
        official = row["published"] if is_met else row["oblivious"]
        official_rank = row["published_rank"] if is_met else None
        drawn.append(
            {
                "words": [row[name] or "" for name in facets],
                "colour": colours.get(row.get(board.group or "", ""), 0),
                "values": marks(values, row["worst"], row["best"], row["expected"], official),
                "ranks": marks(
                    ranks, row["best_rank"], row["worst_rank"], row["rank"], official_rank
                ),
            }
        )
    return {
        "name": measure,
        "headings": table.headings,
        "rows": list(zip(drawn, table.rows, strict=True)),
        "ends": f"{number(values.low)} to {number(values.high)}",
    }


def _ends(rows: pl.DataFrame) -> tuple[float, float]:
    """The lowest and the highest value of a measure on the board."""
    published = pl.col("published").filter(pl.col("reproduced"))
    values = [*rows["worst"], *rows["best"], *rows.select(published)["published"]]
    return min(values), max(values)
