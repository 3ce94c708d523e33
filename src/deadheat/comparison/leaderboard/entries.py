"""Evaluate the runs of a leaderboard one at a time; only their values are kept."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from deadheat._internal.packages import available_cores
from deadheat._internal.threads import share_work
from deadheat.diagnosis import find_grid
from deadheat.engines import Engine, Progress
from deadheat.errors import InputError
from deadheat.evaluation import Result, result_of_counted, run_parts, together
from deadheat.formats import Judgements, Run, RunLike, is_folder, read_run, run_folder
from deadheat.measures import Measure
from deadheat.settings import EvalSettings
from deadheat.ties import Counted, count_groups

ApplyToRuns = Callable[..., tuple[dict[str, Any], dict[str, str]]]
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
    counted: dict[EvalSettings, list[Counted]] = {setting: [] for setting in asked}
    with_ranks = any(setting.needs_ranks for setting in asked)
    scores = None
    for own, run in read_parts(source, judgements, with_ranks=with_ranks):
        for setting, measures in asked.items():
            with_judged = any(measure.needs_judged for measure in measures)
            counted[setting].append(count_groups(own, run, setting, with_judged=with_judged))
        if scores is None:
            scores = np.unique(run.scores)
        elif len(scores) <= _MANY:
            scores = np.union1d(scores, run.scores)
    assert scores is not None  # a run has at least one part
    few = len(scores) <= _MANY
    grid = find_grid(scores).name if few else f"fp{8 * scores.itemsize}"
    results: dict[Measure, Result] = {}
    for setting, measures in asked.items():
        whole = together(counted[setting])
        result = result_of_counted(whole, judgements, run.source, measures, setting)
        results |= dict.fromkeys(measures, result)
    return Entry(results, grid)


def read_parts(
    source: RunLike, judgements: Judgements, *, with_ranks: bool
) -> Iterator[tuple[Judgements, Run]]:
    """Read a run and yield it with the judgements.

    A run of many files is yielded in parts that fit in memory. `with_ranks` asks for ranks, but
    not every run has ranks.
    """
    if is_folder(source):
        yield from run_parts(judgements, run_folder(source))
        return
    try:
        run = read_run(source, with_ranks=with_ranks)
    except InputError:
        if not with_ranks:
            raise
        run = read_run(source)
    yield judgements, run


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
