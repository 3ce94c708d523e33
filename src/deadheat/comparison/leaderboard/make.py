"""From judgements, runs and a published board to a leaderboard."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import Remark, emits_warnings
from deadheat.comparison.leaderboard.board import Leaderboard
from deadheat.comparison.leaderboard.entries import apply_to_runs, evaluate_entry
from deadheat.comparison.leaderboard.published import (
    PublishedLike,
    match_runs,
    read_published,
)
from deadheat.comparison.leaderboard.rules import plan_found, plan_given
from deadheat.comparison.leaderboard.sources import (
    PathLike,
    RunsLike,
    read_manifest,
    run_sources,
)
from deadheat.comparison.leaderboard.standings import ROWS, Standing
from deadheat.engines import Engine, Progress
from deadheat.errors import DeadheatWarning, InputError
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
    """Evaluate all runs of a board, compare them with what was published, and rank them.

    Runs are read one at a time, and only their values per query are kept. One that
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
        Measures of published columns whose headings name no measure; None leaves a column out.
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
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, not {alpha!r}")
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers must be a whole number from 1, not {workers!r}")
    sources = run_sources(runs, without=(qrels, published))
    board = None
    rows: dict[str, str] = {}
    remarks: list[Remark] = []
    words: dict[str, list[str | None]] = {}
    if published is not None:
        board = read_published(published, columns, name_column)
        words = {f"{name} (board)" if name in ROWS else name: x for name, x in board.words.items()}
        board = replace(board, words=words)
        rows, remarks = match_runs(board, sources)
    if group is not None and group not in words:
        raise InputError(
            f"there is no column of words {group!r} in the published board; it has "
            f"{', '.join(map(repr, words)) or 'none'}"
        )
    judgements = read_qrels(qrels)
    asked = None if measures is None else parse_measures(measures)
    settings = EvalSettings(**options)  # type: ignore[arg-type]
    searched = set(options) <= {"nan"}
    apply = partial(apply_to_runs, workers=workers, progress=progress, engine=engine)
    if board is not None and searched:
        plan = plan_found(board, rows, asked, sources, judgements, apply)
    else:
        plan = plan_given(board, asked, settings)
    source = judgements.source if board is None else board.source
    if not plan.settings and len(plan.failures) < len(sources):
        raise InputError(
            f"{source}: no run that could be read has a published number; give the measures to "
            "evaluate (-m)"
        )
    left = [source for source in sources if source.name not in plan.failures]
    with_nan = {m: replace(own, nan=settings.nan) for m, own in plan.settings.items()}
    evaluate = partial(evaluate_entry, judgements=judgements, settings=with_nan)
    entries, failed = apply(evaluate, left, "evaluating")
    failures = plan.failures | failed
    if not entries:
        first, why = next(iter(failures.items()))
        raise InputError(f"no run could be evaluated; {first}: {why}")
    standings = [Standing(m, entries, board, rows, plan.columns.get(m)) for m in plan.settings]
    facts, errors = zip(*(standing.summarise(alpha) for standing in standings), strict=True)
    may_be_missing = ("published", "met", "reversed", "decision_errors")
    types = dict.fromkeys(may_be_missing, pl.Int64) | {"official": pl.String}
    for standing in standings:
        remarks += standing.unmet_remarks(plan.settings[standing.measure], searched=searched)
    return Leaderboard(
        name=name or Path(source).name,
        rows=pl.concat(standing.in_official_order() for standing in standings),
        summary=pl.DataFrame(facts, infer_schema_length=None, schema_overrides=types),
        decision_errors=[error for own in errors for error in own],
        winners=[winner for standing in standings for winner in standing.winners(group)],
        rules=plan.rules,
        settings=plan.settings,
        words=tuple(words),
        group=group,
        alpha=alpha,
        failures=failures,
        entries=entries,
        remarks=(*remarks, *plan.remarks),
    )


class BoardOptions(EvalOptions, total=False):
    """Options of `leaderboard` for all boards of a manifest."""

    name_column: str | None
    group: str | None
    alpha: float
    workers: int | None
    progress: Progress | None
    engine: Engine | None


def leaderboards(
    manifest: PathLike, *, allow_outside: bool = False, **options: Unpack[BoardOptions]
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
    **options
        Further options of `leaderboard`, for all of them.
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
