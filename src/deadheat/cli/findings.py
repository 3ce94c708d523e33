"""The last line of a command: what its table means, and the command to run next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deadheat.evaluation import Result, labels_of
from deadheat.report.findings import UNMOVED, describe_effect, most_moved, points

if TYPE_CHECKING:
    from deadheat.diagnosis import Diagnosis
    from deadheat.lab.experiment import StoredResult


def describe_results(results: Sequence[Result], *, percent: bool) -> str:
    """Describe what ties do to the measure and run that they move most."""
    named = dict(zip(labels_of(results), results, strict=True))
    moved = most_moved(named)
    if moved is None:
        return UNMOVED
    name, summary = moved
    origin = named[name].provenance
    sources = [origin.qrels or "-", origin.run]
    words = describe_effect(name, summary, percent=percent)
    if not all(Path(source).is_file() for source in sources):  # standard input, say
        return f"{words}."
    return f"{words}. Next: {_command('diagnose', *sources)}"


def describe_diagnosis(diagnosis: Diagnosis, qrels: str | None, run: str, *, percent: bool) -> str:
    """Describe how much of the run is tied and what that can do."""
    anatomy, effect = diagnosis.anatomy, diagnosis.effect
    if not anatomy.tied:
        return "No two documents of a query have the same score: there are no ties."
    tied = f"{anatomy.tied / anatomy.documents:.1%} of the documents are tied"
    if effect is None:
        example = f"deadheat diagnose QRELS {shlex.quote(run)}"
        return f"{tied}; to see the effect on measures, give judgements: {example}"
    given = [row for row in effect.what_if if row.format == "as given"]
    most = max(given, key=lambda row: row.range)
    if not most.range:
        return f"{tied}, and no tie moves any of these values."
    words = f"{tied}; they can move {most.measure} by {points(most.range, percent)}"
    if qrels is None or "-" in (qrels, run):  # cannot be read again
        return f"{words}."
    next_ = _command("plot", "list", qrels, run, "-m", most.measure, "-o", "list.pdf")
    return f"{words}. Next: {next_}"


def describe_experiment(results: Sequence[StoredResult], folder: str, *, percent: bool) -> str:
    """Describe what ties do to the result that they move most, and name the page of all of them."""
    next_ = f"Next: {_command('report', folder)}"
    named = {f"{r.name} in {r.model_dtype}, {r.regime}": r.result for r in results}
    moved = most_moved(named)
    if moved is None:
        return f"No tie moves any of these values. {next_}"
    name, summary = moved
    return f"{describe_effect(name, summary, percent=percent)}. {next_}"


def _command(*words: str) -> str:
    return shlex.join(["deadheat", *words])
