"""The diagnosis of a run: where its ties are, their causes, and their effect on measures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import Remark, emits_warnings, texts, warning
from deadheat.diagnosis.anatomy import Anatomy, dissect
from deadheat.diagnosis.causes import Cause, find_causes
from deadheat.diagnosis.check import Check, check_scores
from deadheat.diagnosis.cuts import CutBounds, cut_bounds
from deadheat.diagnosis.number_grid import (
    LogitGrid,
    NumberGrid,
    Values,
    find_logit_grid,
    grid_with_steps,
)
from deadheat.diagnosis.origins import Origins, find_origins
from deadheat.diagnosis.parts import parts_of
from deadheat.diagnosis.what_if import (
    Scale,
    WhatIf,
    check_levels,
    coarsest_enough,
    find_scale,
    on_scales,
    round_all,
)
from deadheat.errors import InputError
from deadheat.evaluation import (
    DEFAULT_MEASURES,
    Result,
    evaluate_run,
    out_of_reach,
    run_name,
    views_of,
)
from deadheat.formats import Judgements, QrelsLike, Run, RunLike, read_qrels, read_run
from deadheat.measures import VIEWS, Judged, Measure, parse_measures
from deadheat.settings import EvalOptions, EvalSettings
from deadheat.tables import Part, Printable, render
from deadheat.ties import (
    TieGroups,
    build_groups,
    list_judged,
    rank_nan,
    round_scores,
    run_sizes,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

MEASURE = "nDCG@10"
"""What `check` looks at unless told otherwise."""
CHECKED = ("effect", "cause", "remedy", "cause_kind", "remedy_kind")
"""What a stored diagnosis keeps of its check."""
TOP = 10
"""The cutoff at which judged documents are counted where no measure has a cutoff."""


@dataclass(frozen=True)
class Effect:
    """What the ties do to measures; of the judged queries with a relevant document."""

    queries: int
    tolerance: float
    judged: dict[int, float]
    """Per cutoff k: the share of the first k documents that have a judgement, in expectation."""
    worst_queries: list[dict[str, object]]
    """Per measure the queries of the largest range, with all views; those of range 0 left out."""
    what_if: list[WhatIf]
    enough: dict[str, list[str]]
    """Per measure the coarsest formats that are enough: a floating-point format, int8, and a
    number of decimals. Enough: E[M] moves by no more than the tolerance, and the range is no
    larger; finer formats of the same kind are enough, too."""
    scales: list[WhatIf]
    """Each measure on other scales, where the scores are grades or scales were named."""
    cut_bounds: list[CutBounds]
    """Bounds of each measure that hold whichever documents were cut; none where none were."""


@dataclass(frozen=True, repr=False)
class Diagnosis(Printable):
    """Where the ties of a run are, where they come from, and what they do."""

    name: str
    """The name of the run."""
    anatomy: Anatomy
    grid: NumberGrid
    logit_grid: LogitGrid | None = None
    """The grid that the logits of the scores live on, where the scores are sigmoids of it."""
    causes: tuple[Cause, ...] = ()
    """What else than rounding ties documents."""
    scale: Scale | None = None
    """The scale of the scores, where they are grades."""
    origins: Origins | None = None
    """Where logits were given."""
    effect: Effect | None = None
    """Where judgements were given."""
    settings: EvalSettings = field(default_factory=EvalSettings)
    """How it was evaluated."""
    remarks: tuple[Remark, ...] = ()
    """What a reader should know of how judgements and run fit."""
    check: Check | None = None
    """Effect, cause and remedy in three lines, where judgements were given."""

    @property
    def warnings(self) -> list[str]:
        """What about the input changes what the numbers mean."""
        return texts(self.remarks, "warning")

    @property
    def notes(self) -> list[str]:
        """What else a reader of the numbers should know."""
        rule = [] if self.effect is None else [self.settings.note]
        return [*rule, *texts(self.remarks, "note")]

    def to_dict(self) -> dict[str, object]:
        """Everything as plain numbers, lists and strings."""
        facts = asdict(replace(self, remarks=(), check=None))
        del facts["remarks"]
        if self.check is not None:
            facts["check"] = {name: vars(self.check)[name] for name in CHECKED}
        return {**facts, "warnings": self.warnings, "notes": self.notes}

    def parts(self, **options: Any) -> list[Part]:
        """Return sentences and tables; the options are those of `deadheat.diagnosis.parts_of`."""
        return parts_of(self, **options)

    def _render(self, style: str, *, percent: bool = False, **options: Any) -> str:
        return render(self.parts(percent=percent), style, percent=percent, width=96)

    def __repr__(self) -> str:
        """Say in a line what it is; `print` shows it all."""
        tied = self.anatomy.tied / self.anatomy.documents
        return f"<Diagnosis of {self.name}: {tied:.1%} of the documents are tied>"


@emits_warnings
def diagnose(
    qrels: QrelsLike | RunLike | None = None,
    run: RunLike | None = None,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    tolerance: float = 0.001,
    worst: int = 5,
    logits: object = None,
    model_dtype: object = None,
    levels: Iterable[int] | None = None,
    **options: Unpack[EvalOptions],
) -> Diagnosis:
    """Diagnose the ties of a run.

    Parameters
    ----------
    qrels, run, measures, **options
        As for `deadheat.evaluate`; of the options, `tie_break`, `queries` and the precision that
        scores are rounded to. ``diagnose(run)``, without judgements, describes the tie groups and
        the number grid only.
    tolerance
        How far E[M] may move, and how large the range may be, in a format that is enough.
    worst
        How many queries of the largest range to name per measure.
    logits, model_dtype
        To find which step creates the ties: a table, or a path to one, with the columns query_id
        and logit (or logit_no and logit_yes), perhaps head_logit (or head_logit_no and
        head_logit_yes) and model_dtype, a row per document of the run. `model_dtype` chooses
        rows, or says what the table does not.
    levels
        How fine must a scale of grades be? The scores are evaluated on scales of so many values:
        finer scores are rounded to them, coarser grades refined, as `deadheat.diagnosis.what_if`
        describes. Scores that are grades are refined anyway.

    Examples
    --------
    >>> import deadheat as dh
    >>> run = {"q1": {"d1": 0.75, "d2": 0.5, "d3": 0.5}, "q2": {"d4": 0.625, "d5": 0.5}}
    >>> diagnosis = dh.diagnose({"q1": {"d3": 1}, "q2": {"d4": 1}}, run, ["MRR@2"])
    >>> diagnosis.anatomy.distinct, diagnosis.check.cause_kind
    (0.8, 'few values')
    """
    settings = EvalSettings(**options)  # type: ignore[arg-type]
    if run is None:
        qrels, run = None, qrels
    if run is None:
        raise InputError("there is no run to diagnose: diagnose(qrels, run) or diagnose(run)")
    if not (tolerance >= 0 and worst >= 0):
        raise InputError(f"tolerance and worst must be 0 or more, not {tolerance!r} and {worst!r}")
    if qrels is None and not (measures is None and levels is None):
        raise InputError("measures and levels need judgements: give qrels, too, or leave them out")
    scales = None if levels is None else check_levels(levels)
    parsed = parse_measures(DEFAULT_MEASURES if measures is None else measures)
    diagnosis, candidates = _describe(run, settings)
    if logits is not None:
        diagnosis = replace(diagnosis, origins=find_origins(logits, model_dtype, candidates))
    if qrels is None:
        return diagnosis
    judgements = read_qrels(qrels)
    lists, remarks = list_judged(judgements, candidates, queries=settings.queries, with_judged=True)

    def groups_of(scores: Values) -> TieGroups:
        return build_groups(lists._replace(run=replace(candidates, scores=scores)), settings)

    def evaluate(scores: Values) -> Result:
        return Result(lists.query_ids, views_of(groups_of(scores), parsed))

    groups = groups_of(candidates.scores)
    cutoffs = sorted({measure.cutoff for measure in parsed if measure.cutoff})
    what_if = round_all(candidates.scores, evaluate, tolerance)
    effect = Effect(
        queries=len(lists.query_ids),
        tolerance=tolerance,
        judged={k: float((Judged @ k).views(groups)[0].mean()) for k in cutoffs or [TOP]},
        worst_queries=_worst_queries(evaluate(candidates.scores), worst),
        what_if=what_if,
        enough=coarsest_enough(what_if),
        scales=on_scales(candidates.scores, evaluate, tolerance, diagnosis.scale, scales),
        cut_bounds=cut_bounds(groups, lists.unretrieved, parsed),
    )
    remarks += out_of_reach(groups, parsed)
    if not (Judged @ TOP).views(groups)[VIEWS.index("best")].any():
        pattern = (
            "none of the first {top} documents of any list is judged: are these the judgements of "
            "this run's collection?"
        )
        remarks.append(warning(pattern, top=TOP))
    return replace(
        diagnosis,
        effect=effect,
        remarks=(*diagnosis.remarks, *remarks),
        check=_check(diagnosis, judgements, candidates, parsed, effect.cut_bounds),
    )


def check_run(
    qrels: QrelsLike,
    run: RunLike,
    measures: str | Measure | Iterable[str | Measure] = MEASURE,
    **options: Unpack[EvalOptions],
) -> Check:
    """Check a run as `deadheat.check` does, without emitting warnings."""
    settings = EvalSettings(**options)  # type: ignore[arg-type]
    parsed, judgements = parse_measures(measures), read_qrels(qrels)
    diagnosis, candidates = _describe(run, settings)
    lists, _ = list_judged(judgements, candidates, queries=settings.queries, with_judged=True)
    bounds = cut_bounds(build_groups(lists, settings), lists.unretrieved, parsed)
    return _check(diagnosis, judgements, candidates, parsed, bounds)


def _describe(run: RunLike, settings: EvalSettings) -> tuple[Diagnosis, Run]:
    """Return what a run's scores show without judgements, and the run with rounded scores."""
    if settings.tie_tolerance or settings.nan != "raise":
        raise InputError("exact ties are diagnosed: leave tie_tolerance and nan out")
    read = read_run(run, with_ranks=settings.needs_ranks)
    rounded, rounding = round_scores(read, settings.score_format)
    candidates = rank_nan(rounded, "refuse")
    if candidates.exact is not None:
        raise InputError(
            f"{candidates.source}: float64 cannot hold these scores (whole numbers beyond 2**53, "
            "say), so their number grid is unknown; scale or round them first"
        )
    sizes = run_sizes(candidates)
    grid, values, step = grid_with_steps(candidates.scores)
    anatomy = dissect(candidates, sizes)
    finite = np.isfinite(sizes.score).all()
    diagnosis = Diagnosis(
        run_name(candidates.source),
        anatomy,
        grid,
        find_logit_grid(values, step),
        tuple(find_causes(sizes, np.diff(candidates.offsets), values, step)),
        find_scale(values, anatomy.documents, anatomy.tied) if finite else None,
        settings=settings,
        remarks=tuple(rounding),
    )
    return diagnosis, candidates


def _check(
    diagnosis: Diagnosis,
    judgements: Judgements,
    run: Run,
    measures: Sequence[Measure],
    bounds: Sequence[CutBounds],
) -> Check:
    """Evaluate a run, and say what ties do to it, why, and what to do about it."""
    settings = diagnosis.settings
    result = evaluate_run(judgements, run, measures, settings)
    in_float32 = None
    if diagnosis.anatomy.float32_pairs:
        float32 = replace(settings, score_dtype="fp32")
        in_float32 = evaluate_run(judgements, run, measures, float32)
    return check_scores(diagnosis, result, bounds, in_float32)


def _worst_queries(result: Result, most: int) -> list[dict[str, object]]:
    """Per measure the queries of the largest range, those of range 0 left out."""
    moved = result.per_query.filter(pl.col("range") > 0)
    by_range = moved.sort("range", descending=True, maintain_order=True)
    return [
        row
        for measure in map(repr, result.views)
        for row in by_range.filter(measure=measure).head(most).to_dicts()
    ]
