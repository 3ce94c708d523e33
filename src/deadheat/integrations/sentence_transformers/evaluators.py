"""Tie-aware evaluators for sentence-transformers, each under the name of the library's own.

They are constructed, called, stored and used in training like the evaluators that they replace.
Where the library reports a value that depends on its order of tied documents, they report the mean
over all orders. `…_best`, `…_worst`, `…_range`, `…_tie_std` and `…_bias` (the library's value minus
the mean) are returned as well. Measures are defined as the library defines them: MAP@k
divides by min(relevant documents, k), samples without a positive count as 0 to the CrossEncoder's
evaluator and not at all to `RerankingEvaluator`, every positive has the gain 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from deadheat.errors import InputError
from deadheat.evaluation import Result, Summary, evaluate_scores
from deadheat.integrations.corpus_counts import CorpusCounts
from deadheat.integrations.sentence_transformers.surgery import is_a
from deadheat.integrations.sentence_transformers.views import regime_view
from deadheat.measures import MAP, MRR, Measure, Precision, Recall, Success, nDCG
from deadheat.numbers import exact_floats
from deadheat.packages import require_host
from deadheat.scoring.regimes import Regime, parse_regime
from deadheat.settings import EvalSettings

_HOST = "sentence_transformers"
_PURPOSE = "an evaluator for sentence-transformers"
_bi_encoder: Any = require_host(
    f"{_HOST}.sentence_transformer.evaluation", "sentence-transformers", _PURPOSE
)
_cross_encoder: Any = require_host(
    f"{_HOST}.cross_encoder.evaluation", "sentence-transformers", _PURPOSE
)
_sparse_encoder: Any = require_host(
    f"{_HOST}.sparse_encoder.evaluation", "sentence-transformers", _PURPOSE
)

VIEWS = {"best": "best", "worst": "worst", "range": "range", "tie_std": "std", "bias": "bias"}
"""What stands beside an expected value, and the view that it holds."""


class TieAware:
    """Adds `regime`, `results` and the model card's values to an evaluator of the library."""

    regime: Regime | None = None
    results: Mapping[str, Result]
    """Of the last call: every view of every measure and query, by the name of the score function
    ("" where there is but one)."""

    def __init__(self, *args: Any, regime: Regime | None = None, **options: Any) -> None:
        upstream: Any = super()
        upstream.__init__(*args, **options)
        self.regime = None if regime is None else parse_regime(regime)

    def __call__(self, model: Any, *args: Any, **options: Any) -> dict[str, float]:
        """Evaluate a model; the arguments are those of the library's evaluator."""
        upstream: Any = super()
        metrics: dict[str, float] = upstream.__call__(self._scoring(model), *args, **options)
        return metrics

    def _scoring(self, model: Any) -> Any:
        """Give the model, or a view of it that scores in the regime asked for."""
        if self.regime is None:
            return model
        return regime_view(model, self.regime)

    def store_metrics_in_model_card_data(
        self, model: Any, metrics: Mapping[str, Any], *args: Any, **options: Any
    ) -> None:
        """Fill the model card as the sibling does, with expected values in place of its own."""
        upstream: Any = super()
        endings = tuple(f"_{view}" for view in VIEWS)
        own = {name: value for name, value in metrics.items() if not name.endswith(endings)}
        upstream.store_metrics_in_model_card_data(model, own, *args, **options)

    def get_config_dict(self) -> dict[str, Any]:
        """Give what the model card tells of the evaluator."""
        upstream: Any = super()
        own = {} if self.regime is None else {"regime": self.regime}
        return {**upstream.get_config_dict(), **own}


def _views(summary: Summary, name: str) -> dict[str, float]:
    return {f"{name}_{key}": getattr(summary, view) for key, view in VIEWS.items()}


class _Reranking(TieAware):
    at_k: int
    name: str
    prefix_name_to_metrics: Callable[[dict[str, float], str], dict[str, float]]

    def _measures(self) -> dict[str, Measure]:
        return {
            "map": MAP,
            f"mrr@{self.at_k}": MRR @ self.at_k,
            f"ndcg@{self.at_k}": nDCG @ self.at_k,
        }

    def _evaluated(self, scores: Sequence[Any], relevance: Sequence[Any]) -> Result:
        measures = list(self._measures().values())
        return evaluate_scores(relevance, scores, measures, EvalSettings(queries="all"))

    def _with_views(
        self, metrics: Mapping[str, float], result: Result, theirs: Sequence[float]
    ) -> dict[str, float]:
        """Add the views; `theirs` are the sibling's values, in the order of the measures."""
        self.results = {"": result}
        views: dict[str, float] = {}
        for (name, measure), value in zip(self._measures().items(), theirs, strict=True):
            views |= _views(result[measure], name)
            views[f"{name}_bias"] = value - result[measure].expected
        return {**metrics, **self.prefix_name_to_metrics(views, self.name)}


