"""The paper's finding, shown with recorded outputs of real models; needs no torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import ml_dtypes
import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.output import write_whole
from deadheat.evaluation import Result, evaluate_run
from deadheat.formats import Judgements, Run, read_qrels, read_run, trec_qrels, trec_run
from deadheat.measures import Measure, parse_measures
from deadheat.scoring import Scores, Scoring, score, scoring_provenance

MEASURE = "nDCG@10"
MORE_MEASURES: list[Measure] = parse_measures([MEASURE, "MRR@10"])
CUTOFFS = (1, 2, 3, 5, 10, 20)


@dataclass(frozen=True)
class Recording:
    """Outputs of one model for one collection, in FP32 and in BF16."""

    name: str
    """Prefix of the names of its files."""
    model: str
    scoring: Scoring
    """The scoring function."""
    pairs: pl.DataFrame
    """query_id, doc_id and relevance of each candidate; candidates of a query are adjacent."""
    scores: dict[str, Scores]
    """Scores of the candidates: of the FP32 model, and in each regime in BF16."""

    def frame(self, regime: str) -> pl.DataFrame:
        """Return the scores of a regime as the table of a run."""
        score = pl.Series("score", self.scores[regime])
        return self.pairs.select("query_id", "doc_id", score)

    @cached_property
    def qrels(self) -> Judgements:
        """The judgements."""
        return read_qrels(self.pairs)

    @cached_property
    def runs(self) -> dict[str, Run]:
        """The scores of each regime as a run."""
        return {regime: read_run(self.frame(regime)) for regime in self.scores}

    @cached_property
    def results(self) -> dict[str, Result]:
        """The result of every regime, at several cutoffs."""
        measures = [measure @ k for measure in MORE_MEASURES for k in CUTOFFS]
        results = {}
        for regime, run in self.runs.items():
            dtype, kind = ("fp32", "native") if regime == "fp32" else ("bf16", regime)
            scoring = scoring_provenance(kind, dtype, self.scoring, "numpy")
            result = evaluate_run(self.qrels, run, measures)
            origin = replace(
                result.provenance, run=f"{self.model} {dtype} {kind}", qrels=None, scoring=scoring
            )
            results[regime] = replace(result, provenance=origin)
        return results


def write_files(recording: Recording, folder: Path) -> list[str]:
    """Write the judgements and a run for each regime as TREC files; return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {f"{recording.name}-qrels.txt": trec_qrels(recording.pairs)}
    for regime in recording.scores:
        content[f"{recording.name}-{regime}.run"] = trec_run(recording.frame(regime))
    for name, data in content.items():
        write_whole(folder / name, data)
    return list(content)


def recordings() -> dict[str, Recording]:
    """Return the recorded models by name.

    Two yes/no rerankers, the first of them trained; a bi-encoder; a cross-encoder.
    """
    recorded = [
        _from_logits(
            "reranker",
            "SmolLM2-135M, trained to rerank",
            "softmax",
            "smollm2-wikiqa.parquet",
            ("fp32", "native", "hps", "head", "head-logit"),
        ),
        _from_logits("softmax", "Qwen2.5-Coder-0.5B", "softmax", "qwen2.5-0.5b-noveleval.parquet"),
        _from_embeddings("product", "all-MiniLM-L6-v2", "minilm-wikiqa.npz"),
        _from_logits("sigmoid", "MiniLM cross-encoder", "sigmoid", "cross-encoder-wikiqa.parquet"),
    ]
    return {recording.name: recording for recording in recorded}


def _read(name: str) -> BytesIO:
    return BytesIO((files(__package__) / "data" / name).read_bytes())


def _from_logits(
    name: str,
    model: str,
    scoring: Scoring,
    file: str,
    regimes: tuple[str, ...] = ("fp32", "native", "hps", "head"),
) -> Recording:
    frame = pl.read_parquet(_read(file))
    outputs = ("_no", "_yes") if scoring == "softmax" else ("",)
    scores = {}
    for regime in regimes:
        dtype, kind = ("float32", "native") if regime == "fp32" else ("bfloat16", regime)
        part = frame.filter(model_dtype=dtype)
        given = {
            prefix + "logits": part.select(f"{prefix}logit{o}" for o in outputs).to_numpy()
            for prefix in ("", "head_")
        }
        scored = score(scoring, regime=kind, model_dtype=dtype, backend="numpy", **given)
        scores[regime] = scored.ravel()
    pairs = part.select(
        pl.col("query_id", "doc_id").cast(pl.String), (pl.col("relevance") > 0).cast(pl.Int64)
    )
    return Recording(name, model, scoring, pairs, scores)


def _from_embeddings(name: str, model: str, file: str) -> Recording:
    stored = np.load(_read(file))
    queries, documents = (stored[x].view(ml_dtypes.bfloat16) for x in ("queries", "documents"))
    scores = {"fp32": stored["fp32"]}
    given = {"model_dtype": "bf16", "queries": queries, "documents": documents}
    for regime in ("native", "hps"):
        products = score("dot", regime=regime, backend="numpy", **given)
        scores[regime] = products[stored["query"], np.arange(len(documents))]
    pairs = pl.DataFrame(
        {
            "query_id": [f"q{q}" for q in stored["query"]],
            "doc_id": [f"d{row}" for row in range(len(documents))],
            "relevance": stored["relevance"].astype(np.int64),
        }
    )
    return Recording(name, model, "dot", pairs, scores)
