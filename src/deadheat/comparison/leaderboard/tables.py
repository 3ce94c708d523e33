"""A leaderboard as sentences and tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import counted, some
from deadheat.comparison.leaderboard.standings import Winner
from deadheat.comparison.statistics import METHODS
from deadheat.evaluation import SPAN
from deadheat.tables import Column, Heading, Part, Table, cell

if TYPE_CHECKING:
    from deadheat.comparison.leaderboard.board import Leaderboard

SUMMARY = (
    Column("measure", "name"),
    Column("range_above_0", "count", title="range > 0"),
    Column("range_above_0.001", "count", title="> 0.001", drop_priority=2),
    Column("range_above_0.01", "count", title="> 0.01"),
    Column("reversed", "count"),
    Column("undecided", "count"),
    Column("decision_errors", "count", title="errors"),
    Column("tau_official_expected", "ratio", title="τ expected"),
    Column("tau_official_best", "ratio", title="τ best", drop_priority=1),
    Column("tau_official_worst", "ratio", title="τ worst", drop_priority=1),
)
SUMMARY_NOTES = (
    "range > x: number of runs that tie-breaking alone can move by more than x",
    "reversed: pairs whose official order is not that of their expected values",
    "undecided: pairs for which random tie-breaking keeps the order of the expected values with a "
    "probability below {level:g}",
    "errors: pairs that are reversed and not undecided",
    "τ: Kendall's τ-b of the official order with the orders by expected, best and worst values",
)
WINNERS = (
    Column("measure", "name"),
    Column("group", "name"),
    Column("official", "name", title="first officially"),
    Column("expected", "name", title="first in expectation"),
    Column(("probability", "method", "error"), "probability", title="with P", bold="open"),
    Column("contenders", "word", title="other contenders", drop_priority=1),
)


def board_parts(board: Leaderboard, rows: pl.DataFrame) -> list[Part]:
    """Return the sentences and tables of a board; `rows` are the rows to show."""
    of = rows["measure"][0]
    runs, queries = counted(len(board.entries), "run"), counted(rows["queries"].max(), "query")  # type: ignore[arg-type]
    shown = f", the first {len(rows)}" if len(rows) < len(board.entries) else ""
    title = f"{of} · {runs}{shown} · {queries}"
    parts: list[Part] = [Heading(board.name)]
    if board.rules:
        parts.append("\n".join(["Which rule produced these numbers?", *map(str, board.rules)]))
    parts.append(Table(rows, row_columns(board, rows), title, board.notes))
    parts.append(summary_table(board))
    if errors := error_lines(board):
        parts.append("\n".join(["Decision errors:", *errors]))
    parts += winner_parts(board)
    if failed := [f"{name}: {why}" for name, why in board.failures.items()]:
        parts.append("\n".join(["Not evaluated:", *failed]))
    return parts


def row_columns(board: Leaderboard, rows: pl.DataFrame) -> list[Column]:
    """Return the columns of a board's rows that are not empty."""
    columns = [
        Column("published_rank", "count", title="board"),
        Column("rank", "count"),
        Column(("best_rank", "worst_rank"), "ranks", title="under ties"),
        Column("run", "name"),
        *([Column(board.group, "word", drop_priority=6)] if board.group else []),
        Column("published", drop_priority=7),
        Column("reproduced", "flag", title="met", drop_priority=5),
        Column("expected"),
        Column("std", title="± tie std", drop_priority=3),
        Column("worst", drop_priority=4, instead=replace(SPAN, drop_priority=8)),
        Column("best", drop_priority=4),
        Column("oblivious", drop_priority=2),
        Column("cut_lists", "count", title="cut lists", drop_priority=1),
        Column("grid", "word", title="scores are", drop_priority=1),
    ]
    return [c for c in columns if rows[c.sources[0]].null_count() < len(rows)]


def summary_table(board: Leaderboard) -> Table:
    """Return a table of the runs and pairs that ties affect, a row per measure."""
    runs, pairs = len(board.entries), board.summary["pairs"][0]
    notes = [text.format(level=1 - board.alpha) for text in SUMMARY_NOTES]
    title = f"Effect of ties on the board · {counted(runs, 'run')}, {counted(pairs, 'pair')}"
    return Table(board.summary, SUMMARY, title, notes)


def error_lines(board: Leaderboard) -> list[str]:
    """Return a sentence for each of the first five decision errors, and the number of others."""
    lines = [f"{error}." for error in board.decision_errors]
    more = f"{len(lines) - 5:,} more (all are in --format json)."
    return [*lines[:5], more] if len(lines) > 5 else lines


def winner_parts(board: Leaderboard) -> list[Part]:
    """Return a table of the winners that ties can change, or a sentence that there are none."""
    contested = [winner for winner in board.winners if winner.contested]
    if not contested:
        where = "" if board.group is None else f", overall and by {board.group}"
        return [f"No winner is contested: ties cannot change who comes first{where}."]
    level = 1 - board.alpha
    rows = [
        {
            **vars(winner),
            "group": winner.group or "all",
            "official": some(winner.official, most=1) or None,
            "open": winner.probability - winner.error < level,
            "contenders": _rivals(winner),
        }
        for winner in contested
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    columns = [c for c in WINNERS if board.group is not None or c.of != "group"]
    methods = dict.fromkeys(winner.method for winner in contested)
    notes = [f"P, {method}: {METHODS[method]}" for method in methods]
    notes.append(f"bold: undecided, P below {level:g}, {frame['open'].sum()} of {len(frame)}")
    return [Table(frame, columns, "Contested winners", notes, grouped=1)]


def _rivals(winner: Winner) -> str:
    others = sorted(winner.contenders.items(), key=lambda item: -item[1])
    shown = [
        f"{name} ({cell('probability', [p, winner.method, winner.error], percent=False)})"
        for name, p in others
        if name != winner.expected
    ]
    return some(shown, most=3)
