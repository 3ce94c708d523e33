"""Tie-aware evaluators for sentence-transformers, each under the name of the library's own.

They are constructed, called, stored and used in training like the evaluators that they replace. If
a value of the library depends on its order of tied documents, they report the mean over all orders.
They also return `…_best`, `…_worst`, `…_range`, `…_tie_std` and `…_bias` (the library's value minus
the mean). Measures have the library's definitions. MAP@k divides by min(relevant documents, k).
Samples without a positive count as 0 in the CrossEncoder's evaluator, and are ignored by
`RerankingEvaluator`. Every positive has the gain 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.numbers import exact_floats
from deadheat.evaluation import Result, evaluate_scores
from deadheat.integrations.base import ALL_QUERIES, TIE_VIEWS, load_host, tie_views
from deadheat.integrations.corpus_counts import CorpusCounts
from deadheat.integrations.precision import regime_of, regime_view
from deadheat.measures import MAP, MRR, Measure, Precision, Recall, Success, nDCG
from deadheat.scoring import Regime, parse_regime

Floats: TypeAlias = NDArray[np.floating[Any]]

if TYPE_CHECKING:
    from torch import Tensor

    ScoreFunction = Callable[..., Tensor]

_bi_encoder: Any = load_host("sentence_transformers.sentence_transformer.evaluation")
_cross_encoder: Any = load_host("sentence_transformers.cross_encoder.evaluation")
_sparse_encoder: Any = load_host("sentence_transformers.sparse_encoder.evaluation")


class TieAware(_bi_encoder.SentenceEvaluator):  # type: ignore[misc]
    """Adds `regime`, `results` and the model card's values to an evaluator of the library."""

    regime: Regime | None = None
    _scored: str | None = None
    """The regime of the model of the last call, if that is a view."""
    results: Mapping[str, Result]
    """Results of the last call, by the name of the score function ("" if there is only one):
    every view of every measure and query."""

    def __init__(self, *args: object, regime: Regime | None = None, **options: object) -> None:
        super().__init__(*args, **options)
        self.regime = None if regime is None else parse_regime(regime)

    def __call__(self, model: object, *args: object, **options: object) -> dict[str, float]:
        """Evaluate a model; the arguments are those of the library's evaluator."""
        scoring = model if self.regime is None else regime_view(model, self.regime)
        self._scored = regime_of(scoring)
        metrics: dict[str, float] = super().__call__(scoring, *args, **options)
        return metrics

    def store_metrics_in_model_card_data(
        self, model: object, metrics: Mapping[str, float], *args: object, **options: object
    ) -> None:
        """Fill the model card like the library, with expected values in place of its own."""
        endings = tuple(f"_{key}" for key in TIE_VIEWS)
        own = {name: value for name, value in metrics.items() if not name.endswith(endings)}
        super().store_metrics_in_model_card_data(model, own, *args, **options)

    def get_config_dict(self) -> dict[str, object]:
        """Return the settings that the model card lists, with the regime that was used last."""
        regime = self.regime or self._scored
        return {**super().get_config_dict(), **({"regime": regime} if regime else {})}


class _Reranking(TieAware):
    """Reports the expected value of three measures, and their views."""

    _seen: list[tuple[Floats, Sequence[int]]]
    """Per sample of the last call: scores and relevance."""
    _reported: list[Sequence[float]]
    """The library's own values of the last call, of all samples or of each."""

    def __call__(self, model: object, *args: object, **options: object) -> dict[str, float]:
        """Evaluate a model; the arguments are those of the library's evaluator."""
        self._seen, self._reported = [], []
        metrics = super().__call__(model, *args, **options)
        missing = len(self.samples) - len(self._seen)  # without a relevant document
        self._seen += [(np.zeros(1), [0])] * missing
        self._reported += [(0.0, 0.0, 0.0)] * missing
        self.results = {"": self._evaluate(*zip(*self._seen, strict=True))}
        reported = np.mean(self._reported, axis=0).tolist()
        views: dict[str, float] = {}
        for (name, measure), value in zip(self._measures().items(), reported, strict=True):
            views |= tie_views(name, self.results[""][measure], value)
        return {**metrics, **self.prefix_name_to_metrics(views, self.name)}

    def _measures(self) -> dict[str, Measure]:
        k = self.at_k
        return {"map": MAP, f"mrr@{k}": MRR @ k, f"ndcg@{k}": nDCG @ k}

    def _evaluate(self, scores: Sequence[Floats], relevance: Sequence[Sequence[int]]) -> Result:
        return evaluate_scores(relevance, scores, list(self._measures().values()), ALL_QUERIES)


