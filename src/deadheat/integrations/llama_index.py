"""LlamaIndex: its `RetrieverEvaluator`, with the scores of the nodes and any view of ties.

LlamaIndex gives its metrics the ids of the retrieved nodes in their order, without scores, so none
of them can detect a tie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deadheat._internal.remarks import emit_warnings, emits_warnings
from deadheat.errors import InputError
from deadheat.evaluation import VIEWS, Result, check_views, evaluate_run, flat_summaries
from deadheat.formats import read_qrels
from deadheat.integrations.base import (
    ALL_QUERIES,
    Measures,
    load_host,
    no_score,
    warnings_without,
)
from deadheat.measures import Measure, parse_measure, parse_measures
from deadheat.settings import EvalOptions, EvalSettings

if TYPE_CHECKING:
    from typing_extensions import Unpack

_evaluation: Any = load_host("llama_index.core.evaluation")
_base = load_host("llama_index.core.evaluation.retrieval.base")
_metrics = load_host("llama_index.core.evaluation.retrieval.metrics")
SCORES = "retrieved_scores"
"""Key in the metadata of every value for the scores of the retrieved nodes."""


class RetrieverEvaluator(_evaluation.RetrieverEvaluator):  # type: ignore[misc]
    """Evaluates a retriever like the evaluator of that name in LlamaIndex, but uses the scores.

    The value under the name of a metric is the expected value over all orders of nodes with equal
    scores. Other views have names such as ``mrr_range``.

    Parameters
    ----------
    measures
        ``{name: measure}``, as from `from_metric_names`.
    views
        Views to return for each measure.
    metrics, retriever, node_postprocessors
        As in the original. LlamaIndex's own metrics are computed from ids only.

    Examples
    --------
    >>> from llama_index.core import MockEmbedding, VectorStoreIndex
    >>> from llama_index.core.schema import TextNode
    >>> nodes = [TextNode(id_=name, text=name) for name in "abc"]
    >>> index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    >>> evaluator = RetrieverEvaluator.from_metric_names(
    ...     ["mrr"], retriever=index.as_retriever(similarity_top_k=3), views=["expected", "range"]
    ... )
    >>> values = evaluator.evaluate("a question", expected_ids=["a"]).metric_vals_dict
    >>> {name: round(value, 4) for name, value in values.items()}
    {'mrr': 0.6111, 'mrr_range': 0.6667}
    """

    metrics: list[Any] = []  # noqa: RUF012  # a field of pydantic, which copies it
    measures: dict[str, Measure] = {}  # noqa: RUF012
    views: tuple[str, ...] = VIEWS

    @classmethod
    def from_metric_names(
        cls, metric_names: Iterable[str], views: Sequence[str] = VIEWS, **options: object
    ) -> RetrieverEvaluator:
        """Make an evaluator from metric names of LlamaIndex or of `deadheat.evaluate`.

        LlamaIndex computes its metrics that deadheat does not have.

        Parameters
        ----------
        metric_names
            Such as ``"mrr"``, ``"hit_rate"``, ``"ndcg@10"``.
        views
            Views to return for each metric.
        options
            ``retriever`` and ``node_postprocessors``.
        """
        check_views(views)
        measures, others = {}, []
        for name in metric_names:
            try:
                measures[name] = parse_measure(name)
            except InputError:
                if name not in _metrics.METRIC_REGISTRY:
                    raise
                others.append(_metrics.METRIC_REGISTRY[name]())
        return cls(metrics=others, measures=measures, views=tuple(views), **options)

    async def aevaluate(
        self,
        query: str,
        expected_ids: list[str],
        expected_texts: list[str] | None = None,
        mode: object = _base.RetrievalEvalMode.TEXT,
        **options: object,
    ) -> Any:
        """Retrieve for a query, and evaluate; `evaluate` is the synchronous version."""
        nodes = await self.retriever.aretrieve(query)
        for postprocessor in self.node_postprocessors or ():
            nodes = postprocessor.postprocess_nodes(nodes, query_str=query)
        ids, texts = [node.node.node_id for node in nodes], [node.text for node in nodes]
        values = {
            metric.metric_name: metric.compute(query, expected_ids, ids, expected_texts, texts)
            for metric in self.metrics
        }
        return _base.RetrievalEvalResult(
            query=query,
            expected_ids=expected_ids,
            expected_texts=expected_texts,
            retrieved_ids=ids,
            retrieved_texts=texts,
            mode=mode,
            metric_dict={**self._values(query, expected_ids, nodes), **values},
        )

    def _values(
        self, query: str, expected_ids: list[str], nodes: Sequence[Any]
    ) -> dict[str, object]:
        """Return the views of all measures in LlamaIndex's form."""
        if not self.measures:
            return {}
        if not expected_ids:
            raise InputError(f"query {query!r:.60}: there is no expected id; give expected_ids")
        scores: dict[str, float] = {}
        for node in nodes:
            name, place = node.node.node_id, f"query {query!r:.60}: node {node.node.node_id!r:.60}"
            if node.score is None:
                raise no_score(place)
            if name in scores:
                raise InputError(f"{place} was retrieved twice")
            scores[name] = node.score
        judgements = read_qrels({"q": dict.fromkeys(expected_ids, 1)})
        run = {"q": scores or {"nothing was retrieved": 0.0}}  # counts as 0
        distinct = list(dict.fromkeys(self.measures.values()))
        result = evaluate_run(judgements, run, distinct, ALL_QUERIES)
        # A single query without a relevant document does not mean that ids do not match.
        emit_warnings(warnings_without(result, "judged"))
        named = [replace(result[each], measure=name) for name, each in self.measures.items()]
        metadata = {SCORES: list(scores.values())}
        return {
            name: _metrics.RetrievalMetricResult(score=value, metadata=metadata)
            for name, value in flat_summaries(named, views=self.views).items()
        }


@emits_warnings
def result_of(results: Iterable[Any], measures: Measures, **options: Unpack[EvalOptions]) -> Result:
    """Make a `deadheat.Result` from the evaluator's results of many queries.

    Parameters
    ----------
    results
        Results of `RetrieverEvaluator.evaluate`, one per query.
    measures, options
        As for `deadheat.evaluate`; a query that retrieved nothing counts as 0.
    """
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for result in results:
        stored = [v.metadata[SCORES] for v in result.metric_dict.values() if SCORES in v.metadata]
        if not stored:
            raise InputError(
                f"the result of {result.query!r:.60} has no scores; it is not from this evaluator"
            )
        if result.query in qrels:
            raise InputError(f"the query {result.query!r:.60} was evaluated twice; keep one result")
        qrels[result.query] = dict.fromkeys(result.expected_ids, 1)
        run[result.query] = dict(zip(result.retrieved_ids, stored[0], strict=True))
    settings = EvalSettings.from_options(options)
    return evaluate_run(read_qrels(qrels), run, parse_measures(measures), settings)
