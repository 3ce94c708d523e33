"""Write docs/which-tool.md: the tie rule of each installed tool, found on the same tied lists.

    python benchmarks/which_tool.py > docs/which-tool.md

A list has one relevant document, which ties with others. Only tie-breaking decides its rank, and
the value of a measure gives this rank: a reciprocal rank of 0.2 is rank 5. Each tool evaluates
lists of several lengths, with the relevant document at two positions, and lists in which only some
documents tie, because an order that holds once by accident is not a rule. The figure is written to
the folder of ``--images``.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

import deadheat as dh
from deadheat.report.figures import style
from deadheat.report.figures.style import Plot

ROOT = Path(__file__).resolve().parents[1]
LENGTHS = (10, 16, 100)
NEAR = 1e-9
"""A difference of scores that float64 represents and float32 does not."""
MEASURES = {"RR": "MRR", "AP": "MAP", "nDCG": "nDCG"}
"""Measures of the tools, and their names in deadheat."""


@dataclass(frozen=True)
class Query:
    """A query with one relevant document, which ties with others."""

    length: int
    place: int = 2
    """Input rank of the relevant document."""
    ahead: float = 0.0
    """Score of the relevant document minus that of the others."""
    mixed: bool = False
    """Whether about two thirds of the documents have distinct scores, above and below."""

    @cached_property
    def ids(self) -> list[str]:
        """Ids in input order; the relevant document has the fourth id in ascending order."""
        names = [f"d{i:03}" for i in np.random.default_rng(0).permutation(self.length)]
        names.remove("d003")
        return [*names[: self.place - 1], "d003", *names[self.place - 1 :]]

    @property
    def relevant(self) -> int:
        """Index of the relevant document."""
        return self.place - 1

    @property
    def labels(self) -> list[int]:
        """One for the relevant document, zero for the others."""
        return [int(i == self.relevant) for i in range(self.length)]

    @cached_property
    def scores(self) -> Any:
        """Scores in input order: 1, and in a mixed list others between 0 and 2."""
        rng = np.random.default_rng(1)
        own = self.mixed * (rng.random(self.length) < 2 / 3) * rng.uniform(-1, 1, self.length)
        own[self.relevant] = self.ahead
        return 1.0 + own

    @property
    def qrels(self) -> dict[str, dict[str, int]]:
        """The judgement."""
        return {"q": {self.ids[self.relevant]: 1}}

    @property
    def run(self) -> dict[str, dict[str, float]]:
        """The scores by document id."""
        return {"q": dict(zip(self.ids, self.scores.tolist(), strict=True))}

    def rank(self, order: str) -> int:
        """Return the rank of the relevant document under an order of tied documents."""
        own = self.scores[self.relevant]
        tied = [name for name, score in zip(self.ids, self.scores, strict=True) if score == own]
        by_input = tied.index(self.ids[self.relevant]) + 1
        by_id = sorted(tied).index(self.ids[self.relevant]) + 1
        inside = {
            "input": by_input,
            "reversed input": len(tied) + 1 - by_input,
            "id ascending": by_id,
            "id descending": len(tied) + 1 - by_id,
            "positives first": 1,
            "whole group at its last rank": len(tied),
        }
        return int((self.scores > own).sum()) + inside[order]


ORDERS = (
    "input",
    "reversed input",
    "id ascending",
    "id descending",
    "positives first",
    "whole group at its last rank",
)
AVERAGED = "mean over all orders"
RULES = {
    ("input", True): "input",
    ("id ascending", True): "id_asc",
    ("id descending", True): "id_desc",
    ("id descending", False): "pytrec_eval",
}
"""Tie rule of deadheat by order and by whether the tool distinguishes 1 from 1 + 1e-9."""


@dataclass(frozen=True)
class Tool:
    """A tool, and a function that calls it."""

    name: str
    package: str
    """Distribution whose version the page shows; "" for Python itself."""
    measure: str
    """``"RR"``, ``"AP"`` or ``"nDCG"``; ``"rank"`` for a sort, whose value is the rank."""
    ask: Callable[[Query], float]
    promised: str = ""
    """Order that its code or documentation guarantees; "" if there is none."""
    modules: tuple[str, ...] = ()
    blind: bool = False
    """Whether its input has no scores."""
    depth: int | None = None
    """Number of documents that it returns; None for all."""

    def value(self, rank: float) -> float:
        """Return its value for a relevant document at a rank."""
        if self.depth is not None and rank > self.depth:
            return np.inf
        return {"rank": rank, "nDCG": 1 / np.log2(1 + rank)}.get(self.measure, 1 / rank)

    @property
    def installed(self) -> bool:
        """Whether all modules that it needs are installed."""
        return all(find_spec(module) is not None for module in self.modules)

    @property
    def version(self) -> str:
        """Installed version."""
        return version(self.package) if self.package else sys.version.split()[0]


TOOLS: list[Tool] = []


def tool(name: str, package: str, measure: str, *modules: str, **more: Any) -> Any:
    """Return a decorator that adds a function to the list of tools."""

    def register(ask: Callable[[Query], float]) -> Callable[[Query], float]:
        TOOLS.append(Tool(name, package, measure, ask, modules=modules, **more))
        return ask

    return register


# Evaluators. Each function returns the value of one evaluator for a query.


@tool("pytrec_eval", "pytrec-eval-terrier", "RR", "pytrec_eval", promised="id descending")
def ask_pytrec_eval(query: Query) -> float:
    import pytrec_eval

    evaluator = pytrec_eval.RelevanceEvaluator(query.qrels, {"recip_rank"})
    return float(evaluator.evaluate(query.run)["q"]["recip_rank"])


@tool("ir_measures `RR`", "ir-measures", "RR", "ir_measures", promised="id descending")
def ask_ir_measures(query: Query) -> float:
    import ir_measures

    return float(
        ir_measures.calc_aggregate([ir_measures.RR], query.qrels, query.run)[ir_measures.RR]
    )


@tool("ir_measures `RR@k`", "ir-measures", "RR", "ir_measures", promised="id ascending")
def ask_ir_measures_with_cutoff(query: Query) -> float:
    import ir_measures

    measure = ir_measures.RR @ query.length
    return float(ir_measures.calc_aggregate([measure], query.qrels, query.run)[measure])


@tool("PyTerrier `RR`", "pyterrier", "RR", "pyterrier", promised="id descending")
def ask_pyterrier(query: Query) -> float:
    import pandas as pd
    import pyterrier as pt

    run = pd.DataFrame({"qid": "q", "docno": query.ids, "score": query.scores})
    run["rank"] = range(query.length)
    qrels = pd.DataFrame([("q", query.ids[query.relevant], 1)], columns=["qid", "docno", "label"])
    return float(pt.Evaluate(run, qrels, ["recip_rank"])["recip_rank"])


@tool("BEIR `evaluate`", "beir", "nDCG", "beir", promised="id descending")
def ask_beir(query: Query) -> float:
    from beir.retrieval.evaluation import EvaluateRetrieval

    ndcg, *_ = EvaluateRetrieval.evaluate(query.qrels, query.run, [query.length])
    return float(ndcg[f"NDCG@{query.length}"])


@tool("BEIR `evaluate_custom`", "beir", "RR", "beir", promised="input")
def ask_beir_mrr(query: Query) -> float:
    from beir.retrieval.evaluation import EvaluateRetrieval

    values = EvaluateRetrieval.evaluate_custom(query.qrels, query.run, [query.length], "mrr")
    return float(values[f"MRR@{query.length}"])


@tool("MTEB `ndcg_at_k`", "mteb", "nDCG", "mteb", promised="id descending")
def ask_mteb_ndcg(query: Query) -> float:
    return scores_of_mteb(query)["ndcg_at_100"]


@tool("MTEB `mrr_at_k`", "mteb", "RR", "mteb", promised="id descending")
def ask_mteb_mrr(query: Query) -> float:
    return scores_of_mteb(query)["mrr_at_100"]


def scores_of_mteb(query: Query) -> dict[str, float]:
    """Return what MTEB stores for a reranker with these scores."""
    import mteb
    from datasets import Dataset
    from mteb.abstasks import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.models import ModelMeta

    metadata = TaskMetadata(
        name="OneTiedQuery",
        type="Reranking",
        description="Made here.",
        dataset={"path": "none", "revision": "1"},
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
    )
    task = type("OneTiedQuery", (AbsTaskRetrieval,), {"metadata": metadata})()
    documents = [{"id": name, "text": name, "title": ""} for name in query.ids]
    split = {
        "queries": Dataset.from_list([{"id": "q", "text": "a query"}]),
        "corpus": Dataset.from_list(documents),
        "relevant_docs": query.qrels,
        "top_ranked": {"q": query.ids},
    }
    task.dataset = {"default": {"test": split}}
    task.data_loaded = True

    class Scorer:
        mteb_model_meta = ModelMeta.create_empty(overwrites={"name": "a/scorer", "revision": "1"})

        def predict(self, inputs1: Any, inputs2: Any, **_: Any) -> Any:
            texts = [text.strip() for batch in inputs2 for text in batch["text"]]
            return np.array([query.run["q"][text] for text in texts])

    result = mteb.evaluate(Scorer(), task, cache=None, show_progress_bar=False)
    return dict(result.task_results[0].scores["test"][0])


@tool(
    "sentence-transformers `InformationRetrievalEvaluator`",
    "sentence-transformers",
    "RR",
    "sentence_transformers",
    promised="id ascending",
)
def ask_information_retrieval_evaluator(query: Query) -> float:
    import torch
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    evaluator = InformationRetrievalEvaluator(
        {"q": "a query"},
        dict(zip(query.ids, query.ids, strict=True)),
        {"q": set(query.qrels["q"])},
        mrr_at_k=[query.length],
        score_functions={"score": lambda *_: torch.tensor(query.scores)[None]},
    )
    return float(evaluator(make_model())[f"score_mrr@{query.length}"])


@tool(
    "sentence-transformers `RerankingEvaluator`",
    "sentence-transformers",
    "RR",
    "sentence_transformers",
)
def ask_reranking_evaluator(query: Query) -> float:
    import torch
    from sentence_transformers.sentence_transformer.evaluation import RerankingEvaluator

    others = [name for i, name in enumerate(query.ids) if i != query.relevant]
    sample = {"query": "a query", "positive": [query.ids[query.relevant]], "negative": others}
    listed = [*sample["positive"], *others]  # the order of the evaluator itself
    scores = torch.tensor([query.run["q"][name] for name in listed], dtype=torch.float64)
    evaluator = RerankingEvaluator(
        [sample], at_k=query.length, similarity_fct=lambda *_: scores[None]
    )
    return float(evaluator(make_model())[f"mrr@{query.length}"])


@tool(
    "sentence-transformers `CrossEncoderRerankingEvaluator`",
    "sentence-transformers",
    "RR",
    "sentence_transformers",
)
def ask_cross_encoder_evaluator(query: Query) -> float:
    return scores_of_cross_encoder_evaluator(query)[f"mrr@{query.length}"]


@tool(
    "sentence-transformers `CrossEncoderRerankingEvaluator`",
    "sentence-transformers",
    "nDCG",
    "sentence_transformers",
    promised=AVERAGED,
)
def ask_cross_encoder_evaluator_ndcg(query: Query) -> float:
    return scores_of_cross_encoder_evaluator(query)[f"ndcg@{query.length}"]


@tool(
    "sentence-transformers `CrossEncoderRerankingEvaluator`",
    "sentence-transformers",
    "AP",
    "sentence_transformers",
    promised="whole group at its last rank",
)
def ask_cross_encoder_evaluator_ap(query: Query) -> float:
    return scores_of_cross_encoder_evaluator(query)["map"]


def scores_of_cross_encoder_evaluator(query: Query) -> dict[str, float]:
    from sentence_transformers.cross_encoder.evaluation import CrossEncoderRerankingEvaluator

    sample = {
        "query": "a query",
        "positive": [query.ids[query.relevant]],
        "documents": query.ids,
    }
    evaluator = CrossEncoderRerankingEvaluator(
        [sample], at_k=query.length, always_rerank_positives=False
    )
    return evaluator(make_model(predict=lambda *_, **__: query.scores))


def make_model(**methods: Any) -> Any:
    """Return a model with all that evaluators of sentence-transformers call, besides scores."""
    import torch

    def embeddings(texts: Any, **_: Any) -> Any:
        return torch.ones(len(texts), 1)

    card = SimpleNamespace(set_evaluation_metrics=lambda *_, **__: None)
    return SimpleNamespace(
        model_card_data=card,
        encode=embeddings,
        encode_query=embeddings,
        encode_document=embeddings,
        **methods,
    )


@tool("ranx", "ranx", "RR", "ranx")
def ask_ranx(query: Query) -> float:
    import ranx

    return float(ranx.evaluate(ranx.Qrels(query.qrels), ranx.Run(query.run), "mrr"))


@tool("torchmetrics `RetrievalMRR`", "torchmetrics", "RR", "torchmetrics")
def ask_torchmetrics(query: Query) -> float:
    return value_of_torchmetrics("RetrievalMRR", query)


@tool("torchmetrics `RetrievalMAP`", "torchmetrics", "AP", "torchmetrics")
def ask_torchmetrics_map(query: Query) -> float:
    return value_of_torchmetrics("RetrievalMAP", query)


@tool(
    "torchmetrics `RetrievalNormalizedDCG`",
    "torchmetrics",
    "nDCG",
    "torchmetrics",
    promised=AVERAGED,
)
def ask_torchmetrics_ndcg(query: Query) -> float:
    return value_of_torchmetrics("RetrievalNormalizedDCG", query)


def value_of_torchmetrics(name: str, query: Query) -> float:
    import torch
    import torchmetrics.retrieval

    metric = getattr(torchmetrics.retrieval, name)()
    labels = torch.tensor(query.labels)
    return float(metric(torch.tensor(query.scores), labels, indexes=torch.zeros_like(labels)))


@tool("scikit-learn `ndcg_score`", "scikit-learn", "nDCG", "sklearn", promised=AVERAGED)
def ask_sklearn_ndcg(query: Query) -> float:
    from sklearn.metrics import ndcg_score

    return float(ndcg_score([query.labels], [query.scores]))


@tool("scikit-learn `ndcg_score(ignore_ties=True)`", "scikit-learn", "nDCG", "sklearn")
def ask_sklearn_ndcg_without_ties(query: Query) -> float:
    from sklearn.metrics import ndcg_score

    return float(ndcg_score([query.labels], [query.scores], ignore_ties=True))


@tool(
    "scikit-learn `average_precision_score`",
    "scikit-learn",
    "AP",
    "sklearn",
    promised="whole group at its last rank",
)
def ask_sklearn_average_precision(query: Query) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(query.labels, query.scores))


@tool("trm `expected`", "tie-aware-retrieval-metrics", "RR", "trm", promised=AVERAGED)
def ask_trm(query: Query) -> float:
    return value_of_trm(query).expected


@tool("trm `oblivious`", "tie-aware-retrieval-metrics", "RR", "trm", promised="input")
def ask_trm_oblivious(query: Query) -> float:
    return value_of_trm(query).oblivious


def value_of_trm(query: Query) -> Any:
    import trm

    found = trm.evaluate([query.scores.tolist()], [query.labels], ["mrr"], [query.length])
    return found.metrics["mrr"][query.length]


def sort_ids(query: Query) -> list[str]:
    """Return ids as a retriever does: best score first, ties in input order."""
    return sorted(query.ids, key=query.run["q"].__getitem__, reverse=True)


@tool(
    "Haystack `DocumentMRREvaluator`", "haystack-ai", "RR", "haystack", promised="input", blind=True
)
def ask_haystack(query: Query) -> float:
    from haystack import Document
    from haystack.components.evaluators import DocumentMRREvaluator

    documents = [Document(content=name, score=query.run["q"][name]) for name in sort_ids(query)]
    relevant = [Document(content=name) for name in query.qrels["q"]]
    found = DocumentMRREvaluator().run([relevant], [documents])
    return float(found["score"])


@tool("LlamaIndex `MRR`", "llama-index-core", "RR", "llama_index", promised="input", blind=True)
def ask_llama_index(query: Query) -> float:
    from llama_index.core.evaluation.retrieval.metrics import MRR

    found = MRR().compute(expected_ids=list(query.qrels["q"]), retrieved_ids=sort_ids(query))
    return float(found.score)


@tool("LightGBM `ndcg`", "lightgbm", "nDCG", "lightgbm", promised="input")
def ask_lightgbm(query: Query) -> float:
    return values_of_lightgbm(query)["ndcg"]


@tool("LightGBM `map`", "lightgbm", "AP", "lightgbm", promised="input")
def ask_lightgbm_map(query: Query) -> float:
    return values_of_lightgbm(query)["map"]


def values_of_lightgbm(query: Query) -> dict[str, float]:
    """Return the values of a booster that has learnt nothing, for its initial scores."""
    import lightgbm

    quiet = {"verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(
        np.zeros((query.length, 1)),
        query.labels,
        group=[query.length],
        init_score=query.scores,
        params=quiet,
    )
    options = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [query.length]}
    found: dict[str, Any] = {}
    lightgbm.train(
        {**quiet, **options},
        data,
        num_boost_round=1,
        valid_sets=[data],
        valid_names=["list"],
        callbacks=[lightgbm.record_evaluation(found)],
    )
    return {name.split("@")[0]: float(value[0]) for name, value in found["list"].items()}


# Sorts without an evaluator. Each function returns indices, best score first.


def sort(
    name: str, package: str, *modules: str, promised: str = "", depth: int | None = None
) -> Any:
    """Return a decorator that adds a function that sorts to the list of tools."""

    def register(indices: Callable[[Any], Any]) -> None:
        def ask(query: Query) -> float:
            order = [int(i) for i in indices(query.scores)]
            return 1.0 + order.index(query.relevant) if query.relevant in order else np.inf

        TOOLS.append(Tool(name, package, "rank", ask, promised, modules, depth=depth))

    return register


def torch_method(name: str) -> Callable[[Any], Any]:
    """Return a function that calls a method of a tensor of scores."""

    def call(scores: Any, *args: Any, **options: Any) -> Any:
        import torch

        return getattr(torch.tensor(scores), name)(*args, **options)

    return call


def polars_frame(scores: Any) -> pl.DataFrame:
    """Return a table of scores and positions."""
    return pl.DataFrame({"place": range(len(scores)), "score": scores})


def pandas_frame(scores: Any) -> Any:
    """Return a table of scores; its index is their positions."""
    import pandas as pd

    return pd.DataFrame({"score": scores})


@sort("`sorted(…, reverse=True)`", "", promised="input")
def sort_by_python(scores: Any) -> Any:
    return sorted(range(len(scores)), key=scores.__getitem__, reverse=True)


@sort("`heapq.nlargest(k, …)`", "", promised="input")
def sort_by_heapq(scores: Any) -> Any:
    return heapq.nlargest(len(scores), range(len(scores)), key=scores.__getitem__)


@sort("`np.argsort(-scores)`", "numpy")
def sort_by_numpy(scores: Any) -> Any:
    return np.argsort(-scores)


@sort("`np.argsort(scores)[::-1]`", "numpy")
def sort_by_numpy_reversed(scores: Any) -> Any:
    return np.argsort(scores)[::-1]


@sort("`np.argsort(-scores, kind='stable')`", "numpy", promised="input")
def sort_by_numpy_stable(scores: Any) -> Any:
    return np.argsort(-scores, kind="stable")


@sort("`np.argpartition(-scores, 9)[:10]`", "numpy", depth=10)
def sort_by_numpy_partition(scores: Any) -> Any:
    return np.argpartition(-scores, 9)[:10]


@sort("`torch.topk(scores, 10)`", "torch", "torch", depth=10)
def sort_by_torch_topk(scores: Any) -> Any:
    return torch_method("topk")(scores, 10).indices


@sort("`torch.topk(scores, len(scores))`", "torch", "torch")
def sort_by_torch_topk_of_all(scores: Any) -> Any:
    return torch_method("topk")(scores, len(scores)).indices


@sort("`torch.argsort(scores, descending=True)`", "torch", "torch")
def sort_by_torch(scores: Any) -> Any:
    return torch_method("argsort")(scores, descending=True)


@sort("`torch.argsort(…, stable=True)`", "torch", "torch", promised="input")
def sort_by_torch_stable(scores: Any) -> Any:
    return torch_method("argsort")(scores, descending=True, stable=True)


@sort("polars `sort(descending=True)`", "polars")
def sort_by_polars(scores: Any) -> Any:
    return polars_frame(scores).sort("score", descending=True)["place"]


@sort("polars `sort(…, maintain_order=True)`", "polars", promised="input")
def sort_by_polars_stable(scores: Any) -> Any:
    return polars_frame(scores).sort("score", descending=True, maintain_order=True)["place"]


@sort("polars `top_k(10)`", "polars", depth=10)
def sort_by_polars_top(scores: Any) -> Any:
    return polars_frame(scores).top_k(10, by="score")["place"]


@sort("pandas `sort_values(ascending=False)`", "pandas", "pandas")
def sort_by_pandas(scores: Any) -> Any:
    return pandas_frame(scores).sort_values("score", ascending=False).index


@sort("pandas `sort_values(…, kind='stable')`", "pandas", "pandas", promised="input")
def sort_by_pandas_stable(scores: Any) -> Any:
    return pandas_frame(scores).sort_values("score", ascending=False, kind="stable").index


@sort("pandas `nlargest(10)`", "pandas", "pandas", promised="input", depth=10)
def sort_by_pandas_largest(scores: Any) -> Any:
    return pandas_frame(scores).nlargest(10, "score").index


# Results.


def evaluate_deadheat(query: Query, measure: str) -> dh.evaluation.Summary:
    """Return the views of a measure of the query, with input order as the tie rule."""
    name = MEASURES[measure]
    with quiet():
        return dh.evaluate(query.qrels, query.run, [name])[name]


def is_close(value: float, other: float) -> bool:
    """Return whether two numbers are equal up to five decimals or float32."""
    return value == other or bool(np.isclose(value, other, atol=6e-6, rtol=1e-6))


@dataclass(frozen=True)
class Answer:
    """The results of a tool on the tied lists."""

    tool: Tool
    value: float
    """Its value for the first list."""
    ranks: dict[int, float | None] = field(default_factory=dict)
    """By length: the rank of the document at input rank 2; infinite if the tool does not return it,
    None if no rank has the value."""
    order: str = ""
    """Order or mean that gives all values of the tool; "" if there is none."""
    sees: bool | None = None
    """Whether it distinguishes 1 from 1 + 1e-9; None if its input has no scores."""


def asked(tool: Tool) -> Answer:
    """Run a tool on all lists."""
    ahead, behind = (tool.ask(Query(10, ahead=sign * NEAR)) for sign in (1, -1))
    sees = is_close(ahead, tool.value(1)) and is_close(behind, tool.value(10))
    tied = {n: Query(n) for n in LENGTHS}
    more = [Query(n, n - 2) for n in LENGTHS] + [Query(n, mixed=True) for n in LENGTHS]
    values = {query: tool.ask(query) for query in [*tied.values(), *more]}
    ranks = {n: rank_of(tool, values[query], n) for n, query in tied.items()}
    order = find_order(tool, values)
    return Answer(tool, values[tied[10]], ranks, order, None if tool.blind else sees)


def rank_of(tool: Tool, value: float, length: int) -> float | None:
    """Return the rank that gives a value."""
    if value == np.inf:
        return value
    return next((rank for rank in range(1, length + 1) if is_close(value, tool.value(rank))), None)


def find_order(tool: Tool, values: dict[Query, float]) -> str:
    """Return the order of tied documents, or AVERAGED, that gives all values; "" if none does."""
    for order in ORDERS:
        if all(is_close(value, tool.value(q.rank(order))) for q, value in values.items()):
            return order
    averaged = tool.measure in MEASURES and all(
        is_close(value, evaluate_deadheat(q, tool.measure).expected) for q, value in values.items()
    )
    return AVERAGED if averaged else ""


def ask_all() -> Iterator[Answer]:
    """Run all installed tools, in the order of this file."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    for tool in TOOLS:
        if tool.installed:
            with quiet():
                yield asked(tool)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress output, warnings and logs of the tools."""
    logging.disable(logging.WARNING)
    try:
        ignored = io.StringIO()
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(ignored),
            contextlib.redirect_stderr(ignored),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def row(answer: Answer) -> str:
    """Return the row of the page for a tool."""
    tool = answer.tool
    order = answer.order or "none"
    if answer.order and not tool.promised:
        order += " (seen, not promised)"
    order += {True: "", False: ", scores in float32", None: ", sees no scores"}[answer.sees]
    ranks = " · ".join(_rank(answer.ranks[n]) for n in LENGTHS)
    ranks = ranks.replace("mean · mean · mean", "mean")
    if tool.measure == "rank":
        return _line(tool.name, order, ranks)
    if rule := RULES.get((answer.order, answer.sees is not False)):
        order += f": `{rule}`"
    return _line(tool.name, order, f"{tool.measure} **{answer.value:.4f}**", ranks)


def _rank(rank: float | None) -> str:
    return "mean" if rank is None else "left out" if rank == np.inf else f"{rank:.0f}"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def render_page(found: list[Answer]) -> str:
    """Return the page."""
    evaluators = [answer for answer in found if answer.tool.measure != "rank"]
    sorts = [answer for answer in found if answer.tool.measure == "rank"]
    by_package = {answer.tool.package: answer.tool.version for answer in found}
    versions = ", ".join(f"{name or 'Python'} {number}" for name, number in by_package.items())
    missing = sorted({tool.package for tool in TOOLS if not tool.installed})
    rest = f" Not installed when this page was made: {', '.join(missing)}." if missing else ""
    values = [a.value for a in evaluators if a.tool.measure == "RR" and a.order != AVERAGED]
    text = (ROOT / "benchmarks" / "which_tool.md").read_text(encoding="utf-8")
    views = evaluate_deadheat(Query(LENGTHS[0]), "RR")
    for mark, filling in {
        "EVALUATORS": "\n".join(map(row, evaluators)),
        "SORTS": "\n".join(map(row, sorts)),
        "VERSIONS": versions + f", deadheat {dh.__version__}.{rest}",
        "LOWEST": f"{min(values):.2f}",
        "HIGHEST": f"{max(values):.2f}",
        "DISTINCT": str(len({round(value, 4) for value in values})),
        "EXPECTED": f"{views.expected:.4f}",
        "EXPECTED_NDCG": f"{evaluate_deadheat(Query(LENGTHS[0]), 'nDCG').expected:.4f}",
    }.items():
        text = text.replace(f"<!-- {mark} -->", filling)
    return text.rstrip()


def draw_figure(found: list[Answer]) -> Plot:
    """Draw the reciprocal rank of the first list by tool, and the expected one."""
    shown = [answer for answer in found if answer.tool.measure == "RR" and answer.order != AVERAGED]
    shown.sort(key=lambda answer: -answer.value)
    views, ranks = evaluate_deadheat(Query(LENGTHS[0]), "RR"), np.arange(1, LENGTHS[0] + 1)
    with style.styled():
        figure = style.new_figure("full", 0.7 + 0.19 * len(shown))
        axes = figure.subplots()
        axes.vlines(1 / ranks, -0.6, len(shown) - 0.4, "#CCCCCC", linewidth=0.5)
        axes.axvline(views.expected, color=style.COLOURS[1], label="mean over all orders")
        rows = range(len(shown))
        axes.plot([a.value for a in shown], rows, "o", color=style.COLOURS[0], label="reported")
        names = [answer.tool.name.replace("`", "") for answer in shown]
        axes.set_yticks(rows, names, parse_math=False)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel("reciprocal rank; a grey line for each rank")
        style.legend(figure, *axes.get_legend_handles_labels())
    title = (
        "One query, ten tied documents, one of them relevant, at input rank 2: its reciprocal rank"
    )
    return Plot(figure, f"{title} by tool, and {views.expected:.4f}, the mean over all orders.")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, default=ROOT / "docs" / "images")
    arguments = parser.parse_args()
    found = list(ask_all())
    draw_figure(found).save(arguments.images / "which-tool.svg", force=True)
    print(render_page(found))


if __name__ == "__main__":
    main()
