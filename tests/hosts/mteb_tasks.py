"""Small tasks and models for MTEB that work offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from needed import import_host

import_host("mteb")

from datasets import Dataset  # noqa: E402
from mteb.abstasks import AbsTask, AbsTaskRetrieval  # noqa: E402
from mteb.abstasks.task_metadata import TaskMetadata  # noqa: E402
from mteb.models import ModelMeta  # noqa: E402


def make_metadata(name: str, type: str, langs: Any = ("eng-Latn",)) -> TaskMetadata:
    return TaskMetadata(
        name=name,
        type=type,
        description="A task made by a test.",
        reference=None,
        dataset={"path": "none", "revision": "1"},
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=langs if isinstance(langs, Mapping) else list(langs),
        main_score="ndcg_at_10",
        date=("2026-01-01", "2026-01-01"),
        domains=[],
        task_subtypes=[],
        license="cc-by-4.0",
        annotations_creators="derived",
        dialect=[],
        sample_creation="found",
        bibtex_citation="",
    )


def make_split(
    queries: Mapping[str, str],
    corpus: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    top_ranked: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    return {
        "queries": Dataset.from_list([{"id": q, "text": text} for q, text in queries.items()]),
        "corpus": Dataset.from_list(
            [{"id": d, "text": text, "title": ""} for d, text in corpus.items()]
        ),
        "relevant_docs": {query: dict(grades) for query, grades in qrels.items()},
        "top_ranked": top_ranked and {query: list(docs) for query, docs in top_ranked.items()},
    }


def make_task(
    data: Mapping[str, Any] | None = None,
    *,
    name: str = "DeadheatTask",
    subsets: Mapping[str, Mapping[str, Any]] | None = None,
    base: type[AbsTask] = AbsTaskRetrieval,
    **attributes: Any,
) -> Any:
    """Return a task over one split, or one split per subset; with candidates, it reranks."""
    subsets = subsets or {"default": data}
    is_reranking = next(iter(subsets.values()))["top_ranked"] is not None
    langs: Any = ("eng-Latn",)
    if list(subsets) != ["default"]:
        langs = {subset: ["eng-Latn"] for subset in subsets}
    task_metadata = make_metadata(name, "Reranking" if is_reranking else "Retrieval", langs)
    task = type(name, (base,), {"metadata": task_metadata, **attributes})()
    task.dataset = {subset: {"test": dict(part)} for subset, part in subsets.items()}
    task.data_loaded = True
    return task


def make_reranking_split(
    rng: np.random.Generator, texts: Sequence[str], queries: int = 6, per_query: int = 30
) -> dict[str, Any]:
    """Return a split whose candidates are drawn from texts and graded 0 to 2."""
    corpus = {f"d{i}": text for i, text in enumerate(texts)}
    ids = list(corpus)
    top = {f"q{i}": [str(d) for d in rng.choice(ids, per_query, False)] for i in range(queries)}
    qrels = {q: {d: int(rng.integers(0, 3)) for d in docs[:8]} for q, docs in top.items()}
    for grades in qrels.values():
        grades[next(iter(grades))] = 1
    return make_split({q: texts[i] for i, q in enumerate(top)}, corpus, qrels, top)


class Scorer:
    """A reranker for MTEB that scores pairs of texts with a function."""

    def __init__(self, function: Any, name: str = "deadheat/scorer") -> None:
        self.function = function
        self.mteb_model_meta = ModelMeta.create_empty(overwrites={"name": name, "revision": "1"})

    def predict(self, inputs1: Any, inputs2: Any, **_: Any) -> Any:
        queries = [text for batch in inputs1 for text in batch["text"]]
        documents = [text for batch in inputs2 for text in batch["text"]]
        return np.array([self.function(*pair) for pair in zip(queries, documents, strict=True)])


class Encoder:
    """An encoder for MTEB that uses the numbers in a text as its embedding."""

    def __init__(self, name: str = "deadheat/encoder") -> None:
        self.mteb_model_meta = ModelMeta.create_empty(overwrites={"name": name, "revision": "1"})

    def encode(self, inputs: Any, **_: Any) -> Any:
        texts = [text for batch in inputs for text in batch["text"]]
        return np.array([[float(n) for n in text.split()] for text in texts], np.float32)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        return np.asarray(embeddings1) @ np.asarray(embeddings2).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        return (np.asarray(embeddings1) * np.asarray(embeddings2)).sum(-1)


def only_scores(result: Any) -> SimpleNamespace:
    """Return the scores of a result with one task and one subset."""
    (task,) = result.task_results
    ((scores,),) = task.scores.values()
    return scores
