"""Time the tie-aware search evaluator relative to that of sentence-transformers.

Embeddings are precomputed, because encoding by a real model would hide the difference. Times are
CPU times of one thread, the shortest of several runs.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from sentence_transformers.sentence_transformer.evaluation import (
    InformationRetrievalEvaluator as Original,
)
from sentence_transformers.util import cos_sim

from deadheat.integrations.sentence_transformers import InformationRetrievalEvaluator, quantised

QUERIES, DOCUMENTS, DIMENSIONS, RUNS = 300, 50_000, 64, 3


class PrecomputedModel:
    """A model that returns precomputed embeddings."""

    similarity_fn_name = "cosine"

    def __init__(self, queries: torch.Tensor, documents: torch.Tensor) -> None:
        self.queries, self.documents = queries, documents
        self.model_card_data = self

    def encode_query(self, texts: list[int], **_: object) -> torch.Tensor:
        return self.queries[texts]

    def encode_document(self, texts: list[int], **_: object) -> torch.Tensor:
        return self.documents[texts]

    def set_evaluation_metrics(self, *_: object) -> None:
        """Ignore the metrics, which belong on a model card."""


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    model = PrecomputedModel(
        *(torch.from_numpy(rng.normal(size=(n, DIMENSIONS))).float() for n in (QUERIES, DOCUMENTS))
    )
    corpus = {f"d{i}": i for i in range(DOCUMENTS)}
    queries = {f"q{i}": i for i in range(QUERIES)}
    relevant = {q: {f"d{i}" for i in rng.integers(0, DOCUMENTS, 5)} for q in queries}
    functions = {
        "FP32 cosine": cos_sim,
        "BF16 cosine": lambda a, b: cos_sim(a, b).bfloat16(),
        "binary": quantised("binary"),
    }
    for name, function in functions.items():
        for chunk in (DOCUMENTS, 10_000):
            seconds = []
            for evaluator_class in (InformationRetrievalEvaluator, Original):
                evaluator = evaluator_class(
                    queries,
                    corpus,
                    relevant,
                    corpus_chunk_size=chunk,
                    score_functions={"given": function},
                )
                seconds.append(min(time_evaluator(evaluator, model) for _ in range(RUNS)))
            print(f"{name}, pieces of {chunk:,}: {seconds[0] / seconds[1]:.2f} × the sibling")


def time_evaluator(evaluator: object, model: PrecomputedModel) -> float:
    """Return the CPU seconds of one evaluation."""
    start = time.process_time()
    evaluator(model)  # type: ignore[operator]
    return time.process_time() - start


if __name__ == "__main__":
    main()
