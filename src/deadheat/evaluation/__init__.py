"""From judgements and scores to a result: per query and on average, with what to know of it."""

from deadheat.evaluation.evaluate import (
    DEFAULT_MEASURES,
    evaluate,
    evaluate_arrays,
    evaluate_groups,
    evaluate_run,
    evaluate_scores,
    evaluate_source,
    evaluate_tie_groups,
    evaluate_with_curves,
)
from deadheat.evaluation.evaluator import Evaluator
from deadheat.evaluation.names import run_name, short_labels, short_names
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
from deadheat.evaluation.runs import evaluate_runs
from deadheat.evaluation.stored import is_reproduced_by, read_results, same_judgements
from deadheat.evaluation.top import evaluate_top
from deadheat.evaluation.views import out_of_reach, views_of

__all__ = [
    "DEFAULT_MEASURES",
    "SPAN",
    "VIEWS",
    "VIEW_COLUMNS",
    "Evaluator",
    "RankedQuery",
    "Result",
    "Summary",
    "Views",
    "check_views",
    "evaluate",
    "evaluate_arrays",
    "evaluate_groups",
    "evaluate_run",
    "evaluate_runs",
    "evaluate_scores",
    "evaluate_source",
    "evaluate_tie_groups",
    "evaluate_top",
    "evaluate_with_curves",
    "flat_summaries",
    "headline",
    "is_reproduced_by",
    "labels_of",
    "out_of_reach",
    "rank_query",
    "read_results",
    "results_table",
    "run_name",
    "same_judgements",
    "short_labels",
    "short_names",
    "views_of",
]
