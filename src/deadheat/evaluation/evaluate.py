"""Evaluate runs, arrays and tie groups."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from deadheat._internal.remarks import Remark, emits_warnings, warning
from deadheat.errors import InputError
from deadheat.evaluation.result import Result
from deadheat.evaluation.views import need_judged, result_of, versions, views_of
from deadheat.formats import (
    Candidates,
    Judgements,
    QrelsLike,
    Run,
    RunLike,
    are_numbers,
    are_whole,
    flatten,
    grouped,
    is_folder,
    query_names,
    read_qrels,
    read_run,
    run_folder,
)
from deadheat.measures import Measure, parse_measures
from deadheat.provenance import Provenance
from deadheat.settings import EvalOptions, EvalSettings
from deadheat.ties import (
    Counted,
    TieGroups,
    build_groups,
    check_groups,
    count_groups,
    list_labelled,
    prepare_scores,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

DEFAULT_MEASURES = ("nDCG@10", "MRR@10", "MAP", "Recall@100")


@emits_warnings
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: str | Measure | Iterable[object] = DEFAULT_MEASURES,
    **options: Unpack[EvalOptions],
) -> Result:
    """Evaluate a run, with every view of its ties.

    Parameters
    ----------
    qrels, run
        Judgements and scored documents: a path, a dict of dicts, a table of polars, pandas
        or pyarrow, an iterable of tuples, `Qrels` and a `Run` of ranx. Judgements may also be a
        dict of sets or lists of relevant ids, and a run a dict of lists of (document, score)
        pairs, or what `deadheat.search_results` and `deadheat.formats.ranked_groups` give. The path
        of a folder of Parquet files is a run that need not fit in memory.
    measures
        Names such as ``"nDCG@10"`` (those of trec_eval, ir_measures, MTEB and ranx are
        understood) or measures such as ``dh.nDCG @ 10``.
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
    settings = EvalSettings(**options)  # type: ignore[arg-type]
    return evaluate_source(read_qrels(qrels), run, parse_measures(measures), settings)


def evaluate_source(
    judgements: Judgements, run: RunLike, measures: Sequence[Measure], settings: EvalSettings
) -> Result:
    """Evaluate whatever a run can be read from, without emitting warnings.

    A folder that holds too much is evaluated in parts.
    """
    if isinstance(run, (str, os.PathLike)) and is_folder(run):
        from deadheat.evaluation.folders import evaluate_folder

        return evaluate_folder(judgements, run_folder(run), measures, settings)
    read = read_run(run, with_ranks=settings.tie_break == "rank", copy=False)
    return evaluate_run(judgements, read, measures, settings)


def evaluate_run(
    judgements: Judgements,
    run: Run,
    measures: Sequence[Measure],
    settings: EvalSettings | None = None,
) -> Result:
    """Evaluate a run as `evaluate` does, without emitting warnings: see ``result.warnings``."""
    settings = settings or EvalSettings()
    counted = count_groups(judgements, run, settings, with_judged=need_judged(measures))
    return result_of_counted(counted, judgements, run.source, measures, settings)


def evaluate_with_curves(
    judgements: Judgements,
    run: Run,
    measures: Sequence[Measure],
    cutoffs: Iterable[int],
    settings: EvalSettings,
) -> Result:
    """Evaluate a run in measures, and in each of them at several cutoffs.

    The remarks of the result are about `measures` only.
    """
    more = [measure @ k for measure in measures for k in cutoffs]
    counted = count_groups(judgements, run, settings, with_judged=need_judged(more))
    result = result_of_counted(counted, judgements, run.source, measures, settings)
    return replace(result, views={**result.views, **views_of(counted.groups, more)})


