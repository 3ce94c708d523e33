"""A dataset that is written comes back as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from dataset_folders import write_flat
from hypothesis import given, settings, strategies as st

from deadheat._internal.output import write_whole
from deadheat.lab.datasets import RetrievalDataset, load_dataset, write_dataset

names = st.one_of(
    st.sampled_from(["7", "007", "1.0", "1e3", "None", "null", "-"]), st.text(min_size=1)
)
texts = st.text(min_size=1).filter(str.strip)
grades = st.one_of(st.integers(0, 3), st.floats(-1e100, 1e100))


@st.composite
def datasets(draw: st.DrawFn) -> RetrievalDataset:
    """Any dataset that loading can give, documents that are judged but empty among them."""
    corpus = draw(st.dictionaries(names, texts.map(str.strip), min_size=1))
    queries = draw(st.dictionaries(names, texts, min_size=1, max_size=4))
    judged = st.one_of(st.sampled_from(sorted(corpus)), names)
    judgements = {query: draw(st.dictionaries(judged, grades, min_size=1)) for query in queries}
    for own in judgements.values():
        own[draw(st.sampled_from(sorted(own)))] = draw(st.sampled_from([1, 2.5, 1 / 3]))
    candidates = None
    if draw(st.booleans()):
        documents = st.lists(st.sampled_from(sorted(corpus)), min_size=1, unique=True)
        candidates = {query: draw(documents) for query in queries}
        used = {doc for listed in candidates.values() for doc in listed}.union(*judgements.values())
        corpus = {doc: text for doc, text in corpus.items() if doc in used}
    return RetrievalDataset("any", queries, corpus, judgements, candidates)


def written(dataset: RetrievalDataset, folder: Path) -> RetrievalDataset:
    for old in folder.iterdir():
        old.unlink()
    write_dataset(dataset, lambda name, data: write_whole(folder / name, data))
    return load_dataset(folder, candidates="full" if dataset.candidates is None else "given")


@settings(max_examples=150)
@given(datasets())
def test_any_dataset_comes_back(tmp_path: Path, dataset: RetrievalDataset) -> None:
    again = written(dataset, tmp_path)
    assert again.content_hash == dataset.content_hash
    unnamed = {"name": "any", "candidate_rule": "given", "left_out": {}}
    assert replace(again, **unnamed) == dataset
    assert list(again.queries) == list(dataset.queries)
    assert list(again.corpus) == list(dataset.corpus)
    assert again.unreachable == dataset.unreachable


@pytest.mark.parametrize("candidates", ["given", "full"])
def test_what_was_loaded_is_written_and_loaded_again(tmp_path: Path, candidates: str) -> None:
    dataset = load_dataset(write_flat(tmp_path / "in"), candidates=candidates)  # type: ignore[arg-type]
    (tmp_path / "out").mkdir()
    again = written(dataset, tmp_path / "out")
    assert again.content_hash == dataset.content_hash
    lists = ["top_ranked.parquet"] if candidates == "given" else []
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == ["corpus.parquet", "qrels.parquet", "queries.parquet", *lists]
