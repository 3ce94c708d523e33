from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from dataset_folders import write_flat
from hypothesis import given, strategies as st

from deadheat.errors import MissingPackageError
from deadheat.lab.datasets import load_dataset
from deadheat.lab.datasets.bm25 import bm25_candidates, select_top

CORPUS = {
    "z": "the horse won the race",
    "y": "a photo finish of the race",
    "x": "a photo finish of the race",
    "w": "Race, race, RACE: and nothing else at all",
    "v": "unrelated words",
    "u": "a photo finish of the race",
    "t": "",
}


def compute_bm25(query: str, corpus: dict[str, str]) -> dict[str, float]:
    """Compute Lucene's BM25 for every document, straight from its formula."""
    words = {document: re.findall(r"\b\w\w+\b", text.lower()) for document, text in corpus.items()}
    average = sum(map(len, words.values())) / len(words)
    scores = dict.fromkeys(corpus, 0.0)
    for term in re.findall(r"\b\w\w+\b", query.lower()):
        n_containing = sum(term in text for text in words.values())
        idf = math.log(1 + (len(words) - n_containing + 0.5) / (n_containing + 0.5))
        for document, text in words.items():
            count = text.count(term)
            scores[document] += idf * count / (count + 1.5 * (0.25 + 0.75 * len(text) / average))
    return scores


@pytest.mark.parametrize("query", ["race", "photo race", "the horse", "unrelated finish words"])
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 7, 100])
def test_candidates_are_sorted_by_score_then_corpus_order(query: str, depth: int) -> None:
    pytest.importorskip("bm25s")
    scores = compute_bm25(query, CORPUS)
    positions = {document: position for position, document in enumerate(CORPUS)}
    ranking = sorted(
        CORPUS, key=lambda document: (-round(scores[document], 5), positions[document])
    )
    candidates, cut, rule = bm25_candidates({"q": query}, CORPUS, depth)
    assert candidates == {"q": ranking[:depth]}
    is_cut_in_tie = depth < len(CORPUS) and math.isclose(
        scores[ranking[depth - 1]], scores[ranking[depth]], abs_tol=1e-9
    )
    assert cut == (["q"] if is_cut_in_tie else [])
    assert rule.startswith(f"bm25 top {depth} (bm25s ")


def test_query_without_matching_terms_keeps_corpus_order() -> None:
    pytest.importorskip("bm25s")
    for corpus in (CORPUS, dict.fromkeys(CORPUS, "")):
        candidates, cut, _ = bm25_candidates({"a": "zebra", "b": "", "c": "!"}, corpus, 2)
        assert candidates == {query: ["z", "y"] for query in "abc"}
        assert cut == ["a", "b", "c"]


@given(st.lists(st.integers(0, 4) | st.floats(-1, 1), min_size=1), st.integers(1, 20))
def test_select_top_equals_a_full_sort(values: list[float], depth: int) -> None:
    scores = np.array(values, dtype=np.float32)
    order = sorted(range(len(scores)), key=lambda index: (-scores[index], index))
    is_cut_in_tie = depth < len(order) and scores[order[depth - 1]] == scores[order[depth]]
    assert select_top(scores, depth) == (order[:depth], is_cut_in_tie)


def test_load_dataset_with_bm25_candidates(tmp_path: Path) -> None:
    pytest.importorskip("bm25s")
    folder = write_flat(tmp_path, top_ranked=[])
    dataset = load_dataset(folder, candidates="bm25", depth=2)
    assert dataset.candidates is not None
    assert dataset.candidates["q1"] == ["d1", "d2"]
    assert dataset.cut_inside_ties == ("q2", "q1")
    assert dataset.unreachable == ("q2",)
    assert dataset.content_hash == load_dataset(folder, candidates="bm25", depth=2).content_hash
    assert "top 100" in load_dataset(folder, candidates="bm25").candidate_rule


def test_missing_bm25s_error_has_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(MissingPackageError, match=r"BM25 .* 'bm25s': .*pip install .*\[models\]"):
        load_dataset(write_flat(tmp_path), candidates="bm25")
