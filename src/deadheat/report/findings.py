"""What numbers mean, in one plain sentence: on the page, and as the last line of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import counted
from deadheat.evaluation import Result, Summary
from deadheat.tables import number

if TYPE_CHECKING:
    from deadheat.comparison import Comparison
    from deadheat.comparison.leaderboard import Leaderboard

Values = Result | Mapping[str, Summary]
"""Summaries by measure."""
UNMOVED = "No tie moves any of these values: they hold whatever the tie-break."


def describe_systems(
    results: Mapping[str, Values], comparison: Comparison | None, *, percent: bool
) -> str:
    """Describe the order that ties reverse or leave open, else the value that they move most."""
    found = None if comparison is None else _in_question(comparison, percent)
    if found is not None:
        return found[0]
    moved = most_moved(results)
    return UNMOVED if moved is None else f"{describe_effect(*moved, percent=percent)}."


def describe_comparison(comparison: Comparison, *, percent: bool) -> str:
    """Describe which verdict should be looked at first, and of how many pairs that is true."""
    found = _in_question(comparison, percent)
    return "Ties change none of these verdicts." if found is None else " ".join(found)


def _in_question(comparison: Comparison, percent: bool) -> tuple[str, str] | None:
    """The order that ties turn round or leave open, and how many orders they do that to."""
    pairs = comparison.pairs
    wrong = pairs.filter(pl.col("verdict") == "decision error")
    if len(wrong):
        row = _largest(wrong, "oblivious_difference")
        reported = row["oblivious_difference"] > 0
        better, worse = (row["a"], row["b"]) if reported else (row["b"], row["a"])
        return (
            f"As reported, {better} beats {worse} in {row['measure']}; over all tie-breaks "
            f"{worse} is better by {points(abs(row['difference']), percent)}.",
            f"Wrong as reported: {len(wrong)} of {len(pairs)}.",
        )
    open_ = pairs.filter(pl.col("verdict") == "undecided: ties")
    if len(open_):
        row = _largest(open_, "oblivious_difference")
        return (
            f"Ties alone decide whether {row['a']} or {row['b']} is better in {row['measure']}: "
            f"of random tie-breaks {row['a']} wins {row['a_wins']:.0%}, {row['b']} "
            f"{row['b_wins']:.0%}.",
            f"Left open by ties: {len(open_)} of {len(pairs)}.",
        )
    return None


def describe_leaderboard(board: Leaderboard) -> str:
    """Describe which order is wrong, which rank ties leave most open, and which first places."""
    said = [
        f"the definition of {row['measure']} as published is unknown: {row['met']} of "
        f"{row['published']} numbers are met."
        for row in board.unknown_definitions
    ]
    if board.decision_errors:
        more = len(board.decision_errors) - 1
        others = f"; {counted(more, 'more decision error')}" if more else ""
        said.append(f"{board.decision_errors[0]}{others}.")
    width = pl.col("worst_rank") - pl.col("best_rank")
    most = board.rows.sort(width, descending=True, maintain_order=True).row(0, named=True)
    contested = [winner for winner in board.winners if winner.contested]
    places = "no first place" if not contested else f"{counted(len(contested), 'first place')}"
    if most["best_rank"] == most["worst_rank"]:
        said.append("every rank holds whatever the tie-break.")
    else:
        said.append(
            f"ties leave {most['run']} anywhere between rank {most['best_rank']} and "
            f"{most['worst_rank']} in {most['measure']}, and {places} open."
        )
    first, *rest = said
    return " ".join([f"{board.name}: {first}", *(text[0].upper() + text[1:] for text in rest)])


def most_moved(results: Mapping[str, Values]) -> tuple[str, Summary] | None:
    """Give name and summary of the largest range, of the first where several are as large."""
    every = [(name, summary) for name, r in results.items() for summary in r.values()]
    name, summary = max(every, key=lambda pair: pair[1].range)
    return (name, summary) if summary.range > 0 else None


def describe_effect(name: str, summary: Summary, *, percent: bool) -> str:
    """Describe how far ties can move a value, and how far off the reported one is."""
    reported = number(summary.oblivious, percent=percent)
    bias = number(abs(summary.bias), percent=percent)
    off = f"{bias} too {'high' if summary.bias > 0 else 'low'}"
    if not float(bias):
        off = "what all tie-breaks give on average"
    moved = f"Ties can move {summary.measure} of {name} by {points(summary.range, percent)}"
    return f"{moved}; the reported {reported} is {off}"


def points(value: float, percent: bool) -> str:
    """Write a difference of values of a measure."""
    return f"{number(value, percent=percent)} points" if percent else number(value)


def _largest(pairs: pl.DataFrame, column: str) -> dict[str, Any]:
    return pairs.sort(pl.col(column).abs(), descending=True, maintain_order=True).row(0, named=True)
