"""`evaluate_corpus` in chunks and shards matches the evaluation of all scores at once."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from functools import partial
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from quiet import quiet

import deadheat as dh
from deadheat.evaluation.corpus import chunks as corpus_chunks
from deadheat.evaluation.corpus.evaluate import digest_products, make_worker
from deadheat.measures import MEASURES
from deadheat.provenance import ScoreFacts
from deadheat.scoring import Products, score

ALL = [*(m @ 3 for m in MEASURES if not m.whole_list), *MEASURES]
VIEWS = ("expected", "best", "worst", "oblivious", "variance")


def assert_same_views(result, expected):
    assert result.query_ids == expected.query_ids
    for measure, views in expected.views.items():
        for view in VIEWS:
            actual, value = getattr(result.views[measure], view), getattr(views, view)
            if value is not None:
                np.testing.assert_array_equal(actual, value, err_msg=f"{measure} {view}")


def random_integers(rng, shape):
    """Return embeddings with many equal products, which are exact in every dtype."""
    return rng.integers(-2, 3, shape).astype(np.float32)


def sign(x):
    """Return vectors of norm 4, whose cosines are exact."""
    return np.where(x > 0, 1, -1).astype(np.float32)


CASES = {
    "fp32 dot": (lambda x: x, "dot", "native"),
    "fp32 cosine": (sign, "cosine", "native"),
    "fp16 dot": (lambda x: x.astype(np.float16), "dot", "native"),
    "bf16 dot": (lambda x: x.astype(ml_dtypes.bfloat16), "dot", "native"),
    "bf16 cosine": (lambda x: sign(x).astype(ml_dtypes.bfloat16), "cosine", "native"),
    "bf16 hps": (lambda x: sign(x).astype(ml_dtypes.bfloat16), "cosine", "hps"),
    "int8": (lambda x: (x * 50).astype(np.int8), "dot", "native"),
    "uint8": (lambda x: ((x + 2) * 60).astype(np.uint8), "dot", "native"),
    "bits": (lambda x: x > 0, "hamming", "native"),
    "packed": (lambda x: np.packbits(x > 0, axis=1), "hamming", "native"),
}


def to_tensor(array):
    torch = pytest.importorskip("torch")
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(array)


def evaluate_whole(queries, documents, qrels, measures, kind, regime):
    """Compute and evaluate all scores at once."""
    model = "binary" if kind == "hamming" else "int8" if "int8" in str(queries.dtype) else None
    scores = score(
        kind,
        regime=regime,
        model_dtype=model or queries.dtype,
        queries=queries,
        documents=documents,
        backend="numpy" if isinstance(queries, np.ndarray) else "torch",
    )
    run = {
        f"q{q}": {f"d{d}": s for d, s in enumerate(row.tolist())} for q, row in enumerate(scores)
    }
    return quiet(dh.evaluate)(qrels, run, measures)


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("case", CASES)
@settings(max_examples=8)
@given(data=st.data())
def test_chunks_match_the_whole_corpus(case, as_tensor, data):
    make, kind, regime = CASES[case]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, length = data.draw(st.sampled_from([(2, 1), (3, 20), (5, 90)]))
    queries, documents = (make(random_integers(rng, (rows, 16))) for rows in (n, length))
    if as_tensor:
        queries, documents = to_tensor(queries), to_tensor(documents)
    grades = rng.integers(-1, 3, (n, length))
    grades[:, 0] = 1
    qrels = {
        f"q{q}": {f"d{d}": int(g) for d, g in enumerate(row) if g >= 0}
        for q, row in enumerate(grades)
    }
    qrels["q0"]["elsewhere"] = 1
    cuts = sorted(data.draw(st.lists(st.integers(0, length), max_size=4)))
    order = np.arange(length)
    if data.draw(st.booleans()):
        order = rng.permutation(length)
    chunks = [
        ([f"d{d}" for d in order[a:b]], documents[order[a:b]], order[a:b])
        for a, b in zip([0, *cuts], [*cuts, length], strict=True)
    ]
    names = [f"q{q}" for q in range(n)]
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
            # Several blocks per chunk; the last one is shorter.
            patch.setattr(corpus_chunks, limit, 7)
        result = quiet(dh.evaluate_corpus)(
            qrels, (names, queries), chunks, ALL, similarity=kind, regime=regime
        )
    assert_same_views(result, evaluate_whole(queries, documents, qrels, ALL, kind, regime))
    [warning] = result.warnings
    assert re.search("1 document .* corpus.*'elsewhere'", warning)


def example(queries=4, documents=300, width=24, seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(documents, width)).astype(np.float32)
    query_vectors = rng.normal(size=(queries, width)).astype(np.float32)
    qrels = {f"q{q}": {f"d{d}": 1 for d in (q, 7 * q + 5, 290)} for q in range(queries)}
    return query_vectors, vectors, qrels


def make_chunks(vectors, step=90):
    """Return chunks of document ids and vectors."""
    ids = [f"d{d}" for d in range(len(vectors))]
    return [(ids[a : a + step], vectors[a : a + step]) for a in range(0, len(vectors), step)]


def add_ids(query_vectors):
    """Return the ids and the vectors of queries."""
    return [f"q{q}" for q in range(len(query_vectors))], query_vectors


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_scores_of_judged_documents_equal_those_of_the_second_pass(as_tensor, n):
    """Random floats, where one bit matters; with a single query BLAS uses another kernel."""
    query_vectors, vectors, qrels = example(n, 2_003, 100)
    if as_tensor:
        query_vectors, vectors = to_tensor(query_vectors), to_tensor(vectors)
    result = dh.evaluate_corpus(qrels, add_ids(query_vectors), make_chunks(vectors, 1_001), ["MRR"])
    assert result.remarks == ()


def test_backend_that_is_not_deterministic_causes_a_note(monkeypatch):
    """The score of the first pass is used, and the result has a note."""
    query_vectors, vectors, qrels = example()
    exact = dh.evaluate_corpus(qrels, add_ids(query_vectors), make_chunks(vectors), ALL)
    multiply, calls = Products.multiply, []

    def noisy(self, documents):
        calls.append(1)
        return multiply(self, documents) * np.float32(1 + len(calls) * 2e-7)

    monkeypatch.setattr(Products, "multiply", noisy)
    result = dh.evaluate_corpus(qrels, add_ids(query_vectors), make_chunks(vectors), ALL)
    (remark,) = result.remarks
    assert remark.level == "note" and "judged documents" in str(remark)
    assert 0 < remark.values["changed"] <= 12
    for measure in ALL:  # the noise is too small to change the order
        assert result[measure] == exact[measure]


@pytest.mark.parametrize("size", [30, 5_000, 20_000], ids=["in parts", "whole", "many blocks"])
@pytest.mark.parametrize("shards", [1, 3])
def test_chunks_are_read_twice_and_one_at_a_time(size, shards):
    """A chunk is freed before the next one is read."""
    query_vectors, vectors, qrels = example(documents=10 * size)
    alive: set[int] = set()
    n_alive = []

    class Tracked(np.ndarray):
        def __del__(self):
            alive.discard(id(self))

    def chunks(first=0, last=10):
        for ids, part in make_chunks(vectors, size)[first:last]:
            copy = np.array(part).view(Tracked)
            alive.add(id(copy))
            n_alive.append(len(alive))
            yield ids, copy
            del copy

    bounds = np.linspace(0, 10, shards + 1).astype(int)
    parts = [partial(chunks, *pair) for pair in pairwise(bounds)]
    result = dh.evaluate_corpus(qrels, add_ids(query_vectors), parts, ["MRR"])
    assert len(n_alive) == 2 * 10
    assert max(n_alive) == 1
    assert (
        result["MRR"]
        == dh.evaluate_corpus(qrels, add_ids(query_vectors), [*chunks()], ["MRR"])["MRR"]
    )


def test_tie_statistics():
    query_vectors, vectors, qrels = example()
    bits = (query_vectors > 0, vectors > 0)
    evaluate = partial(
        dh.evaluate_corpus,
        qrels,
        add_ids(bits[0]),
        make_chunks(bits[1]),
        ["MRR"],
        similarity="hamming",
    )
    scores = score("hamming", regime="native", model_dtype="binary", queries=bits[0],
                   documents=bits[1], backend="numpy")  # fmt: skip
    sizes = [np.unique(row, return_counts=True)[1] for row in scores]
    exact = evaluate(exact_ties=True).provenance.scores
    assert exact == ScoreFacts(scores.size, sum(map(len, sizes)), max(s.max() for s in sizes))
    judged = evaluate().provenance.scores
    assert judged.judged_only and judged.largest <= exact.largest
    groups = {(q, scores[q, int(d[1:])]) for q in range(4) for d in qrels[f"q{q}"]}
    assert judged.distinct == len(groups)
    assert judged.documents == sum((scores[q] == value).sum() for q, value in groups)


def test_provenance():
    query_vectors, vectors, qrels = example()
    half = query_vectors.astype(np.float16), vectors.astype(np.float16)
    provenance = dh.evaluate_corpus(
        qrels, add_ids(half[0]), make_chunks(half[1]), ["MRR"], similarity="cosine", regime="hps"
    ).provenance
    assert provenance.run == "corpus" and provenance.settings.tie_break == "input"
    assert str(provenance.scoring) == "model dtype fp16, scoring dtype fp32, regime hps"
    assert (provenance.scoring.function, provenance.scoring.backend) == ("cosine", "numpy")


def test_float_queries_score_integer_documents():
    """Like the rescoring of int8 documents in sentence-transformers."""
    query_vectors, vectors, qrels = example()
    small = np.clip(vectors * 40, -128, 127).astype(np.int8)
    result = dh.evaluate_corpus(qrels, add_ids(query_vectors), make_chunks(small), ["MRR"])
    widened = dh.evaluate_corpus(
        qrels, add_ids(query_vectors), make_chunks(small.astype("f4")), ["MRR"]
    )
    assert result["MRR"] == widened["MRR"]


@pytest.mark.parametrize("policy", ["judged", "intersection", "all"])
def test_queries_policies_match_evaluate(policy):
    query_vectors, vectors, qrels = example()
    judged = {**qrels, "unasked": {"d1": 1}, "q0": {"d1": 0}}
    chunks = make_chunks(vectors)
    result = quiet(dh.evaluate_corpus)(
        judged, add_ids(query_vectors), chunks, ["MRR"], queries=policy
    )
    scores = query_vectors @ vectors.T
    run = {
        f"q{q}": {f"d{d}": score for d, score in enumerate(row)}
        for q, row in enumerate(scores.tolist())
    }
    dense = quiet(dh.evaluate)(judged, run, ["MRR"], queries=policy)
    assert result.query_ids == dense.query_ids
    assert result["MRR"].expected == pytest.approx(dense["MRR"].expected, abs=1e-12)
    assert result.provenance.settings.queries == policy


def chunks_with(value):
    _, vectors, _ = example()
    vectors[123, 4] = value
    return make_chunks(vectors)


class ShrinkingChunks:
    """Chunks of which the second pass has only the first few."""

    def __init__(self, kept):
        self.kept, self.passes = kept, 0

    def __iter__(self):
        self.passes += 1
        chunks = make_chunks(example()[1])
        return iter(chunks if self.passes == 1 else chunks[: self.kept])


WRONG = {
    "iterator": (iter([]), "iterator.* once"),
    "number": (7, "chunks must be .*not a int"),
    "empty": ([], "corpus is empty"),
    "no pair": ([7], r"chunk 0 of the corpus.*\(document_ids, embeddings\)"),
    "ids": ([("abc", np.zeros((3, 24), "f4"))], "document ids .*'abc'"),
    "set of ids": ([({"a", "b"}, np.zeros((2, 24), "f4"))], "document ids .*not {"),
    "ids once": ([(iter(["a"]), np.zeros((1, 24), "f4"))], "document ids .*iterator"),
    "mixed": ([*make_chunks(np.ones((9, 24), "f4")), (["x"], np.zeros((1, 24), "i1"))],
              r"float32 \(chunk 0 of the corpus\), int8 \(chunk 1 of the corpus\)"),
    "lengths": ([(["a"], np.zeros((3, 24), "f4"))], r"1 document ids .*\[3, 24\]"),
    "one row": ([(["a"], np.zeros(24, "f4"))], r"1 document ids .*\[24\]"),
    "width": ([*make_chunks(np.ones((9, 24), "f4")), (["x"], np.zeros((1, 23), "f4"))],
              r"chunk 1 .* width 23 .* width 24"),
    "dtype": ([(["a"], np.zeros((1, 24), "f2"))], "documents .*float16.* queries .*float32"),
    "double": ([(["a"], np.zeros((1, 24)))], "documents .*float64"),
    "nan": (chunks_with(np.nan), "document 'd123': .* is nan"),
    "inf": (chunks_with(np.inf), "document 'd123': .* is inf"),
    "overflow": (chunks_with(3e38), "document 'd123': .*fp32"),
    "twice": ([*make_chunks(np.ones((9, 24), "f4")), (["d3"], np.zeros((1, 24), "f4"))],
              "document 'd3' .*once"),
    "twice judged": ([*make_chunks(np.ones((9, 24), "f4")), (["d0"], np.zeros((1, 24), "f4"))],
                     "document 'd0' .*once"),
    "ends early": (ShrinkingChunks(2), "300 documents .* 180"),
    "position": ([(["a", "b"], np.zeros((2, 24), "f4"), [1, 1])], "positions .*twice"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_invalid_chunks_are_rejected(name):
    chunks, message = WRONG[name]
    query_vectors, _, qrels = example()
    with pytest.raises(dh.InputError, match=message):
        quiet(dh.evaluate_corpus)(qrels, add_ids(query_vectors), chunks, ["MRR"])


def test_judged_document_with_nan_is_named():
    query_vectors, vectors, qrels = example()
    vectors[290, 0] = np.nan
    with pytest.raises(dh.InputError, match="document 'd290'"):
        dh.evaluate_corpus(qrels, add_ids(query_vectors), make_chunks(vectors), ["MRR"])


@pytest.mark.parametrize("as_tensor", [False, True])
def test_different_embeddings_in_the_second_pass_are_rejected(as_tensor):
    """Only differences in the last bits are accepted: a backend may not repeat them."""
    query_vectors, vectors, qrels = example()
    if as_tensor:
        torch = pytest.importorskip("torch")
        query_vectors, vectors = (
            torch.from_numpy(query_vectors).bfloat16(),
            torch.from_numpy(vectors).bfloat16(),
        )
    passes = iter([make_chunks(vectors), make_chunks(-vectors)])
    with pytest.raises(dh.InputError, match=r"position \d+ .* in the first pass"):
        dh.evaluate_corpus(qrels, add_ids(query_vectors), lambda: next(passes), ["MRR"])


def test_third_pass_that_ends_early_is_rejected():
    query_vectors, vectors, qrels = example()
    chunks = [(ids, part > 0, part) for ids, part in make_chunks(vectors)]
    passes = iter([chunks, chunks, chunks[:2]])
    queries = [f"q{q}" for q in range(4)], query_vectors > 0, query_vectors
    with pytest.raises(dh.InputError, match=r"300 documents .* 180"):
        dh.evaluation.evaluate_rescoring(qrels, queries, lambda: next(passes), ["MRR"])


def test_different_chunk_order_in_the_second_pass_is_rejected():
    query_vectors, vectors, qrels = example()
    passes = iter([make_chunks(vectors), make_chunks(vectors)[::-1]])
    with pytest.raises(dh.InputError, match=r"position \d+ .* in the first pass"):
        dh.evaluate_corpus(qrels, add_ids(query_vectors), lambda: next(passes), ["MRR"])


@pytest.mark.parametrize(
    ("shift", "message"),
    [(lambda p: np.roll(p, 1), "position .* first pass"), (lambda p: p + 300, "judged documents")],
)
def test_different_positions_in_the_second_pass_are_rejected(shift, message):
    query_vectors, vectors, qrels = example()
    ids, positions = [f"d{d}" for d in range(300)], np.arange(300)
    passes = iter([[(ids, vectors, positions)], [(ids, vectors, shift(positions))]])
    with pytest.raises(dh.InputError, match=message):
        dh.evaluate_corpus(qrels, add_ids(query_vectors), lambda: next(passes), ["MRR"])


def test_different_chunk_sizes_in_the_second_pass_are_accepted():
    query_vectors, vectors, qrels = example()
    passes = iter([make_chunks(vectors), make_chunks(vectors, 300)])
    result = dh.evaluate_corpus(qrels, add_ids(query_vectors), lambda: next(passes), ["MRR"])
    assert (
        result["MRR"]
        == dh.evaluate_corpus(qrels, add_ids(query_vectors), make_chunks(vectors), ["MRR"])["MRR"]
    )


@pytest.mark.parametrize(
    ("queries", "options", "message"),
    [
        (7, {}, "query_embeddings must be a pair"),
        ((["q0"], np.zeros((2, 24), "f4")), {}, "each of the 2 queries once"),
        ((["q0"], np.zeros(24, "f4")), {}, r"\[Q×D\]"),
        ((["q0"], np.full((1, 24), np.nan, "f4")), {}, "queries.* is nan"),
        ((["q0"], np.ones((1, 24), "f4")), {"similarity": "l2"}, "unknown similarity 'l2'"),
        (
            (["q0"], np.ones((1, 24), "f4")),
            {"similarity": "hamming"},
            "queries .*int8 or uint8.* float32",
        ),
        ((["q0"], np.ones((1, 24), bool)), {}, "queries are bool.*bits need .*hamming"),
        ((["q0"], np.ones((1, 24), "i1")), {"similarity": "cosine"}, "no cosine product of int8"),
        ((["q0"], np.ones((1, 24), "f4")), {"regime": "head"}, "unknown regime 'head'"),
        ((["other"], np.ones((1, 24), "f4")), {}, "no query of the run is judged"),
    ],
)
def test_invalid_queries_are_rejected(queries, options, message):
    _, vectors, qrels = example()
    with pytest.raises(dh.InputError, match=message):
        dh.evaluate_corpus(qrels, queries, make_chunks(vectors), ["MRR"], **options)


def test_queries_without_judgements_and_without_embeddings():
    query_vectors, vectors, qrels = example()
    expected = dh.evaluate_corpus(qrels, add_ids(query_vectors), make_chunks(vectors), ["MRR"])
    names = ["q3", "unjudged", "q0"]
    rows = query_vectors[[3, 1, 0]]
    result = quiet(dh.evaluate_corpus)(qrels, (names, rows), make_chunks(vectors), ["MRR"])
    assert result.query_ids == ["q0", "q1", "q2", "q3"]
    values = expected.views[dh.MRR].expected
    assert result.views[dh.MRR].expected.tolist() == [values[0], 0, 0, values[3]]
    assert len(result.warnings) == 2


def test_mixed_tensors_and_arrays_are_rejected():
    query_vectors, vectors, qrels = example()
    with pytest.raises(dh.InputError, match=r"torch tensors.*queries.*arrays"):
        dh.evaluate_corpus(qrels, add_ids(query_vectors), make_chunks(to_tensor(vectors)), ["MRR"])


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("candidates", [1, 10, 299, 400])
def test_both_stages_of_rescoring_are_exact(candidates, as_tensor):
    """Binary embeddings select candidates, integers rank them; the cut keeps whole tie groups."""
    query_vectors, vectors, qrels = example(seed=3)
    small = [np.clip(x * 20, -128, 127).astype(np.int8) for x in (query_vectors, vectors)]
    bits = query_vectors > 0, vectors > 0
    first = score("hamming", regime="native", model_dtype="binary", queries=bits[0],
                  documents=bits[1], backend="numpy")  # fmt: skip
    second = small[0].astype(int) @ small[1].astype(int).T
    threshold = -np.sort(-first, axis=1)[:, min(candidates, 300) - 1]
    run = {
        f"q{q}": {f"d{d}": float(second[q, d]) for d in np.argsort(-first[q], kind="stable")
                  if first[q, d] >= threshold[q]}
        for q in range(4)
    }  # fmt: skip
    expected = quiet(dh.evaluate)(qrels, run, ALL)
    embeddings = [bits[0], small[0], bits[1], small[1]]
    if as_tensor:
        embeddings = [to_tensor(x) for x in embeddings]
    chunks = [
        (ids, part, embeddings[3][int(ids[0][1:]) :][: len(ids)])
        for ids, part in make_chunks(embeddings[2])
    ]
    result = quiet(dh.evaluation.evaluate_rescoring)(
        qrels, ([f"q{q}" for q in range(4)], *embeddings[:2]), chunks, ALL, candidates=candidates
    )
    assert_same_views(result.second, expected)
    assert_same_views(result.first, evaluate_whole(*bits, qrels, ALL, "hamming", "native"))
    longest = max(map(len, run.values()))
    n_cut = sum(len(documents) > candidates for documents in run.values())
    warnings = [w for w in result.warnings if "rescored" in w]
    assert bool(warnings) == bool(n_cut)
    assert bool(n_cut) == (candidates < 300)
    if warnings:
        assert f"{n_cut} quer" in warnings[0] and f"{longest} candidates" in warnings[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"query_embeddings": (["q0"], np.ones((1, 24), bool))},
            "query_ids, first_embeddings, second_embeddings",
        ),
        (
            {"query_embeddings": (["q0"], np.ones((1, 24), bool), np.ones((2, 24), "f4"))},
            "1 queries .*embeddings.* 2 ",
        ),
        ({"candidates": 0}, "candidates must be"),
        ({"similarity": "dot"}, "similarity .*pair"),
        ({"chunks": [(["a"], np.ones((1, 24), bool))]}, "chunk 0 .* second_embeddings"),
        ({"chunks": lambda: None}, "function .*iterator of chunks, not a NoneType"),
    ],
)
def test_invalid_arguments_of_rescoring_are_rejected(change, message):
    query_vectors, vectors, qrels = example()
    arguments = {
        "query_embeddings": ([f"q{q}" for q in range(4)], query_vectors > 0, query_vectors),
        "chunks": [(ids, part > 0, part) for ids, part in make_chunks(vectors)],
        "qrels": qrels,
        "measures": ["MRR"],
    }
    with pytest.raises(dh.InputError, match=message):
        dh.evaluation.evaluate_rescoring(**{**arguments, **change})


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("step", [8, 16, 64])
def test_documents_that_share_an_embedding_tie(as_tensor, step):
    """They tie at any position in the corpus."""
    query_vectors, vectors, _ = example()
    rng = np.random.default_rng(1)
    text = rng.integers(0, 60, 300)  # five documents per text
    qrels = {f"q{q}": {f"d{d}": 1 for d in rng.choice(300, 5)} for q in range(4)}
    dense = query_vectors @ vectors[:60].T
    run = {f"q{q}": {f"d{d}": float(dense[q, t]) for d, t in enumerate(text)} for q in range(4)}
    chunks = []
    for first in range(0, 60, 25):
        rows = np.arange(first, min(first + 25, 60))
        documents = rng.permutation(np.flatnonzero(np.isin(text, rows)))
        part = to_tensor(vectors[rows]) if as_tensor else vectors[rows]
        chunks.append(([f"d{d}" for d in documents], part, documents, text[documents] - first))
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
            patch.setattr(corpus_chunks, limit, step)
        queries = to_tensor(query_vectors) if as_tensor else query_vectors
        result = dh.evaluate_corpus(qrels, add_ids(queries), chunks, ALL, exact_ties=True)
    assert_same_views(result, quiet(dh.evaluate)(qrels, run, ALL))
    assert result.provenance.scores.distinct == 4 * len(np.unique(text))
    assert result.remarks == ()


def test_row_outside_of_the_embeddings_is_rejected():
    query_vectors, vectors, qrels = example()
    with pytest.raises(dh.InputError, match=r"row 5.* 2 embeddings"):
        dh.evaluate_corpus(qrels, add_ids(query_vectors), [(["a"], vectors[:2], [0], [5])], ["MRR"])


def repeated_vectors(queries, documents=9_001, distinct=300, width=40):
    """Return random embeddings, each shared by many documents, which tie if no bit differs."""
    rng = np.random.default_rng(queries)
    vectors = rng.normal(size=(distinct, width)).astype(np.float32)
    vectors = vectors[rng.integers(0, distinct, documents)]
    query_vectors = rng.normal(size=(queries, width)).astype(np.float32)
    qrels = {
        f"q{q}": {f"d{d}": 1 for d in rng.choice(documents, 6, replace=False)}
        for q in range(queries)
    }
    return query_vectors, vectors, qrels


def make_shards(vectors, positions, step=1_700):
    """Return a shard of several chunks for each array of positions."""

    def chunks(rows):
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            yield [f"d{d}" for d in part], vectors[part], part

    return [partial(chunks, rows) for rows in positions]


SHARDINGS = {
    "uneven": lambda rows: np.split(rows, [1, 999, 8_192]),
    "interleaved": lambda rows: [rows[i::3] for i in range(3)],
    "shuffled": lambda rows: np.split(np.random.default_rng(5).permutation(rows), 7 * [0] + [60]),
}


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("queries", [1, 3, 5, 40, 130])
def test_sharding_does_not_change_any_bit(queries, as_tensor):
    """The result depends neither on the chunks nor on the position of a document in a block."""
    query_vectors, vectors, qrels = repeated_vectors(queries)
    if as_tensor:
        query_vectors, vectors = to_tensor(query_vectors), to_tensor(vectors)
    rows = np.arange(len(vectors))
    measures = ["nDCG@10", "MRR", "MAP", "bpref"]
    whole = dh.evaluate_corpus(
        qrels, add_ids(query_vectors), [([f"d{d}" for d in rows], vectors)], measures
    )
    assert whole["MAP"].range > 0, "ties matter"
    assert whole.remarks == ()
    for name, split in SHARDINGS.items():
        result = dh.evaluate_corpus(
            qrels, add_ids(query_vectors), make_shards(vectors, split(rows)), measures
        )
        assert result.to_json() == whole.to_json(), name


def make_numbered_shards(vectors, *bounds):
    """Return shards with ranges of integers as document ids."""
    return [lambda a=a, b=b: [(range(a, b), vectors[: b - a])] for a, b in bounds]


def test_document_is_named_although_its_ids_were_overwritten():
    """The ids of a buffered part of a chunk are copied."""
    query_vectors, vectors, qrels = example()
    vectors[2, 5] = np.nan
    ids = np.empty(100, dtype="U9")

    def shard(number):
        ids[:] = [f"d{d}" for d in range(100 * number, 100 * number + 100)]
        yield ids, vectors[100 * number : 100 * number + 100]

    shards = [partial(shard, number) for number in range(3)]
    with pytest.raises(dh.InputError, match="document 'd2': "):
        dh.evaluate_corpus(qrels, add_ids(query_vectors), shards, ["MRR"])


def test_embeddings_without_a_document_are_ignored():
    query_vectors, vectors, qrels = example()
    ids = [f"d{d}" for d in range(299)]
    empty = ([], vectors[:0], [], [])
    chunks = [empty, (ids, vectors, list(range(299)), list(range(299)))]
    result = dh.evaluate_corpus(qrels, add_ids(query_vectors), chunks, ["MRR"])
    whole = dh.evaluate_corpus(qrels, add_ids(query_vectors), [(ids, vectors[:299])], ["MRR"])
    assert result["MRR"] == whole["MRR"]


def test_small_shards_are_multiplied_together(monkeypatch):
    """A product with few documents costs as much as one with many."""
    query_vectors, vectors, qrels = example()
    one = dh.evaluate_corpus(
        qrels, add_ids(query_vectors), make_shards(vectors, [np.arange(300)]), ["MRR"]
    )
    calls, multiply = [], Products.multiply
    monkeypatch.setattr(Products, "multiply", lambda *args: calls.append(1) or multiply(*args))
    shards = make_shards(vectors, np.arange(300).reshape(100, 3))
    result = dh.evaluate_corpus(qrels, add_ids(query_vectors), shards, ["MRR"])
    assert len(calls) == 2, "one for the judged documents, one for all"
    assert result.to_json() == one.to_json()


class ShrinkingShard:
    """A shard that has one document less in each pass."""

    def __init__(self, vectors):
        self.vectors, self.size = vectors, 61

    def __call__(self):
        self.size -= 1
        return [([f"x{d}" for d in range(self.size)], self.vectors[: self.size])]


def missing_file():
    raise FileNotFoundError(2, "No such file or directory", "part-7.safetensors")
    yield


WRONG_SHARDS = {
    "overlapping": (lambda v: [*make_shards(v, [np.arange(200)]), lambda: [(["d9", "d7"], v[:2])]],
                    r"'d7' more than once, in the shards \[0, 1\] \(2 such"),
    "the same numbers": (lambda v: make_numbered_shards(v, (0, 9), (20, 30), (5, 8)),
                         r"'5' more than once, in the shards \[0, 2\] \(3 such"),
    "numbers and names": (lambda v: [*make_numbered_shards(v, (0, 9)),
                                    lambda: [(["x", "8"], v[:2])]],
                          r"'8' more than once, in the shards \[0, 1\] \(1 such"),
    "one place": (lambda v: [*make_shards(v, [np.arange(9)]), lambda: [(["x"], v[:1], [4])]],
                  "two documents .*position 4"),
    "width": (lambda v: [lambda: [(["x"], v[:1])], lambda: [(["y"], v[:1, :9])]],
              r"chunk 0 of shard 1 of the corpus: .* width 9 "),
    "nan": (lambda v: [lambda: [(["x"], v[:1])], lambda: [(["y"], v[:1] * np.nan)]],
            "document 'y': .* is nan"),
    "inf": (lambda v: [lambda: [(["x"], v[:1])], lambda: [(["y"], v[:1] * np.inf)]],
            "document 'y': .* is -?inf"),
    "ends early": (lambda v: [lambda: [(["x"], v[:1])], ShrinkingShard(v)],
                   "shard 1 of the corpus .*60 documents .* 59"),
    "not there": (lambda v: [lambda: [(["x"], v[:1])], missing_file],
                  "shard 1 of the corpus cannot be read .*part-7.safetensors"),
    "all empty": (lambda v: [lambda: [], lambda: []], "the corpus is empty"),
    "mixed": (lambda v: [lambda: [(["x"], v[:1])], lambda: [(["y"], v[:1].astype("i1"))]],
              r"float32 \(chunk 0 of shard 0 .*\), int8 \(chunk 0 of shard 1 of the corpus\)"),
    "no id": (lambda v: [lambda: [(["x", ""], v[:2])]],
              "chunk 0 of the corpus: .*id .*empty"),
    "nothing made": (lambda v: [lambda: [(["x"], v[:1])], lambda: None],
                     "shard 1 of the corpus: .*iterator .*NoneType"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_SHARDS)
def test_invalid_shards_are_rejected(name):
    make, message = WRONG_SHARDS[name]
    query_vectors, vectors, qrels = example()
    with pytest.raises(dh.InputError, match=message):
        quiet(dh.evaluate_corpus)(qrels, add_ids(query_vectors), make(vectors), ["MRR"])


def test_positions_without_a_document_are_warned_about():
    query_vectors, vectors, qrels = example()
    shards = make_shards(vectors, [np.arange(100), np.arange(103, 300)])
    result = quiet(dh.evaluate_corpus)(qrels, add_ids(query_vectors), shards, ["MRR"])
    assert any(re.search(r"3 positions .*300.* document.* 100\b", text) for text in result.warnings)


def test_tie_statistics_of_shards_add_up():
    query_vectors, vectors, qrels = example()
    bits = add_ids(query_vectors > 0)
    options = {"similarity": "hamming", "exact_ties": True}
    whole = dh.evaluate_corpus(qrels, bits, make_chunks(vectors > 0), ["MRR"], **options)
    shards = make_shards(vectors > 0, [np.arange(0, 300, 2), np.arange(1, 300, 2)])
    result = dh.evaluate_corpus(qrels, bits, shards, ["MRR"], **options)
    assert result.to_json() == whole.to_json()


def test_document_ids_can_be_integers():
    query_vectors, vectors, _ = example()
    qrels = {"q0": {"7": 1, "200": 1}, "q1": {"299": 1}}
    shards = [lambda: [(range(100), vectors[:100])], lambda: [(range(100, 300), vectors[100:])]]
    result = quiet(dh.evaluate_corpus)(qrels, add_ids(query_vectors), shards, ["MRR"])
    with_text_ids = [([str(d) for d in range(300)], vectors)]
    assert (
        result.to_json()
        == quiet(dh.evaluate_corpus)(
            qrels, add_ids(query_vectors), with_text_ids, ["MRR"]
        ).to_json()
    )


def test_engine_requires_functions_as_shards():
    class Engine:
        pool = None

    query_vectors, vectors, qrels = example()
    with pytest.raises(dh.InputError, match=r"engine .*RayCluster.*'ray'"):
        dh.evaluate_corpus(
            qrels, add_ids(query_vectors), make_chunks(vectors), ["MRR"], engine="ray"
        )
    with pytest.raises(dh.InputError, match=r"engine.*function.*shard"):
        dh.evaluate_corpus(
            qrels, add_ids(query_vectors), make_chunks(vectors), ["MRR"], engine=Engine()
        )


def test_worker_with_different_products_is_rejected():
    """A worker of an engine checks this before it counts."""
    query_vectors, _, _ = example()
    products = Products.of(query_vectors, "dot", "native")
    digest = digest_products(products)
    make_worker(products, digest)
    with pytest.raises(dh.InputError, match=rf"{re.escape(platform.node())}.*last bits"):
        make_worker(Products.of(np.nextafter(query_vectors, 9), "dot", "native"), digest)


def test_progress_is_reported_per_block(monkeypatch):
    query_vectors, vectors, qrels = example()
    for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
        monkeypatch.setattr(corpus_chunks, limit, 64)
    steps = []
    shards = [lambda: make_chunks(vectors)[:2], lambda: make_chunks(vectors)[2:]]
    result = dh.evaluate_corpus(
        qrels, add_ids(query_vectors), shards, ["MRR"], progress=lambda *step: steps.append(step)
    )
    assert steps[:2] == [("reading ids", 1, 2), ("reading ids", 2, 2)]
    assert {step[::2] for step in steps[2:]} == {("counting", 300)}
    counted = [done for _, done, _ in steps[2:]]
    assert counted == sorted(counted) and counted[-1] == 300
    assert len(counted) == 5  # three blocks for 180 documents, two for 120
    assert (
        result.to_json()
        == dh.evaluate_corpus(qrels, add_ids(query_vectors), shards, ["MRR"]).to_json()
    )


def test_warning_shows_ids_that_do_not_match():
    query_vectors, vectors, _ = example()
    for chunks in (make_chunks(vectors), make_chunks(vectors, 1)):
        result = quiet(dh.evaluate_corpus)(
            {"q0": {"0": 1, "1": 1}}, add_ids(query_vectors), chunks, ["MRR"]
        )
        text = "documents .*'0' and '1'.*'d0' and 'd1'"
        assert any(re.search(text, warning) for warning in result.warnings)


def test_corpus_of_one_unjudged_document():
    """With two queries, the same document is in two rows of a list."""
    ones = np.ones((2, 4), np.float32)
    result = quiet(dh.evaluate_corpus)(
        {"q0": {"d": 1}}, add_ids(ones), [(["x"], ones[:1])], ["MRR"]
    )
    assert result["MRR"].expected == 0
    assert any(re.search("documents .*'d'.*'x'", warning) for warning in result.warnings)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_evaluation_in_a_forked_process_raises_an_error():
    program = """if True:
        import os, sys
        import numpy as np, polars as pl
        import deadheat as dh
        ones = np.ones((1, 2), np.float32)
        corpus = {"q": {"d": 1}}, (["q"], ones), [(["d"], ones)], ["MRR"]
        pl.Series(range(100_000)).sort()
        dh.evaluate_corpus(*corpus)
        child = os.fork()
        if not child:
            try:
                dh.evaluate_corpus(*corpus)
            except dh.DeadheatError as error:
                os._exit(7 if "forked" in str(error) else 8)
            os._exit(9)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["7"], done.stderr


def test_hashes_of_ids_are_equal_in_all_processes():
    program = "import polars as pl; print(pl.Series(['a', 'b7']).hash().to_list())"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
