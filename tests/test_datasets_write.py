"""`write_dataset` writes a dataset that `load_dataset` loads unchanged."""

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
    """Generate datasets as loading returns them, some with judged documents that are empty."""
    corpus = draw(st.dictionaries(names, texts.map(str.strip), min_size=1))
    queries = draw(st.dictionaries(names, texts, min_size=1, max_size=4))
    judged = st.one_of(st.sampled_from(sorted(corpus)), names)
    judgements = {query: draw(st.dictionaries(judged, grades, min_size=1)) for query in queries}
    for judged_docs in judgements.values():
        judged_docs[draw(st.sampled_from(sorted(judged_docs)))] = draw(
            st.sampled_from([1, 2.5, 1 / 3])
        )
    candidates = None
    if draw(st.booleans()):
        documents = st.lists(st.sampled_from(sorted(corpus)), min_size=1, unique=True)
        candidates = {query: draw(documents) for query in queries}
        used = {doc for listed in candidates.values() for doc in listed}.union(*judgements.values())
        corpus = {doc: text for doc, text in corpus.items() if doc in used}
    return RetrievalDataset("any", queries, corpus, judgements, candidates)


def write_and_load(dataset: RetrievalDataset, folder: Path) -> RetrievalDataset:
    for path in folder.iterdir():
        path.unlink()
    write_dataset(dataset, lambda name, data: write_whole(folder / name, data))
    return load_dataset(folder, candidates="full" if dataset.candidates is None else "given")


@settings(max_examples=150)
@given(datasets())
def test_arbitrary_dataset_round_trips(tmp_path: Path, dataset: RetrievalDataset) -> None:
    loaded = write_and_load(dataset, tmp_path)
    assert loaded.content_hash == dataset.content_hash
    not_stored = {"name": "any", "candidate_rule": "given", "left_out": {}}
    assert replace(loaded, **not_stored) == dataset
    assert list(loaded.queries) == list(dataset.queries)
    assert list(loaded.corpus) == list(dataset.corpus)
    assert loaded.unreachable == dataset.unreachable


@pytest.mark.parametrize("candidates", ["given", "full"])
def test_loaded_dataset_round_trips(tmp_path: Path, candidates: str) -> None:
    dataset = load_dataset(write_flat(tmp_path / "in"), candidates=candidates)  # type: ignore[arg-type]
    (tmp_path / "out").mkdir()
    loaded = write_and_load(dataset, tmp_path / "out")
    assert loaded.content_hash == dataset.content_hash
    lists = ["top_ranked.parquet"] if candidates == "given" else []
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == ["corpus.parquet", "qrels.parquet", "queries.parquet", *lists]
