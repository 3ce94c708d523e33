"""Make collections for the page of `deadheat report` from stored results, experiments and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from deadheat.cli.common import name_given
from deadheat.cli.names import Named
from deadheat.engines import Progress
from deadheat.errors import InputError
from deadheat.evaluation import (
    Result,
    evaluate_with_curves,
    is_reproduced_by,
    name_results,
    same_judgements,
)
from deadheat.formats import Run, read_qrels, read_run
from deadheat.measures import Measure
from deadheat.report.page import Collection, System, number_repeated
from deadheat.settings import EvalSettings

if TYPE_CHECKING:
    from deadheat.lab.experiment import StoredResult

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
"""Cutoffs of the curves of runs that are evaluated for a page."""


def evaluate_collection(
    qrels: str,
    runs: Sequence[Named],
    measures: Sequence[Measure],
    settings: EvalSettings,
    progress: Progress | None = None,
) -> Collection:
    """Evaluate run files in the given measures, and at more cutoffs for the curves."""
    judgements = read_qrels(qrels)
    systems = []
    for given, name in zip(runs, name_given(runs), strict=True):
        run = read_run(given.path, with_ranks=settings.needs_ranks)
        result = evaluate_with_curves(judgements, run, measures, CUTOFFS, settings)
        systems.append(System(result, name, run))
        if progress is not None:
            progress("evaluating", len(systems), len(runs))
    return Collection(Path(qrels).name, systems, judgements)


def read_experiment(folder: Path, progress: Progress | None = None) -> list[Collection]:
    """Read the folder of `deadheat run`; return a collection per dataset."""
    from deadheat.lab.experiment import error_budget, is_computed_twice, load_results

    every, done = load_results(folder), 0
    collections = []
    for dataset, group in groupby(every, key=lambda stored: stored.dataset):
        results = list(group)
        systems = []
        for stored, name in zip(results, _name_stored(results), strict=True):
            try:
                system = System(stored.result, name, read_run(stored.scores()))
            except InputError as error:
                system = System(stored.result, name, None, str(error))
            systems.append(system)
            done += 1
            if progress is not None:
                progress("reading", done, len(every))
        budget = None
        if is_computed_twice(results):
            budget = error_budget(results)
            columns = [column for column in budget.columns if column.of != "dataset"]
            budget = replace(budget, columns=columns)
        texts = results[0].texts()
        judgements = read_qrels(texts.judgements)
        collections.append(
            Collection(dataset, systems, judgements, texts.queries, texts.corpus, budget=budget)
        )
    return collections


def _name_stored(results: Sequence[StoredResult]) -> list[str]:
    """Name results by what differs among model, model dtype and regime, and number equal names."""
    labels = [(stored.name, stored.model_dtype, stored.regime) for stored in results]
    columns = list(zip(*labels, strict=True))
    differing = [column for column in columns if len(set(column)) > 1] or columns
    return number_repeated([" · ".join(words) for words in zip(*differing, strict=True)])


def group_results(
    results: Sequence[Result], qrels: str | None = None, paths: Sequence[str] = ()
) -> list[Collection]:
    """Group results by their judgements; add the run of each result if it is among `paths`.

    A stored result contains the path of its run, but it may be untrusted, so that path is never
    read.

    Parameters
    ----------
    qrels, paths
        Judgements and run files to search for the runs of the results. Default: none.
    """
    judgements = None if qrels is None else read_qrels(qrels)
    with_ranks = any(result.provenance.settings.needs_ranks for result in results)
    runs = {path: read_run(path, with_ranks=with_ranks) for path in paths}

    def find_run(result: Result) -> tuple[Run | None, str]:
        """Return the run that reproduces a result, or None and the reason."""
        if judgements is None:
            return None, "to show them, give the run and its judgements with --runs and --qrels"
        named = result.provenance.run
        for path in sorted(runs, key=lambda path: Path(path).name != Path(named).name):
            if is_reproduced_by(result, judgements, runs[path]):
                return runs[path], ""
        return None, f"with {qrels}, none of the given runs has the values of {named}"

    groups: list[list[Result]] = []
    for result in results:
        alike = next((group for group in groups if _belongs(result, group[0])), None)
        if alike is None:
            groups.append(alike := [])
        alike.append(result)
    collections = []
    for number, group in enumerate(groups, 1):
        systems = [
            System(result, name, *find_run(result))
            for result, name in zip(group, number_repeated(name_results(group)), strict=True)
        ]
        title = group[0].provenance.judgements or f"collection {number}"
        collections.append(Collection(Path(title).name, systems, judgements))
    return collections


def _belongs(result: Result, other: Result) -> bool:
    if None in (result.provenance.judgements, other.provenance.judgements):
        return result.query_names == other.query_names
    return same_judgements(result, other)
