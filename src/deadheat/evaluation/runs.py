"""Evaluate several runs, here or by the workers of an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from deadheat.engines import Engine, LocalEngine, Progress
from deadheat.errors import InputError
from deadheat.evaluation.evaluate import evaluate_source
from deadheat.evaluation.folders import evaluate_folder
from deadheat.evaluation.result import Result
from deadheat.formats import Judgements, RunLike
from deadheat.formats.folders import is_folder, run_folder
from deadheat.measures import Measure
from deadheat.settings import EvalSettings


def evaluate_runs(
    judgements: Judgements,
    runs: Sequence[RunLike],
    measures: Sequence[Measure],
    settings: EvalSettings,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Evaluate runs as `evaluate_source` does each.

    Parameters
    ----------
    engine
        Where they are evaluated; here, one after the other, unless given. A worker evaluates a
        file; a folder is shared by all workers. They must find both under the same paths.
    progress
        Called after each run with what is done, how many runs are done, and of how many.
    """
    if engine is not None and "-" in [_path(run) for run in runs]:
        raise InputError("standard input (-) cannot be read on a cluster: write it to a file first")
    done: dict[int, Result] = {}
    for (number, _), result in _steps(judgements, runs, measures, engine, settings):
        done[number] = result
        if progress is not None:
            progress("evaluating", len(done), len(runs))
    return [done[number] for number in range(len(runs))]


def _steps(
    judgements: Judgements,
    runs: Sequence[RunLike],
    measures: Sequence[Measure],
    engine: Engine | None,
    settings: EvalSettings,
) -> Iterator[tuple[tuple[int, RunLike], Result]]:
    shared = [engine is not None and is_folder(run) for run in runs]
    whole = [(number, run) for number, run in enumerate(runs) if not shared[number]]
    if whole:
        make = _Evaluator(judgements, measures, settings)
        with (engine or LocalEngine()).pool(make) as workers:
            yield from workers.results(whole)
    for number, run in enumerate(runs):
        if engine is not None and is_folder(run):
            folder = run_folder(run)
            yield (
                (number, run),
                evaluate_folder(judgements, folder, measures, settings, engine=engine),
            )


@dataclass(frozen=True)
class _Evaluator:
    """Makes a worker that reads and evaluates a run."""

    judgements: Judgements
    measures: Sequence[Measure]
    settings: EvalSettings

    def __call__(self) -> Callable[[tuple[int, RunLike]], Result]:
        return lambda numbered: evaluate_source(
            self.judgements, numbered[1], self.measures, self.settings
        )


def _path(run: RunLike) -> str | None:
    return os.fspath(run) if isinstance(run, (str, os.PathLike)) else None
