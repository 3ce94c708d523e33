"""Evaluate judgements and scores: results per query and averaged, with warnings and notes."""

from deadheat.evaluation.corpus import evaluate_corpus as evaluate_corpus
from deadheat.evaluation.evaluate import (
    DEFAULT_MEASURES as DEFAULT_MEASURES,
    cut_lists as cut_lists,
    evaluate as evaluate,
    evaluate_arrays as evaluate_arrays,
    evaluate_run as evaluate_run,
    evaluate_scores as evaluate_scores,
    evaluate_with_curves as evaluate_with_curves,
    out_of_reach as out_of_reach,
    views_of as views_of,
)
from deadheat.evaluation.evaluator import Evaluator as Evaluator
from deadheat.evaluation.folders import run_parts as run_parts
from deadheat.evaluation.names import name_runs as name_runs, run_name as run_name
from deadheat.evaluation.neighbours import neighbour_recall as neighbour_recall
from deadheat.evaluation.pieces import (
    evaluate_groups as evaluate_groups,
    evaluate_tie_groups as evaluate_tie_groups,
    evaluate_top as evaluate_top,
)
from deadheat.evaluation.query import RankedQuery as RankedQuery, rank_query as rank_query
from deadheat.evaluation.rescoring import (
    Rescoring as Rescoring,
    evaluate_rescoring as evaluate_rescoring,
)
from deadheat.evaluation.result import (
    SPAN as SPAN,
    VIEW_COLUMNS as VIEW_COLUMNS,
    VIEWS as VIEWS,
    Floats as Floats,
    Result as Result,
    Summary as Summary,
    Views as Views,
    check_views as check_views,
    flat_summaries as flat_summaries,
    headline as headline,
    name_results as name_results,
    results_table as results_table,
)
from deadheat.evaluation.runs import evaluate_runs as evaluate_runs
from deadheat.evaluation.stored import (
    is_reproduced_by as is_reproduced_by,
    read_results as read_results,
    same_judgements as same_judgements,
)
from deadheat.formats import stored_shards as stored_shards