class CrossEncoderRerankingEvaluator(_Reranking, _cross_encoder.CrossEncoderRerankingEvaluator):  # type: ignore[misc]
    """Evaluate how a CrossEncoder reranks, over all orders of tied documents.

    Parameters
    ----------
    args, options
        As for the sibling in sentence-transformers.
    regime
        ``"native"``, ``"hps"`` or ``"head"``, as for `deadheat.integrations.mteb.wrap`; None is
        the model as it is given.
    """

    def __call__(self, model: Any, *args: Any, **options: Any) -> dict[str, float]:
        """Evaluate a model; the arguments are those of the sibling."""
        self._seen: list[tuple[Any, Any]] = []
        self._theirs: list[tuple[float, float, float]] = []
        metrics = super().__call__(model, *args, **options)
        without = len(self.samples) - len(self._seen)  # samples in which nothing is relevant
        lists = [*self._seen, *[(np.zeros(1), [0])] * without]
        mrr, ndcg, ap = np.sum(self._theirs, axis=0) / len(lists) if self._theirs else (0, 0, 0)
        return self._with_views(
            metrics, self._evaluated(*zip(*lists, strict=True)), [ap, mrr, ndcg]
        )

    def compute_metrics(self, y_true: Any, y_pred: Any) -> tuple[float, float, float]:
        """Give the expected MRR, nDCG and average precision of one list."""
        scores = np.asarray(y_pred)
        result = self._evaluated([scores], [y_true])
        ap, mrr, ndcg = (result[measure].expected for measure in self._measures().values())
        if scores.dtype.kind == "f":  # what was reranked; before that, whole numbers are ranks
            self._seen.append((scores, y_true))
            alone = len(scores) == 1  # of which scikit-learn gives no nDCG
            theirs = (mrr, ndcg, ap) if alone else super().compute_metrics(y_true, y_pred)
            self._theirs.append(theirs)
        return mrr, ndcg, ap


class RerankingEvaluator(_Reranking, _bi_encoder.RerankingEvaluator):  # type: ignore[misc]
    """Evaluate how a SentenceTransformer reranks, over all orders of tied documents.

    Parameters
    ----------
    args, options
        As for the sibling in sentence-transformers.
    regime
        ``"native"`` or ``"hps"``: the model's own similarity in that regime, unless a
        `similarity_fct` is given; None is the sibling's cosine of the embeddings as they are.
    """

    similarity_fct: Any

    def __init__(self, *args: Any, regime: Regime | None = None, **options: Any) -> None:
        super().__init__(*args, regime=regime, **options)
        self._own_similarity = "similarity_fct" not in options and len(args) < 5

    def __call__(self, model: Any, *args: Any, **options: Any) -> dict[str, float]:
        """Evaluate a model; the arguments are those of the sibling."""
        metrics = super().__call__(model, *args, **options)
        return self._with_views(metrics, self.results[""], self._theirs)

    def compute_metrics(self, model: Any) -> dict[str, float]:
        """Give the expected MAP, MRR and nDCG."""
        score = self.similarity_fct
        if self.regime is not None and self._own_similarity:
            score = model.similarity
        seen: list[Any] = []
        self.similarity_fct, before = _tap(score, seen.append), self.similarity_fct
        try:
            theirs = super().compute_metrics(model)  # scores the samples one by one
        finally:
            self.similarity_fct = before
        relevance = [
            [1] * len(sample["positive"]) + [0] * len(sample["negative"]) for sample in self.samples
        ]
        lists = [exact_floats(scores.reshape(-1), by_place=False) for scores in seen]
        result = self._evaluated(lists, relevance)
        self.results, self._theirs = {"": result}, [theirs[key] for key in ("map", "mrr", "ndcg")]
        ap, mrr, ndcg = (result[measure].expected for measure in self._measures().values())
        return {"map": ap, "mrr": mrr, "ndcg": ndcg}


