"""Scores that change between variants, counted from their embeddings block by block."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("torch")
import torch
from safetensors.torch import save_file

import deadheat as dh
from deadheat.evaluation.corpus import chunks as corpus_chunks
from deadheat.lab.experiment.changes import (
    Changes,
    compare_embeddings,
    compare_scores,
)
from deadheat.scoring import Products


def stored(folder: Path, vectors: np.ndarray, bounds: list[int]) -> list:
    """Store vectors in parts that end at some bounds."""
    folder.mkdir()
    for number, part in enumerate(np.split(vectors, bounds)):
        tensor = torch.tensor(part, dtype=torch.bfloat16)
        save_file({"documents": tensor}, folder / f"{number:06}.safetensors")
    return dh.evaluation.stored_shards(folder, tensor="documents", torch=True)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_counts_are_those_of_all_scores_at_once(data):
    """Small whole numbers, whose products are exact in any shape."""
    n_queries, texts, n_variants = (data.draw(st.integers(1, most)) for most in (5, 40, 3))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    documents = random.integers(1, 4, texts)
    queries = random.integers(-2, 3, (n_queries, 3))
    queries[0] = 1
    first = random.integers(-2, 3, (texts, 3))
    moves = random.integers(0, 2, (n_variants, texts, 3)) * (
        random.random((n_variants, 1, 1)) < 0.7
    )
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_chunks, "MIN_DOCUMENTS", 4)
        patch.setattr(corpus_chunks, "MAX_DOCUMENTS", 4)
        variants = []
        for number, move in enumerate(moves):
            bounds = sorted(data.draw(st.sets(st.integers(1, max(1, texts - 1)), max_size=5)))
            parts = stored(Path(folder) / str(number), first + move, bounds)
            products = Products.of(torch.tensor(queries, dtype=torch.bfloat16), "dot", "native")
            variants.append((products, parts))
        found = compare_embeddings(variants, documents)
    scores = np.array([queries @ (first + move).T for move in moves])
    moved = np.repeat(scores.max(axis=0) - scores.min(axis=0), documents, axis=1)
    assert found == Changes(moved.size, int((moved > 0).sum()), float(moved.max()))


def test_variants_of_different_length_are_refused(tmp_path):
    queries = Products.of(torch.ones(1, 3, dtype=torch.bfloat16), "dot", "native")
    whole = queries, stored(tmp_path / "whole", np.ones((9, 3)), [4])
    cut = queries, stored(tmp_path / "cut", np.ones((8, 3)), [4])
    with pytest.raises(dh.InputError, match=r"9 .* 8 "):
        compare_embeddings([whole, cut], np.ones(9, int))


def test_documents_that_some_variant_lacks_are_left_out():
    one = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": list("abc"), "score": [3.0, 2.0, 1.0]})
    other = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": list("bda"), "score": [2.5, 2.0, 3.0]})
    assert compare_scores([one, other]) == Changes(2, 1, 0.5)
    assert compare_scores([one.head(1), other.head(2)]) == Changes(0, 0, 0.0)
