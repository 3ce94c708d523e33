"""The diagnosis of a run: everything that can be said about its ties."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from deadheat.diagnosis.anatomy import Anatomy, dissect
from deadheat.diagnosis.cuts import CutBounds, cut_bounds, cut_lists
from deadheat.diagnosis.grid import Grid, Values, find_grid
from deadheat.diagnosis.origins import Origins, find_origins
from deadheat.diagnosis.what_if import WhatIf, coarsest_enough, round_all
from deadheat.errors import InputError
from deadheat.evaluation import DEFAULT_MEASURES, views_of
from deadheat.formats import Run, read_qrels, read_run
from deadheat.matching import judged_lists
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.remarks import Remarks
from deadheat.result import Result
from deadheat.ties import TieGroups, tie_groups
from deadheat.ties.rules import check_rule


@dataclass(frozen=True)
class Effect:
    """What the ties do to measures; of the judged queries with a relevant document."""

    queries: int
    tolerance: float
    straddling: dict[int, int]
    """Per cutoff k: queries with a tie group that holds a relevant document and has places on
    both sides of k."""
    worst_queries: list[dict[str, Any]]
    """Per measure the queries of the largest range, with all views; those of range 0 left out."""
    what_if: list[WhatIf]
    enough: dict[str, list[str]]
    """Per measure the coarsest formats that are enough: a floating-point format, int8, and a
    number of decimals. Enough: E[M] moves by no more than the tolerance, and the range is no
    larger; finer formats of the same kind are enough, too."""
    cut_lists: int
    """Lists that end inside a tie group while relevant documents are missing."""
    cut_bounds: list[CutBounds]
    """Bounds of each measure that hold whichever documents were cut; none where none were."""


@dataclass(frozen=True)
class Diagnosis:
    """Where the ties of a run are, where they come from, and what they do."""

    name: str
    """What was diagnosed."""
    anatomy: Anatomy
    grid: Grid
    origins: Origins | None = None
    """Where logits were given."""
    effect: Effect | None = None
    """Where judgements were given."""
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, lists and strings."""
        return asdict(self)

    def to_json(self) -> str:
        """Everything as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def to_markdown(self) -> str:
        """Give sentences and Markdown tables."""
        from deadheat.report.diagnosis import markdown_report

        return markdown_report(self)

    def __rich__(self) -> Any:
        """Let rich print sentences and tables in colour."""
        from deadheat.report.diagnosis import rich_report

        return rich_report(self)

    def __str__(self) -> str:
        from deadheat.report.grid import plain

        return plain(self.__rich__(), 96)


def diagnose(
    run: Any,
    qrels: Any = None,
    measures: str | Measure | Iterable[Any] | None = None,
    *,
    tie_break: str = "input",
    tolerance: float = 0.001,
    worst: int = 5,
    logits: Any = None,
    model_dtype: object = None,
) -> Diagnosis:
    """Diagnose the ties of a run.

    Parameters
    ----------
    run, qrels, measures, tie_break
        As for `deadheat.evaluate`. Without judgements only the tie groups and the number grid
        are described.
    tolerance
        How far E[M] may move, and how large the range may be, in a format that is enough.
    worst
        How many queries of the largest range to name per measure.
    logits, model_dtype
        To find where the ties were born: a table, or a path to one, with the columns query_id
        and logit (or logit_no and logit_yes), perhaps head_logit (or head_logit_no and
        head_logit_yes) and model_dtype, a row per document of the run. `model_dtype` chooses
        rows, or says what the table does not.

    Examples
    --------
    >>> import deadheat as dh
    >>> run = {"q1": {"d1": 0.75, "d2": 0.5, "d3": 0.5}, "q2": {"d4": 0.625, "d5": 0.5}}
    >>> found = dh.diagnose(run, {"q1": {"d3": 1}, "q2": {"d4": 1}}, ["MRR@2"])
    >>> found.anatomy.distinct, found.effect.straddling
    (0.8, {2: 1})
    """
    check_rule(tie_break)
    if not (tolerance >= 0 and worst >= 0):
        raise InputError(f"tolerance and worst must be 0 or more, not {tolerance!r} and {worst!r}")
    if qrels is None and measures is not None:
        raise InputError("measures need judgements: give qrels, too, or leave the measures out")
    wanted = parse_measures(DEFAULT_MEASURES if measures is None else measures)
    candidates = read_run(run, with_ranks=tie_break == "rank")
    _refuse_nan(candidates)
    scores = candidates.scores
    origins = None if logits is None else find_origins(logits, model_dtype, candidates)
    found = Diagnosis(candidates.source, dissect(candidates), find_grid(scores), origins)
    if qrels is None:
        return found
    remarks = Remarks.under(tie_break)
    names, lists = judged_lists(read_qrels(qrels), candidates, wanted, "judged", remarks)

    def groups_of(scores: Values) -> TieGroups:
        ids, ranks = candidates.documents.ids, candidates.ranks
        own = replace(lists, scores=scores)
        return tie_groups(own, rule=tie_break, ids=ids, rank_column=ranks)

    groups = groups_of(scores)
    moved = Result(names, views_of(groups, wanted)).per_query.filter(pl.col("range") > 0)
    by_range = moved.sort("range", descending=True, maintain_order=True)
    rows = round_all(scores, lambda x: views_of(groups_of(x), wanted), tolerance)
    cut = int(cut_lists(groups).sum())
    effect = Effect(
        queries=len(names),
        tolerance=tolerance,
        straddling=_straddling(groups, wanted),
        worst_queries=[
            row
            for measure in map(repr, wanted)
            for row in by_range.filter(measure=measure).head(worst).to_dicts()
        ],
        what_if=rows,
        enough=coarsest_enough(rows),
        cut_lists=cut,
        cut_bounds=cut_bounds(groups, lists.unretrieved, wanted) if cut else [],
    )
    return replace(found, effect=effect, warnings=remarks.warnings, notes=remarks.notes)


def _refuse_nan(run: Run) -> None:
    if np.isnan(np.min(run.scores)):
        row = int(np.flatnonzero(np.isnan(run.scores))[0])
        query = run.query_ids[int(np.searchsorted(run.offsets, row, "right")) - 1]
        raise InputError(
            f"{run.source}: query {query!r} has a NaN score, which has no place in a ranking; mend "
            "the scores first"
        )


def _straddling(groups: TieGroups, measures: list[Measure]) -> dict[int, int]:
    cutoffs = sorted({measure.cutoff for measure in measures if measure.cutoff})
    begin, end, relevant = groups.above, groups.above + groups.size, groups.relevant(None) > 0
    return {k: int((relevant & (begin < k) & (k < end)).sum()) for k in cutoffs}
