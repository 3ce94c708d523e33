"""The runs of a leaderboard, evaluated one at a time: their values stay, their documents go."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deadheat.comparison.leaderboard.sources import Source
from deadheat.diagnosis.cuts import cut_lists
from deadheat.diagnosis.number_grid import find_grid
from deadheat.engines import Engine, Progress
from deadheat.errors import InputError
from deadheat.evaluation import Result
from deadheat.evaluation.evaluate import result_of_counted
from deadheat.evaluation.folders import run_parts, together
from deadheat.evaluation.views import SHOWN, need_judged
from deadheat.formats import Judgements, Run, read_run
from deadheat.formats.folders import is_folder, run_folder
from deadheat.measures import Measure
from deadheat.packages import available_cores
from deadheat.settings import EvalSettings
from deadheat.ties import TieGroups
from deadheat.ties.build import Counted, count_groups

T = TypeVar("T")
_QUOTE = re.compile(r"""['"`]|(?<=cannot be read as [CT]SV: )|(?<=cannot be read as PARQUET: )""")
"""Where a message begins to quote a file, or what another library said of it."""
_MANY = 2_000_000
"""Of more distinct scores of a run in parts no grid is looked for: memory must not grow with it."""
Outcome = tuple[dict[str, T], dict[str, str]]
"""What a function gave of each run, by its name; and what was wrong with the runs it failed on."""
Work = Callable[[Callable[[Source], T], Sequence[Source], str], Outcome[T]]
"""Applies a function to every run; the words say what that is doing."""


@dataclass(frozen=True)
class Entry:
    """A run of a leaderboard: what its documents were is forgotten."""

    name: str
    results: Mapping[Measure, Result]
    """Per measure the result under the setting that belongs to it."""
    cut: Mapping[Measure, int]
    """Per measure: lists that were cut inside a tie group which can move its digits."""
    grid: str
    """The number grid of the scores; of very many in a run of parts, the type they came as."""


def evaluate_entry(
    source: Source,
    judgements: Judgements,
    settings: Mapping[Measure, EvalSettings],
) -> Entry:
    """Read a run, evaluate it under every setting, and let it go."""
    asked: dict[EvalSettings, list[Measure]] = {}
    for measure, setting in settings.items():
        asked.setdefault(setting, []).append(measure)
    counted: dict[EvalSettings, list[Counted]] = {setting: [] for setting in asked}
    distinct: NDArray[Any] = np.empty(0)
    n_parts = 0
    for own, run in parts_of(source, judgements, with_ranks=any(s.needs_ranks for s in asked)):
        for setting, measures in asked.items():
            with_judged = need_judged(measures)
            counted[setting].append(count_groups(own, run, setting, with_judged=with_judged))
        if not n_parts:
            distinct = np.unique(run.scores)
        elif len(distinct) <= _MANY:
            distinct = np.union1d(distinct, run.scores)
        source_name, n_parts = run.source, n_parts + 1
    results: dict[Measure, Result] = {}
    cut: dict[Measure, int] = {}
    for setting, measures in asked.items():
        whole = together(counted[setting])
        result = result_of_counted(whole, judgements, source_name, measures, setting)
        results |= dict.fromkeys(measures, result)
        cut |= _cut_lists(whole.groups, measures)
    return Entry(source.name, results, cut, _grid(distinct, n_parts))


def _grid(distinct: NDArray[Any], parts: int) -> str:
    if parts > 1 and len(distinct) > _MANY:
        return f"fp{8 * distinct.itemsize}"
    return find_grid(distinct).name


def parts_of(
    source: Source, judgements: Judgements, *, with_ranks: bool
) -> Iterator[tuple[Judgements, Run]]:
    """Read a run, and give it with the judgements; one of many files in parts that fit in memory.

    `with_ranks` asks for ranks, but not every run has some.
    """
    if is_folder(source.run):
        yield from run_parts(judgements, run_folder(source.run))
        return
    try:
        run = read_run(source.run, with_ranks=with_ranks)
    except InputError:
        if not with_ranks:
            raise
        run = read_run(source.run)
    yield judgements, run


def one_by_one(
    function: Callable[[Source], T],
    sources: Sequence[Source],
    what: str,
    workers: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Outcome[T]:
    """Apply a function to every run, several at a time.

    The workers are those of an engine, or else threads: decompressing, reading and counting leave
    the interpreter free, and the judgements are shared. What comes back does not depend on it.

    Returns
    -------
    values, failures
        By the names of the runs, in their order; a failure is what was wrong with the run.
    """
    values: dict[str, T] = {}
    failures: dict[str, str] = {}
    outcomes = (
        _in_threads(function, sources, workers)
        if engine is None
        else _by_engine(function, sources, engine)
    )
    for done, (source, value, failure) in enumerate(outcomes, start=1):
        if failure is None:
            values[source.name] = value
        else:
            failures[source.name] = failure
        if progress is not None:
            progress(what, done, len(sources))
    names = [source.name for source in sources]
    return (
        {name: values[name] for name in names if name in values},
        {name: failures[name] for name in names if name in failures},
    )


def _in_threads(
    function: Callable[[Source], T], sources: Sequence[Source], workers: int | None
) -> Iterator[tuple[Source, Any, str | None]]:
    """Give every run with what the function gave, or what was wrong with the run."""
    with ThreadPoolExecutor(workers or available_cores()) as pool:
        futures = [pool.submit(_Outcomes(function), source) for source in sources]
        try:
            for source, future in zip(sources, futures, strict=True):
                yield source, *future.result()
        except BaseException:  # also Ctrl-C: what has not begun need not begin
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _by_engine(
    function: Callable[[Source], T], sources: Sequence[Source], engine: Engine
) -> Iterator[tuple[Source, Any, str | None]]:
    """Give the same, as it is done."""
    with engine.pool(lambda: _Outcomes(function)) as pool:
        for source, (value, failure) in pool.results(sources):
            yield source, value, failure


@dataclass(frozen=True)
class _Outcomes:
    """Gives what a function gives, and what was wrong with the run if it gives nothing."""

    function: Callable[[Source], Any]

    def __call__(self, source: Source) -> tuple[Any, str | None]:
        try:
            return self.function(source), None
        except InputError as error:
            return None, without_content(str(error), source)


def without_content(message: str, source: Source) -> str:
    """Cut a message of a reader where it begins to quote the file.

    Failures are stored, and shown to others. A file may hold what is not for them: it may be no
    run at all. Readers say where and what is wrong first, and quote the file afterwards.

    >>> without_content("a.run, line 1: expected 6 fields, found 1: 'secret'", Source("a", "a.run"))
    'a.run, line 1: expected 6 fields, found 1: …'
    """
    begin = "" if source.path is None else str(source.path)
    begin = begin if message.startswith(begin) else ""
    rest = message[len(begin) :]
    quote = _QUOTE.search(rest)
    return message if quote is None else f"{begin}{rest[: quote.start()]}…"


def _cut_lists(groups: TieGroups, measures: Sequence[Measure]) -> dict[Measure, int]:
    """Per measure: lists that were cut inside a tie group which can move its digits."""
    if groups.end_above is None:
        return dict.fromkeys(measures, 0)
    cut, above = cut_lists(groups), groups.end_above
    return {m: int((cut & (m.at_stake(groups, above) >= SHOWN)).sum()) for m in measures}
