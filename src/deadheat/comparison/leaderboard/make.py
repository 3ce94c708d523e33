"""Make leaderboards from judgements, runs and a published board."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import check_number
from deadheat._internal.remarks import Remark, emits_warnings
from deadheat.comparison.leaderboard.board import Leaderboard
from deadheat.comparison.leaderboard.entries import apply_to_runs, evaluate_entry
from deadheat.comparison.leaderboard.published import (
    PublishedBoard,
    PublishedLike,
    match_runs,
    read_published,
    select_rows,
)
from deadheat.comparison.leaderboard.rules import (
    FoundRule,
    choose_settings,
    describe_conflicts,
    find_rules,
)
from deadheat.comparison.leaderboard.sources import (
    PathLike,
    RunsLike,
    find_runs,
    read_manifest,
)
from deadheat.comparison.leaderboard.standings import COLUMNS, Standing
from deadheat.engines import Engine, Progress
from deadheat.errors import DeadheatWarning, InputError
from deadheat.evaluation import DEFAULT_MEASURES
from deadheat.formats import QrelsLike, read_qrels
from deadheat.measures import Measure, parse_measures
from deadheat.settings import EvalOptions, EvalSettings

if TYPE_CHECKING:
    from typing_extensions import Unpack


@emits_warnings
def leaderboard(
    qrels: QrelsLike,
    runs: RunsLike,
    measures: str | Measure | Iterable[object] | None = None,
    *,
    published: PublishedLike | None = None,
    columns: Mapping[str, str | Measure | None] | None = None,
    name_column: str | None = None,
    group: str | None = None,
    alpha: float = 0.05,
    workers: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    name: str = "",
    **options: Unpack[EvalOptions],
) -> Leaderboard:
    """Evaluate all runs of a board, compare them with published numbers, and rank them.

    Runs are read one at a time, and only their values per query are kept. A run that cannot be
    read is listed in `failures`; the other runs are evaluated.

    Parameters
    ----------
    qrels
        Judgements, as for `deadheat.evaluate`.
    runs
        ``{name: run}``; or paths of files, folders and patterns such as ``"runs/*.xz"``. A folder
        without a name means all runs in it; a folder with a name is one run in many Parquet files.
    measures
        Measures to evaluate. The first one gives the official order. Default: the measures of the
        published board, or the default measures without a board.
    published
        The published board: a file (CSV, TSV, JSONL, Parquet), a table, or ``{run: {measure:
        number}}``. Runs are matched by file name, or by the tag in the file.
    columns
        ``{heading: measure}`` for published columns whose headings are no measures; None drops a
        column.
    name_column
        The published column with the names of runs. Default: a column with a usual heading such
        as "run", else the first column.
    group
        A published column of words, such as the team. Winners are then also found inside each
        group. Default: no groups.
    alpha
        A pair is undecided if random tie-breaking keeps its order with a probability below
        ``1 − alpha``.
    workers
        Number of runs that are evaluated at a time. The result does not depend on it. Default:
        the number of cores.
    progress
        Callback with a description, the number of runs done, and the total number.
    engine
        Where runs are read and evaluated, such as ``RayCluster`` of `deadheat.engines.cluster`,
        whose workers must find the files under the same paths. Default: threads of this process.
    name
        Name of the board.
    **options
        As for `deadheat.evaluate`. If there is a published board and no option except `nan` is
        given, the rule that reproduces the published numbers is searched for.

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
    if workers is not None:
        check_number("workers", workers, least=1)
    sources = find_runs(runs, without=(qrels, published))
    if not sources:
        raise InputError("no runs were given; give files, folders or patterns such as 'runs/*.xz'")
    judgements = read_qrels(qrels)
    board = PublishedBoard(judgements.source, [], [], pl.DataFrame())
    rows: dict[str, int] = {}
    remarks: list[Remark] = []
    if published is not None:
        board = read_published(published, columns, name_column)
        rows, remarks = match_runs(board, sources)
    words = board.words.rename(lambda name: f"{name} (board)" if name in COLUMNS else name)
    if group is not None and group not in words.columns:
        raise InputError(
            f"the published board has no column of words {group!r}; columns of words: "
            f"{', '.join(map(repr, words.columns)) or 'none'}"
        )
    asked = None if measures is None else parse_measures(measures)
    given = EvalSettings.from_options(options)
    apply = partial(apply_to_runs, workers=workers, progress=progress, engine=engine)
    rules: list[FoundRule] = []
    failures: dict[str, str] = {}
    if published is not None and set(options) <= {"nan"}:
        rules, failures = find_rules(board, rows, asked, sources, judgements, apply)
        settings = choose_settings(rules, asked)
        named = {column.name: column for column in board.columns}
        numbers = {rule.measure: named[rule.column] for rule in reversed(rules)}
    else:
        numbers = {column.measure: column for column in reversed(board.columns)}
        every = [column.measure for column in board.columns] or parse_measures(DEFAULT_MEASURES)
        settings = dict.fromkeys(every if asked is None else asked, given)
    if not settings and len(failures) < len(sources):
        raise InputError(
            f"{board.source}: none of the runs that could be read has a published number; give the "
            "measures to evaluate (-m)"
        )
    left = {name: run for name, run in sources.items() if name not in failures}
    with_nan = {m: replace(own, nan=given.nan) for m, own in settings.items()}
    evaluate = partial(evaluate_entry, judgements=judgements, settings=with_nan)
    entries, failed = apply(evaluate, left, "evaluating")
    failures |= failed
    if not entries:
        first, why = next(iter(failures.items()))
        raise InputError(f"no run could be evaluated; {first}: {why}")
    listed = [rows.get(name) for name in entries]
    own_words = select_rows(words, listed)
    standings = [Standing(m, entries, listed, own_words, numbers.get(m)) for m in settings]
    facts, errors = zip(*(standing.summarise(alpha) for standing in standings), strict=True)
    may_be_missing = ("published", "met", "reversed", "decision_errors")
    types = dict.fromkeys(may_be_missing, pl.Int64) | {"official": pl.String}
    for standing in standings:
        remarks += standing.describe_missed(settings[standing.measure])
    return Leaderboard(
        name=name or Path(board.source).name,
        rows=pl.concat(standing.rows for standing in standings),
        summary=pl.DataFrame(facts, infer_schema_length=None, schema_overrides=types),
        decision_errors=[error for own in errors for error in own],
        winners=[winner for standing in standings for winner in standing.winners(group)],
        rules=rules,
        settings=settings,
        group=group,
        alpha=alpha,
        failures=failures,
        entries=entries,
        remarks=(*remarks, *describe_conflicts(rules)),
    )


def leaderboards(
    manifest: PathLike, *, allow_outside: bool = False, **options: Any
) -> list[Leaderboard]:
    """Evaluate all leaderboards of a manifest. Emits no warnings; see `board.warnings`.

    Parameters
    ----------
    manifest
        A TOML file with a table ``[[board]]`` per round or task. Required keys: ``qrels`` and
        ``runs``. Optional keys: ``name``, ``published``, ``measures`` and ``columns``. All are as
        for `leaderboard`.
    allow_outside
        Whether files outside of the manifest's folder may be read. Default: False, so absolute
        paths, ``..`` and links that lead out of that folder are an error.
    **options
        Further options of `leaderboard`, for all boards.
    """
    boards = []
    for number, spec in enumerate(read_manifest(manifest, allow_outside=allow_outside), 1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeadheatWarning)
                boards.append(leaderboard(**spec, **options))
        except InputError as error:
            raise InputError(f"{manifest}: board {number}: {error}") from None
    return boards
