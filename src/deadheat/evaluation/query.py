"""Rank and evaluate one query: its ranked list, and the effect of its ties on a measure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deadheat.errors import InputError
from deadheat.evaluation.evaluate import evaluate_run
from deadheat.evaluation.result import Result
from deadheat.formats import (
    Columns,
    QrelsLike,
    RunLike,
    id_column,
    read_qrels,
    read_run,
)
from deadheat.measures import Measure, parse_measure
from deadheat.settings import EvalSettings
from deadheat.ties import RankedLists, rank_lists


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
    number = run.query_index[query]
    rows = np.arange(*run.offsets[number : number + 2])
    alone = Columns(
        id_column([query] * len(rows)),
        run.documents.ids(rows),
        (run.scores if run.exact is None else run.exact)[rows],
        None if run.ranks is None else run.ranks[rows],
    ).to_run(run.source)
    if run.n_tied_beyond_cut is not None:
        alone = replace(alone, n_tied_beyond_cut=run.n_tied_beyond_cut[number : number + 1])
    result = evaluate_run(judgements, alone, [parsed], settings)
    documents = rank_lists(alone, judgements, [query], settings=settings)
    return RankedQuery(query, parsed, result, documents)
