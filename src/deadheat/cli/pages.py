"""What a page shows, gathered: stored results, experiments, runs and their comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from deadheat.comparison import compared
from deadheat.errors import InputError
from deadheat.evaluation import Result, evaluated, same_judgements, short_names
from deadheat.formats import Judgements, Run, read_qrels, read_run
from deadheat.measures import Measure
from deadheat.report.page import Collection, System

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
"""Cutoffs of the curves of runs that are evaluated for a page."""


def evaluated_collection(
    qrels: str, paths: Sequence[str], measures: Sequence[Measure], options: dict[str, Any]
) -> Collection:
    """Evaluate run files in the measures asked for, and at more cutoffs for the curves."""
    judgements = read_qrels(qrels)
    more = [measure @ k for measure in measures for k in CUTOFFS]
    systems = []
    for path, name in zip(paths, short_names(paths), strict=True):
        run = read_run(path, with_ranks=options["tie_break"] == "rank")
        result = evaluated(judgements, run, measures, **options)
        # Remarks speak of the measures asked for, not of the curves.
        curves = evaluated(judgements, run, more, **options)
        result = replace(result, views={**result.views, **curves.views})
        systems.append(System(result, {"system": name}, run))
    return Collection(Path(qrels).name, systems, judgements)


def experiment_collections(folder: Path) -> list[Collection]:
    """Read what `deadheat run` stored: a collection per dataset."""
    from deadheat.experiment import StoredResult, load_results

    by_dataset: dict[str, list[StoredResult]] = {}
    for stored in load_results(folder):
        by_dataset.setdefault(stored.dataset, []).append(stored)
    collections = []
    for name, results in by_dataset.items():
        texts = results[0].texts()
        systems = []
        for stored in results:
            labels = {
                "model": stored.name,
                "model dtype": stored.model_dtype,
                "regime": stored.regime,
            }
            try:
                systems.append(System(stored.result, labels, read_run(stored.scores())))
            except InputError as error:
                systems.append(System(stored.result, labels, None, str(error)))
        qrels = read_qrels(texts.judgements)
        collections.append(Collection(name, systems, qrels, texts.queries, texts.corpus))
    return collections


def result_collections(results: Iterable[Result]) -> list[Collection]:
    """Sort results by the judgements they were computed with, and find the runs behind them."""
    groups: list[list[Result]] = []
    for result in results:
        alike = [group for group in groups if _belongs(result, group[0])]
        if alike:
            alike[0].append(result)
        else:
            groups.append([result])
    return [_result_collection(group, i) for i, group in enumerate(groups, 1)]


def with_comparison(
    collection: Collection, measures: Sequence[Measure], **options: Any
) -> Collection:
    """Compare the systems of a collection, or say why they are not compared.

    Parameters
    ----------
    measures
        Those to compare in, as far as the systems share them.
    options
        As for `deadheat.compare`.
    """
    if len(collection.systems) < 2:
        return replace(collection, not_compared="there is one system: nothing to compare it with")
    results = {
        name: replace(
            system.result, views={m: v for m, v in system.result.views.items() if m in measures}
        )
        for name, system in zip(collection.names, collection.systems, strict=True)
    }
    try:
        comparison = compared(results, queries="intersection", **options)
    except InputError as error:
        return replace(collection, not_compared=str(error))
    return replace(collection, comparison=comparison)


def _belongs(result: Result, other: Result) -> bool:
    if None in (result.provenance.judgements, other.provenance.judgements):
        return result.query_ids == other.query_ids
    return same_judgements(result, other)


def _result_collection(results: Sequence[Result], number: int) -> Collection:
    qrels: Judgements | None = None
    systems = []
    names = short_names([result.name for result in results])
    for result, name in zip(results, names, strict=True):
        run, why = None, "the result does not name its run and judgements"
        if result.provenance.qrels is not None:
            try:
                qrels = qrels or read_qrels(result.provenance.qrels)
                run = _same_run(result, qrels)
            except InputError as error:
                why = str(error)
        systems.append(System(result, {"system": name}, run, why))
    title = results[0].provenance.judgements or f"collection {number}"
    return Collection(Path(title).name, systems, qrels)


def _same_run(result: Result, qrels: Judgements) -> Run:
    """Read the run behind a result, and make sure that it still is what was evaluated."""
    origin = result.provenance
    run = read_run(origin.run, with_ranks=origin.tie_break == "rank")
    measure = next(iter(result.views))
    again = evaluated(
        qrels,
        run,
        [measure],
        tie_break=origin.tie_break,
        tie_tolerance=origin.tie_tolerance,
        queries=origin.queries,
        nan=origin.nan,
        score_dtype=origin.score_dtype,
    )
    same = again.query_ids == result.query_ids and np.allclose(
        again.views[measure].expected, result.views[measure].expected, rtol=0, atol=1e-9
    )
    if not same:
        raise InputError(f"{origin.run} or its judgements have changed since the evaluation")
    return run
