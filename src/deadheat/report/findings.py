"""Findings: one sentence on the numbers, for pages and the last line of commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import counted
from deadheat.evaluation import Result, Summary
from deadheat.tables import number

if TYPE_CHECKING:
    from deadheat.comparison import Comparison
    from deadheat.comparison.leaderboard import Leaderboard


def describe_systems(
    results: Mapping[str, Result],
    comparison: Comparison | None,
    *,
    percent: bool,
    measures: Sequence[str] | None = None,
) -> str:
    """Describe a pair that ties reverse or leave undecided, else the value that ties move most.

    Parameters
    ----------
    measures
        Names of the measures whose values may be described. Default: all.
    """
    found = None if comparison is None else _in_question(comparison, percent)
    if found is not None:
        return found[0]
    moved = most_moved(results, measures)
    if moved is None:
        return "Ties cannot move any of these values."
    name, summary = moved
    order = results[name].provenance.settings.in_tie_order
    oblivious = number(summary.oblivious, percent=percent)
    bias = number(abs(summary.bias), percent=percent)
    off = f"{bias} {'above' if summary.bias > 0 else 'below'}" if float(bias) else "equal to"
    return (
        f"Ties can move {summary.measure} of {name} by {points(summary.range, percent)}; with ties "
        f"{order} it is {oblivious}, {off} the mean over all tie orders."
    )


def describe_comparison(comparison: Comparison, *, percent: bool) -> str:
    """Describe the most important verdict, and count the pairs that have it."""
    found = _in_question(comparison, percent)
    return "Ties change none of these verdicts." if found is None else " ".join(found)


def _in_question(comparison: Comparison, percent: bool) -> tuple[str, str] | None:
    """Describe one pair that ties reverse or leave undecided, and count such pairs."""
    pairs = comparison.pairs
    wrong = pairs.filter(pl.col("verdict") == "decision error")
    if len(wrong):
        row = _largest(wrong)
        a_first = row["oblivious_difference"] > 0
        better, worse = (row["a"], row["b"]) if a_first else (row["b"], row["a"])
        orders = {origin.settings.in_tie_order for origin in comparison.provenance.values()}
        rule = orders.pop() if len(orders) == 1 else "by the tie rule of each"
        return (
            f"With ties {rule}, {better} beats {worse} in {row['measure']}; in the mean over "
            f"all tie orders, {worse} is better by {points(abs(row['difference']), percent)}.",
            f"Decision errors: {len(wrong)} of {len(pairs)} comparisons.",
        )
    undecided = pairs.filter(pl.col("verdict") == "undecided: ties")
    if len(undecided):
        row = _largest(undecided)
        draws = 1 - row["a_wins"] - row["b_wins"]
        drawn = f", {draws:.0%} are draws" if draws >= 0.005 else ""
        return (
            f"Ties alone decide whether {row['a']} or {row['b']} is better in {row['measure']}: "
            f"under random tie-breaking {row['a']} wins {row['a_wins']:.0%} of the time, "
            f"{row['b']} {row['b_wins']:.0%}{drawn}.",
            f"Undecided because of ties: {len(undecided)} of {len(pairs)} comparisons.",
        )
    return None


def describe_leaderboard(board: Leaderboard) -> str:
    """Describe the first decision error, the widest interval of ranks, and contested places."""
    sentences = [
        f"The definition of the published {row['measure']} is unknown: {row['met']} of "
        f"{row['published']} numbers are met."
        for row in board.unknown_definitions
    ]
    if board.decision_errors:
        more = len(board.decision_errors) - 1
        others = f"; {counted(more, 'more decision error')}" if more else ""
        sentences.append(f"{board.decision_errors[0]}{others}.")
    width = pl.col("worst_rank") - pl.col("best_rank")
    most = board.rows.sort(width, descending=True, maintain_order=True).row(0, named=True)
    contested = sum(winner.contested for winner in board.winners)
    changed = counted(contested, "first place") if contested else "no first place"
    if most["best_rank"] == most["worst_rank"]:
        sentences.append("Ties change no rank.")
    else:
        sentences.append(
            f"Ties allow {most['run']} any rank from {most['best_rank']} to {most['worst_rank']} "
            f"in {most['measure']}, and can change {changed}."
        )
    return f"{board.name}: {' '.join(sentences)}"


def most_moved(
    results: Mapping[str, Result], measures: Sequence[str] | None = None
) -> tuple[str, Summary] | None:
    """Return name and summary of the largest range; None if ties move no value.

    Parameters
    ----------
    measures
        Names of the measures to compare. Default: all.
    """
    every = [
        (name, summary)
        for name, result in results.items()
        for measure, summary in result.items()
        if measures is None or measure in measures
    ]
    name, summary = max(every, key=lambda pair: pair[1].range)
    return (name, summary) if summary.range > 0 else None


def points(value: float, percent: bool) -> str:
    """Format a difference of values of a measure."""
    return f"{number(value, percent=percent)} points" if percent else number(value)


def _largest(pairs: pl.DataFrame) -> dict[str, Any]:
    """Return the pair with the largest oblivious difference."""
    difference = pl.col("oblivious_difference").abs()
    return pairs.sort(difference, descending=True, maintain_order=True).row(0, named=True)
