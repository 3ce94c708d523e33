"""Make collections for the page of `deadheat report` from stored results, experiments and runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from deadheat.cli.common import name_given
from deadheat.cli.names import Named
from deadheat.comparison import compare_if_possible
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
from deadheat.report.page import Collection, System
from deadheat.settings import EvalSettings

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
        systems.append(System(result, {"system": name}, run))
        if progress is not None:
            progress("evaluating", len(systems), len(runs))
    return Collection(Path(qrels).name, systems, judgements)


def read_experiment(folder: Path, progress: Progress | None = None) -> list[Collection]:
    """Read the folder of `deadheat run`; return a collection per dataset."""
    from deadheat.lab.experiment import StoredResult, error_budget, is_computed_twice, load_results

    every = load_results(folder)
    by_dataset: dict[str, list[tuple[StoredResult, System]]] = {}
    for done, stored in enumerate(every, 1):
        labels = {"model": stored.name, "model dtype": stored.model_dtype, "regime": stored.regime}
        try:
            system = System(stored.result, labels, read_run(stored.scores()))
        except InputError as error:
            system = System(stored.result, labels, None, str(error))
        by_dataset.setdefault(stored.dataset, []).append((stored, system))
        if progress is not None:
            progress("reading", done, len(every))
    collections = []
    for name, pairs in by_dataset.items():
        results, systems = map(list, zip(*pairs, strict=True))
        texts, budget = results[0].texts(), None
        if is_computed_twice(results):
            budget = error_budget(results)
            columns = [column for column in budget.columns if column.of != "dataset"]
            budget = replace(budget, columns=columns)
        qrels = read_qrels(texts.judgements)
        collections.append(
            Collection(name, systems, qrels, texts.queries, texts.corpus, budget=budget)
        )
    return collections


def group_results(
    results: Iterable[Result], qrels: str | None = None, paths: Sequence[str] = ()
) -> list[Collection]:
    """Group results by their judgements; add the run of each result if it is among `paths`.

    A stored result contains the path of its run, but it may be untrusted, so that path is never
    read.

    Parameters
    ----------
    qrels, paths
        Judgements and run files to search for the runs of the results.
    """
    judgements = read_qrels(qrels) if qrels is not None and paths else None
    read = cache(lambda path, with_ranks: read_run(path, with_ranks=with_ranks))

    def find_run(result: Result) -> tuple[Run | None, str]:
        """Return the run that reproduces a result, or None and the reason."""
        if judgements is None:
            return None, "to show them, give the run and its judgements with --runs and --qrels"
        origin = result.provenance
        for path in sorted(paths, key=lambda path: Path(path).name != Path(origin.run).name):
            run = read(path, origin.settings.needs_ranks)
            if is_reproduced_by(result, judgements, run):
                return run, ""
        return None, f"with {qrels}, none of the given runs has the values of {origin.run}"

    groups: list[list[Result]] = []
    for result in results:
        alike = next((group for group in groups if _belongs(result, group[0])), None)
        if alike is None:
            groups.append(alike := [])
        alike.append(result)
    collections = []
    for number, group in enumerate(groups, 1):
        systems = [
            System(result, {"system": name}, *find_run(result))
            for result, name in zip(group, name_results(group), strict=True)
        ]
        title = group[0].provenance.judgements or f"collection {number}"
        found = any(system.run is not None for system in systems)
        collections.append(Collection(Path(title).name, systems, judgements if found else None))
    return collections


def compare_collection(
    collection: Collection, measures: Sequence[Measure] | None = None, **options: Any
) -> Collection:
    """Return the collection with a comparison of its systems, or the reason why there is none.

    Parameters
    ----------
    measures
        Measures to compare. Default: those that the page shows.
    **options
        As for `deadheat.compare`.
    """
    shown = collection.measures(measures)
    comparison, why_not = compare_if_possible(collection.results, shown, **options)
    return replace(collection, comparison=comparison, not_compared=why_not)


def _belongs(result: Result, other: Result) -> bool:
    if None in (result.provenance.judgements, other.provenance.judgements):
        return result.query_names == other.query_names
    return same_judgements(result, other)
