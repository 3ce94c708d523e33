"""The last lines of a command: the meaning of its table, and the remedy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from deadheat.cli.output import Output
from deadheat.diagnosis import REMEDIES, check_run, choose_regime, hang
from deadheat.errors import DeadheatError
from deadheat.evaluation import Result
from deadheat.report import describe_systems, most_moved
from deadheat.tables import number

if TYPE_CHECKING:
    from deadheat.diagnosis import Diagnosis
    from deadheat.lab.experiment import StoredResult


SMALL = 8_000_000
"""Largest size, in bytes, of a run and its judgements that are read again to find the remedy."""


def describe_results(named: Mapping[str, Result], out: Output) -> str:
    """Describe effect and remedy for the measure and run that ties move most."""
    finding = describe_systems(named, None, percent=out.percent)
    moved = most_moved(named)
    if moved is None:
        return finding
    name, summary = moved
    mean = number(summary.expected, percent=out.percent)
    remedy = f"report the mean over tie orders ({mean}) and the range"
    origin = named[name].provenance
    files = (origin.qrels or "-", origin.run)
    if all(Path(file).is_file() for file in files):
        command = shlex.join(["deadheat", "check", *files, "-m", summary.measure])
        remedy += f"; for the cause and what removes it: {command}"
        if sum(Path(file).stat().st_size for file in files) <= SMALL:
            with suppress(DeadheatError):  # check does not accept all options
                remedy = check_run(*files, summary.measure, **vars(origin.settings)).remedy
    return f"{finding}\n{hang('Remedy', remedy, out.columns)}"


def describe_diagnosis(diagnosis: Diagnosis, run: str) -> str:
    """Return the share of tied documents of a run without judgements, as a sentence."""
    anatomy = diagnosis.anatomy
    if not anatomy.tied:
        return "No two documents of a query have the same score: there are no ties."
    tied = f"{anatomy.tied:,} of {anatomy.documents:,} documents are tied"
    example = f"deadheat diagnose QRELS {shlex.quote(run)}"
    return f"{tied}; to see the effect on measures, give judgements: {example}"


def describe_experiment(results: Sequence[StoredResult], out: Output) -> str:
    """Describe the effect of ties on the result that they move most, and the best regime."""
    named = {f"{r.name} in {r.model_dtype}, {r.regime}": r for r in results}
    values = {name: stored.result for name, stored in named.items()}
    finding = describe_systems(values, None, percent=out.percent)
    moved = most_moved(values)
    if moved is None:
        return finding
    worst, measure = named[moved[0]], moved[1].measure
    ranges = {r.regime: r.result[measure].range for r in results if r.cell.path == worst.cell.path}
    chosen = choose_regime(ranges, worst.regime)
    if chosen == worst.regime:
        return finding
    left = f"the range of {measure} is then {number(ranges[chosen], percent=out.percent)}"
    return f"{finding}\n{hang('Remedy', f'{REMEDIES[chosen]}; {left}', out.columns)}"
