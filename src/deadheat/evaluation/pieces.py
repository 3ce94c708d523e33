"""Evaluate lists that a `TieCounter` or a `TopCounter` counted in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from deadheat._internal.remarks import emits_warnings
from deadheat.errors import InputError
from deadheat.evaluation.evaluate import DEFAULT_MEASURES, result_of, versions
from deadheat.evaluation.result import Result
from deadheat.formats import (
    QrelsLike,
    are_numbers,
    query_names,
    read_qrels,
    text_id,
)
from deadheat.measures import Measure, parse_measures
from deadheat.provenance import Provenance
from deadheat.settings import EvalSettings
from deadheat.ties import TieGroups, TopCounter, check_groups, list_shared


@emits_warnings
def evaluate_top(
    qrels: QrelsLike,
    counter: TopCounter,
    measures: str | Measure | Iterable[str | Measure],
    *,
    query_ids: Sequence[object],
    document_ids: Sequence[object],
) -> Result:
    """Evaluate lists that a `deadheat.ties.TopCounter` counted in pieces.

    All views are exact for the whole lists, because the counter has the number of candidates that
    tie with the last one it kept, and which of them are judged.

    Parameters
    ----------
    qrels
        Judgements, in any form that `deadheat.evaluate` accepts. If the counter was created with
        `judged`, that must have all documents judged here.
    counter
        A counter that has counted every candidate.
    measures
        As for `deadheat.evaluate`. Cutoffs must be at most the `k` of the counter.
    query_ids, document_ids
        Names of the queries, and of the documents in the order of their positions.

    Examples
    --------
    >>> import deadheat as dh
    >>> counter = dh.ties.TopCounter(1, k=1)
    >>> counter.update([[0.5, 0.25, 0.5, 0.5]])
    >>> names = {"query_ids": ["q"], "document_ids": ["a", "b", "c", "d"]}
    >>> summary = dh.evaluation.evaluate_top({"q": {"c": 1}}, counter, ["MRR@1"], **names)["MRR@1"]
    >>> round(summary.expected, 4), summary.worst, summary.best, summary.oblivious
    (0.3333, 0.0, 1.0, 0.0)
    """
    judgements, parsed = read_qrels(qrels), parse_measures(measures)
    names = query_names(query_ids, counter.n_queries)
    ids = [text_id(document) for document in document_ids]
    passed = int(counter.kept.retrieved.max(initial=0))
    if len(ids) != passed or int(counter.kept.position.max(initial=-1)) >= len(ids):
        raise InputError(
            f"document_ids has {len(ids):,} names, but {passed:,} documents were counted: give the "
            "name of every document, in the order of positions"
        )
    if len(set(ids)) < len(ids):
        raise InputError("document_ids has the same name twice: give every document its own")
    with_judged = any(measure.needs_judged for measure in parsed)
    lists, chosen, remarks = list_shared(
        judgements, "top lists", names, ids, with_judged=with_judged
    )
    n_missing = np.count_nonzero(chosen >= counter.n_queries)
    lacking, grade = lists.unretrieved
    groups = counter.add_empty(int(n_missing)).groups(
        chosen[lists.query], lists.position, lists.grade, unretrieved=(chosen[lacking], grade)
    )
    groups = groups.take(chosen)
    provenance = Provenance("top lists", judgements.source, versions=versions())
    return result_of(lists.own_ids, groups, parsed, provenance, remarks)


@emits_warnings
def evaluate_groups(
    groups: TieGroups,
    measures: str | Measure | Iterable[object] = DEFAULT_MEASURES,
    *,
    query_ids: Sequence[object] | None = None,
) -> Result:
    """Evaluate tie groups, such as those that a `deadheat.ties.TieCounter` counted in a stream.

    Parameters
    ----------
    groups
        Tie groups of complete lists. deadheat cannot detect missing documents here.
    measures
        As for `evaluate`. Measures that use all judged documents need a counter that has them all.
    query_ids
        Names of the queries. Default: numbers from 0.

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
    """Evaluate tie groups like `evaluate_groups`, but do not emit warnings."""
    groups = check_groups(groups)
    names: Sequence[str | int] = query_names(query_ids, groups.n_queries)
    if are_numbers(query_ids):
        names = list(map(int, names))
    provenance = Provenance("tie groups", None, EvalSettings(queries="all"), versions=versions())
    return result_of(names, groups, measures, provenance, [])
