"""The paper's finding on recorded outputs of real models; needs no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from deadheat._lazy import pl
from deadheat.evaluation import Result, evaluate_run
from deadheat.formats import Judgements, Run, read_qrels, read_run
from deadheat.formats.write import trec_qrels, trec_run
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.output import write_whole
from deadheat.scoring import score
from deadheat.scoring.regimes import Scoring, scoring_provenance

MEASURE = "nDCG@10"
MORE_MEASURES: list[Measure] = parse_measures([MEASURE, "MRR@10"])
CUTOFFS = (1, 2, 3, 5, 10, 20)
FUNCTIONS: dict[str, Scoring] = {"softmax": "softmax", "sigmoid": "sigmoid", "product": "dot"}


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

    @cached_property
    def qrels(self) -> Judgements:
        """The judgements."""
        lists = zip(self.query_ids, self.doc_ids, self.relevance, strict=True)
        return read_qrels({q: dict(zip(docs, g.tolist(), strict=True)) for q, docs, g in lists})

    @cached_property
    def runs(self) -> dict[str, Run]:
        """The scores of each regime as a run."""
        return {
            regime: read_run(
                {
                    query: dict(zip(docs, scores.tolist(), strict=True))
                    for query, docs, scores in zip(self.query_ids, self.doc_ids, lists, strict=True)
                }
            )
            for regime, lists in self.lists.items()
        }

    @cached_property
    def results(self) -> dict[str, Result]:
        """Every regime evaluated, at several cutoffs."""
        measures = [measure @ k for measure in MORE_MEASURES for k in CUTOFFS]
        results = {}
        for regime, run in self.runs.items():
            dtype = "fp32" if regime == "fp32" else "bf16"
            kind = "native" if regime == "fp32" else regime
            scoring = scoring_provenance(kind, dtype, FUNCTIONS[self.scoring], "numpy")
            result = evaluate_run(self.qrels, run, measures)
            origin = replace(
                result.provenance, run=f"{self.model} {dtype} {kind}", qrels=None, scoring=scoring
            )
            results[regime] = replace(result, provenance=origin)
        return results


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
