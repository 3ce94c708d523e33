"""Completion of the tie group that the cut at k splits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from quiet import quiet

import deadheat as dh
from deadheat._internal import packages
from deadheat.integrations import vector_search

VIEWS = ("expected", "best", "worst", "variance")


class NumberIndex(vector_search.Index):
    """An index of integers; the distance is their absolute difference, so there are many ties."""

    def __init__(self, documents, *, larger_is_better=False):
        self.documents, self.larger_is_better = np.asarray(documents), larger_is_better
        self.fetched = 0

    def scores(self, queries):
        distance = np.abs(queries - self.documents[None, :, 0]).astype(np.float32)
        return -distance if self.larger_is_better else distance

    def nearest(self, queries, k):
        scores = self.scores(queries)
        order = np.argsort(-scores if self.larger_is_better else scores, kind="stable")[:, :k]
        self.fetched += order.size
        return [(row, scores[q][row]) for q, row in enumerate(order)]


@given(
    numbers=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    relevant=st.lists(st.integers(0, 11), min_size=1, max_size=4),
    k=st.integers(1, 14),
    larger_is_better=st.booleans(),
)
@settings(max_examples=120)
def test_views_at_k_match_the_whole_collection(numbers, relevant, k, larger_is_better):
    assume(min(relevant) < len(numbers))
    index = NumberIndex(np.array(numbers)[:, None], larger_is_better=larger_is_better)
    queries = np.array([[0], [2], [4]])
    scores = index.scores(queries)
    run = vector_search.search(index, queries, k)
    qrels = {q: set(relevant) for q in range(3)}
    sign = 1 if index.larger_is_better else -1
    whole = {q: {d: sign * float(x) for d, x in enumerate(row)} for q, row in enumerate(scores)}
    measures = [f"nDCG@{k}", f"MRR@{k}", f"Recall@{k}"]
    result, expected = (quiet(dh.evaluate)(qrels, each, measures) for each in (run, whole))
    for measure, views in expected.views.items():
        for view in VIEWS:
            value, whole_value = getattr(result.views[measure], view), getattr(views, view)
            np.testing.assert_allclose(value, whole_value, atol=1e-12, err_msg=f"{measure} {view}")
    assert "cut inside" not in "".join(result.warnings)
    recall = quiet(dh.evaluation.neighbour_recall)(run, dh.read_run(whole), min(k, len(numbers)))
    assert recall.views[dh.Recall @ min(k, len(numbers))].best.tolist() == [1, 1, 1]


def test_complete_groups_adds_tied_documents():
    index = NumberIndex(np.array([[0], [1], [1], [1], [3], [1]]))
    queries = np.array([[0], [3]])
    ids, distances = np.array([[0, 1], [4, -1]]), np.array([[0, 1], [0, 9]], np.float32)
    whole = vector_search.complete_groups(index, queries, ids, distances)
    assert [row.tolist() for row in whole.ids] == [[0, 1, 2, 3, 5], [4]]
    assert [row.tolist() for row in whole.scores] == [[0, 1, 1, 1, 1], [0]]
    assert whole.last_group_size == [4, 1]


def test_few_documents_beyond_the_group_are_fetched():
    """Ten of 100,000 documents, with tie groups of 30: the search stops soon after the group."""
    index = NumberIndex(np.arange(100_000)[:, None] // 30)
    vector_search.search(index, [[0]], 10)
    assert index.fetched <= 10 + 20 + 40


def test_search_without_completion():
    index = NumberIndex(np.array([[1], [1], [1]]))
    run = vector_search.search(index, [[0]], 2, complete=False, query_ids=["q"])
    assert run.n_tied_beyond_cut is None and run.offsets.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vector_search.search(NumberIndex([[1]]), [1, 2], 1), "wrap a single query"),
        (lambda: vector_search.search(NumberIndex([[1]]), [[1]], 0), "k must be a whole number"),
        (lambda: vector_search.search(object(), [[1]], 1), "object .*index of faiss"),
        (
            lambda: vector_search.complete_groups(
                NumberIndex([[1]]), [[1]], [[0], [0]], [[1], [1]]
            ),
            "1 queries.* results of 2",
        ),
    ],
)
def test_invalid_arguments_are_rejected(call, message):
    with pytest.raises(dh.InputError, match=message):
        call()


LIBRARIES = {
    "faiss": (vector_search.Faiss, (object(),)),
    "usearch": (vector_search.USearch, (object(),)),
    "hnswlib": (vector_search.Hnswlib, (object(),)),
    "qdrant": (vector_search.Qdrant, (object(), "collection")),
    "lancedb": (vector_search.LanceDB, (object(),)),
}


@pytest.mark.parametrize("extra", LIBRARIES)
def test_missing_or_unsupported_library_is_named(extra, monkeypatch):
    index, arguments = LIBRARIES[extra]

    def raise_not_found(package):
        raise packages.PackageNotFoundError(package)

    monkeypatch.setattr(packages, "install_command", "pip install it[{}]".format)
    monkeypatch.setattr(packages, "requires", lambda _: [f'{extra}-pkg>=1,<2; extra == "{extra}"'])
    monkeypatch.setattr(packages, "version", raise_not_found)
    with pytest.raises(dh.MissingPackageError, match=rf"vector_search.*it\[{extra}\]"):
        index(*arguments)
    monkeypatch.setattr(packages, "version", lambda package: "0.0.1")
    with pytest.raises(
        dh.InputError, match=rf"supports {extra}-pkg <2,>=1, but 0\.0\.1 is installed"
    ):
        index(*arguments)


def test_queries_can_be_a_tensor():
    torch = pytest.importorskip("torch")
    run = vector_search.search(
        NumberIndex([[1], [1], [2]]), torch.zeros(1, 1, dtype=torch.bfloat16), 1
    )
    assert run.offsets.tolist() == [0, 2]
