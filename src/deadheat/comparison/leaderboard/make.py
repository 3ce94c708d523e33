"""From judgements, runs and a published board to a leaderboard."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deadheat._lazy import pl
from deadheat.comparison.leaderboard.board import Leaderboard
from deadheat.comparison.leaderboard.entries import evaluate_entry, one_by_one
from deadheat.comparison.leaderboard.plan import Plan, plan_found, plan_told
from deadheat.comparison.leaderboard.published import (
    PublishedBoard,
    matched,
    mixed_digits,
    read_published,
)
from deadheat.comparison.leaderboard.rows import (
    rows_of,
    standing_of,
    unmet_remarks,
    winners_of,
    words_of,
)
from deadheat.comparison.leaderboard.sources import (
    Source,
    found_runs,
    read_manifest,
    run_sources,
)
from deadheat.comparison.leaderboard.summary import summarised
from deadheat.engines import Engine, Progress
from deadheat.errors import InputError
from deadheat.evaluation import DEFAULT_MEASURES
from deadheat.formats import read_qrels
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.remarks import Remark, emits_warnings, some, warning
from deadheat.settings import EvalOptions, EvalSettings

if TYPE_CHECKING:
    from typing_extensions import Unpack


@emits_warnings
def leaderboard(
    qrels: Any,
    runs: Any,
    measures: str | Measure | Iterable[Any] | None = None,
    *,
    published: Any = None,
    columns: Mapping[str, Any] | None = None,
    name_column: str | None = None,
    group: str | None = None,
    alpha: float = 0.05,
    workers: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    name: str = "",
    **options: Unpack[EvalOptions],
) -> Leaderboard:
    """Evaluate all runs of a board, hold them against what was published, and rank them.

    Runs are read one at a time and let go: what stays are their values per query. One that
    cannot be read is listed among the failures, and the others are evaluated.

    Parameters
    ----------
    qrels
        Judgements, as for `deadheat.evaluate`.
    runs
        ``{name: run}``; or paths of files, folders and patterns such as ``"runs/*.xz"``. A folder
        stands for all runs in it; one that is given a name is a run in many Parquet files.
    measures
        Those of the published board, or the usual ones, unless given. The first one gives the
        official order.
    published
        The board as it was published: a file (CSV, TSV, JSONL, Parquet), a table, or ``{run:
        {measure: number}}``. Runs are found in it by the names of their files, or by their tags.
    columns
        Measures of published columns whose headings do not tell; None leaves a column out.
    name_column
        The published column of names, where it is neither called so nor the first.
    group
        A column of words of the published board, such as the team: winners are also found
        inside each group.
    alpha
        Pairs whose order random tie-breaking keeps with a probability below ``1 − alpha`` are
        undecided.
    workers
        How many runs are evaluated at a time; as many as there are cores unless given. The
        result does not depend on it.
    progress
        Called with what is being done, how many runs are done, and of how many.
    engine
        Where runs are read and evaluated: such as ``RayCluster`` of `deadheat.engines.cluster`,
        whose workers must find the files under the same paths. Threads of this process unless
        given.
    name
        What the board is called.
    **options
        As for `deadheat.evaluate`. Unless one of them besides `nan` is given, and there is a
        published board, the rule that made its numbers is searched for.

    Examples
    --------
    >>> import deadheat as dh
    >>> qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    >>> tied = {"q1": {"d1": 1.0, "d2": 1.0}, "q2": {"d1": 1.0, "d2": 1.0}}
    >>> sure = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 2.0, "d2": 1.0}}
    >>> board = dh.leaderboard(qrels, {"tied": tied, "sure": sure}, ["MRR"])
    >>> board.rows.select("run", "expected", "worst", "best", "best_rank", "worst_rank").rows()
    [('tied', 0.75, 0.5, 1.0, 1, 2), ('sure', 0.75, 0.75, 0.75, 1, 2)]
    """
    return build_leaderboard(
        *(qrels, runs, measures),
        published=published,
        columns=columns,
        name_column=name_column,
        group=group,
        alpha=alpha,
        workers=workers,
        progress=progress,
        engine=engine,
        name=name,
        **options,
    )


def build_leaderboard(
    qrels: Any,
    runs: Any,
    measures: str | Measure | Iterable[Any] | None = None,
    *,
    published: Any = None,
    columns: Mapping[str, Any] | None = None,
    name_column: str | None = None,
    group: str | None = None,
    alpha: float = 0.05,
    workers: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    name: str = "",
    **options: Unpack[EvalOptions],
) -> Leaderboard:
    """Make a leaderboard as `leaderboard` does, without emitting warnings."""
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, not {alpha!r}")
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers must be a whole number from 1, not {workers!r}")
    board = None if published is None else read_published(published, columns, name_column)
    _check_group(board, group)
    sources = run_sources(runs, without=(qrels, published))
    rows, remarks = _rows_of(board, sources)
    judgements = read_qrels(qrels)
    asked = None if measures is None else parse_measures(measures)
    settings = EvalSettings(**options)  # type: ignore[arg-type]
    told = None if set(options) <= {"nan"} else settings
    work = partial(one_by_one, workers=workers, progress=progress, engine=engine)
    if board is None:
        plan = Plan(dict.fromkeys(asked or parse_measures(DEFAULT_MEASURES), settings))
    elif told is None:
        plan = plan_found(board, rows, asked, sources, judgements, work)
    else:
        plan = plan_told(board, asked, told)
    if not plan.settings and len(plan.failures) < len(sources):
        raise InputError(
            f"{judgements.source if board is None else board.source}: no run that could be read "
            "has a published number; give the measures to evaluate (-m)"
        )
    left = [source for source in sources if source.name not in plan.failures]
    with_nan = {m: replace(own, nan=settings.nan) for m, own in plan.settings.items()}
    evaluate = partial(evaluate_entry, judgements=judgements, settings=with_nan)
    entries, failed = work(evaluate, left, "evaluating")
    failures = plan.failures | failed
    if not entries:
        first, why = next(iter(failures.items()))
        raise InputError(f"no run could be evaluated; {first}: {why}")
    standings = [
        standing_of(measure, entries, rows, plan.columns.get(measure)) for measure in plan.settings
    ]
    frames = [
        rows_of(standing, entries, board, rows, plan.columns.get(standing.measure))
        for standing in standings
    ]
    facts, errors = zip(*(summarised(standing, alpha) for standing in standings), strict=True)
    may_be_missing = ("published", "met", "reversed", "decision_errors")
    types = dict.fromkeys(may_be_missing, pl.Int64) | {"official": pl.String}
    unmet = [
        remark
        for standing in standings
        if (column := plan.columns.get(standing.measure)) is not None
        for remark in unmet_remarks(
            standing, column, plan.settings[standing.measure], searched=told is None
        )
    ]
    return Leaderboard(
        name or Path(judgements.source if board is None else board.source).name,
        pl.concat(frames),
        pl.DataFrame(facts, infer_schema_length=None, schema_overrides=types),
        [error for own in errors for error in own],
        [winner for s in standings for winner in winners_of(s, board, rows, group)],
        plan.rules,
        plan.settings,
        tuple(words_of(board)),
        group,
        alpha,
        failures,
        entries,
        (*remarks, *unmet, *plan.remarks),
    )


def _check_group(board: PublishedBoard | None, group: str | None) -> None:
    if group is None:
        return
    if board is None:
        raise InputError(f"a group such as {group!r} is a column of a published board: give one")
    if group not in board.words:
        known = ", ".join(map(repr, board.words)) or "none"
        raise InputError(f"{board.source}: there is no column of words {group!r}; it has {known}")


def _rows_of(
    board: PublishedBoard | None, sources: Sequence[Source]
) -> tuple[dict[str, str], list[Remark]]:
    """Names in the board of the runs, and remarks on what is only here or only there."""
    if board is None:
        return {}, []
    rows, unlisted, absent = matched(board, sources)
    if not rows:
        raise InputError(
            f"no run is in {board.source}: the runs are called like {sources[0].name!r}, the board "
            f"names {board.names[0]!r}"
        )
    only = {
        "{n:run} not in the board: {names}": unlisted,
        "{n:run} of the board without a run file: {names}": absent,
    }
    remarks = [
        warning(pattern, n=len(names), names=some(names))
        for pattern, names in only.items()
        if names
    ]
    return rows, remarks + mixed_digits(board)


def leaderboards(
    manifest: str | os.PathLike[str], *, allow_outside: bool = False, **options: Any
) -> list[Leaderboard]:
    """Make every leaderboard of a manifest; warnings are on each, and none is emitted.

    Parameters
    ----------
    manifest
        A TOML file with a table ``[[board]]`` per round or task: ``qrels`` and ``runs``, perhaps
        ``name``, ``published``, ``measures`` and ``columns``, all as for `leaderboard`.
    allow_outside
        Read files outside of the folder of the manifest, too. Unless given, absolute paths,
        ``..`` and links that lead out of that folder are refused.
    options
        Further options of `leaderboard`, for all of them.
    """
    specs = read_manifest(manifest, allow_outside=allow_outside)
    inside = None if allow_outside else Path(manifest).parent
    boards = []
    for number, spec in enumerate(specs, 1):
        try:
            runs = found_runs(spec.runs, (spec.qrels, spec.published), inside)
            boards.append(
                build_leaderboard(
                    spec.qrels,
                    {source.name: source.run for source in runs},
                    spec.measures or None,
                    published=spec.published,
                    columns=spec.columns,
                    name=spec.name,
                    **options,
                )
            )
        except InputError as error:
            raise InputError(f"{manifest}: board {number}: {error}") from None
    return boards
