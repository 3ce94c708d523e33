"""Evaluate several runs, in this process or by the workers of an engine."""

from __future__ import annotations

import os
from collections.abc import Sequence

from deadheat.engines import Engine, LocalEngine, Progress
from deadheat.errors import InputError
from deadheat.evaluation.evaluate import evaluate_run
from deadheat.evaluation.folders import evaluate_folder
from deadheat.evaluation.result import Result
from deadheat.formats import Judgements, RunLike, is_folder, run_folder
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
    """Evaluate several runs, each as `evaluate_run` does.

    Parameters
    ----------
    engine
        Where runs are evaluated. Default: in this process, one after the other. A worker evaluates
        one file; all workers share a folder. Files must have the same paths on all machines.
    progress
        Called after each run with the name of the step, the number of runs done, and the total.
    """
    is_stdin = [isinstance(run, (str, os.PathLike)) and os.fspath(run) == "-" for run in runs]
    if engine is not None and any(is_stdin):
        raise InputError("standard input (-) cannot be read on a cluster: write it to a file first")
    done: dict[int, Result] = {}

    def finish(number: int, result: Result) -> None:
        done[number] = result
        if progress is not None:
            progress("evaluating", len(done), len(runs))

    def evaluate_one(numbered: tuple[int, RunLike]) -> Result:
        return evaluate_run(judgements, numbered[1], measures, settings)

    numbered = list(enumerate(runs))
    shared = [(n, run_folder(run)) for n, run in numbered if engine is not None and is_folder(run)]
    alone = [(n, run) for n, run in numbered if n not in dict(shared)]
    with (engine or LocalEngine()).pool(lambda: evaluate_one) as workers:
        for (number, _), result in workers.results(alone):
            finish(number, result)
    for number, folder in shared:
        finish(number, evaluate_folder(judgements, folder, measures, settings, engine=engine))
    return [done[number] for number in range(len(runs))]
