"""Evaluate runs and arrays."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat._internal.packages import own_version
from deadheat._internal.remarks import Remark, emits_warnings, note, warning
from deadheat.errors import InputError
from deadheat.evaluation.result import Result, Views
from deadheat.formats import (
    Judgements,
    QrelsLike,
    Run,
    RunLike,
    are_numbers,
    flatten,
    group_by_query,
    is_folder,
    query_names,
    read_qrels,
    read_run,
    run_folder,
)
from deadheat.measures import Measure, parse_measures
from deadheat.provenance import Provenance
from deadheat.settings import EvalOptions, EvalSettings
from deadheat.tables import DIGITS
from deadheat.ties import (
    BACKEND,
    Counted,
    TieGroups,
    build_groups,
    count_groups,
    list_labelled,
    prepare_scores,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

DEFAULT_MEASURES = ("nDCG@10", "MRR@10", "MAP", "Recall@100")
SHOWN = 0.5 * 10**-DIGITS
"""Smaller differences are not visible in a table."""
_NOISE = 1e-9
"""Values closer than this, absolutely or relatively, may differ by rounding only."""


@emits_warnings
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: str | Measure | Iterable[object] = DEFAULT_MEASURES,
    **options: Unpack[EvalOptions],
) -> Result:
    """Evaluate a run and return the expected, best, worst and oblivious value of every measure.

    Parameters
    ----------
    qrels, run
        Judgements and scored documents: a path, a dict of dicts, a table of polars, pandas
        or pyarrow, an iterable of tuples, or `Qrels` and `Run` of ranx. Judgements may also be a
        dict of sets or lists of relevant ids. A run may also be a dict of lists of (document,
        score) pairs, or the output of `deadheat.search_results` or
        `deadheat.formats.ranked_groups`. The path of a folder of Parquet files is a run that need
        not fit in memory.
    measures
        Names such as ``"nDCG@10"``, or measures such as ``dh.nDCG @ 10``. The names that
        trec_eval, ir_measures, MTEB and ranx use are accepted, too.
    **options
        Fields of `deadheat.EvalSettings`: `tie_break`, `tie_tolerance`, `queries`, `nan` and the
        precision that scores are rounded to.

    Examples
    --------
    >>> import deadheat as dh
    >>> qrels = {"q1": {"d1": 1, "d3": 1}}
    >>> run = {"q1": {"d1": 0.9, "d2": 0.5, "d3": 0.5, "d4": 0.5}}
    >>> result = dh.evaluate(qrels, run, ["Recall@2"])
    >>> result["Recall@2"].expected, result["Recall@2"].worst, result["Recall@2"].best
    (0.6666666666666666, 0.5, 1.0)
    """
    settings = EvalSettings.from_options(options)
    return evaluate_run(qrels, run, parse_measures(measures), settings)


def evaluate_run(
    qrels: QrelsLike,
    run: RunLike,
    measures: Sequence[Measure],
    settings: EvalSettings | None = None,
) -> Result:
    """Evaluate a run like `evaluate`, but do not emit warnings; see ``result.warnings``.

    A folder whose files together do not fit in memory is evaluated in parts.
    """
    settings, judgements = settings or EvalSettings(), read_qrels(qrels)
    if is_folder(run):
        from deadheat.evaluation.folders import evaluate_folder

        return evaluate_folder(judgements, run_folder(run), measures, settings)
    run = read_run(run, with_ranks=settings.needs_ranks, copy=False)
    with_judged = any(measure.needs_judged for measure in measures)
    counted = count_groups(judgements, run, settings, with_judged=with_judged)
    return result_of_counted(counted, judgements, run.source, measures, settings)


def evaluate_with_curves(
    judgements: Judgements,
    run: Run,
    measures: Sequence[Measure],
    cutoffs: Iterable[int],
    settings: EvalSettings,
) -> Result:
    """Evaluate a run with some measures, and with each of them at several cutoffs.

    The remarks of the result are about `measures` only.
    """
    result = evaluate_run(judgements, run, measures, settings)
    more = [measure @ k for measure in measures for k in cutoffs]
    groups = cast("TieGroups", result.groups)
    return replace(result, views={**result.views, **views_of(groups, more)})


def result_of_counted(
    counted: Counted,
    judgements: Judgements,
    source: str,
    measures: Sequence[Measure],
    settings: EvalSettings,
) -> Result:
    """Return the result of a run from the tie groups of all its parts."""
    remarks = counted.remarks + counted.report.check(judgements, source)
    provenance = Provenance(source, judgements.source, settings, versions=versions())
    return result_of(counted.query_ids, counted.groups, measures, provenance, remarks)


@emits_warnings
def evaluate_arrays(
    relevance: object,
    scores: object,
    measures: str | Measure | Iterable[object] = DEFAULT_MEASURES,
    *,
    query: ArrayLike | None = None,
    n_relevant: ArrayLike | None = None,
    query_ids: Sequence[object] | None = None,
    **options: Unpack[EvalOptions],
) -> Result:
    """Evaluate labels and scores of the same shape, without ids.

    Parameters
    ----------
    relevance
        Grades, ``[queries, candidates]``: a NumPy array or torch tensor of any number type, or a
        list of lists, which may differ in length. 0 is not relevant.
    scores
        Scores of the same shape.
    measures
        As for `evaluate`.
    query
        Per candidate: the query it belongs to, a number or a name. Scores and relevance are then
        flat, as in torchmetrics (``indexes``), LightGBM and XGBoost (``qid``). Convert group sizes
        with ``np.repeat(np.arange(len(sizes)), sizes)``. Queries are in the order of their first
        candidate. The candidates of a query need not be adjacent.
    n_relevant
        Number of relevant documents of each query, including those that are not candidates.
        Relevant documents that are not candidates have grade 1. Default: all relevant documents
        are candidates.
    query_ids
        Names of the queries. Default: numbers from 0. Not allowed with `query`, which has names.
    **options
        As for `evaluate`, without `tie_break`: the oblivious value breaks ties in input order.
        ``queries="judged"`` leaves out queries without a relevant document, ``"all"`` counts them
        as 0.

    Examples
    --------
    >>> import deadheat as dh
    >>> result = dh.evaluate_arrays([[1, 0, 1, 0]], [[0.9, 0.5, 0.5, 0.5]], ["Recall@2"])
    >>> round(result["Recall@2"].expected, 4)
    0.6667
    >>> flat = dh.evaluate_arrays([1, 0, 1, 1], [0.9, 0.5, 0.5, 0.7], "MRR", query=[7, 3, 3, 7])
    >>> flat.query_ids, flat["MRR"].expected
    ([7, 3], 0.875)
    """
    settings = EvalSettings.from_options(options)
    parsed = parse_measures(measures)
    return evaluate_scores(relevance, scores, parsed, settings, query, n_relevant, query_ids)


def evaluate_scores(
    relevance: object,
    scores: object,
    measures: Sequence[Measure],
    settings: EvalSettings,
    query: ArrayLike | None = None,
    n_relevant: ArrayLike | None = None,
    query_ids: Sequence[object] | None = None,
) -> Result:
    """Evaluate arrays like `evaluate_arrays`, but do not emit warnings."""
    if settings.tie_break != "input":
        raise InputError("arrays have no document ids: tie_break can only be 'input'")
    if settings.queries == "intersection":
        raise InputError("arrays: queries must be one of judged, all, not 'intersection'")
    if query is not None and query_ids is not None:
        raise InputError("query and query_ids both name the queries: leave query_ids out")
    if query is None:
        given = flatten(scores, relevance)
    else:
        given, query_ids = group_by_query(scores, relevance, query)
    names = query_names(query_ids, len(given.offsets) - 1)
    unnamed = Run(
        "arrays",
        names,
        given.offsets,
        given.scores,
        None,  # type: ignore[arg-type] # candidates have positions, not ids
        exact=given.exact,
    )
    run, remarks = prepare_scores(unnamed, settings)
    lists, more = list_labelled(
        run,
        given.grades,
        n_relevant,
        queries=settings.queries,
        with_judged=any(measure.needs_judged for measure in measures),
        numbered=are_numbers(query_ids),
    )
    groups = build_groups(lists, settings)
    provenance = Provenance(run.source, None, settings, versions=versions())
    return result_of(lists.own_ids, groups, measures, provenance, remarks + more)


def views_of(groups: TieGroups, measures: Iterable[Measure]) -> dict[Measure, Views]:
    """Compute every view of every measure."""
    computed = {}
    for measure in measures:
        expected, best, worst, oblivious, variance = measure.views(groups)
        known = variance if measure.has_variance else None
        computed[measure] = Views(expected, best, worst, oblivious, known)
    return computed


def result_of(
    query_ids: Sequence[str | int],
    groups: TieGroups,
    measures: Sequence[Measure],
    provenance: Provenance,
    remarks: list[Remark],
) -> Result:
    """Return the result of tie groups, with warnings and notes about them."""
    if groups.known is not None:
        for measure in measures:
            deepest = int(np.minimum(measure.depth(groups), groups.retrieved).max(initial=0))
            if deepest > groups.known:
                raise InputError(
                    f"{measure} uses {deepest:,} ranks of a list, but only the first "
                    f"{groups.known:,} are known: give the measure a cutoff, or keep more ranks"
                )
    views = views_of(groups, measures)
    found = remarks + out_of_reach(groups, measures)
    if provenance.settings.tie_break == "pytrec_eval":  # only this rule uses coarser scores
        found += _warn_outside(views)
    if groups.end_size is not None and (groups.end_size > 1).any():
        found += _report_cuts(groups, measures)
    groups.derived.clear()  # as large as the groups
    return Result(query_ids, views, provenance, tuple(found), groups)


def out_of_reach(groups: TieGroups, measures: Iterable[Measure]) -> list[Remark]:
    """Warn of measures for which no document is relevant, because `rel` is above all grades."""
    named = [
        repr(m) for m in measures if (rel := getattr(m, "rel", None)) and rel > groups.max_grade
    ]
    if not named or not groups.max_grade:  # another remark reports that there is no grade
        return []
    pattern = (
        "{measures:each} is 0 for all queries: the highest grade of the judgements is {highest}, "
        "which is below rel"
    )
    return [warning(pattern, measures="; ".join(named), highest=f"{groups.max_grade:g}")]


def _warn_outside(views: dict[Measure, Views]) -> list[Remark]:
    """Warn of oblivious values that no order of the tied documents gives."""
    outside = [
        np.maximum(v.worst - v.oblivious, v.oblivious - v.best) > _NOISE * np.maximum(v.best, 1)
        for v in views.values()
    ]
    queries = int(np.any(outside, axis=0).sum())
    pattern = (
        "{queries:query} with an oblivious value outside [worst, best]: the tie rule casts scores "
        "to float32, which adds ties; with score_dtype='float32' (--score-dtype float32) all views "
        "use these ties"
    )
    return [warning(pattern, queries=queries)] if queries else []


_CUT = (
    "{lists:list} cut inside a tie group that can change {measures:each}: documents with the same "
    "score may be missing; retrieve more documents, or cut by score instead of rank"
)
_COMPLETE = (
    "{lists:list} ending inside a tie group that can change {measures:each}: deadheat assumes that "
    "nothing was cut off"
)


def cut_lists(groups: TieGroups, measure: Measure) -> NDArray[np.bool_]:
    """Return for each query whether its list was cut inside a tie group, as far as is known.

    That is the case if relevant documents are missing from the list: it is not the whole
    collection, so documents tied with its last ones may be missing, too. Only groups that can
    change the printed digits of the measure count.
    """
    return _ends_in_tie(groups, measure) & groups.lacks_relevant


def _ends_in_tie(groups: TieGroups, measure: Measure) -> NDArray[np.bool_]:
    """Return which lists end inside a tie group that can change the digits of a measure."""
    if groups.end_size is None or groups.end_above is None:  # the lists are known to be complete
        return np.zeros(groups.n_queries, bool)
    at_stake = measure.at_stake(groups, groups.end_above)
    return np.asarray((groups.end_size > 1) & (at_stake >= SHOWN))


def _report_cuts(groups: TieGroups, measures: Sequence[Measure]) -> list[Remark]:
    """Warn of cut lists; note other lists that end inside a tie group: they may be complete."""
    partial = groups.lacks_relevant
    reached = {repr(measure): _ends_in_tie(groups, measure) for measure in measures}
    remarks = []
    for lists, remark, text in ((partial, warning, _CUT), (~partial, note, _COMPLETE)):
        affected = {
            name: own for name, queries in reached.items() if (own := queries & lists).any()
        }
        if affected:
            queries = int(np.any(list(affected.values()), axis=0).sum())
            remarks.append(remark(text, lists=queries, measures="; ".join(affected)))
    return remarks


@cache
def versions() -> dict[str, str]:
    """Return the versions of deadheat and of the packages that it computes with."""
    return {
        "deadheat": own_version(),
        "counting": BACKEND,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "polars": version("polars"),
    }
