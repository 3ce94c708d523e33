"""The modules that the tests, the recipe and the example of each host need.

To add one: an extra in pyproject.toml, also named by the extra `hosts` there; a line here; the
integration, `tests/hosts/test_NAME.py`, `docs/recipes/NAME.md` and `examples/in_NAME.py`.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

import pytest

HOSTS = {
    "beir": ["beir", "pytrec_eval"],
    "databases": ["pgserver", "psycopg", "duckdb", "tantivy", "bm25s"],
    "haystack": ["haystack"],
    "ir-measures": ["ir_measures", "pandas", "pytrec_eval"],
    "lightgbm": ["lightgbm", "sklearn"],
    "llama-index": ["llama_index"],
    "mteb": ["mteb"],
    "onnx": ["onnxruntime", "onnx"],
    "pylate": ["pylate"],
    "pyterrier": ["pyterrier"],
    "pytrec-eval": ["pytrec_eval"],
    "ranx": ["ranx"],
    "rerankers": ["rerankers", "FlagEmbedding"],
    "sentence-transformers": ["sentence_transformers"],
    "torchmetrics": ["torchmetrics", "lightning"],
    "trackers": ["mlflow", "tensorboard", "torch", "wandb"],
    "trm": ["trm"],
    "vector-search": ["faiss", "hnswlib", "lancedb", "qdrant_client", "usearch"],
}


def import_host(host: str) -> Any:
    """Import the first module that a host needs, or skip; a broken module is an error."""
    for module in HOSTS[host]:
        if find_spec(module) is None:
            reason = f"{module} is not installed: run `make test-hosts`"
            pytest.skip(reason, allow_module_level=True)
    return importlib.import_module(HOSTS[host][0])
