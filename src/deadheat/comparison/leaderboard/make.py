"""From judgements, runs and a published board to a leaderboard."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from deadheat.comparison.leaderboard.board import Leaderboard
from deadheat.comparison.leaderboard.entries import evaluate_entry, one_by_one
from deadheat.comparison.leaderboard.plan import Plan, plan_found, plan_told
from deadheat.comparison.leaderboard.published import (
    PublishedBoard,
    matched,
    mixed_digits,
    read_published,
)
from deadheat.comparison.leaderboard.rows import rows_of, standing_of, winners_of, words_of
from deadheat.comparison.leaderboard.rules import Setting
from deadheat.comparison.leaderboard.sources import Source, read_manifest, run_sources
from deadheat.comparison.leaderboard.summary import summarised
from deadheat.comparison.leaderboard.tables import some
from deadheat.engines import Engine, Progress
from deadheat.errors import InputError
from deadheat.evaluation import DEFAULT_MEASURES, NanPolicy, QueryPolicy
from deadheat.formats import read_qrels
from deadheat.late import pl
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.remarks import Remark, announcing, warning
from deadheat.ties.rules import TieRule


@announcing
def leaderboard(
    qrels: Any,
    runs: Any,
    measures: str | Measure | Iterable[Any] | None = None,
    *,
    published: Any = None,
    columns: Mapping[str, Any] | None = None,
    name_column: str | None = None,
    group: str | None = None,
    tie_break: TieRule | None = None,
    score_dtype: str | None = None,
    queries: QueryPolicy | None = None,
    nan: NanPolicy = "raise",
    alpha: float = 0.05,
    workers: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    name: str = "",
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
    tie_break, score_dtype, queries
        As for `deadheat.evaluate`. Unless one of them is given, and there is a published board,
        the rule that made its numbers is searched for; without a board, ``"input"``.
    nan
        As for `deadheat.evaluate`.
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
    told = None
    if (tie_break, score_dtype, queries) != (None, None, None):
        told = Setting(tie_break or "input", score_dtype, queries or "judged")
    work = partial(one_by_one, workers=workers, progress=progress, engine=engine)
    if board is None:
        plan = Plan(dict.fromkeys(asked or parse_measures(DEFAULT_MEASURES), told or Setting()))
    elif told is None:
        plan = plan_found(board, rows, asked, sources, judgements, work)
    else:
        plan = plan_told(board, asked, told)
    left = [source for source in sources if source.name not in plan.failures]
    evaluate = partial(evaluate_entry, judgements=judgements, settings=plan.settings, nan=nan)
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
    facts = [summarised(standing, alpha) for standing in standings]
    return Leaderboard(
        name or Path(judgements.source if board is None else board.source).name,
        pl.concat(frames),
        pl.DataFrame(facts, infer_schema_length=None),
        [winner for s in standings for winner in winners_of(s, board, rows, group)],
        plan.rules,
        plan.settings,
        tuple(words_of(board)),
        group,
        alpha,
        failures,
        entries,
        (*remarks, *plan.remarks),
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


def leaderboards(manifest: str | os.PathLike[str], **options: Any) -> list[Leaderboard]:
    """Make every leaderboard of a manifest, without a word: what to know is on each.

    Parameters
    ----------
    manifest
        A TOML file with a table ``[[board]]`` per round or task: ``qrels`` and ``runs``, perhaps
        ``name``, ``published``, ``measures`` and ``columns``, all as for `leaderboard`.
    options
        Further options of `leaderboard`, for all of them.
    """
    return [
        leaderboard.quiet(
            spec.qrels,
            spec.runs,
            spec.measures or None,
            published=spec.published,
            columns=spec.columns,
            name=spec.name,
            **options,
        )
        for spec in read_manifest(manifest)
    ]
