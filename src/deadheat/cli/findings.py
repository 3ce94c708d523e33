"""The last line of a command: what its table means, in plain words, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deadheat.evaluation import Result, Summary, labels_of
from deadheat.late import pl
from deadheat.remarks import counted
from deadheat.tables import number

if TYPE_CHECKING:
    from deadheat.comparison import Comparison
    from deadheat.comparison.leaderboard import Leaderboard
    from deadheat.diagnosis import Diagnosis
    from deadheat.experiment import StoredResult


def of_results(results: Sequence[Result], *, percent: bool) -> str:
    """Say what ties do to the measure and run that they move most."""
    named = dict(zip(labels_of(results), results, strict=True))
    moved = _most_moved(named)
    if moved is None:
        return "No tie moves any of these values: they hold whatever the tie-break."
    name, summary = moved
    origin = named[name].provenance
    sources = [origin.qrels or "-", origin.run]
    words = _what_ties_do(summary, name, percent)
    if not all(Path(source).is_file() for source in sources):  # standard input, say
        return f"{words}."
    return f"{words}. Next: {_command('diagnose', *sources)}"


def of_comparison(comparison: Comparison, *, percent: bool) -> str:
    """Say which verdict should be looked at first, and why."""
    pairs = comparison.pairs.with_columns(pl.col("a", "b").replace(comparison.labels))
    wrong = pairs.filter(pl.col("verdict") == "decision error")
    if len(wrong):
        row = _largest(wrong, "oblivious_difference")
        reported = row["oblivious_difference"] > 0
        better, worse = (row["a"], row["b"]) if reported else (row["b"], row["a"])
        difference = _points(abs(row["difference"]), percent)
        return (
            f"As reported, {better} beats {worse} in {row['measure']}; over all tie-breaks "
            f"{worse} is better by {difference}. Wrong as reported: {len(wrong)} of {len(pairs)}."
        )
    open_ = pairs.filter(pl.col("verdict") == "undecided: ties")
    if len(open_):
        row = _largest(open_, "oblivious_difference")
        return (
            f"Ties alone decide between {row['a']} and {row['b']} in {row['measure']}: "
            f"of random tie-breaks {row['a']} wins {row['a_wins']:.0%}, {row['b']} "
            f"{row['b_wins']:.0%}. Left open by ties: {len(open_)} of {len(pairs)}."
        )
    return "Ties change none of these verdicts."


def of_leaderboard(board: Leaderboard) -> str:
    """Say which run's rank ties leave most open, and which first places."""
    width = pl.col("worst_rank") - pl.col("best_rank")
    most = board.rows.sort(width, descending=True, maintain_order=True).row(0, named=True)
    contested = [winner for winner in board.winners if winner.contested]
    places = "no first place" if not contested else f"{counted(len(contested), 'first place')}"
    if most["best_rank"] == most["worst_rank"]:
        return f"{board.name}: every rank holds whatever the tie-break."
    return (
        f"{board.name}: ties leave {most['run']} anywhere between rank {most['best_rank']} and "
        f"{most['worst_rank']} in {most['measure']}, and {places} open."
    )


def of_diagnosis(diagnosis: Diagnosis, qrels: str | None, run: str, *, percent: bool) -> str:
    """Say how much of the run is tied and what that can do."""
    anatomy, effect = diagnosis.anatomy, diagnosis.effect
    if not anatomy.tied:
        return "No two documents of a query have the same score: there are no ties."
    tied = f"{anatomy.tied / anatomy.documents:.1%} of the documents are tied"
    if effect is None:
        return f"{tied}; judgements tell what that does: deadheat diagnose QRELS {shlex.quote(run)}"
    given = [row for row in effect.what_if if row.format == "as given"]
    most = max(given, key=lambda row: row.range)
    if not most.range:
        return f"{tied}, and no tie moves any of these values."
    words = f"{tied}; they can move {most.measure} by {_points(most.range, percent)}"
    if qrels is None or "-" in (qrels, run):  # cannot be read again
        return f"{words}."
    next_ = _command("plot", "list", qrels, run, "-m", most.measure, "-o", "list.pdf")
    return f"{words}. Next: {next_}"


def of_experiment(results: Sequence[StoredResult], folder: str, *, percent: bool) -> str:
    """Say what ties do to the result that they move most, and name the page of all of them."""
    next_ = f"Next: {_command('report', folder)}"
    named = {f"{r.name} in {r.model_dtype}, {r.regime}": r.result for r in results}
    moved = _most_moved(named)
    if moved is None:
        return f"No tie moves any of these values. {next_}"
    name, summary = moved
    return f"{_what_ties_do(summary, name, percent)}. {next_}"


def _most_moved(results: dict[str, Result]) -> tuple[str, Summary] | None:
    """The name and the summary of the largest range, of the first where several are as large."""
    every = [(name, summary) for name, r in results.items() for summary in r.values()]
    name, summary = max(every, key=lambda pair: pair[1].range)
    return (name, summary) if summary.range > 0 else None


def _what_ties_do(summary: Summary, name: str, percent: bool) -> str:
    reported = number(summary.oblivious, percent=percent)
    bias = number(abs(summary.bias), percent=percent)
    off = f"{bias} too {'high' if summary.bias > 0 else 'low'}"
    if not float(bias):
        off = "what all tie-breaks give on average"
    moved = f"Ties can move {summary.measure} of {name} by {_points(summary.range, percent)}"
    return f"{moved}; the reported {reported} is {off}"


def _largest(pairs: pl.DataFrame, column: str) -> dict[str, Any]:
    return pairs.sort(pl.col(column).abs(), descending=True, maintain_order=True).row(0, named=True)


def _points(value: float, percent: bool) -> str:
    return f"{number(value, percent=percent)} points" if percent else number(value)


def _command(*words: str) -> str:
    return shlex.join(["deadheat", *words])
