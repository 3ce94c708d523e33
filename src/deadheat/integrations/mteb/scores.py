"""The scores that MTEB reports for a retrieval task, with every view of ties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from deadheat.evaluation import Result, evaluate_run
from deadheat.formats import Judgements, Run, read_qrels, read_run
from deadheat.integrations.base import ByQuery, tie_views
from deadheat.measures import MRR, Measure, parse_measures
from deadheat.settings import EvalSettings

if TYPE_CHECKING:
    from deadheat.integrations.corpus_counts import CorpusCounts

KINDS = ("ndcg", "map", "recall", "precision", "mrr", "hit_rate")
"""The measures of MTEB's retrieval tasks, each at every cutoff of the task."""


def tie_rule(measure: Measure) -> str:
    """Return the rule by which MTEB orders tied documents for a measure.

    MTEB's MRR sorts by score, then by id, descending. pytrec_eval computes the other measures; it
    sorts in the same way after a cast of the scores to float32.
    """
    return "id_desc" if isinstance(measure, type(MRR)) else "pytrec_eval"


def measure_names(cutoffs: Iterable[int]) -> list[str]:
    """Return MTEB's names of its measures at each cutoff.

    >>> measure_names([10])[:3]
    ['ndcg_at_10', 'map_at_10', 'recall_at_10']
    """
    return [f"{kind}_at_{k}" for kind in KINDS for k in sorted(set(cutoffs))]


def tie_aware_scores(
    qrels: ByQuery,
    results: ByQuery,
    cutoffs: Sequence[int] = (1, 3, 5, 10, 20, 100, 1000),
    *,
    counts: CorpusCounts | None = None,
) -> dict[str, float | str]:
    """Return the tie-aware scores to add to those of MTEB, from the same judgements and lists.

    Parameters
    ----------
    qrels, results
        Judgements and retrieved documents of each query, in MTEB's form. As in MTEB, the mean is
        over the judged queries of `results`; a query without a relevant document counts as 0.
    cutoffs
        The task's ``k_values``.
    counts
        Counts of the scores of a search of the whole corpus, whose lists are cut.

    Returns
    -------
    dict
        ``ndcg_at_10_expected``, ``…_best``, ``…_worst``, ``…_range``, ``…_tie_std`` and
        ``…_bias``, for each measure and cutoff. The bias is that of MTEB's own value.
        ``ties_counted_in`` is the basis of the views: ``"corpus"`` for every score of a search,
        ``"lists"`` for the retrieved documents only.

    Examples
    --------
    >>> scores = tie_aware_scores({"q": {"d1": 1}}, {"q": {"d1": 0.5, "d2": 0.5}}, [1])
    >>> scores["recall_at_1_expected"], scores["recall_at_1_range"], scores["recall_at_1_bias"]
    (0.5, 1.0, -0.5)
    """
    judged = {query: grades for query, grades in qrels.items() if query in results}
    names = measure_names(cutoffs)
    seen = evaluate_as_mteb(read_qrels(judged), read_run(results, copy=False), names)
    whole = None
    if counts is not None and counts.complete and counts.query_ids == list(results):
        whole = counts.evaluate(names)
    scores: dict[str, float | str] = {"ties_counted_in": "corpus" if whole else "lists"}
    for name, result in seen:
        summary = (whole or result)[name]
        for own in (name, "accuracy") if name == "recall_at_1" else (name,):
            scores[f"{own}_expected"] = summary.expected
            scores |= tie_views(own, summary, result[name].oblivious)
    return scores


def evaluate_as_mteb(
    judgements: Judgements, run: Run, names: Sequence[str]
) -> list[tuple[str, Result]]:
    """Evaluate measures under MTEB's names, each with MTEB's tie rule for it."""
    measures = dict(zip(names, parse_measures(names), strict=True))
    by_rule: dict[str, list[Measure]] = {}
    for measure in measures.values():
        by_rule.setdefault(tie_rule(measure), []).append(measure)
    results = {
        rule: evaluate_run(judgements, run, chosen, EvalSettings(rule, queries="all"))
        for rule, chosen in by_rule.items()
    }
    return [(name, results[tie_rule(measure)]) for name, measure in measures.items()]


def has_keys(scores: Mapping[str, object]) -> bool:
    """Return whether the stored scores of a retrieval task have the keys of ties.

    It is True for tasks of other kinds, which need no such keys.
    """
    ndcg = [name for name in scores if name.startswith("ndcg_at_")]
    return not ndcg or any(name.endswith("_expected") for name in ndcg)


def without_first(listed: Mapping[str, float]) -> dict[str, float]:
    """Drop the document that MTEB drops: the first of the list among those with the best score."""
    if not listed:
        return {}
    first = max(listed, key=listed.__getitem__)
    return {document: score for document, score in listed.items() if document != first}