class CrossEncoderRerankingEvaluator(_Reranking, _cross_encoder.CrossEncoderRerankingEvaluator):  # type: ignore[misc]
    """Evaluate how a CrossEncoder reranks, over all orders of tied documents.

    Parameters
    ----------
    args, options
        As for the evaluator of that name in sentence-transformers.
    regime
        ``"native"``, ``"hps"`` or ``"head"``, as for `deadheat.integrations.mteb.wrap`. Default
        (None): the given model, unchanged.
    """

    def compute_metrics(self, y_true: Sequence[int], y_pred: Floats) -> tuple[float, float, float]:
        """Return the expected MRR, nDCG and average precision of one list."""
        ap, mrr, ndcg = map(float, self._evaluate([y_pred], [y_true]).values())
        if y_pred.dtype.kind == "f":  # reranked scores; integers are the ranks before reranking
            alone = len(y_pred) == 1  # scikit-learn has no nDCG of one document
            own = (mrr, ndcg, ap) if alone else super().compute_metrics(y_true, y_pred)
            self._seen.append((y_pred, y_true))
            self._reported.append((own[2], *own[:2]))
        return mrr, ndcg, ap


class RerankingEvaluator(_Reranking, _bi_encoder.RerankingEvaluator):  # type: ignore[misc]
    """Evaluate how a SentenceTransformer reranks, over all orders of tied documents.

    Parameters
    ----------
    args, options
        As for the evaluator of that name in sentence-transformers.
    regime
        ``"native"`` or ``"hps"``: the model's own similarity in that regime, unless a
        `similarity_fct` is given. Default (None): the library's cosine of the embeddings.
    """

    similarity_fct: ScoreFunction

    def __init__(self, *args: object, regime: Regime | None = None, **options: object) -> None:
        super().__init__(*args, regime=regime, **options)
        self._own_similarity = "similarity_fct" not in options and len(args) < 5

    def compute_metrics(self, model: Any) -> dict[str, float]:
        """Return the expected MAP, MRR and nDCG."""
        given = self.similarity_fct
        used = model.similarity if self.regime is not None and self._own_similarity else given
        lists: list[Floats] = []

        def score(*embeddings: Tensor) -> Tensor:
            scores: Tensor = used(*embeddings)
            lists.append(exact_floats(scores.reshape(-1), by_place=False))
            return scores

        self.similarity_fct = score
        try:
            reported = super().compute_metrics(model)  # scores the samples one by one
        finally:
            self.similarity_fct = given
        relevance = [
            [1] * len(sample["positive"]) + [0] * len(sample["negative"]) for sample in self.samples
        ]
        names = ("map", "mrr", "ndcg")
        self._seen = list(zip(lists, relevance, strict=True))
        self._reported = [[reported[name] for name in names]]
        return dict(zip(names, map(float, self._evaluate(lists, relevance).values()), strict=True))


