"""The diagnosis of a run: where its ties are, their causes, and their effect on measures."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import Remark, emits_warnings, texts, warning
from deadheat.diagnosis.anatomy import Anatomy, dissect
from deadheat.diagnosis.causes import Cause, find_causes
from deadheat.diagnosis.check import Check, check_scores
from deadheat.diagnosis.number_grid import (
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
    out_of_reach,
    run_name,
    views_of,
)
from deadheat.formats import Judgements, QrelsLike, Run, RunLike, read_qrels, read_run
from deadheat.measures import KERNEL_VIEWS, Judged, Measure, parse_measures
from deadheat.settings import EvalOptions, EvalSettings
from deadheat.tables import Part, Printable, render
from deadheat.ties import (
    TieGroups,
    build_groups,
    match_lists,
    rank_nan,
    round_scores,
    run_sizes,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

MEASURE = "nDCG@10"
"""Default measures of `check`."""
TOP = 10
"""The cutoff at which judged documents are counted if no measure has a cutoff."""


@dataclass(frozen=True)
class Effect:
    """The effect of ties on measures, over the judged queries with a relevant document."""

    queries: int
    tolerance: float
    judged: dict[int, float]
    """Per cutoff k: expected share of the first k documents that have a judgement."""
    worst_queries: list[dict[str, object]]
    """Per measure: the queries with the largest range above 0, with all views."""
    what_if: list[WhatIf]
    enough: dict[str, list[str]]
    """Per measure: the coarsest sufficient formats (a floating-point format, int8, a number of
    decimals). A format is sufficient if the change of the expected value and the range
    are at most the tolerance, for this format and for all finer formats of the same kind."""
    scales: list[WhatIf]
    """Each measure on other scales, if the scores are grades or `levels` was given."""


@dataclass(frozen=True, repr=False)
class Diagnosis(Printable):
    """The ties of a run: where they are, their causes, and their effect on measures."""

    name: str
    """The name of the run."""
    anatomy: Anatomy
    grid: NumberGrid
    logit_grid: NumberGrid | None = None
    """The number grid of the logits, if the scores are sigmoids of logits on a grid."""
    causes: tuple[Cause, ...] = ()
    """Causes of ties other than rounding."""
    scale: Scale | None = None
    """The scale of the scores, if they are grades."""
    origins: Origins | None = None
    """The step that made the ties; None without `logits`."""
    effect: Effect | None = None
    """The effect on measures; None without judgements."""
    settings: EvalSettings = field(default_factory=EvalSettings)
    """The settings of the evaluation."""
    remarks: tuple[Remark, ...] = ()
    """Warnings and notes on the judgements and the run."""
    check: Check | None = None
    """Effect, cause and remedy in three lines; None without judgements."""

    @property
    def warnings(self) -> list[str]:
        """Warnings about the input that change the meaning of the numbers."""
        return texts(self.remarks, "warning")

    @property
    def notes(self) -> list[str]:
        """How the numbers were computed, and other notes."""
        rule = [] if self.effect is None else [self.settings.note]
        return [*rule, *texts(self.remarks, "note")]

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain numbers, lists and strings."""
        facts = asdict(replace(self, remarks=(), check=None))
        del facts["remarks"]
        check = None if self.check is None else self.check.to_dict()
        return {**facts, "check": check, "warnings": self.warnings, "notes": self.notes}

    def parts(self, **options: Any) -> list[Part]:
        """Return sentences and tables; the options are those of `deadheat.diagnosis.parts_of`."""
        return parts_of(self, **options)

    def _render(self, style: str, *, percent: bool = False, **options: object) -> str:
        return render(self.parts(**options), style, percent=percent, width=96)

    def __repr__(self) -> str:
        """Return the share of tied documents in one line; `print` shows everything."""
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
        As for `deadheat.evaluate`; the accepted options are `tie_break`, `queries` and
        the precision that scores are rounded to. ``diagnose(run)``, without judgements, describes
        only the tie groups and the number grid.
    tolerance
        Largest change of the expected value, and largest range, that a sufficient format may have.
    worst
        Number of queries with the largest range to list per measure.
    logits, model_dtype
        The logits, to find which step creates the ties: a table, or a path to one, with a row per
        document of the run. Columns: query_id; logit, or logit_no and logit_yes; optionally
        head_logit, or head_logit_no and head_logit_yes; optionally model_dtype. The argument
        `model_dtype` selects rows if the table has that column, and is needed if it has not.
    levels
        Numbers of values of a scale, such as ``[4, 11, 101]``, to find how fine a scale of grades
        must be. The scores are evaluated on each scale: finer scores are rounded to it, coarser
        grades are refined (see `deadheat.diagnosis.what_if`). Default: only scores that are grades
        are refined.

    Examples
    --------
    >>> import deadheat as dh
    >>> run = {"q1": {"d1": 0.75, "d2": 0.5, "d3": 0.5}, "q2": {"d4": 0.625, "d5": 0.5}}
    >>> diagnosis = dh.diagnose({"q1": {"d3": 1}, "q2": {"d4": 1}}, run, ["MRR@2"])
    >>> diagnosis.anatomy.distinct, diagnosis.check.cause_kind
    (0.8, 'few values')
    """
    settings = EvalSettings.from_options(options)
    if run is None:
        qrels, run = None, qrels
    elif qrels is not None and (isinstance(qrels, Run) or isinstance(run, Judgements)):
        text = "diagnose(run, qrels) is deprecated; call diagnose(qrels, run)"
        warnings.warn(text, DeprecationWarning, stacklevel=3)
        qrels, run = run, qrels
    if run is None:
        raise InputError("no run was given; call diagnose(qrels, run) or diagnose(run)")
    if not (tolerance >= 0 and worst >= 0):
        raise InputError(f"tolerance and worst must be 0 or more, not {tolerance!r} and {worst!r}")
    if qrels is None and not (measures is None and levels is None):
        raise InputError("measures and levels need judgements; give qrels, or leave them out")
    scales = None if levels is None else check_levels(levels)
    parsed = parse_measures(DEFAULT_MEASURES if measures is None else measures)
    diagnosis, candidates = _describe(run, settings)
    if logits is not None:
        diagnosis = replace(diagnosis, origins=find_origins(logits, model_dtype, candidates))
    if qrels is None:
        return diagnosis
    judgements = read_qrels(qrels)
    lists, report = match_lists(judgements, candidates, queries=settings.queries, with_judged=True)
    remarks = report.check(judgements, candidates.source)

    def groups_of(scores: Values) -> TieGroups:
        return build_groups(lists._replace(run=replace(candidates, scores=scores)), settings)

    def evaluate(scores: Values) -> Result:
        return Result(lists.query_ids, views_of(groups_of(scores), parsed))

    groups, given = groups_of(candidates.scores), evaluate(candidates.scores)
    cutoffs = sorted({measure.cutoff for measure in parsed if measure.cutoff})
    moved = given.per_query.filter(pl.col("range") > 0)
    moved = moved.sort("range", descending=True, maintain_order=True)
    what_if = round_all(candidates.scores, given, evaluate, tolerance)
    effect = Effect(
        queries=len(lists.query_ids),
        tolerance=tolerance,
        judged={k: float((Judged @ k).views(groups)[0].mean()) for k in cutoffs or [TOP]},
        worst_queries=[
            row for name in given for row in moved.filter(measure=name).head(worst).to_dicts()
        ],
        what_if=what_if,
        enough=coarsest_enough(what_if),
        scales=on_scales(candidates.scores, given, evaluate, tolerance, diagnosis.scale, scales),
    )
    remarks += out_of_reach(groups, parsed)
    if not (Judged @ TOP).views(groups)[KERNEL_VIEWS.index("best")].any():
        pattern = (
            "none of the first {top} documents of any list is judged: are these the judgements of "
            "this run's collection?"
        )
        remarks.append(warning(pattern, top=TOP))
    return replace(
        diagnosis,
        effect=effect,
        remarks=(*diagnosis.remarks, *remarks),
        check=check_scores(diagnosis, judgements, candidates, parsed),
    )


def check_run(
    qrels: QrelsLike,
    run: RunLike,
    measures: str | Measure | Iterable[str | Measure] = MEASURE,
    **options: Unpack[EvalOptions],
) -> Check:
    """Check a run like `deadheat.check`, but emit no warnings."""
    settings = EvalSettings.from_options(options)
    parsed, judgements = parse_measures(measures), read_qrels(qrels)
    diagnosis, candidates = _describe(run, settings)
    return check_scores(diagnosis, judgements, candidates, parsed)


def _describe(run: RunLike, settings: EvalSettings) -> tuple[Diagnosis, Run]:
    """Return the diagnosis of a run without judgements, and the run with rounded scores."""
    if settings.tie_tolerance or settings.nan != "raise":
        raise InputError("diagnose uses exact ties and no NaN; leave tie_tolerance and nan out")
    read = read_run(run, with_ranks=settings.needs_ranks)
    rounded, rounding = round_scores(read, settings.score_format)
    candidates = rank_nan(rounded, "refuse")
    if candidates.exact is not None:
        raise InputError(
            f"{candidates.source}: float64 cannot represent these scores (for example whole "
            "numbers beyond 2**53), so their number grid is unknown; scale or round them first"
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