class CorpusSearch(_bi_encoder.InformationRetrievalEvaluator):  # type: ignore[misc]
    """Counts every score of every query with the corpus, instead of keeping the first k."""

    score_functions: Any
    results: Mapping[str, Result]

    def compute_all_metrics(
        self,
        model: Any,
        corpus_model: Any = None,
        corpus_embeddings: Any = None,
        output_path: Any = None,
    ) -> dict[str, dict[str, dict[int, float]]]:
        """Give each measure at each cutoff, for each score function."""
        counts = {name: self._counts() for name in self.score_functions}
        taps = {name: _tap(f, counts[name].add) for name, f in self.score_functions.items()}
        if self.write_predictions and output_path is not None:
            self.score_functions, before = taps, self.score_functions
            try:  # the sibling searches, too, and writes what it found
                super().compute_all_metrics(model, corpus_model, corpus_embeddings, output_path)
            finally:
                self.score_functions = before
        else:
            self._search(model, corpus_model or model, corpus_embeddings, taps.values())
        self.results = {
            name: counted.evaluate([measure for _, _, measure in self._measures()])
            for name, counted in counts.items()
        }
        scores = {name: self._scores(result) for name, result in self.results.items()}
        for values in scores.values():
            self.output_scores(values)
        return scores

    compute_metrices = compute_all_metrics

    def _search(
        self, model: Any, corpus_model: Any, embeddings: Any, score_functions: Iterable[Any]
    ) -> None:
        """Score every query with every document, a piece of the corpus at a time."""
        functions = list(score_functions)
        queries = self.embed_inputs(
            model,
            self.queries,
            encode_fn_name="query",
            prompt_name=self.query_prompt_name,
            prompt=self.query_prompt,
        )
        for start in range(0, len(self.corpus), self.corpus_chunk_size):
            piece = slice(start, start + self.corpus_chunk_size)
            if embeddings is not None and getattr(embeddings, "is_sparse", False):
                documents = _sparse_rows(embeddings, piece)
            elif embeddings is not None:
                documents = embeddings[piece]
            else:
                documents = self.embed_inputs(
                    corpus_model,
                    self.corpus[piece],
                    encode_fn_name="document",
                    prompt_name=self.corpus_prompt_name,
                    prompt=self.corpus_prompt,
                )
            for function in functions:
                function(queries, documents)

    def _counts(self) -> CorpusCounts:
        relevant = {
            query: dict.fromkeys(self.relevant_docs[query], 1) for query in self.queries_ids
        }
        deepest = max(k for _, k, _ in self._measures())
        return CorpusCounts(self.queries_ids, self.corpus_ids, relevant, deepest, by_id=True)

    def _measures(self) -> list[tuple[str, int, Measure]]:
        """Give the library's name of each measure, its cutoff, and the measure."""
        families: list[tuple[str, Measure, Sequence[int]]] = [
            ("accuracy@k", Success, self.accuracy_at_k),
            ("precision@k", Precision, self.precision_recall_at_k),
            ("recall@k", Recall, self.precision_recall_at_k),
            ("ndcg@k", nDCG, self.ndcg_at_k),
            ("mrr@k", MRR, self.mrr_at_k),
            ("map@k", MAP(divisor="min"), self.map_at_k),
        ]
        return [(name, k, measure @ k) for name, measure, ks in families for k in ks]

    def _scores(self, result: Result) -> dict[str, dict[int, float]]:
        scores: dict[str, dict[int, float]] = {}
        for name, k, measure in self._measures():
            scores.setdefault(name, {})[k] = result[measure].expected
        for name, k, measure in self._measures():
            for key, value in _views(result[measure], name).items():
                scores.setdefault(key, {})[k] = value
        return scores


class InformationRetrievalEvaluator(TieAware, CorpusSearch):
    """Evaluate how a SentenceTransformer retrieves, over all orders of tied documents.

    Every score of every query with the corpus is counted, so the values are those of the whole
    lists, although only as many documents are kept as the deepest cutoff needs. `…_bias` is that
    of ties in ascending order of ids, which is the library's order from version 6.2 on.

    Parameters
    ----------
    args, options
        As for the evaluator of that name in sentence-transformers.
    regime
        ``"native"`` or ``"hps"``: the model's own similarity in that regime; None is the model as
        it is given. `score_functions` score as they do.
    """

    def __call__(self, model: Any, *args: Any, **options: Any) -> dict[str, float]:
        """Evaluate a model; the arguments are those of the library's evaluator."""
        for kind in ("Sparse", "MultiVector"):
            if is_a(model, f"{kind}Encoder"):
                raise InputError(
                    f"a {kind}Encoder cannot be evaluated by InformationRetrievalEvaluator: use "
                    f"{kind}InformationRetrievalEvaluator"
                )
        return super().__call__(model, *args, **options)


class SparseInformationRetrievalEvaluator(
    TieAware,
    _sparse_encoder.SparseInformationRetrievalEvaluator,  # type: ignore[misc]
    CorpusSearch,
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
        As for the sibling in sentence-transformers.
    regime
        As for `InformationRetrievalEvaluator`.
    """

    information_retrieval_class = InformationRetrievalEvaluator

    def __call__(self, model: Any, *args: Any, **options: Any) -> dict[str, float]:
        """Evaluate a model; the arguments are those of the sibling."""
        metrics = super().__call__(model, *args, **options)
        self.results = {
            f"{evaluator.name}_{name}": result
            for evaluator in self.evaluators
            for name, result in evaluator.results.items()
        }
        return {**metrics, **self._tie_stds(metrics)}

    def _tie_stds(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Give the tie std of each mean over collections; it is not the mean of theirs."""
        together: dict[str, float] = {}
        for name in metrics:
            if name.startswith(f"{self.name}_") and name.endswith("_tie_std"):
                measure = name.removeprefix(f"{self.name}_")
                each = [metrics[f"{evaluator.name}_{measure}"] for evaluator in self.evaluators]
                together[name] = math.hypot(*each) / len(each)
        return together


def _sparse_rows(embeddings: Any, rows: slice) -> Any:
    """Give some rows of a sparse tensor, which torch cannot slice."""
    torch = require_host("torch", "sentence-transformers", _PURPOSE)
    first, end, _ = rows.indices(len(embeddings))
    return embeddings.index_select(0, torch.arange(first, end, device=embeddings.device))


def _tap(function: Any, take: Callable[[Any], Any]) -> Callable[..., Any]:
    """Give a function that scores as another does, and passes what it found on."""

    def score(*args: Any, **options: Any) -> Any:
        scores = function(*args, **options)
        take(scores)
        return scores

    return score
