"""The paper's finding on recorded outputs of real models; needs no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.evaluation import evaluate_arrays
from deadheat.formats.write import trec_qrels, trec_run
from deadheat.output import write_whole
from deadheat.result import Result
from deadheat.scoring import score

MEASURE = "nDCG@10"


@dataclass(frozen=True)
class Recording:
    """Outputs of one model for one collection, in FP32 and in BF16."""

    model: str
    scoring: str
    """The scoring function: softmax, sigmoid or product."""
    lists: dict[str, list[NDArray[Any]]]
    """Scores of each query's candidates: of the FP32 model, and in each regime in BF16."""
    relevance: list[NDArray[Any]]
    query_ids: list[str]
    doc_ids: list[list[str]]

    @property
    def distinct(self) -> dict[str, float]:
        """Distinct scores per candidate, in each regime."""
        return {
            regime: sum(len(np.unique(x)) for x in lists) / sum(map(len, lists))
            for regime, lists in self.lists.items()
        }

    def evaluate(self) -> dict[str, Result]:
        """Evaluate each regime."""
        return {
            regime: evaluate_arrays(lists, self.relevance, MEASURE)
            for regime, lists in self.lists.items()
        }


def write_files(recording: Recording, folder: Path) -> list[Path]:
    """Write the recording as TREC files: its judgements, and a run for each regime."""
    folder.mkdir(parents=True, exist_ok=True)
    lists = pl.DataFrame({"query_id": recording.query_ids, "doc_id": recording.doc_ids})
    pairs = lists.explode("doc_id")
    relevance = pl.Series("relevance", np.concatenate(recording.relevance))
    content = {"qrels.txt": trec_qrels(pairs.with_columns(relevance))}
    for regime, scores in recording.lists.items():
        score = pl.Series("score", np.concatenate(scores))
        content[f"{regime}.run"] = trec_run(pairs.with_columns(score))
    written = {folder / f"{recording.scoring}-{name}": data for name, data in content.items()}
    for path, data in written.items():
        write_whole(path, data)
    return list(written)


def recordings() -> Iterator[Recording]:
    """The recorded models: a causal yes/no reranker, a cross-encoder and a bi-encoder."""
    yield _from_logits(
        "Qwen2.5-Coder-0.5B", "softmax", "qwen2.5-0.5b-noveleval.parquet", ("_no", "_yes")
    )
    yield _from_logits("MiniLM cross-encoder", "sigmoid", "cross-encoder-wikiqa.parquet", ("",))
    yield _from_embeddings("all-MiniLM-L6-v2", "minilm-wikiqa.npz")


def _read(name: str) -> BytesIO:
    return BytesIO((files(__package__) / "data" / name).read_bytes())


def _from_logits(model: str, scoring: Any, name: str, outputs: tuple[str, ...]) -> Recording:
    frame = pl.read_parquet(_read(name))
    parts = {
        dtype: frame.filter(model_dtype=dtype).partition_by("query_id", maintain_order=True)
        for dtype in ("float32", "bfloat16")
    }

    def scores(dtype: str, regime: str) -> list[NDArray[Any]]:
        lists = []
        for part in parts[dtype]:
            given = {
                prefix + "logits": part.select(f"{prefix}logit{o}" for o in outputs).to_numpy()
                for prefix in ("", "head_")
            }
            lists.append(
                score(scoring, regime=regime, model_dtype=dtype, backend="numpy", **given).ravel()
            )
        return lists

    lists = {"fp32": scores("float32", "native")}
    lists |= {regime: scores("bfloat16", regime) for regime in ("native", "hps", "head")}
    relevance = [part["relevance"].to_numpy() > 0 for part in parts["bfloat16"]]
    query_ids = [str(part["query_id"][0]) for part in parts["bfloat16"]]
    doc_ids = [part["doc_id"].cast(pl.String).to_list() for part in parts["bfloat16"]]
    return Recording(model, scoring, lists, relevance, query_ids, doc_ids)


def _from_embeddings(model: str, name: str) -> Recording:
    stored = np.load(_read(name))
    queries, documents = (stored[x].view(ml_dtypes.bfloat16) for x in ("queries", "documents"))
    bounds = np.searchsorted(stored["query"], np.arange(len(queries) + 1))
    own = [slice(a, b) for a, b in pairwise(bounds)]

    def scores(regime: str) -> list[NDArray[Any]]:
        return [
            score(
                "dot",
                regime=regime,
                model_dtype="bf16",
                queries=queries[q : q + 1],
                documents=documents[rows],
                backend="numpy",
            ).ravel()
            for q, rows in enumerate(own)
        ]

    lists = {"fp32": [stored["fp32"][rows] for rows in own]}
    lists |= {regime: scores(regime) for regime in ("native", "hps")}
    return Recording(
        model,
        "product",
        lists,
        [stored["relevance"][rows] for rows in own],
        [f"q{q}" for q in range(len(queries))],
        [[f"d{row}" for row in range(rows.start, rows.stop)] for rows in own],
    )
