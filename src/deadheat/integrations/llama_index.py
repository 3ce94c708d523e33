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
_postprocessors: Any = load_host("llama_index.core.postprocessor.types")
_metrics = load_host("llama_index.core.evaluation.retrieval.metrics")
SCORES = "retrieved_scores"
"""Key in the metadata of every value for the scores of the retrieved nodes."""


class _Keep(_postprocessors.BaseNodePostprocessor):  # type: ignore[misc]
    """Keeps the nodes that the other postprocessors return."""

    nodes: list[Any] = []  # noqa: RUF012  # a field of pydantic, which copies it

    def _postprocess_nodes(self, nodes: list[Any], *_: object) -> list[Any]:
        self.nodes = nodes
        return nodes


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

    metrics: list[Any] = []  # noqa: RUF012
    measures: dict[str, Measure] = {}  # noqa: RUF012
    views: tuple[str, ...] = VIEWS

    @classmethod
    def from_metric_names(
        cls, metric_names: Iterable[str], views: Sequence[str] = VIEWS, **options: object
    ) -> RetrieverEvaluator:
        """Make an evaluator from metric names of LlamaIndex or of `deadheat.evaluate`.

        Parameters
        ----------
        metric_names
            Such as ``"mrr"``, ``"hit_rate"``, ``"ndcg@10"``.
        views
            Views to return for each metric.
        options
            ``retriever``, ``node_postprocessors`` and ``metrics``.
        """
        check_views(views)
        measures = {name: parse_measure(name) for name in metric_names}
        return cls(measures=measures, views=tuple(views), **options)

    async def aevaluate(
        self, query: str, expected_ids: list[str], *args: object, **options: object
    ) -> Any:
        """Retrieve for a query, and evaluate; `evaluate` is the synchronous version."""
        last = _Keep()
        steps = [*(self.node_postprocessors or ()), last]
        own = self.model_copy(update={"node_postprocessors": steps})
        evaluate = _evaluation.RetrieverEvaluator.aevaluate
        result = await evaluate(own, query, expected_ids, *args, **options)
        values = self._values(query, expected_ids, last.nodes)
        result.metric_dict = {**values, **result.metric_dict}
        return result

    def _values(
        self, query: str, expected_ids: list[str], nodes: Sequence[Any]
    ) -> dict[str, object]:
        """Return the views of all measures in LlamaIndex's form."""
        place = f"query {query!r:.60}"
        if not self.measures:
            return {}
        if not expected_ids:
            raise InputError(f"{place}: there is no expected id; give expected_ids")
        scores: dict[str, float] = {}
        for node in nodes:
            if node.score is None:
                raise no_score(f"{place}: node {node.node_id!r:.60}")
            if node.node_id in scores:
                raise InputError(f"{place}: node {node.node_id!r:.60} was retrieved twice")
            scores[node.node_id] = node.score
        judgements = read_qrels({"q": dict.fromkeys(expected_ids, 1)})
        run = {"q": scores or {"nothing was retrieved": 0.0}}  # counts as 0
        result = evaluate_run(judgements, run, list(self.measures.values()), ALL_QUERIES)
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