class InformationRetrievalEvaluator(TieAware, _bi_encoder.InformationRetrievalEvaluator):  # type: ignore[misc]
    """Evaluate how a SentenceTransformer retrieves, over all orders of tied documents.

    Every score of every query with the corpus is counted, so the values are those of the whole
    lists, although only the documents up to the deepest cutoff are kept. `…_bias` is for ties in
    ascending order of ids, which is the library's order since version 6.2.

    Parameters
    ----------
    args, options
        As for the evaluator of that name in sentence-transformers.
    regime
        ``"native"`` or ``"hps"``: the model's own similarity in that regime. Default (None): the
        given model, unchanged. `score_functions` are not changed.
    """

    score_functions: Mapping[str, ScoreFunction]

    def compute_all_metrics(self, *args: object, **options: object) -> Any:
        """Return each measure at each cutoff, for each score function."""
        relevant = {q: dict.fromkeys(self.relevant_docs[q], 1) for q in self.queries_ids}
        deepest = max(k for _, k, _ in self._measures())
        self.results = {}
        self._counts = {
            name: CorpusCounts(self.queries_ids, self.corpus_ids, relevant, deepest, by_id=True)
            for name in self.score_functions
        }
        given = self.score_functions
        self.score_functions = {
            name: self._counts[name].counting(score) for name, score in given.items()
        }
        try:
            return super().compute_all_metrics(*args, **options)
        finally:
            self.score_functions, self._counts = given, {}

    compute_metrices = compute_all_metrics

    def compute_metrics(self, _: object) -> dict[str, dict[int, float]]:
        """Return each measure at each cutoff; the library calls this once per score function."""
        function = next(name for name in self._counts if name not in self.results)
        measures = self._measures()
        result = self._counts[function].evaluate([measure for _, _, measure in measures])
        self.results = {**self.results, function: result}
        scores: dict[str, dict[int, float]] = {name: {} for name, _, _ in measures}
        for name, k, measure in measures:
            views = {name: result[measure].expected, **tie_views(name, result[measure])}
            for key, value in views.items():
                scores.setdefault(key, {})[k] = value
        return scores

    def _measures(self) -> list[tuple[str, int, Measure]]:
        """Return the library's name of each measure, its cutoff, and the measure."""
        families: list[tuple[str, Measure, Sequence[int]]] = [
            ("accuracy@k", Success, self.accuracy_at_k),
            ("precision@k", Precision, self.precision_recall_at_k),
            ("recall@k", Recall, self.precision_recall_at_k),
            ("ndcg@k", nDCG, self.ndcg_at_k),
            ("mrr@k", MRR, self.mrr_at_k),
            ("map@k", MAP(divisor="min"), self.map_at_k),
        ]
        return [(name, k, measure @ k) for name, measure, ks in families for k in ks]


class SparseInformationRetrievalEvaluator(
    InformationRetrievalEvaluator,
    _sparse_encoder.SparseInformationRetrievalEvaluator,  # type: ignore[misc]
):
    """Evaluate how a SparseEncoder retrieves, over all orders of tied documents.

    Parameters
    ----------
    args, options
        As for the evaluator of that name in sentence-transformers.
    """


class NanoBEIREvaluator(TieAware, _bi_encoder.NanoBEIREvaluator):  # type: ignore[misc]
    """Evaluate a SentenceTransformer on the small BEIR collections, over all orders of ties.

    Parameters
    ----------
    args, options
        As for the evaluator of that name in sentence-transformers.
    regime
        As for `InformationRetrievalEvaluator`.
    """

    information_retrieval_class = InformationRetrievalEvaluator

    def __call__(self, model: object, *args: object, **options: object) -> dict[str, float]:
        """Evaluate a model; the arguments are those of the library's evaluator."""
        metrics = super().__call__(model, *args, **options)
        self.results = {
            f"{evaluator.name}_{name}": result
            for evaluator in self.evaluators
            for name, result in evaluator.results.items()
        }
        # The tie std of a mean over collections is not the mean of their tie stds.
        for name in metrics:
            if name.startswith(f"{self.name}_") and name.endswith("_tie_std"):
                ending = name.removeprefix(self.name)
                each = [metrics[f"{evaluator.name}{ending}"] for evaluator in self.evaluators]
                metrics[name] = math.hypot(*each) / len(each)
        return metrics
