from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from dataset_folders import write_flat, write_readme, write_snapshot, write_table
from hub_server import COMMIT, serve

from deadheat.errors import InputError, MissingPackageError
from deadheat.lab.datasets import load_dataset
from deadheat.lab.datasets.layouts import read_contents
from deadheat.lab.datasets.sources import open_configs, open_folder

EARLIER = "f" * 40

CLIENT = """
import json, sys
from deadheat.lab.datasets import load_dataset
from deadheat.errors import InputError

answers = []
for name, options in json.loads(sys.argv[1]):
    try:
        answers.append(load_dataset(name, **options).provenance().to_dict())
    except InputError as error:
        answers.append(str(error))
print(json.dumps(answers))
"""

needs_datasets = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import datasets"], capture_output=True).returncode != 0,
    reason="the package datasets is not installed",
)


def load_in_subprocess(
    home: Path, requests: Sequence[object], **environment: str
) -> list[dict[str, object]]:
    """Load datasets in a new process, because the hub's libraries read their settings on import."""
    variables = os.environ | {"HF_HOME": str(home), "HF_HUB_OFFLINE": "0"} | environment
    process = subprocess.run(
        [sys.executable, "-c", CLIENT, json.dumps(requests)],
        capture_output=True,
        text=True,
        env=variables,
    )
    assert process.returncode == 0, process.stderr
    answers: list[dict[str, object]] = json.loads(process.stdout.splitlines()[-1])
    return answers


