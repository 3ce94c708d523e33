"""Tiny checkpoints and data, under the names that the recipes use."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np


def make_checkpoints(folder: Path) -> None:
    """Write tiny models where a library looks before it contacts the hub."""
    import tiny_models

    tiny_models.xlm_roberta(folder / "BAAI" / "bge-reranker-v2-m3")
    tiny_models.qwen(folder / "Qwen" / "Qwen3-Reranker-0.6B")
    encoder = tiny_models.bert_encoder(folder / "sentence-transformers" / "all-MiniLM-L6-v2")
    tiny_models.add_pooling(encoder, "mean")
    tiny_models.bert_masked(folder / "naver" / "splade-v3")
    tiny_models.bert_encoder(folder / "lightonai" / "GTE-ModernColBERT-v1")


def patch_task_data(monkeypatch: Any) -> None:
    """Make the retrieval tasks of MTEB load a small collection."""
    if find_spec("mteb") is None:
        return
    import mteb_tasks
    from mteb.abstasks import AbsTaskRetrieval

    def load_data(self: Any, *_: Any, **__: Any) -> None:
        texts = [f"text {i % 7} {i}" for i in range(60)]
        data = mteb_tasks.make_reranking_split(np.random.default_rng(1), texts)
        self.dataset = {"default": {"test": data}}
        self.data_loaded = True

    monkeypatch.setattr(AbsTaskRetrieval, "load_data", load_data)
