"""Evaluate the runs of a leaderboard one at a time; only their values are kept."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.packages import available_cores
from deadheat._internal.threads import share_work
from deadheat.diagnosis import find_grid
from deadheat.engines import Engine, Progress
from deadheat.errors import InputError
from deadheat.evaluation import Result, evaluate_run, run_parts
from deadheat.formats import Judgements, RunLike, is_folder, read_run, run_folder
from deadheat.measures import Measure
from deadheat.settings import EvalSettings

ApplyToRuns = Callable[..., tuple[dict[str, object], dict[str, str]]]
"""`apply_to_runs` with workers, progress and engine given."""
_QUOTE = re.compile(r"""['"`]|(?<=cannot be read as [CT]SV: )|(?<=cannot be read as Parquet: )""")
"""Start of the part of a message that quotes a file, or another library's message about it."""
_MANY = 1 << 24
"""If a run has more distinct scores than this, no grid is searched, to limit memory."""


@dataclass(frozen=True)
class Entry:
    """A run of a leaderboard without its documents."""

    results: Mapping[Measure, Result]
    """Per measure: the result under the setting of that measure."""
    grid: str
    """The number grid of the scores. If a run has too many distinct scores, their type."""


def evaluate_entry(
    source: RunLike, judgements: Judgements, settings: Mapping[Measure, EvalSettings]
) -> Entry:
    """Read a run and evaluate it under every setting."""
    asked = {s: [m for m in settings if settings[m] == s] for s in settings.values()}
    run = source
    if not is_folder(source):
        run = read_run(source, with_ranks=any(setting.needs_ranks for setting in asked))
    results: dict[Measure, Result] = {}
    for setting, measures in asked.items():
        result = evaluate_run(judgements, run, measures, setting)
        results |= dict.fromkeys(measures, result)
    return Entry(results, _describe_grid(run, judgements))


def _describe_grid(run: RunLike, judgements: Judgements) -> str:
    """Return the number grid of a run's scores, or their type if there are too many."""
    parts = run_parts(judgements, run_folder(run)) if is_folder(run) else [(judgements, run)]
    scores: list[NDArray[np.generic]] = []
    for _, part in parts:
        scores = [np.unique(np.concatenate([*scores, read_run(part, copy=False).scores]))]
        if len(scores[0]) > _MANY:
            return f"fp{8 * scores[0].itemsize}"
    return find_grid(scores[0]).name


def apply_to_runs(
    function: Callable[[RunLike], object],
    runs: Mapping[str, RunLike],
    what: str,
    *,
    workers: int | None,
    progress: Progress | None,
    engine: Engine | None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Apply a function to every run, in threads of this process or with the workers of an engine.

    Parameters
    ----------
    what
        Description of the work, for `progress`.
    workers
        Number of threads. Default: the number of cores.

    Returns
    -------
    values, failures
        Dicts from run names, in the order of the runs. A failure is an error message.
    """
    outcomes: dict[str, tuple[object, str]] = {}
    attempt, named = partial(_attempt, function), list(runs.items())
    with ExitStack() as stack:
        if engine is None:
            # Threads work in parallel: decompressing, reading and counting release the GIL.
            done = share_work(attempt, named, workers or available_cores())
        else:
            pool = stack.enter_context(engine.pool(lambda: attempt))
            done = (outcome for _, outcome in pool.results(named))
        for name, value, error in done:
            outcomes[name] = value, error
            if progress is not None:
                progress(what, len(outcomes), len(runs))
    failures = {name: outcomes[name][1] for name in runs if outcomes[name][1]}
    return {name: outcomes[name][0] for name in runs if name not in failures}, failures


def _attempt(
    function: Callable[[RunLike], object], named: tuple[str, RunLike]
) -> tuple[str, object, str]:
    """Return the name of a run, and the function's value for it or else an error message."""
    name, run = named
    try:
        return name, function(run), ""
    except InputError as error:
        return name, None, without_content(str(error), run)


def without_content(message: str, run: RunLike) -> str:
    """Cut an error message of a reader before the part that quotes the file.

    Failures are stored and shown to others, and a file that is not a run may contain private
    text. Messages of readers name the place and the error first, and quote the file afterwards.

    >>> without_content("a.run, line 1: expected 6 fields, found 1: 'secret'", "a.run")
    'a.run, line 1: expected 6 fields, found 1: …'
    """
    path = str(run) if isinstance(run, (str, os.PathLike)) else ""
    quote = _QUOTE.search(message, len(path) if message.startswith(path) else 0)
    return message if quote is None else f"{message[: quote.start()]}…"