@needs_datasets
def test_dataset_from_the_hub_is_available_offline(tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "mteb" / "MIRACLReranking"
    write_snapshot(write_snapshot(repository, subset="en", split="dev"), subset="de", split="dev")
    earlier = write_snapshot(repository.with_name(f"{repository.name}@{EARLIER}"), subset="en")
    rows = [{"query": "q", "positive": ["a"], "negative": ["b", "c"]}]
    old = write_table(tmp_path / "hub" / "mteb" / "old-reranking" / "test", rows, "jsonl.gz")
    write_readme(old.parent, [("default", "test", old.name)])
    requests = [
        ["mteb/MIRACLReranking", {"subset": "en"}],
        ["mteb/MIRACLReranking", {"subset": "en", "revision": EARLIER, "limit": 1}],
        ["mteb/old-reranking", {}],
        ["mteb/MIRACLReranking", {"subset": "fr"}],
        ["mteb/MIRACLReranking", {"subset": "en", "split": "test"}],
        ["mteb/MIRACLReranking", {"subset": "en", "revision": "gone"}],
        ["mteb/Absent", {}],
    ]
    with serve(tmp_path / "hub") as endpoint:
        online = load_in_subprocess(tmp_path / "home", requests, HF_ENDPOINT=endpoint)
    latest, first = load_dataset(repository, subset="en"), load_dataset(earlier, limit=1)
    assert (online[0]["revision"], online[0]["split"]) == (COMMIT, "dev")
    assert online[0]["content_hash"] == latest.content_hash
    assert (online[1]["revision"], online[1]["split"]) == (EARLIER, "test")
    assert online[1]["content_hash"] == first.content_hash
    assert (online[2]["pairs"], online[2]["revision"]) == (3, COMMIT)
    assert "no subset 'fr'" in str(online[3]) and "en, de" in str(online[3])
    assert "no split 'test'" in str(online[4]) and "dev" in str(online[4])
    assert "mteb/MIRACLReranking at revision 'gone' could not be read" in str(online[5])
    assert "mteb/Absent could not be read from the hub (RepositoryNotFound" in str(online[6])

    offline = load_in_subprocess(tmp_path / "home", requests, HF_HUB_OFFLINE="1")
    assert offline[:3] == online[:3]
    assert "could not be read from the hub" in str(offline[5])


@needs_datasets
@pytest.mark.parametrize(
    "environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}]
)
def test_unreachable_hub_error_suggests_a_folder(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (message,) = load_in_subprocess(tmp_path, [["mteb/AskUbuntuDupQuestions", {}]], **environment)
    assert "mteb/AskUbuntuDupQuestions could not be read" in str(message)
    assert "download it" in str(message) and "folder" in str(message)


@pytest.fixture
def hub_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("hub_library")
@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
@pytest.mark.parametrize("subset", [None, "en"])
def test_configs_of_the_hub_library_match_local_files(
    tmp_path: Path, subset: str | None, file_format: str
) -> None:
    folder = write_snapshot(tmp_path / "repository", file_format, subset or "", "dev")
    contents = read_contents(open_configs(str(folder), None), subset, None)
    assert contents.split == "dev"
    assert contents == read_contents(open_folder(folder), subset, None)


@pytest.mark.usefixtures("hub_library")
def test_beir_configs_may_have_different_splits(tmp_path: Path) -> None:
    folder = write_flat(tmp_path / "repository")
    write_readme(
        folder,
        [
            ("default", "test", "qrels.jsonl"),
            ("corpus", "corpus", "corpus.jsonl"),
            ("queries", "queries", "queries.jsonl"),
        ],
    )
    contents = read_contents(open_configs(str(folder), None), None, None)
    assert (len(contents.queries), len(contents.corpus), len(contents.judgements)) == (4, 5, 3)
    assert contents.candidates is None


@pytest.mark.usefixtures("hub_library")
def test_rows_of_positives_and_negatives_from_the_hub_library(tmp_path: Path) -> None:
    rows = [{"query": "q", "positive": ["a"], "negative": ["b"], "extra": 1}]
    write_table(tmp_path / "repository" / "test", rows, "jsonl.gz")
    contents = read_contents(open_configs(str(tmp_path / "repository"), None), None, None)
    assert (contents.corpus, contents.split) == ({"q0-d0": "a", "q0-d1": "b"}, "test")


@pytest.mark.parametrize("package", ["huggingface_hub", "datasets"])
def test_missing_hub_package_raises_an_error(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"hub needs .* '{package}'.*\[models\]"):
        if package == "datasets":
            open_configs("mteb/AskUbuntuDupQuestions", None)
        else:
            load_dataset("mteb/AskUbuntuDupQuestions")


def test_ir_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the package by a stub of the functions in use, so that nothing is downloaded."""

    class Text(namedtuple("Text", "id text")):
        query_id = doc_id = property(lambda self: self.id)

        def default_text(self) -> str:
            return f"{self.text}!"

    qrel = namedtuple("qrel", "query_id doc_id relevance iteration")
    scored = namedtuple("scored", "query_id doc_id score")
    data = SimpleNamespace(
        has_docs=lambda: True,
        has_queries=lambda: True,
        has_qrels=lambda: True,
        has_scoreddocs=lambda: True,
        docs_iter=lambda: iter([Text("d2", "two"), Text("d1", "one")]),
        queries_iter=lambda: iter([Text("1", "who")]),
        qrels_iter=lambda: iter([qrel("1", "d1", 2, "0")]),
        scoreddocs_iter=lambda: iter([scored("1", "d1", 0.1), scored("1", "d2", 0.9)]),
    )
    stub = SimpleNamespace(load={"made/up": data}.__getitem__)
    monkeypatch.setitem(sys.modules, "ir_datasets", stub)
    dataset = load_dataset("ir_datasets:made/up")
    assert dataset.name == "ir_datasets:made/up"
    assert list(dataset.corpus.items()) == [("d2", "two!"), ("d1", "one!")]
    assert dataset.queries == {"1": "who!"}
    assert dataset.judgements == {"1": {"d1": 2}}
    assert dataset.candidates == {"1": ["d1", "d2"]}
    with pytest.raises(InputError, match="ir_datasets has no dataset 'unknown'"):
        load_dataset("ir_datasets:unknown")


def test_missing_ir_datasets_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingPackageError, match="'ir_datasets'"):
        load_dataset("ir_datasets:beir/scifact/test")
