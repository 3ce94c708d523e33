"""Databases and text indexes: with complete tie groups, values match the full ranking."""

from __future__ import annotations

import importlib
import tempfile
from importlib.util import find_spec
from itertools import pairwise
from math import log

import numpy as np
import pytest
from pages import BLOCK, ROOT

import deadheat as dh

pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning"),
]
PAGE = (ROOT / "docs" / "recipes" / "databases.md").read_text(encoding="utf-8")
ENGINES = ["PostgreSQL", "DuckDB", "Chroma", "bm25s", "tantivy"]


@pytest.fixture(scope="module")
def example():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "examples")
        return importlib.import_module("in_databases")


@pytest.fixture(scope="module")
def search(example):
    results = {}

    def search_engine(name):
        module, run_queries, _ = example.ENGINES[name]
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: see docs/recipes/databases.md")
        if name not in results:
            results[name] = run_queries()
        return results[name]

    return search_engine


def full_ranking(example, name):
    """Return the scores of all documents, computed with NumPy."""
    if name in ("PostgreSQL", "DuckDB", "Chroma"):
        return -(example.queries[:, None] != example.vectors).sum(2)
    # All titles have the same length and distinct words, so BM25 is a multiple of this sum.
    titles = [set(title.split()) for title in example.titles]
    n = {word: sum(word in title for title in titles) for word in example.WORDS}
    idf = {word: log(1 + (len(titles) - k + 0.5) / (k + 0.5)) for word, k in n.items()}
    return np.array(
        [
            [sum(idf[word] for word in question.split() if word in title) for title in titles]
            for question in example.questions
        ]
    )


def test_every_engine_is_tested(example):
    assert list(example.ENGINES) == ENGINES


@pytest.mark.parametrize("name", ENGINES)
def test_complete_tie_groups_match_the_full_ranking(name, example, search):
    cut, whole = search(name)
    larger_is_better = example.ENGINES[name][2]
    scores = full_ranking(example, name)
    names = np.tile(example.ids, (len(scores), 1))
    expected = dh.evaluate(example.qrels, dh.search_results(names, scores), "nDCG@10")["nDCG@10"]
    top_ten, complete = (
        example.evaluate_hits(hits, is_whole=hits is whole, larger_is_better=larger_is_better)
        for hits in (cut, whole)
    )
    for view in ("expected", "worst", "best"):
        assert getattr(complete, view) == pytest.approx(getattr(expected, view), abs=1e-12)
    assert complete.worst < top_ten.worst < top_ten.best < complete.best
    # Which ten documents an engine keeps may change with its version; the whole group may not.
    values = f"{complete.expected:8.4f} {complete.worst:8.4f} {complete.best:8.4f}"
    assert f"{name:11} {'whole group':12} {values}" in PAGE.splitlines()


@pytest.mark.parametrize("name", ENGINES)
def test_page_documents_the_tie_order(name, example, search):
    cut, whole = search(name)
    position = {document: i for i, document in enumerate(example.ids.tolist())}
    keys = {"id": lambda document: document, "insertion": position.get}
    order_in_group = kept_documents = "no rule"
    for rule, sort_key in keys.items():
        if all(
            sort_key(a) < sort_key(b)
            for hits in cut.values()
            for (a, x), (b, y) in pairwise(hits)
            if x == y
        ):
            order_in_group = rule
        if all(
            {document for document, score in hits if score == hits[-1][1]}
            == set(sorted(group, key=sort_key)[: sum(score == hits[-1][1] for _, score in hits)])
            for query, hits in cut.items()
            for group in [[d for d, score in whole[query] if score == hits[-1][1]]]
        ):
            kept_documents = {"id": "lowest ids", "insertion": "first inserted"}[rule]
    assert f"| {name} | {order_in_group} | {kept_documents} |" in PAGE


def test_postgresql_hnsw_index_does_not_complete_tie_groups(example, search):
    """Groups are complete only in a new connection without index scans."""
    _, whole = search("PostgreSQL")
    import pgserver
    import psycopg

    server = pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete")
    example.fill_postgresql(server.get_uri())
    select = example.SELECT + "FETCH FIRST 10 ROWS WITH TIES"
    hit_counts = []
    for setting in ("hnsw.ef_search = 12", "enable_indexscan = off"):
        with psycopg.connect(server.get_uri()) as database:
            database.execute(
                "CREATE INDEX IF NOT EXISTS hnsw ON documents USING hnsw (embedding vector_l2_ops)"
            )
            database.execute(f"SET {setting}")
            hit_counts.append(
                [
                    len(database.execute(select, [str(q)]).fetchall())
                    for q in example.queries.tolist()
                ]
            )
    server.cleanup()
    sizes = [len(hits) for hits in whole.values()]
    assert max(hit_counts[0]) <= 12 < max(sizes)
    assert hit_counts[1] == sizes


def test_chroma_recipe():
    """`test_recipes` runs the other blocks of the page."""
    if find_spec("chromadb") is None:
        pytest.skip("chromadb is not installed: see docs/recipes/databases.md")
    blocks = [text for _, language, text in BLOCK.findall(PAGE) if language == "python"]
    (chroma,) = [text for text in blocks if "import chromadb" in text]
    namespace: dict[str, object] = {}
    for text in (blocks[0], chroma):
        exec(compile(text, "databases.md", "exec"), namespace)
    distances = (namespace["queries"][:, None] != namespace["vectors"]).sum(2)
    names = np.tile(np.arange(distances.shape[1]), (len(distances), 1))
    exact = dh.search_results(names, distances, larger_is_better=False)
    found, expected = (
        dh.evaluate(namespace["qrels"], run, "nDCG@10")["nDCG@10"]
        for run in (namespace["run"], exact)
    )
    assert found.expected == pytest.approx(expected.expected, abs=1e-12)
    assert found.range == pytest.approx(expected.range, abs=1e-12)
