"""Which tool breaks ties how: every installed tool on the same tied lists, a page in one command.

    python benchmarks/which_tool.py > docs/which-tool.md

A list has one relevant document, whose score the others share. Where a tool puts it is therefore
tie-breaking and nothing else, and one number tells: a reciprocal rank of 0.2 is rank 5. Each tool
is asked at several lengths, with the relevant document at two places, and about lists in which only
some documents tie, so that an order which holds once by accident is not taken for a rule. The
picture goes to the folder that ``--images`` names.
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
"""A difference of scores that float64 holds and float32 does not."""
MEASURES = {"RR": "MRR", "AP": "MAP", "nDCG": "nDCG"}
"""The measures that tools are asked for, and deadheat's names for them."""


@dataclass(frozen=True)
class Query:
    """A query with one relevant document, whose score others share."""

    length: int
    place: int = 2
    """Input rank of the relevant document."""
    ahead: float = 0.0
    """How much higher its score is than that of the others."""
    mixed: bool = False
    """Whether about two thirds of the documents have scores of their own, above and below."""

    @cached_property
    def ids(self) -> list[str]:
        """Ids in input order; the relevant one is the fourth of them in ascending order."""
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
        """Rank of the relevant document under a named order of equal scores."""
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
"""deadheat's tie rule for an order, by whether the tool tells 1 from 1 + 1e-9."""


@dataclass(frozen=True)
class Tool:
    """A tool, and how it is asked."""

    name: str
    package: str
    """The distribution whose version is told; "" for Python itself."""
    measure: str
    """``"RR"``, ``"AP"`` or ``"nDCG"``; ``"rank"`` for a sort, which gives the rank itself."""
    ask: Callable[[Query], float]
    promised: str = ""
    """The order that its code or its documentation fixes; "" where nothing does."""
    modules: tuple[str, ...] = ()
    blind: bool = False
    """Whether it is given a list without scores."""
    depth: int | None = None
    """How many documents it keeps; None is all of them."""

    def value(self, rank: float) -> float:
        """What it says of a relevant document at a rank."""
        if self.depth is not None and rank > self.depth:
            return np.inf
        return {"rank": rank, "nDCG": 1 / np.log2(1 + rank)}.get(self.measure, 1 / rank)

    @property
    def installed(self) -> bool:
        """Whether all that it needs is here."""
        return all(find_spec(module) is not None for module in self.modules)

    @property
    def version(self) -> str:
        """The installed version."""
        return version(self.package) if self.package else sys.version.split()[0]


TOOLS: list[Tool] = []


def tool(name: str, package: str, measure: str, *modules: str, **more: Any) -> Any:
    """Enter a function into the list of tools."""

    def enter(ask: Callable[[Query], float]) -> Callable[[Query], float]:
        TOOLS.append(Tool(name, package, measure, ask, modules=modules, **more))
        return ask

    return enter


# Evaluators. Each function asks one of them for its own value of one query.


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
    """What MTEB stores of a reranker that gives these scores."""
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
    return float(evaluator(stand_in())[f"score_mrr@{query.length}"])


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
    listed = [*sample["positive"], *others]  # as it lists them itself
    scores = torch.tensor([query.run["q"][name] for name in listed], dtype=torch.float64)
    evaluator = RerankingEvaluator(
        [sample], at_k=query.length, similarity_fct=lambda *_: scores[None]
    )
    return float(evaluator(stand_in())[f"mrr@{query.length}"])


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
    return evaluator(stand_in(predict=lambda *_, **__: query.scores))


def stand_in(**methods: Any) -> Any:
    """What an evaluator of sentence-transformers asks a model for, besides scores."""
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


def retrieved(query: Query) -> list[str]:
    """Ids as a retriever hands them on, best score first; equal scores in input order."""
    return sorted(query.ids, key=query.run["q"].__getitem__, reverse=True)


@tool(
    "Haystack `DocumentMRREvaluator`", "haystack-ai", "RR", "haystack", promised="input", blind=True
)
def ask_haystack(query: Query) -> float:
    from haystack import Document
    from haystack.components.evaluators import DocumentMRREvaluator

    documents = [Document(content=name, score=query.run["q"][name]) for name in retrieved(query)]
    relevant = [Document(content=name) for name in query.qrels["q"]]
    found = DocumentMRREvaluator().run([relevant], [documents])
    return float(found["score"])


@tool("LlamaIndex `MRR`", "llama-index-core", "RR", "llama_index", promised="input", blind=True)
def ask_llama_index(query: Query) -> float:
    from llama_index.core.evaluation.retrieval.metrics import MRR

    found = MRR().compute(expected_ids=list(query.qrels["q"]), retrieved_ids=retrieved(query))
    return float(found.score)


@tool("LightGBM `ndcg`", "lightgbm", "nDCG", "lightgbm", promised="input")
def ask_lightgbm(query: Query) -> float:
    return values_of_lightgbm(query)["ndcg"]


