"""Evaluate several runs, here or by the workers of an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deadheat.engines import Engine, Here
from deadheat.errors import InputError
from deadheat.evaluation.evaluate import evaluated_source
from deadheat.evaluation.folders import evaluated_folder
from deadheat.evaluation.result import Result
from deadheat.formats import Judgements, RunLike
from deadheat.formats.folders import is_folder, run_folder
from deadheat.measures import Measure

Step = tuple[tuple[int, RunLike], Result]


def evaluated_runs(
    judgements: Judgements,
    runs: Sequence[RunLike],
    measures: Sequence[Measure],
    *,
    engine: Engine | None = None,
    watched: Callable[[Iterable[Step]], Iterable[Step]] = iter,
    **options: Any,
) -> list[Result]:
    """Evaluate runs as `evaluated_source` does each.

    Parameters
    ----------
    engine
        Where they are evaluated; here, one after the other, unless given. A worker evaluates a
        file; a folder is shared by all workers. They must find both under the same paths.
    watched
        Passes on what is done, and may count it.
    """
    if engine is not None and "-" in [_path(run) for run in runs]:
        raise InputError("standard input (-) cannot be read on a cluster: write it to a file first")
    steps = _steps(judgements, runs, measures, engine, options)
    done = {number: result for (number, _), result in watched(steps)}
    return [done[number] for number in range(len(runs))]


def _steps(
    judgements: Judgements,
    runs: Sequence[RunLike],
    measures: Sequence[Measure],
    engine: Engine | None,
    options: Mapping[str, Any],
) -> Iterator[Step]:
    shared = [engine is not None and is_folder(run) for run in runs]
    whole = [(number, run) for number, run in enumerate(runs) if not shared[number]]
    if whole:
        make = _Evaluator(judgements, measures, options)
        with (engine or Here()).pool(make) as workers:
            yield from workers.results(whole)
    for number, run in enumerate(runs):
        if engine is not None and is_folder(run):
            folder = run_folder(run)
            yield (
                (number, run),
                evaluated_folder(judgements, folder, measures, engine=engine, **options),
            )


@dataclass(frozen=True)
class _Evaluator:
    """Makes a worker that reads and evaluates a run."""

    judgements: Judgements
    measures: Sequence[Measure]
    options: Mapping[str, Any]

    def __call__(self) -> Callable[[tuple[int, RunLike]], Result]:
        return lambda numbered: evaluated_source(
            self.judgements, numbered[1], self.measures, **self.options
        )


def _path(run: RunLike) -> str | None:
    return os.fspath(run) if isinstance(run, (str, os.PathLike)) else None
