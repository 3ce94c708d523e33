"""Vector libraries: raw results, ties at the cutoff, recall."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from uuid import UUID

import numpy as np
import pytest
from needed import import_host
from pages import ROOT
from vector_indexes import INDEXES, Codes, bits

import deadheat as dh
from deadheat.integrations import vector_search

pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning"),
]

MEASURES = ["nDCG@10", "MRR@10", "Recall@10"]
EXACT = [name for name in INDEXES if "HNSW" not in name and "PQ" not in name]
EXACT = [name for name in EXACT if name not in ("usearch", "hnswlib Index")]


@pytest.fixture(scope="module")
def codes():
    return Codes.make(documents=2_000, queries=30)


@pytest.fixture(scope="module")
def build(codes):
    built_indexes = {}

    def build(name):
        module, make_index = INDEXES[name]
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: run `make test-hosts`")
        if name not in built_indexes:
            built_indexes[name] = make_index(codes)
        return built_indexes[name]

    return build


@pytest.fixture(scope="module")
def qrels(codes):
    """Five of the 40 nearest documents of each query are relevant."""
    rng = np.random.default_rng(1)
    near = np.argsort(codes.distances + rng.random(codes.distances.shape), axis=1)[:, :40]
    return {q: set(rng.choice(row, 5, replace=False).tolist()) for q, row in enumerate(near)}


def make_full_run(codes):
    rows = (-codes.distances.astype(float)).tolist()
    return {q: dict(enumerate(row)) for q, row in enumerate(rows)}


@pytest.mark.parametrize("name", EXACT)
def test_completed_search_matches_the_full_ranking(name, codes, build, qrels):
    built = build(name)
    run = vector_search.search(built.index, built.queries, 10)
    found, truth = (dh.evaluate(qrels, each, MEASURES) for each in (run, make_full_run(codes)))
    cut = dh.evaluate(
        qrels, vector_search.search(built.index, built.queries, 10, complete=False), MEASURES
    )
    for measure, views in truth.views.items():
        for view in ("expected", "best", "worst", "variance"):
            ours = getattr(found.views[measure], view)
            np.testing.assert_allclose(ours, getattr(views, view), atol=1e-12, err_msg=view)
    assert not found.warnings
    assert cut["nDCG@10"].range < truth["nDCG@10"].range
    assert any("cut inside a tie group" in warning for warning in cut.warnings)
    # Under the rule "input", ties keep the order of the index.
    assert found["nDCG@10"].oblivious == cut["nDCG@10"].oblivious


@pytest.mark.parametrize("name", INDEXES)
def test_completed_search_keeps_the_original_results(name, build):
    built = build(name)
    found = built.index.nearest(built.queries, 10)
    ids, scores = [row for row, _ in found], [row for _, row in found]
    completed = vector_search.complete_groups(built.index, built.queries, ids, scores)
    for q, (original_ids, distances) in enumerate(found):
        assert completed.ids[q][:10].tolist() == original_ids.tolist()
        assert len(set(completed.ids[q].tolist())) == len(completed.ids[q])
        assert set(completed.scores[q][10:].tolist()) <= {distances[-1]}
        size = (completed.scores[q] == distances[-1]).sum()
        assert completed.last_group_size[q] == size


@pytest.mark.parametrize("name", EXACT)
def test_best_recall_of_an_exact_index_is_1(name, codes, build):
    built = build(name)
    order = np.argsort(codes.distances, axis=1, kind="stable")[:, :100]
    brute = dh.search_results(
        order, np.take_along_axis(codes.distances, order, 1), larger_is_better=False
    )
    found = built.index.nearest(built.queries, 10)
    run = dh.search_results(
        [ids for ids, _ in found],
        [built.differing(scores) for _, scores in found],
        larger_is_better=False,
    )
    recall = dh.evaluation.neighbour_recall(run, brute)["Recall@10"]
    assert recall.best == 1 and recall.worst < recall.expected < 1
    ascending = name.startswith(("faiss IndexBinaryFlat", "hnswlib BF", "lancedb"))
    assert recall.oblivious == 1 if ascending else recall.oblivious <= 1


def test_oblivious_recall_of_exact_usearch_is_below_1():
    """64-bit codes, 5,000 documents: recall by ids is 0.75 to 0.9, by distance 1."""
    if find_spec("usearch") is None:
        pytest.skip("usearch is not installed: run `make test-hosts`")
    codes = Codes.make()
    index = INDEXES["usearch, exact"][1](codes).index.index
    matches = index.search(codes.queries, 10, exact=True)
    found = dh.search_results(matches.keys, matches.distances, larger_is_better=False)
    order = np.argsort(codes.distances, axis=1, kind="stable")[:, :200]
    brute = dh.search_results(
        order, np.take_along_axis(codes.distances, order, 1), larger_is_better=False
    )
    recall = dh.evaluation.neighbour_recall(found, brute)["Recall@10"]
    assert 0.75 < recall.oblivious < 0.9 and recall.best == 1
    by_ids = [
        len({*map(int, keys)} & {*map(int, row[:10])}) / 10
        for keys, row in zip(matches.keys, order, strict=True)
    ]
    assert recall.oblivious == pytest.approx(np.mean(by_ids))


# Raw results of each library


def test_faiss_results(codes, qrels, build):
    index = build("faiss IndexBinaryFlat").index.index
    distances, ids = index.search(codes.queries, 10)
    assert_exact_results(dh.search_results(ids, distances, larger_is_better=False), codes, qrels)


def test_faiss_padding_with_minus_one_is_dropped():
    faiss = importlib.import_module("faiss") if find_spec("faiss") else pytest.skip("no faiss")
    index = faiss.IndexBinaryFlat(64)
    index.add(np.zeros((2, 8), np.uint8))
    distances, ids = index.search(np.zeros((1, 8), np.uint8), 5)
    assert (ids == -1).sum() == 3
    run = dh.search_results(ids, distances, larger_is_better=False)
    assert np.diff(run.offsets).tolist() == [2]
    assert vector_search.search(
        index, np.zeros((1, 8), np.uint8), 5
    ).n_tied_beyond_cut.tolist() == [0]


def test_usearch_and_hnswlib_results(codes, qrels, build):
    index = build("usearch, exact").index.index
    matches = index.search(codes.queries, 10, exact=True)
    assert_exact_results(
        dh.search_results(matches.keys, matches.distances, larger_is_better=False), codes, qrels
    )
    index = build("hnswlib BFIndex").index.index
    labels, distances = index.knn_query(bits(codes.queries, np.float32), 10)
    assert_exact_results(dh.search_results(labels, distances, larger_is_better=False), codes, qrels)


def test_qdrant_and_lancedb_results(codes, qrels, build):
    qdrant = build("qdrant (local), dot")
    found = {
        q: qdrant.index.client.query_points("codes", query=query, limit=10).points
        for q, query in enumerate(qdrant.queries)
    }
    assert_exact_results(found, codes, qrels, qdrant.differing)
    table = build("lancedb, hamming").index.table
    rows = [table.search(q).distance_type("hamming").limit(10).to_list() for q in codes.queries]
    found = {q: [(row["id"], -row["_distance"]) for row in found] for q, found in enumerate(rows)}
    assert_exact_results(found, codes, qrels)


def assert_exact_results(run, codes, qrels, differing=lambda score: -score):
    """Check the distances of the ten documents; which of the tied documents are found may vary."""
    run = dh.read_run(run)
    nearest = np.sort(codes.distances, axis=1)[:, :10]
    np.testing.assert_array_equal(np.sort(differing(run.scores).reshape(30, 10), axis=1), nearest)
    assert 0 < dh.evaluate(qrels, run, "MRR@10")["MRR@10"].expected < 1


# The documentation page


@pytest.mark.parametrize("name", INDEXES)
def test_page_documents_the_tie_order(name, monkeypatch):
    """The recall of an approximate index varies, so it is not compared."""
    if find_spec(INDEXES[name][0]) is None:
        pytest.skip(f"{INDEXES[name][0]} is not installed: run `make test-hosts`")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    script = importlib.import_module("vector_ties")
    codes = Codes.make(shuffled=True)
    measured = [
        cell.strip() for cell in script.row(name, INDEXES[name][1](codes), codes).split("|")
    ]
    page = (ROOT / "docs" / "recipes" / "vector-search.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
    documented = [cell.strip() for cell in line.split("|")]
    assert documented[2:4] == measured[2:4]
    if name in EXACT:
        assert documented[5:7] == measured[5:7]  # expected recall, and by distance


def test_cut_at_10_understates_the_ties_of_binary_embeddings(recorded):
    """The numbers of the page: recorded embeddings, the signs of 256 dimensions."""
    faiss = importlib.import_module("faiss") if find_spec("faiss") else pytest.skip("no faiss")
    stored = np.load(recorded / "minilm-wikiqa.npz")
    queries, documents = (
        np.packbits(stored[name][:, :256] < 0x8000, axis=1) for name in ("queries", "documents")
    )  # stored as BF16: the sign is the highest bit
    qrels = {}
    for document in np.flatnonzero(stored["relevance"]):
        qrels.setdefault(int(stored["query"][document]), set()).add(document)
    index = faiss.IndexBinaryFlat(256)
    index.add(documents)
    cut, whole = (
        dh.evaluate(qrels, vector_search.search(index, queries, 10, complete=complete), "nDCG@10")[
            "nDCG@10"
        ]
        for complete in (False, True)
    )
    assert (round(cut.expected, 4), round(cut.range, 3)) == (0.7108, 0.007)
    assert (round(whole.expected, 4), round(whole.range, 3)) == (0.7138, 0.013)


# Float vectors


def float_indexes(documents):
    """Yield exact indexes of every library over float vectors."""
    import faiss
    import hnswlib
    import lancedb
    import pyarrow as pa
    from qdrant_client import QdrantClient, models
    from usearch.index import Index

    n, width = documents.shape
    for kind in (faiss.IndexFlatL2, faiss.IndexFlatIP):
        flat = kind(width)
        flat.add(documents)
        yield vector_search.Faiss(flat)
    exact = Index(ndim=width, metric="l2sq", dtype="f32")
    exact.add(np.arange(n), documents)
    yield vector_search.USearch(exact, exact=True)
    brute = hnswlib.BFIndex(space="cosine", dim=width)
    brute.init_index(n)
    brute.add_items(documents)
    yield vector_search.Hnswlib(brute)
    client = QdrantClient(":memory:")
    for distance in ("Cosine", "Euclid", "Dot"):
        params = models.VectorParams(size=width, distance=models.Distance(distance))
        client.create_collection(distance, vectors_config=params)
        client.upload_collection(distance, documents, ids=range(n))
        yield vector_search.Qdrant(client, distance)
    vectors = pa.FixedSizeListArray.from_arrays(documents.reshape(-1), width)
    rows = pa.table({"id": np.arange(n), "vector": vectors})
    table = lancedb.connect("floats.lance").create_table("floats", rows)
    for distance in ("l2", "cosine", "dot"):
        yield vector_search.LanceDB(table, distance_type=distance, id_column="id")


def test_duplicate_documents_are_found_at_the_cutoff(tmp_path, monkeypatch):
    """With three copies of each vector, the last group has three documents."""
    import_host("vector-search")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    order = rng.permutation(900)
    documents = np.tile(rng.normal(size=(300, 48)), (3, 1)).astype(np.float32)[order]
    queries = rng.normal(size=(25, 48)).astype(np.float32)
    indexes = list(float_indexes(documents))
    assert len(indexes) == 10
    for index in indexes:
        found = index.nearest(queries, 10)
        whole = vector_search.complete_groups(index, queries, *zip(*found, strict=True))
        assert whole.last_group_size == [3] * 25
        for ids, scores in zip(whole.ids, whole.scores, strict=True):
            last = np.asarray(ids)[scores == scores[-1]].astype(int)
            assert len(ids) == 12 and len(set((order[last] % 300).tolist())) == 1


# Options, ids and index types


def test_ef_of_hnswlib_is_unchanged(build):
    built = build("hnswlib Index")
    vector_search.search(built.index.index, built.queries, 10)
    assert built.index.index.ef == 100


def test_single_query(build):
    for name in ("usearch, exact", "faiss IndexBinaryFlat", "qdrant (local), Manhattan"):
        built = build(name)
        assert vector_search.search(built.index, built.queries[:1], 10).query_ids == ["0"]


def test_library_of_an_index_is_detected(build):
    for name in ("faiss IndexFlatL2", "usearch", "hnswlib Index"):
        built = build(name)
        assert vector_search.search(built.index.index, built.queries, 3).offsets[-1] >= 90
    client = build("qdrant (local), dot").index.client
    with pytest.raises(dh.InputError, match=r"vector_search\.Qdrant\(client, collection\)"):
        vector_search.search(client, [[0.0]], 1)


def test_qdrant_collection_with_several_vectors():
    if find_spec("qdrant_client") is None:
        pytest.skip("qdrant_client is not installed: run `make test-hosts`")
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    params = models.VectorParams(size=2, distance=models.Distance.EUCLID)
    client.create_collection("two", vectors_config={"a": params, "b": params})
    points = [
        models.PointStruct(id=i, vector={"a": [float(i), 0], "b": [0.0, 1.0]}) for i in range(4)
    ]
    client.upsert("two", points)
    with pytest.raises(dh.InputError, match="vectors 'a', 'b'"):
        vector_search.Qdrant(client, "two")
    index = vector_search.Qdrant(client, "two", using="b")
    assert vector_search.search(index, [[0.0, 0.0]], 2).offsets.tolist() == [0, 4]
    index = vector_search.Qdrant(client, "two", using="a")
    assert vector_search.search(index, [[0.0, 0.0]], 2).offsets.tolist() == [0, 2]


def test_qdrant_documents_with_a_uuid():
    if find_spec("qdrant_client") is None:
        pytest.skip("qdrant_client is not installed: run `make test-hosts`")
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    params = models.VectorParams(size=1, distance=models.Distance.EUCLID)
    client.create_collection("named", vectors_config=params)
    ids = [7, *(str(UUID(int=i)) for i in range(3))]
    client.upload_collection("named", np.array([[0], [1], [1], [1]], np.float32), ids=ids)
    run = vector_search.search(vector_search.Qdrant(client, "named"), [[0.0]], 2)
    assert set(run.documents.ids(np.arange(4)).to_list()) == set(map(str, ids))


def test_lancedb_rows_without_an_id(build, codes):
    named = build("lancedb, hamming").index
    index = vector_search.LanceDB(named.table, distance_type="hamming")
    ids = [row.tolist() for row, _ in index.nearest(codes.queries[:2], 5)]
    assert ids == [row.tolist() for row, _ in named.nearest(codes.queries[:2], 5)]