@tool("LightGBM `map`", "lightgbm", "AP", "lightgbm", promised="input")
def ask_lightgbm_map(query: Query) -> float:
    return values_of_lightgbm(query)["map"]


def values_of_lightgbm(query: Query) -> dict[str, float]:
    """What a booster that has learnt nothing says of scores it was given to start from."""
    import lightgbm

    quiet = {"verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(
        np.zeros((query.length, 1)),
        query.labels,
        group=[query.length],
        init_score=query.scores,
        params=quiet,
    )
    asked = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [query.length]}
    found: dict[str, Any] = {}
    lightgbm.train(
        {**quiet, **asked},
        data,
        num_boost_round=1,
        valid_sets=[data],
        valid_names=["list"],
        callbacks=[lightgbm.record_evaluation(found)],
    )
    return {name.split("@")[0]: float(value[0]) for name, value in found["list"].items()}


# Sorts that people write themselves. Each function gives indices, best score first.


def sort(
    name: str, package: str, *modules: str, promised: str = "", depth: int | None = None
) -> Any:
    """Enter a function that gives an order into the list of tools."""

    def enter(indices: Callable[[Any], Any]) -> None:
        def ask(query: Query) -> float:
            order = [int(i) for i in indices(query.scores)]
            return 1.0 + order.index(query.relevant) if query.relevant in order else np.inf

        TOOLS.append(Tool(name, package, "rank", ask, promised, modules, depth=depth))

    return enter


def by_torch(name: str) -> Callable[[Any], Any]:
    """Give a method of a tensor of scores."""

    def call(scores: Any, *args: Any, **options: Any) -> Any:
        import torch

        return getattr(torch.tensor(scores), name)(*args, **options)

    return call


def rows_of_polars(scores: Any) -> pl.DataFrame:
    """A table of scores with their places."""
    return pl.DataFrame({"place": range(len(scores)), "score": scores})


def rows_of_pandas(scores: Any) -> Any:
    """A table of scores with their places as its index."""
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
    return by_torch("topk")(scores, 10).indices


@sort("`torch.topk(scores, len(scores))`", "torch", "torch")
def sort_by_torch_topk_of_all(scores: Any) -> Any:
    return by_torch("topk")(scores, len(scores)).indices


@sort("`torch.argsort(scores, descending=True)`", "torch", "torch")
def sort_by_torch(scores: Any) -> Any:
    return by_torch("argsort")(scores, descending=True)


@sort("`torch.argsort(…, stable=True)`", "torch", "torch", promised="input")
def sort_by_torch_stable(scores: Any) -> Any:
    return by_torch("argsort")(scores, descending=True, stable=True)


@sort("polars `sort(descending=True)`", "polars")
def sort_by_polars(scores: Any) -> Any:
    return rows_of_polars(scores).sort("score", descending=True)["place"]


@sort("polars `sort(…, maintain_order=True)`", "polars", promised="input")
def sort_by_polars_stable(scores: Any) -> Any:
    return rows_of_polars(scores).sort("score", descending=True, maintain_order=True)["place"]


@sort("polars `top_k(10)`", "polars", depth=10)
def sort_by_polars_top(scores: Any) -> Any:
    return rows_of_polars(scores).top_k(10, by="score")["place"]


@sort("pandas `sort_values(ascending=False)`", "pandas", "pandas")
def sort_by_pandas(scores: Any) -> Any:
    return rows_of_pandas(scores).sort_values("score", ascending=False).index


@sort("pandas `sort_values(…, kind='stable')`", "pandas", "pandas", promised="input")
def sort_by_pandas_stable(scores: Any) -> Any:
    return rows_of_pandas(scores).sort_values("score", ascending=False, kind="stable").index


@sort("pandas `nlargest(10)`", "pandas", "pandas", promised="input", depth=10)
def sort_by_pandas_largest(scores: Any) -> Any:
    return rows_of_pandas(scores).nlargest(10, "score").index


# What the answers mean.


def truth(query: Query, measure: str) -> dh.evaluation.Summary:
    """Every view of a measure of the query; input order is the tie rule."""
    name = MEASURES[measure]
    with quiet():
        return dh.evaluate(query.qrels, query.run, [name])[name]


def same(value: float, other: float) -> bool:
    """Whether two numbers are the same, written with five decimals or kept in float32."""
    return value == other or bool(np.isclose(value, other, atol=6e-6, rtol=1e-6))


@dataclass(frozen=True)
class Answer:
    """What a tool says of the tied lists."""

    tool: Tool
    said: float
    """Of the first list."""
    ranks: dict[int, float | None] = field(default_factory=dict)
    """Per length: the rank at which it puts the document at input rank 2; infinite where it leaves
    it out, None where its value is that of no rank."""
    order: str = ""
    """The order or mean that explains every value it gave; "" where none does."""
    sees: bool | None = None
    """Whether it tells 1 from 1 + 1e-9; None where it is given no scores."""


