"""A small study for tests: tiny models of each kind, and a dataset with edge cases."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_models as tiny
from dataset_folders import write_flat

EMPTY, TWIN = "d9", "d10"
TEXTS = [*tiny.DOCUMENTS, *(query.upper() for query in tiny.QUERIES), "", tiny.DOCUMENTS[1]]
CORPUS = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(TEXTS)]
QUERIES = [{"_id": f"q {i}", "text": text} for i, text in enumerate(tiny.QUERIES)]
# Every query has a relevant document. One of q 0 is empty, one of q 1 is no candidate.
QRELS = [
    *({"query-id": f"q {i}", "corpus-id": f"d{i}", "score": 1 + i % 2} for i in range(4)),
    {"query-id": "q 0", "corpus-id": EMPTY, "score": 1},
    {"query-id": "q 1", "corpus-id": "d7", "score": 2},
    {"query-id": "q 2", "corpus-id": "d4", "score": 0},
]
TOP_RANKED = [
    {"query-id": f"q {i}", "corpus-ids": [f"d{j}" for j in range(11) if i != 1 or j != 7]}
    for i in range(4)
]
MEASURES = ["nDCG@3", "MRR", "MAP", "Recall@5"]


def write_dataset(folder: Path) -> str:
    return str(
        write_flat(folder, corpus=CORPUS, queries=QUERIES, qrels=QRELS, top_ranked=TOP_RANKED)
    )


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Write a dataset and a model of each kind, and return their paths."""
    pytest.importorskip("sentence_transformers")
    root = tmp_path_factory.mktemp("made")
    encoder = tiny.add_pooling(tiny.bert_encoder(root / "encoder"), "mean")
    return {
        "data": write_dataset(root / "data"),
        "sigmoid": str(tiny.xlm_roberta(root / "sigmoid")),
        "softmax": str(tiny.bert(root / "softmax")),
        "yes-no": str(tiny.qwen(root / "Qwen3-Reranker-0.6B")),
        "product": str(encoder),
    }
