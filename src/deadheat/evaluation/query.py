"""Rank and evaluate one query: its ranked list, and the effect of its ties on a measure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deadheat.errors import InputError
from deadheat.evaluation.evaluate import result_of_counted
from deadheat.evaluation.result import Result
from deadheat.formats import QrelsLike, RunLike, read_qrels, read_run
from deadheat.measures import Measure, parse_measure
from deadheat.settings import EvalSettings
from deadheat.ties import RankedLists, count_groups, rank_lists


@dataclass(frozen=True)
class RankedQuery:
    """The whole list of one query in the order of a tie rule, and the value of a measure on it."""

    query: str
    measure: Measure
    result: Result
    """The result of this query only."""
    documents: RankedLists
    """The ranked list of this query only."""


def rank_query(
    qrels: QrelsLike,
    run: RunLike,
    query: str,
    measure: str | Measure = "Recall@10",
    settings: EvalSettings | None = None,
) -> RankedQuery:
    """Rank and evaluate one query of a run; `deadheat.report.figures.ranked_list` draws it.

    Warnings and notes about the numbers are in the remarks of the result.

    Parameters
    ----------
    qrels, run
        As for `deadheat.evaluate`.
    query
        The id of the query.
    measure
        The measure to evaluate.
    settings
        Options of the evaluation; `queries` has no effect.
    """
    settings = replace(settings or EvalSettings(), queries="intersection")
    parsed = measure if isinstance(measure, Measure) else parse_measure(measure)
    judgements, run = read_qrels(qrels), read_run(run, with_ranks=settings.needs_ranks)
    query = str(query)
    for table in (judgements, run):
        if query not in table.query_ids:
            raise InputError(f"{table.source}: there is no query {query!r}")
    number = judgements.query_ids.index(query)
    own = judgements.part(number, number + 1)
    counted = count_groups(own, run, settings, with_judged=parsed.needs_judged)
    report = replace(counted.report, unjudged=0)  # the other queries of the run
    counted = counted._replace(report=report)
    result = result_of_counted(counted, judgements, run.source, [parsed], settings)
    return RankedQuery(query, parsed, result, rank_lists(run, own, [query], settings=settings))