def result_of_counted(
    counted: Counted,
    judgements: Judgements,
    source: str,
    measures: Sequence[Measure],
    settings: EvalSettings,
) -> Result:
    """Evaluate what was counted of a run; refuse judgements and run that do not fit."""
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
        Scores of the same shape. The old order, scores first, still works where the first
        argument holds fractions and the second is of a type of whole numbers.
    measures
        As for `evaluate`.
    query
        Per candidate: the query it belongs to, a number or a name. Scores and relevance are then
        one row each, the shape of torchmetrics (its ``indexes``), LightGBM and XGBoost (``qid``);
        from sizes of groups, it is ``np.repeat(np.arange(len(sizes)), sizes)``. Queries count in
        the order of their first candidate, and their candidates need not stand together.
    n_relevant
        Relevant documents of each query, candidates or not. Those that are not candidates
        count with grade 1. Unless given, the candidates hold them all.
    query_ids
        Names for the queries; their numbers from 0 unless given. With `query` there are names.
    **options
        As for `evaluate`, without `tie_break`: the oblivious value breaks ties by input order. Of
        `queries`, ``"judged"`` leaves out queries without a relevant document, ``"all"`` counts
        them as 0.

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
    settings = EvalSettings(**options)  # type: ignore[arg-type]
    if are_whole(scores) and _read_candidates(relevance, scores, query)[0].has_fractions():
        warnings.warn(
            "evaluate_arrays takes relevance first and then scores. The first argument holds "
            "fractions and the second is of a type of whole numbers, so they were taken for scores "
            "and relevance: swap them in the call, or give whole scores as floats",
            DeprecationWarning,
            stacklevel=3,
        )
        relevance, scores = scores, relevance
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
    """Evaluate arrays as `evaluate_arrays` does, without emitting warnings."""
    if settings.tie_break != "input":
        raise InputError("arrays have no document ids: tie_break can only be 'input'")
    if settings.queries == "intersection":
        raise InputError("queries must be one of judged, all, not 'intersection': arrays hold all")
    if query is not None and query_ids is not None:
        raise InputError("query names the queries already: leave query_ids out")
    given, queries = _read_candidates(relevance, scores, query)
    query_ids = query_ids if query is None else queries
    names = query_names(query_ids, len(given.offsets) - 1)
    unnamed = Run(
        "arrays",
        names,
        given.offsets,
        given.scores,
        None,  # type: ignore[arg-type] # candidates have places, not ids
        exact=given.exact,
    )
    run, remarks = prepare_scores(unnamed, settings)
    lists, more = list_labelled(
        run,
        given.grades,
        n_relevant,
        queries=settings.queries,
        with_judged=need_judged(measures),
        numbered=are_numbers(query_ids),
    )
    groups = build_groups(lists, settings)
    provenance = Provenance(run.source, None, settings, versions=versions())
    return result_of(lists.own_ids, groups, measures, provenance, remarks + more)


def _read_candidates(
    relevance: object, scores: object, query: ArrayLike | None
) -> tuple[Candidates, list[object] | None]:
    """Read arrays, and the names of the queries where `query` gives them."""
    if query is None:
        return flatten(scores, relevance), None
    return grouped(scores, relevance, query)


@emits_warnings
def evaluate_groups(
    groups: TieGroups,
    measures: str | Measure | Iterable[object] = DEFAULT_MEASURES,
    *,
    query_ids: Sequence[object] | None = None,
) -> Result:
    """Evaluate tie groups, such as those of a `deadheat.ties.TieCounter` that a stream passed.

    Parameters
    ----------
    groups
        Of complete lists: that documents may be missing from them is not looked for.
    measures
        As for `evaluate`. A measure of judged documents needs them all announced.
    query_ids
        Names for the queries; their numbers from 0 unless given.

    Examples
    --------
    >>> from deadheat.ties import TieCounter
    >>> counter = TieCounter(1, query=[0], score=[0.5], grade=[1], position=[2])
    >>> counter.update([[0.9, 0.5, 0.5]])
    >>> evaluate_groups(counter.groups(), ["MRR"])["MRR"].best
    0.5
    """
    return evaluate_tie_groups(groups, parse_measures(measures), query_ids)


def evaluate_tie_groups(
    groups: TieGroups, measures: Sequence[Measure], query_ids: Sequence[object] | None = None
) -> Result:
    """Evaluate tie groups as `evaluate_groups` does, without emitting warnings."""
    groups = check_groups(groups)
    names: Sequence[str | int] = query_names(query_ids, groups.n_queries)
    if are_numbers(query_ids):
        names = list(map(int, names))
    provenance = Provenance("tie groups", None, EvalSettings(queries="all"), versions=versions())
    return result_of(names, groups, measures, provenance, _unplaced(groups))


def _unplaced(groups: TieGroups) -> list[Remark]:
    """Warn where an oblivious value depends on positions that were not given."""
    if groups.ranked:
        return []
    is_open = np.bincount(groups.group, minlength=len(groups.size)) < groups.size
    is_open[groups.group[groups.rank != groups.best_rank]] = True
    queries = len(np.unique(groups.query[is_open]))
    pattern = (
        "the counter was given no positions: in {queries:query} with ties the oblivious value "
        "puts judged documents first"
    )
    return [warning(pattern, queries=queries)] if queries else []
