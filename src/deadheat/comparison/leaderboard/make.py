"""From judgements, runs and a published board to a leaderboard."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from deadheat.comparison.leaderboard import rules as search
from deadheat.comparison.leaderboard.board import Leaderboard
from deadheat.comparison.leaderboard.entries import (
    Progress,
    evaluate_entry,
    evaluated_one_by_one,
    read,
)
from deadheat.comparison.leaderboard.published import (
    Cell,
    PublishedBoard,
    PublishedColumn,
    matched,
    read_published,
)
from deadheat.comparison.leaderboard.rows import rows_of, standing_of, winners_of, words_of
from deadheat.comparison.leaderboard.rules import FoundRule, Setting
from deadheat.comparison.leaderboard.sources import Source, read_manifest, run_sources
from deadheat.comparison.leaderboard.summary import summarised
from deadheat.comparison.leaderboard.tables import some
from deadheat.errors import InputError
from deadheat.evaluation import DEFAULT_MEASURES
from deadheat.formats import Judgements, read_qrels
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.remarks import Remark, announcing, note, warning


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
    tie_break: str | None = None,
    score_dtype: str | None = None,
    queries: str | None = None,
    nan: str = "raise",
    alpha: float = 0.05,
    workers: int | None = None,
    progress: Progress | None = None,
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
        ``{name: run}``; or paths of files, folders and patterns such as ``"runs/*.xz"``.
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
    judgements = read_qrels(qrels)
    asked = None if measures is None else parse_measures(measures)
    rows, remarks = _rows_of(board, sources)
    told = Setting(tie_break or "input", score_dtype, queries or "judged")
    searching = board is not None and told == Setting() and tie_break is None and queries is None
    failures: dict[str, str] = {}
    found: list[FoundRule] = []
    readings = (
        {} if board is None else _readings(board, asked, judgements, search_variants=searching)
    )
    if board is not None and searching:
        found, failures = _found_rules(
            board, readings, rows, sources, judgements, workers, progress
        )
        told = _usual(found, told)
    settings, column_of = _settings(board, readings, found, asked, told, remarks)
    left = [source for source in sources if source.name not in failures]
    evaluate = partial(evaluate_entry, judgements=judgements, settings=settings, nan=nan)
    entries, failed = evaluated_one_by_one(evaluate, left, "evaluating", workers, progress)
    failures |= failed
    if not entries:
        first, why = next(iter(failures.items()))
        raise InputError(f"no run could be evaluated; {first}: {why}")
    remarks += [warning(text) for text in search.unmet(found)]
    remarks += [note(text) for text in search.disagreement(found)]
    standings = [
        standing_of(measure, entries, rows, column_of.get(measure)) for measure in settings
    ]
    frames = [
        rows_of(standing, entries, board, rows, column_of.get(standing.measure))
        for standing in standings
    ]
    return Leaderboard(
        name or Path(board.source if board is not None else judgements.source).name,
        pl.concat(frames),
        pl.DataFrame(
            [summarised(standing, alpha) for standing in standings], infer_schema_length=None
        ),
        [winner for s in standings for winner in winners_of(s, board, rows, group)],
        found,
        settings,
        tuple(words_of(board)),
        group,
        alpha,
        failures,
        entries,
        tuple(remarks),
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
    return rows, [
        warning(pattern, n=len(names), names=some(names))
        for pattern, names in only.items()
        if names
    ]


def _readings(
    board: PublishedBoard,
    asked: list[Measure] | None,
    judgements: Judgements,
    *,
    search_variants: bool,
) -> dict[str, list[Measure]]:
    """Measures that each column of the board may be of; columns not asked for are left out."""
    grades = np.unique(judgements.grades[judgements.grades > 0]).tolist()
    readings = {}
    for column in board.columns:
        every = search.variants(column.measure, grades)
        meant = [m for m in every if asked is None or m in asked or column.measure in asked]
        if asked is not None and column.measure not in asked:
            meant = [measure for measure in meant if measure in asked]
        if meant:
            readings[column.name] = meant if search_variants else meant[:1]
    return readings


def _found_rules(
    board: PublishedBoard,
    readings: Mapping[str, list[Measure]],
    rows: Mapping[str, str],
    sources: Sequence[Source],
    judgements: Judgements,
    workers: int | None,
    progress: Progress | None,
) -> tuple[list[FoundRule], dict[str, str]]:
    """Search for the rules that made the columns, and tell which runs could not be read."""
    columns = [column for column in board.columns if column.name in readings]
    listed = [source for source in sources if source.name in rows]

    def gaps(source: Source, precisions: Sequence[str | None]) -> search.Gaps:
        numbers = _numbers(columns, rows[source.name])
        run = read(source, with_ranks=True)
        return search.gaps_of(run, judgements, numbers, readings, precisions)

    found: list[FoundRule] = []
    failures: dict[str, str] = {}
    held: dict[str, list[search.Gaps]] = {}
    for precisions in search.PRECISIONS:
        of_runs, failed = evaluated_one_by_one(
            partial(gaps, precisions=precisions), listed, "finding the rule", workers, progress
        )
        failures |= failed
        for name, own in of_runs.items():
            held.setdefault(name, []).append(own)
        merged = [_joined(parts) for parts in held.values()]
        found = search.chosen_rules(columns, merged)
        if search.all_met(found):
            break
        listed = [source for source in listed if source.name not in failures]
    return found, failures


def _joined(parts: Sequence[search.Gaps]) -> search.Gaps:
    joined: search.Gaps = {column: {} for column in parts[0]}
    for part in parts:
        for column, gaps in part.items():
            joined[column] |= gaps
    return joined


def _numbers(columns: Sequence[PublishedColumn], row: str) -> dict[str, Cell]:
    return {column.name: column.cells[row] for column in columns if row in column.cells}


def _usual(found: Sequence[FoundRule], otherwise: Setting) -> Setting:
    """The setting that serves most columns, for measures that the board does not have."""
    settings = [rule.setting for rule in found if rule.met]
    return max(settings, key=settings.count) if settings else otherwise


def _settings(
    board: PublishedBoard | None,
    readings: Mapping[str, list[Measure]],
    found: Sequence[FoundRule],
    asked: list[Measure] | None,
    usual: Setting,
    remarks: list[Remark],
) -> tuple[dict[Measure, Setting], dict[Measure, PublishedColumn]]:
    """How to evaluate which measures, and which column each is published in."""
    rules = {rule.column: rule for rule in found}
    published: dict[Measure, tuple[Setting, PublishedColumn]] = {}
    for column in board.columns if board is not None else ():
        if column.name not in readings:
            continue
        rule = rules.get(column.name)
        measure = readings[column.name][0] if rule is None else rule.measure
        if measure in published:
            remarks.append(
                warning(
                    "the columns {one} and {other} are both {measure}: the second is left out",
                    one=published[measure][1].name,
                    other=column.name,
                    measure=repr(measure),
                )
            )
            continue
        published[measure] = (usual if rule is None else rule.setting), column
    settings = {measure: setting for measure, (setting, _) in published.items()}
    if asked is not None:
        named = {column.measure: measure for measure, (_, column) in published.items()}
        order = [named.get(measure, measure) for measure in asked]
        settings = {measure: settings.get(measure, usual) for measure in order}
    elif board is None:
        settings = dict.fromkeys(parse_measures(DEFAULT_MEASURES), usual)
    return settings, {m: column for m, (_, column) in published.items() if m in settings}


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