def asked(tool: Tool) -> Answer:
    """Ask a tool about every list."""
    ahead, behind = (tool.ask(Query(10, ahead=sign * NEAR)) for sign in (1, -1))
    sees = same(ahead, tool.value(1)) and same(behind, tool.value(10))
    tied = {n: Query(n) for n in LENGTHS}
    more = [Query(n, n - 2) for n in LENGTHS] + [Query(n, mixed=True) for n in LENGTHS]
    said = {query: tool.ask(query) for query in [*tied.values(), *more]}
    ranks = {n: rank_of(tool, said[query], n) for n, query in tied.items()}
    order = explained(tool, said)
    return Answer(tool, said[tied[10]], ranks, order, None if tool.blind else sees)


def rank_of(tool: Tool, value: float, length: int) -> float | None:
    """The rank that a value belongs to."""
    if value == np.inf:
        return value
    return next((rank for rank in range(1, length + 1) if same(value, tool.value(rank))), None)


def explained(tool: Tool, said: dict[Query, float]) -> str:
    """The order of equal scores that gives every value, or that these are means over all orders."""
    for order in ORDERS:
        if all(same(value, tool.value(q.rank(order))) for q, value in said.items()):
            return order
    averaged = tool.measure in MEASURES and all(
        same(value, truth(q, tool.measure).expected) for q, value in said.items()
    )
    return AVERAGED if averaged else ""


def answers() -> Iterator[Answer]:
    """Ask every tool that is installed, in the order of this file."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    for tool in TOOLS:
        if tool.installed:
            with quiet():
                yield asked(tool)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what the tools print, warn and log off the page."""
    logging.disable(logging.WARNING)
    try:
        nowhere = io.StringIO()
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def row(answer: Answer) -> str:
    """The line of the page for a tool."""
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
    return _line(tool.name, order, f"{tool.measure} **{answer.said:.4f}**", ranks)


def _rank(rank: float | None) -> str:
    return "mean" if rank is None else "left out" if rank == np.inf else f"{rank:.0f}"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def page(found: list[Answer]) -> str:
    """The whole page."""
    evaluators = [answer for answer in found if answer.tool.measure != "rank"]
    sorts = [answer for answer in found if answer.tool.measure == "rank"]
    told = {answer.tool.package: answer.tool.version for answer in found}
    versions = ", ".join(f"{name or 'Python'} {number}" for name, number in told.items())
    missing = sorted({tool.package for tool in TOOLS if not tool.installed})
    rest = f" Not installed when this page was made: {', '.join(missing)}." if missing else ""
    values = [a.said for a in evaluators if a.tool.measure == "RR" and a.order != AVERAGED]
    text = (ROOT / "benchmarks" / "which_tool.md").read_text(encoding="utf-8")
    views = truth(Query(LENGTHS[0]), "RR")
    for mark, filling in {
        "EVALUATORS": "\n".join(map(row, evaluators)),
        "SORTS": "\n".join(map(row, sorts)),
        "VERSIONS": versions + f", deadheat {dh.__version__}.{rest}",
        "LOWEST": f"{min(values):.2f}",
        "HIGHEST": f"{max(values):.2f}",
        "DISTINCT": str(len({round(value, 4) for value in values})),
        "EXPECTED": f"{views.expected:.4f}",
        "EXPECTED_NDCG": f"{truth(Query(LENGTHS[0]), 'nDCG').expected:.4f}",
    }.items():
        text = text.replace(f"<!-- {mark} -->", filling)
    return text.rstrip()


def picture(found: list[Answer]) -> Plot:
    """Every reciprocal rank that was said of the first list, beside the expected one."""
    told = [answer for answer in found if answer.tool.measure == "RR" and answer.order != AVERAGED]
    told.sort(key=lambda answer: -answer.said)
    views, ranks = truth(Query(LENGTHS[0]), "RR"), np.arange(1, LENGTHS[0] + 1)
    with style.styled():
        figure = style.new_figure("full", 0.7 + 0.19 * len(told))
        axes = figure.subplots()
        axes.vlines(1 / ranks, -0.6, len(told) - 0.4, "#CCCCCC", linewidth=0.5)
        axes.axvline(views.expected, color=style.COLOURS[1], label="mean over all orders")
        rows = range(len(told))
        axes.plot([a.said for a in told], rows, "o", color=style.COLOURS[0], label="reported")
        names = [answer.tool.name.replace("`", "") for answer in told]
        axes.set_yticks(rows, names, parse_math=False)
        axes.set_ylim(len(told) - 0.4, -0.6)
        axes.set_xlabel("reciprocal rank; a grey line for each rank")
        style.legend(figure, *axes.get_legend_handles_labels())
    words = (
        "One query, ten tied documents, one of them relevant, at input rank 2: its reciprocal rank"
    )
    return Plot(figure, f"{words} by tool, and {views.expected:.4f}, the mean over all orders.")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, default=ROOT / "docs" / "images")
    arguments = parser.parse_args()
    found = list(answers())
    picture(found).save(arguments.images / "which-tool.svg", force=True)
    print(page(found))


if __name__ == "__main__":
    main()
