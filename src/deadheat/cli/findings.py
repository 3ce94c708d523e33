"""The last line of a command: what its table means, and the command to run next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deadheat.evaluation import Result, name_results
from deadheat.report import describe_systems, most_moved, points

if TYPE_CHECKING:
    from deadheat.diagnosis import Diagnosis
    from deadheat.lab.experiment import StoredResult


def describe_results(results: Sequence[Result], *, percent: bool) -> str:
    """Describe what ties do to the measure and run that they move most."""
    named = dict(zip(name_results(results), results, strict=True))
    said = describe_systems(named, None, percent=percent)
    moved = most_moved(named)
    if moved is None:
        return said
    origin = named[moved[0]].provenance
    return f"{said}{_next('diagnose', origin.qrels or '-', origin.run)}"


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
    said = f"{tied}; they can move {most.measure} by {points(most.range, percent)}."
    more = f" -m {shlex.quote(most.measure)} -o list.pdf"
    return said + _next("plot list", qrels or "-", run, more=more)


def describe_experiment(results: Sequence[StoredResult], folder: str, *, percent: bool) -> str:
    """Describe what ties do to the result that they move most, and name the page of all of them."""
    named = {f"{r.name} in {r.model_dtype}, {r.regime}": r.result for r in results}
    said = describe_systems(named, None, percent=percent)
    return f"{said} Next: deadheat report {shlex.quote(folder)}"


def _next(command: str, *files: str, more: str = "") -> str:
    """Give the command to run next, unless a file cannot be read again: standard input, say."""
    if not all(Path(file).is_file() for file in files):
        return ""
    return f" Next: deadheat {command} {shlex.join(files)}{more}"
