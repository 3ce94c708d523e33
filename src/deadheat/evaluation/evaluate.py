"""Evaluate runs, arrays and tie groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from deadheat.errors import InputError
from deadheat.evaluation.result import Result
from deadheat.evaluation.views import need_judged, result_of, versions
from deadheat.formats import Judgements, QrelsLike, Run, RunLike, read_qrels, read_run
from deadheat.formats.arrays import flatten, grouped, query_names
from deadheat.formats.folders import is_folder, run_folder
from deadheat.formats.ids import are_numbers
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.provenance import Provenance
from deadheat.remarks import Remark, announcing, warning
from deadheat.ties import TieGroups, tie_groups
from deadheat.ties.checks import check_tolerance
from deadheat.ties.groups import check_groups
from deadheat.ties.lists import (
    Fit,
    JudgedLists,
    fitted_lists,
    labelled_lists,
    rankable,
    without_nan,
)
from deadheat.ties.rules import TieRule, check_rule, rule_order
from deadheat.ties.scores import as_seen_in, score_format

DEFAULT_MEASURES = ("nDCG@10", "MRR@10", "MAP", "Recall@100")
QueryPolicy = Literal["judged", "intersection", "all"]
"""Which queries count."""
NanPolicy = Literal["raise", "last"]
"""What becomes of NaN scores."""
QUERY_POLICIES: dict[QueryPolicy, str] = {
    "judged": "every judged query with a relevant document; one that the run misses scores 0",
    "intersection": "queries that are both judged and in the run, as trec_eval averages",
    "all": "every judged query, those without a relevant document too (they score 0)",
}
NAN_POLICIES: tuple[NanPolicy, ...] = ("raise", "last")


@announcing
def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    measures: str | Measure | Iterable[Any] = DEFAULT_MEASURES,
    *,
    tie_break: TieRule = "input",
    tie_tolerance: float = 0.0,
    queries: QueryPolicy = "judged",
    nan: NanPolicy = "raise",
    score_dtype: object = None,
) -> Result:
    """Evaluate a run, with every view of its ties.

    Parameters
    ----------
    qrels, run
        Judgements and scored documents: a path, a dict of dicts, a table of polars, pandas
        or pyarrow, an iterable of tuples, `Qrels` and a `Run` of ranx. Judgements may also be a
        dict of sets or lists of relevant ids, and a run a dict of lists of (document, score)
        pairs, or what `deadheat.search_results` and `deadheat.ranked_groups` give. The path of a
        folder of Parquet files is a run that need not fit in memory.
    measures
        Names such as ``"nDCG@10"`` (those of trec_eval, ir_measures, MTEB and ranx are
        understood) or measures such as ``dh.nDCG @ 10``.
    tie_break
        The rule by which the tie-oblivious value orders tied documents: one of
        `deadheat.TIE_RULES`.
    tie_tolerance
        Scores at most this far apart are tied, and so are chains of such scores. The
        oblivious value still sees the scores as they are.
    queries
        Which queries count: ``"judged"``, every judged query with a relevant document;
        ``"intersection"``, those of them and others that are in the run; ``"all"``, every
        judged query.
    nan
        ``"raise"`` refuses NaN scores, ``"last"`` ranks them below all others, tied.
    score_dtype
        The precision in which an evaluator sees scores, ``"float32"`` (as trec_eval 9 and
        pytrec_eval do), ``"fp16"`` or ``"bf16"``: scores are rounded to it first, and every view
        is of the ties that this leaves. As they are unless given.

    Examples
    --------
    >>> import deadheat as dh
    >>> qrels = {"q1": {"d1": 1, "d3": 1}}
    >>> run = {"q1": {"d1": 0.9, "d2": 0.5, "d3": 0.5, "d4": 0.5}}
    >>> result = dh.evaluate(qrels, run, ["Recall@2"])
    >>> result["Recall@2"].expected, result["Recall@2"].worst, result["Recall@2"].best
    (0.6666666666666666, 0.5, 1.0)
    """
    return evaluated_source(
        read_qrels(qrels),
        run,
        parse_measures(measures),
        tie_break=tie_break,
        tie_tolerance=tie_tolerance,
        queries=queries,
        nan=nan,
        score_dtype=score_dtype,
    )


def evaluated_source(
    judgements: Judgements, run: RunLike, measures: Sequence[Measure], **options: Any
) -> Result:
    """Evaluate as `evaluated` does, whatever the run is read from.

    A folder that holds too much is evaluated in parts.
    """
    if is_folder(run):
        from deadheat.evaluation.folders import evaluated_folder

        return evaluated_folder(judgements, run_folder(run), measures, **options)
    with_ranks = options.get("tie_break") == "rank"
    return evaluated(
        judgements, read_run(run, with_ranks=with_ranks, copy=False), measures, **options
    )


def evaluated(
    judgements: Judgements,
    run: Run,
    measures: Sequence[Measure],
    *,
    tie_break: str = "input",
    tie_tolerance: float = 0.0,
    queries: str = "judged",
    nan: str = "raise",
    score_dtype: object = None,
) -> Result:
    """Evaluate as `evaluate` does, without a word: what to know of the result is on it."""
    options = Options(tie_break, tie_tolerance, queries, nan, score_dtype)
    counted = counted_groups(judgements, run, measures, options)
    return result_of_counted(counted, judgements, run.source, measures, options)


@dataclass(frozen=True)
class Options:
    """How an evaluation is made, checked."""

    tie_break: str = "input"
    tie_tolerance: float = 0.0
    queries: str = "judged"
    nan: str = "raise"
    score_dtype: object = None

    def __post_init__(self) -> None:
        _check_options(self.tie_break, self.tie_tolerance, self.queries, QUERY_POLICIES, self.nan)
        score_format(self.score_dtype)


@dataclass(frozen=True)
class Counted:
    """All that measures need of the queries that count, and how these fit the judgements."""

    query_ids: Sequence[str | int]
    groups: TieGroups
    fit: Fit
    remarks: list[Remark]


def counted_groups(
    judgements: Judgements,
    run: Run,
    measures: Iterable[Measure],
    options: Options,
    list_in: Callable[[Run], tuple[JudgedLists, Fit]] | None = None,
) -> Counted:
    """Round scores as the options say, and count ties; judgements and run may be parts.

    `list_in` finds the judged documents in a run where they were prepared.
    """
    precision = score_format(options.score_dtype)
    if options.tie_tolerance or precision is not None:
        run = _with_open_ends(run)
    seen, rounding = as_seen_in(run, precision)
    ranked = without_nan(seen, options.nan)
    if list_in is not None:
        lists, fit = list_in(ranked)
    else:
        lists, fit = fitted_lists(
            judgements, ranked, queries=options.queries, with_judged=need_judged(measures)
        )
    order = rule_order(options.tie_break, lists.scores, run.documents.ids, run.ranks, lists.exact)
    groups = tie_groups(lists, order, tolerance=options.tie_tolerance)
    return Counted(lists.own_ids, groups, fit, rounding)


def result_of_counted(
    counted: Counted,
    judgements: Judgements,
    source: str,
    measures: Sequence[Measure],
    options: Options,
) -> Result:
    """Evaluate what was counted of a run; refuse judgements and run that do not fit."""
    counted.fit.check(judgements, source)
    precision = score_format(options.score_dtype)
    provenance = Provenance(
        source,
        judgements.source,
        options.tie_break,
        float(options.tie_tolerance),
        options.queries,
        options.nan,
        None if precision is None else precision.name,
        versions=versions(),
    )
    remarks = counted.remarks + counted.fit.remarks(judgements)
    return result_of(counted.query_ids, counted.groups, measures, provenance, remarks)


def _with_open_ends(run: Run) -> Run:
    """Forget that lists end with a whole tie group: where more scores tie, they may not."""
    if run.beyond is not None and run.beyond.any():
        raise InputError(
            f"{run.source}: last_group_size counts documents of exactly the same score; with "
            "tie_tolerance or score_dtype others tie, too: leave one of the two out"
        )
    return replace(run, beyond=None)


@announcing
def evaluate_arrays(
    scores: Any,
    relevance: Any,
    measures: str | Measure | Iterable[Any] = DEFAULT_MEASURES,
    *,
    query: ArrayLike | None = None,
    n_relevant: ArrayLike | None = None,
    query_ids: Sequence[Any] | None = None,
    tie_tolerance: float = 0.0,
    queries: Literal["judged", "all"] = "judged",
    nan: NanPolicy = "raise",
    score_dtype: object = None,
) -> Result:
    """Evaluate scores and labels of the same shape, without ids.

    Parameters
    ----------
    scores
        ``[queries, candidates]``: a NumPy array or torch tensor of any number type, or a list
        of lists, which may differ in length.
    relevance
        Grades of the same shape; 0 is not relevant.
    measures, tie_tolerance, nan, score_dtype
        As for `evaluate`. The oblivious value breaks ties by input order.
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
    queries
        ``"judged"`` leaves out queries without a relevant document, ``"all"`` counts them as 0.

    Examples
    --------
    >>> import deadheat as dh
    >>> result = dh.evaluate_arrays([[0.9, 0.5, 0.5, 0.5]], [[1, 0, 1, 0]], ["Recall@2"])
    >>> round(result["Recall@2"].expected, 4)
    0.6667
    >>> flat = dh.evaluate_arrays([0.9, 0.5, 0.5, 0.7], [1, 0, 1, 1], "MRR", query=[7, 3, 3, 7])
    >>> flat.query_ids, flat["MRR"].expected
    ([7, 3], 0.875)
    """
    parsed = parse_measures(measures)
    _check_options("input", tie_tolerance, queries, ("judged", "all"), nan)
    precision = score_format(score_dtype)
    if query is None:
        candidates = flatten(scores, relevance)
    elif query_ids is None:
        candidates, query_ids = grouped(scores, relevance, query)
    else:
        raise InputError("query names the queries already: leave query_ids out")
    flat, rounding = as_seen_in(candidates, precision)
    names = query_names(query_ids, len(flat.offsets) - 1)
    lists, remarks = labelled_lists(
        names,
        rankable(flat.scores, flat.offsets, nan, lambda q, i: f"query {names[q]!r}, candidate {i}"),
        flat.offsets,
        flat.grades,
        n_relevant,
        queries=queries,
        with_judged=need_judged(parsed),
        exact=flat.exact,
        numbered=are_numbers(query_ids),
    )
    groups = tie_groups(lists, tolerance=tie_tolerance)
    provenance = Provenance(
        "arrays",
        None,
        "input",
        float(tie_tolerance),
        queries,
        nan,
        None if precision is None else precision.name,
        versions=versions(),
    )
    return result_of(lists.own_ids, groups, parsed, provenance, rounding + remarks)


@announcing
def evaluate_groups(
    groups: TieGroups,
    measures: str | Measure | Iterable[Any] = DEFAULT_MEASURES,
    *,
    query_ids: Sequence[Any] | None = None,
) -> Result:
    """Evaluate tie groups, such as those of a `deadheat.TieCounter` that a stream passed.

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
    >>> from deadheat import TieCounter
    >>> counter = TieCounter(1, query=[0], score=[0.5], grade=[1], position=[2])
    >>> counter.update([[0.9, 0.5, 0.5]])
    >>> evaluate_groups(counter.groups(), ["MRR"])["MRR"].best
    0.5
    """
    check_groups(groups)
    names: Sequence[str | int] = query_names(query_ids, groups.n_queries)
    if are_numbers(query_ids):
        names = list(map(int, names))
    provenance = Provenance("tie groups", None, queries="all", versions=versions())
    return result_of(names, groups, parse_measures(measures), provenance, _unplaced(groups))


def _unplaced(groups: TieGroups) -> list[Remark]:
    """Warn where an oblivious value rests on places that nobody gave."""
    if groups.ranked:
        return []
    top = groups.rank == groups.best_rank
    several = np.bincount(groups.group, minlength=len(groups.size)) < groups.size
    several[groups.group[~top]] = True
    queries = len(np.unique(groups.query[several]))
    pattern = (
        "the counter was given no positions: in {queries:query} with ties the oblivious value "
        "puts judged documents first"
    )
    return [warning(pattern, queries=queries)] if queries else []


def _check_options(
    tie_break: str, tie_tolerance: float, queries: str, policies: Iterable[str], nan: str
) -> None:
    check_rule(tie_break)
    check_tolerance(tie_tolerance)
    for name, value, choices in (("queries", queries, policies), ("nan", nan, NAN_POLICIES)):
        if value not in tuple(choices):
            raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
