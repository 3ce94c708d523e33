"""From judgements and scores to a result: per query and on average, with what to know of it."""

from deadheat.evaluation.evaluate import (
    DEFAULT_MEASURES,
    NAN_POLICIES,
    QUERY_POLICIES,
    NanPolicy,
    QueryPolicy,
    evaluate,
    evaluate_arrays,
    evaluate_groups,
    evaluated,
    evaluated_source,
)
from deadheat.evaluation.evaluator import Evaluator
from deadheat.evaluation.names import short_labels, short_names
from deadheat.evaluation.query import RankedQuery, rank_query
from deadheat.evaluation.result import (
    SPAN,
    VIEW_COLUMNS,
    VIEWS,
    Result,
    Summary,
    Views,
    check_views,
    flat_summaries,
    headline,
    labels_of,
    results_table,
)
from deadheat.evaluation.runs import evaluated_runs
from deadheat.evaluation.stored import read_results, same_judgements
from deadheat.evaluation.top import evaluate_top
from deadheat.evaluation.views import out_of_reach, views_of

__all__ = [
    "DEFAULT_MEASURES",
    "NAN_POLICIES",
    "QUERY_POLICIES",
    "SPAN",
    "VIEWS",
    "VIEW_COLUMNS",
    "Evaluator",
    "NanPolicy",
    "QueryPolicy",
    "RankedQuery",
    "Result",
    "Summary",
    "Views",
    "check_views",
    "evaluate",
    "evaluate_arrays",
    "evaluate_groups",
    "evaluate_top",
    "evaluated",
    "evaluated_runs",
    "evaluated_source",
    "flat_summaries",
    "headline",
    "labels_of",
    "out_of_reach",
    "rank_query",
    "read_results",
    "results_table",
    "same_judgements",
    "short_labels",
    "short_names",
    "views_of",
]
