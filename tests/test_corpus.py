"""Whole corpora, chunk by chunk: as exact as all scores at once."""

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


def assert_same_views(found, expected):
    assert found.query_ids == expected.query_ids
    for measure, views in expected.views.items():
        for view in VIEWS:
            ours, theirs = getattr(found.views[measure], view), getattr(views, view)
            if theirs is not None:
                np.testing.assert_array_equal(ours, theirs, err_msg=f"{measure} {view}")


def coarse(rng, shape):
    """Embeddings with many equal products, all of them exact in every format."""
    return rng.integers(-2, 3, shape).astype(np.float32)


def signs(x):
    """Vectors of length 4: cosines are exact, too."""
    return np.where(x > 0, 1, -1).astype(np.float32)


CASES = {
    "fp32 dot": (lambda x: x, "dot", "native"),
    "fp32 cosine": (signs, "cosine", "native"),
    "fp16 dot": (lambda x: x.astype(np.float16), "dot", "native"),
    "bf16 dot": (lambda x: x.astype(ml_dtypes.bfloat16), "dot", "native"),
    "bf16 cosine": (lambda x: signs(x).astype(ml_dtypes.bfloat16), "cosine", "native"),
    "bf16 hps": (lambda x: signs(x).astype(ml_dtypes.bfloat16), "cosine", "hps"),
    "int8": (lambda x: (x * 50).astype(np.int8), "dot", "native"),
    "uint8": (lambda x: ((x + 2) * 60).astype(np.uint8), "dot", "native"),
    "bits": (lambda x: x > 0, "hamming", "native"),
    "packed": (lambda x: np.packbits(x > 0, axis=1), "hamming", "native"),
}


def tensor(array):
    torch = pytest.importorskip("torch")
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(array)


def whole(queries, documents, qrels, measures, kind, regime):
    """Evaluate all scores at once, computed at once."""
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
def test_a_corpus_in_chunks_is_the_whole_corpus(case, as_tensor, data):
    make, kind, regime = CASES[case]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, length = data.draw(st.sampled_from([(2, 1), (3, 20), (5, 90)]))
    queries, documents = (make(coarse(rng, (rows, 16))) for rows in (n, length))
    if as_tensor:
        queries, documents = tensor(queries), tensor(documents)
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
        for limit in (
            "MIN_DOCUMENTS",
            "MAX_DOCUMENTS",
        ):  # several blocks a chunk, and odd ones at its end
            patch.setattr(corpus_chunks, limit, 7)
        found = quiet(dh.evaluate_corpus)(
            qrels, (names, queries), chunks, ALL, similarity=kind, regime=regime
        )
    assert_same_views(found, whole(queries, documents, qrels, ALL, kind, regime))
    [warning] = found.warnings
    assert re.search("1 document .* corpus.*'elsewhere'", warning)


def example(queries=4, documents=300, width=24, seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(documents, width)).astype(np.float32)
    asked = rng.normal(size=(queries, width)).astype(np.float32)
    qrels = {f"q{q}": {f"d{d}": 1 for d in (q, 7 * q + 5, 290)} for q in range(queries)}
    return asked, vectors, qrels


def in_chunks(vectors, step=90):
    ids = [f"d{d}" for d in range(len(vectors))]
    return [(ids[a : a + step], vectors[a : a + step]) for a in range(0, len(vectors), step)]


def named(asked):
    return [f"q{q}" for q in range(len(asked))], asked


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_judged_documents_score_to_the_bit_as_the_stream_does(as_tensor, n):
    """Random floats, where one bit decides; a single query is where BLAS takes another path."""
    asked, vectors, qrels = example(n, 2_003, 100)
    if as_tensor:
        asked, vectors = tensor(asked), tensor(vectors)
    found = dh.evaluate_corpus(qrels, named(asked), in_chunks(vectors, 1_001), ["MRR"])
    assert found.remarks == ()


def test_a_backend_that_never_repeats_itself(monkeypatch):
    """The announced score stands in for the document, and the result says so."""
    asked, vectors, qrels = example()
    exact = dh.evaluate_corpus(qrels, named(asked), in_chunks(vectors), ALL)
    multiply, times = Products.multiply, []

    def noisy(self, documents):
        times.append(1)
        return multiply(self, documents) * np.float32(1 + len(times) * 2e-7)

    monkeypatch.setattr(Products, "multiply", noisy)
    found = dh.evaluate_corpus(qrels, named(asked), in_chunks(vectors), ALL)
    (remark,) = found.remarks
    assert remark.level == "note" and "judged documents" in str(remark)
    assert 0 < remark.values["changed"] <= 12
    for measure in ALL:  # no two scores are so near that the noise changes the order
        assert found[measure] == exact[measure]


@pytest.mark.parametrize("size", [30, 5_000, 20_000], ids=["in parts", "whole", "many blocks"])
@pytest.mark.parametrize("shards", [1, 3])
def test_chunks_are_read_twice_and_one_at_a_time(size, shards):
    """And nothing of a chunk is kept but the judged rows."""
    asked, vectors, qrels = example(documents=10 * size)
    alive: set[int] = set()
    most = []

    class Tracked(np.ndarray):
        def __del__(self):
            alive.discard(id(self))

    def chunks(first=0, last=10):
        for ids, part in in_chunks(vectors, size)[first:last]:
            copy = np.array(part).view(Tracked)
            alive.add(id(copy))
            most.append(len(alive))
            yield ids, copy
            del copy

    bounds = np.linspace(0, 10, shards + 1).astype(int)
    parts = [partial(chunks, *pair) for pair in pairwise(bounds)]
    found = dh.evaluate_corpus(qrels, named(asked), parts, ["MRR"])
    assert len(most) == 2 * 10
    assert max(most) == 1
    assert found["MRR"] == dh.evaluate_corpus(qrels, named(asked), [*chunks()], ["MRR"])["MRR"]


def test_tie_statistics():
    asked, vectors, qrels = example()
    bits = (asked > 0, vectors > 0)
    evaluate = partial(
        dh.evaluate_corpus, qrels, named(bits[0]), in_chunks(bits[1]), ["MRR"], similarity="hamming"
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


def test_where_it_comes_from():
    asked, vectors, qrels = example()
    half = asked.astype(np.float16), vectors.astype(np.float16)
    origin = dh.evaluate_corpus(
        qrels, named(half[0]), in_chunks(half[1]), ["MRR"], similarity="cosine", regime="hps"
    ).provenance
    assert origin.run == "corpus" and origin.settings.tie_break == "input"
    assert str(origin.scoring) == "model dtype fp16, scoring dtype fp32, regime hps"
    assert (origin.scoring.function, origin.scoring.backend) == ("cosine", "numpy")


def test_float_queries_score_integer_documents():
    """As sentence-transformers rescores int8 documents."""
    asked, vectors, qrels = example()
    small = np.clip(vectors * 40, -128, 127).astype(np.int8)
    found = dh.evaluate_corpus(qrels, named(asked), in_chunks(small), ["MRR"])
    widened = dh.evaluate_corpus(qrels, named(asked), in_chunks(small.astype("f4")), ["MRR"])
    assert found["MRR"] == widened["MRR"]


@pytest.mark.parametrize("policy", ["judged", "intersection", "all"])
def test_the_queries_that_count(policy):
    asked, vectors, qrels = example()
    judged = {**qrels, "unasked": {"d1": 1}, "q0": {"d1": 0}}
    chunks = in_chunks(vectors)
    found = quiet(dh.evaluate_corpus)(judged, named(asked), chunks, ["MRR"], queries=policy)
    scores = asked @ vectors.T
    run = {
        f"q{q}": {f"d{d}": score for d, score in enumerate(own)}
        for q, own in enumerate(scores.tolist())
    }
    dense = quiet(dh.evaluate)(judged, run, ["MRR"], queries=policy)
    assert found.query_ids == dense.query_ids
    assert found["MRR"].expected == pytest.approx(dense["MRR"].expected, abs=1e-12)
    assert found.provenance.settings.queries == policy


def broken(value):
    _, vectors, _ = example()
    vectors[123, 4] = value
    return in_chunks(vectors)


class Shrinking:
    """Chunks that end early when they are passed again."""

    def __init__(self, kept):
        self.kept, self.passes = kept, 0

    def __iter__(self):
        self.passes += 1
        chunks = in_chunks(example()[1])
        return iter(chunks if self.passes == 1 else chunks[: self.kept])


WRONG = {
    "iterator": (iter([]), "iterator.* once"),
    "number": (7, "chunks must be .*not a int"),
    "empty": ([], "corpus is empty"),
    "no pair": ([7], r"chunk 0 of the corpus.*\(document_ids, embeddings\)"),
    "ids": ([("abc", np.zeros((3, 24), "f4"))], "document ids .*'abc'"),
    "set of ids": ([({"a", "b"}, np.zeros((2, 24), "f4"))], "document ids .*not {"),
    "ids once": ([(iter(["a"]), np.zeros((1, 24), "f4"))], "document ids .*iterator"),
    "mixed": ([*in_chunks(np.ones((9, 24), "f4")), (["x"], np.zeros((1, 24), "i1"))],
              r"float32 \(chunk 0 of the corpus\), int8 \(chunk 1 of the corpus\)"),
    "lengths": ([(["a"], np.zeros((3, 24), "f4"))], r"1 document ids .*\[3, 24\]"),
    "one row": ([(["a"], np.zeros(24, "f4"))], r"1 document ids .*\[24\]"),
    "width": ([*in_chunks(np.ones((9, 24), "f4")), (["x"], np.zeros((1, 23), "f4"))],
              r"chunk 1 .* width 23 .* width 24"),
    "dtype": ([(["a"], np.zeros((1, 24), "f2"))], "documents .*float16.* queries .*float32"),
    "double": ([(["a"], np.zeros((1, 24)))], "documents .*float64"),
    "nan": (broken(np.nan), "document 'd123': .* is nan"),
    "inf": (broken(np.inf), "document 'd123': .* is inf"),
    "overflow": (broken(3e38), "document 'd123': .*fp32"),
    "twice": ([*in_chunks(np.ones((9, 24), "f4")), (["d3"], np.zeros((1, 24), "f4"))],
              "document 'd3' .*once"),
    "twice judged": ([*in_chunks(np.ones((9, 24), "f4")), (["d0"], np.zeros((1, 24), "f4"))],
                     "document 'd0' .*once"),
    "ends early": (Shrinking(2), "300 documents .* 180"),
    "position": ([(["a", "b"], np.zeros((2, 24), "f4"), [1, 1])], "positions .*twice"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_chunks_are_refused(name):
    chunks, words = WRONG[name]
    asked, _, qrels = example()
    with pytest.raises(dh.InputError, match=words):
        quiet(dh.evaluate_corpus)(qrels, named(asked), chunks, ["MRR"])


def test_a_judged_document_with_nan_is_named():
    asked, vectors, qrels = example()
    vectors[290, 0] = np.nan
    with pytest.raises(dh.InputError, match="document 'd290'"):
        dh.evaluate_corpus(qrels, named(asked), in_chunks(vectors), ["MRR"])


@pytest.mark.parametrize("as_tensor", [False, True])
def test_other_embeddings_the_second_time_are_refused(as_tensor):
    """Where they differ in more than last bits, which a backend may not repeat."""
    asked, vectors, qrels = example()
    if as_tensor:
        torch = pytest.importorskip("torch")
        asked, vectors = torch.from_numpy(asked).bfloat16(), torch.from_numpy(vectors).bfloat16()
    passes = iter([in_chunks(vectors), in_chunks(-vectors)])
    with pytest.raises(dh.InputError, match=r"position \d+ .* in the first pass"):
        dh.evaluate_corpus(qrels, named(asked), lambda: next(passes), ["MRR"])


def test_a_third_pass_that_ends_early_is_refused():
    asked, vectors, qrels = example()
    chunks = [(ids, part > 0, part) for ids, part in in_chunks(vectors)]
    passes = iter([chunks, chunks, chunks[:2]])
    queries = [f"q{q}" for q in range(4)], asked > 0, asked
    with pytest.raises(dh.InputError, match=r"300 documents .* 180"):
        dh.evaluation.evaluate_rescoring(qrels, queries, lambda: next(passes), ["MRR"])


def test_chunks_in_another_order_the_second_time_are_refused():
    asked, vectors, qrels = example()
    passes = iter([in_chunks(vectors), in_chunks(vectors)[::-1]])
    with pytest.raises(dh.InputError, match=r"position \d+ .* in the first pass"):
        dh.evaluate_corpus(qrels, named(asked), lambda: next(passes), ["MRR"])


@pytest.mark.parametrize(
    ("shift", "words"),
    [(lambda p: np.roll(p, 1), "position .* first pass"), (lambda p: p + 300, "judged documents")],
)
def test_other_positions_the_second_time_are_refused(shift, words):
    asked, vectors, qrels = example()
    ids, places = [f"d{d}" for d in range(300)], np.arange(300)
    passes = iter([[(ids, vectors, places)], [(ids, vectors, shift(places))]])
    with pytest.raises(dh.InputError, match=words):
        dh.evaluate_corpus(qrels, named(asked), lambda: next(passes), ["MRR"])


def test_other_chunks_of_the_same_documents_the_second_time():
    asked, vectors, qrels = example()
    passes = iter([in_chunks(vectors), in_chunks(vectors, 300)])
    found = dh.evaluate_corpus(qrels, named(asked), lambda: next(passes), ["MRR"])
    assert (
        found["MRR"] == dh.evaluate_corpus(qrels, named(asked), in_chunks(vectors), ["MRR"])["MRR"]
    )


@pytest.mark.parametrize(
    ("queries", "options", "words"),
    [
        (7, {}, "query_embeddings must be a pair"),
        ((["q0"], np.zeros((2, 24), "f4")), {}, "each of the 2 queries once"),
        ((["q0"], np.zeros(24, "f4")), {}, r"\[Q×D\]"),
        ((["q0"], np.full((1, 24), np.nan, "f4")), {}, "queries.* is nan"),
        ((["q0"], np.ones((1, 24), "f4")), {"similarity": "l2"}, "unknown similarity 'l2'"),
        (
            (["q0"], np.ones((1, 24), "f4")),
            {"similarity": "hamming"},
            "queries must be int8 or uint8, not float32",
        ),
        ((["q0"], np.ones((1, 24), bool)), {}, "queries are bool.*bits need .*hamming"),
        ((["q0"], np.ones((1, 24), "i1")), {"similarity": "cosine"}, "no cosine product of int8"),
        ((["q0"], np.ones((1, 24), "f4")), {"regime": "head"}, "unknown regime 'head'"),
        ((["other"], np.ones((1, 24), "f4")), {}, "no query of the run is judged"),
    ],
)
def test_wrong_queries_are_refused(queries, options, words):
    _, vectors, qrels = example()
    with pytest.raises(dh.InputError, match=words):
        dh.evaluate_corpus(qrels, queries, in_chunks(vectors), ["MRR"], **options)


def test_queries_without_judgements_and_without_embeddings():
    asked, vectors, qrels = example()
    expected = dh.evaluate_corpus(qrels, named(asked), in_chunks(vectors), ["MRR"])
    names = ["q3", "unjudged", "q0"]
    rows = asked[[3, 1, 0]]
    found = quiet(dh.evaluate_corpus)(qrels, (names, rows), in_chunks(vectors), ["MRR"])
    assert found.query_ids == ["q0", "q1", "q2", "q3"]
    values = expected.views[dh.MRR].expected
    assert found.views[dh.MRR].expected.tolist() == [values[0], 0, 0, values[3]]
    assert len(found.warnings) == 2


def test_tensors_and_arrays_do_not_mix():
    asked, vectors, qrels = example()
    with pytest.raises(dh.InputError, match=r"torch tensors.*queries.*arrays"):
        dh.evaluate_corpus(qrels, named(asked), in_chunks(tensor(vectors)), ["MRR"])


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("candidates", [1, 10, 299, 400])
def test_two_stages_are_both_exact(candidates, as_tensor):
    """Binary embeddings choose, integers rank; ties at the cut are not cut."""
    asked, vectors, qrels = example(seed=3)
    small = [np.clip(x * 20, -128, 127).astype(np.int8) for x in (asked, vectors)]
    bits = asked > 0, vectors > 0
    first = score("hamming", regime="native", model_dtype="binary", queries=bits[0],
                  documents=bits[1], backend="numpy")  # fmt: skip
    second = small[0].astype(int) @ small[1].astype(int).T
    least = -np.sort(-first, axis=1)[:, min(candidates, 300) - 1]
    run = {
        f"q{q}": {f"d{d}": float(second[q, d]) for d in np.argsort(-first[q], kind="stable")
                  if first[q, d] >= least[q]}
        for q in range(4)
    }  # fmt: skip
    expected = quiet(dh.evaluate)(qrels, run, ALL)
    given = [bits[0], small[0], bits[1], small[1]]
    if as_tensor:
        given = [tensor(x) for x in given]
    chunks = [
        (ids, part, given[3][int(ids[0][1:]) :][: len(ids)]) for ids, part in in_chunks(given[2])
    ]
    found = quiet(dh.evaluation.evaluate_rescoring)(
        qrels, ([f"q{q}" for q in range(4)], *given[:2]), chunks, ALL, candidates=candidates
    )
    assert_same_views(found.second, expected)
    assert_same_views(found.first, whole(*bits, qrels, ALL, "hamming", "native"))
    longest = max(map(len, run.values()))
    cut = sum(len(documents) > candidates for documents in run.values())
    told = [w for w in found.warnings if "rescored" in w]
    assert bool(told) == bool(cut)
    assert bool(cut) == (candidates < 300)
    if told:
        assert f"{cut} quer" in told[0] and f"{longest} candidates" in told[0]


@pytest.mark.parametrize(
    ("change", "words"),
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
def test_wrong_stages_are_refused(change, words):
    asked, vectors, qrels = example()
    given = {
        "query_embeddings": ([f"q{q}" for q in range(4)], asked > 0, asked),
        "chunks": [(ids, part > 0, part) for ids, part in in_chunks(vectors)],
        "qrels": qrels,
        "measures": ["MRR"],
    }
    with pytest.raises(dh.InputError, match=words):
        dh.evaluation.evaluate_rescoring(**{**given, **change})


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("step", [8, 16, 64])
def test_documents_that_share_an_embedding_tie(as_tensor, step):
    """Wherever in the corpus they stand."""
    asked, vectors, _ = example()
    rng = np.random.default_rng(1)
    text = rng.integers(0, 60, 300)  # five documents to a text
    qrels = {f"q{q}": {f"d{d}": 1 for d in rng.choice(300, 5)} for q in range(4)}
    dense = asked @ vectors[:60].T
    run = {f"q{q}": {f"d{d}": float(dense[q, t]) for d, t in enumerate(text)} for q in range(4)}
    chunks = []
    for first in range(0, 60, 25):
        rows = np.arange(first, min(first + 25, 60))
        own = rng.permutation(np.flatnonzero(np.isin(text, rows)))
        part = tensor(vectors[rows]) if as_tensor else vectors[rows]
        chunks.append(([f"d{d}" for d in own], part, own, text[own] - first))
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
            patch.setattr(corpus_chunks, limit, step)
        given = tensor(asked) if as_tensor else asked
        found = dh.evaluate_corpus(qrels, named(given), chunks, ALL, exact_ties=True)
    assert_same_views(found, quiet(dh.evaluate)(qrels, run, ALL))
    assert found.provenance.scores.distinct == 4 * len(np.unique(text))
    assert found.remarks == ()


def test_rows_outside_of_the_embeddings_are_refused():
    asked, vectors, qrels = example()
    with pytest.raises(dh.InputError, match=r"row 5.* 2 embeddings"):
        dh.evaluate_corpus(qrels, named(asked), [(["a"], vectors[:2], [0], [5])], ["MRR"])


def repeated(queries, documents=9_001, distinct=300, width=40):
    """Random embeddings, each of many documents: one bit that differs would part a tie."""
    rng = np.random.default_rng(queries)
    vectors = rng.normal(size=(distinct, width)).astype(np.float32)
    vectors = vectors[rng.integers(0, distinct, documents)]
    asked = rng.normal(size=(queries, width)).astype(np.float32)
    qrels = {
        f"q{q}": {f"d{d}": 1 for d in rng.choice(documents, 6, replace=False)}
        for q in range(queries)
    }
    return asked, vectors, qrels


def sharded(vectors, places, step=1_700):
    """A shard for each array of places, in chunks."""

    def chunks(own):
        for first in range(0, len(own), step):
            some = own[first : first + step]
            yield [f"d{d}" for d in some], vectors[some], some

    return [partial(chunks, own) for own in places]


SHARDINGS = {
    "uneven": lambda every: np.split(every, [1, 999, 8_192]),
    "dealt out": lambda every: [every[i::3] for i in range(3)],
    "shuffled": lambda every: np.split(np.random.default_rng(5).permutation(every), 7 * [0] + [60]),
}


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("queries", [1, 3, 5, 40, 130])
def test_any_sharding_gives_the_same_bits(queries, as_tensor):
    """Whatever the chunks, and wherever in a block a document comes to stand."""
    asked, vectors, qrels = repeated(queries)
    if as_tensor:
        asked, vectors = tensor(asked), tensor(vectors)
    every = np.arange(len(vectors))
    measures = ["nDCG@10", "MRR", "MAP", "bpref"]
    whole = dh.evaluate_corpus(qrels, named(asked), [([f"d{d}" for d in every], vectors)], measures)
    assert whole["MAP"].range > 0, "ties matter"
    assert whole.remarks == ()
    for name, cut in SHARDINGS.items():
        found = dh.evaluate_corpus(qrels, named(asked), sharded(vectors, cut(every)), measures)
        assert found.to_json() == whole.to_json(), name


def numbered(vectors, *bounds):
    """Shards whose documents are named by numbers, and follow one another."""
    return [lambda a=a, b=b: [(range(a, b), vectors[: b - a])] for a, b in bounds]


def test_the_document_is_named_where_its_ids_are_overwritten():
    """As long as a part of a chunk waits for others, its ids must not change."""
    asked, vectors, qrels = example()
    vectors[2, 5] = np.nan
    ids = np.empty(100, dtype="U9")

    def shard(number):
        ids[:] = [f"d{d}" for d in range(100 * number, 100 * number + 100)]
        yield ids, vectors[100 * number : 100 * number + 100]

    shards = [partial(shard, number) for number in range(3)]
    with pytest.raises(dh.InputError, match="document 'd2': "):
        dh.evaluate_corpus(qrels, named(asked), shards, ["MRR"])


def test_rows_that_no_document_has():
    asked, vectors, qrels = example()
    every = [f"d{d}" for d in range(299)]
    empty = ([], vectors[:0], [], [])
    chunks = [empty, (every, vectors, list(range(299)), list(range(299)))]
    found = dh.evaluate_corpus(qrels, named(asked), chunks, ["MRR"])
    whole = dh.evaluate_corpus(qrels, named(asked), [(every, vectors[:299])], ["MRR"])
    assert found["MRR"] == whole["MRR"]


def test_small_shards_are_multiplied_together(monkeypatch):
    """A product costs the same however few documents it has."""
    asked, vectors, qrels = example()
    one = dh.evaluate_corpus(qrels, named(asked), sharded(vectors, [np.arange(300)]), ["MRR"])
    products, multiply = [], Products.multiply
    monkeypatch.setattr(Products, "multiply", lambda *given: products.append(1) or multiply(*given))
    shards = sharded(vectors, np.arange(300).reshape(100, 3))
    found = dh.evaluate_corpus(qrels, named(asked), shards, ["MRR"])
    assert len(products) == 2, "one for the judged documents, one for all"
    assert found.to_json() == one.to_json()


class Leaving:
    """A shard that has fewer documents each time."""

    def __init__(self, vectors):
        self.vectors, self.left = vectors, 61

    def __call__(self):
        self.left -= 1
        return [([f"x{d}" for d in range(self.left)], self.vectors[: self.left])]


def away():
    raise FileNotFoundError(2, "No such file or directory", "part-7.safetensors")
    yield


WRONG_SHARDS = {
    "overlapping": (lambda v: [*sharded(v, [np.arange(200)]), lambda: [(["d9", "d7"], v[:2])]],
                    r"'d7' more than once, in the shards \[0, 1\] \(2 such"),
    "the same numbers": (lambda v: numbered(v, (0, 9), (20, 30), (5, 8)),
                         r"'5' more than once, in the shards \[0, 2\] \(3 such"),
    "numbers and names": (lambda v: [*numbered(v, (0, 9)), lambda: [(["x", "8"], v[:2])]],
                          r"'8' more than once, in the shards \[0, 1\] \(1 such"),
    "one place": (lambda v: [*sharded(v, [np.arange(9)]), lambda: [(["x"], v[:1], [4])]],
                  "two documents .*position 4"),
    "width": (lambda v: [lambda: [(["x"], v[:1])], lambda: [(["y"], v[:1, :9])]],
              r"chunk 0 of shard 1 of the corpus: .* width 9 "),
    "nan": (lambda v: [lambda: [(["x"], v[:1])], lambda: [(["y"], v[:1] * np.nan)]],
            "document 'y': .* is nan"),
    "inf": (lambda v: [lambda: [(["x"], v[:1])], lambda: [(["y"], v[:1] * np.inf)]],
            "document 'y': .* is -?inf"),
    "ends early": (lambda v: [lambda: [(["x"], v[:1])], Leaving(v)],
                   "shard 1 of the corpus .*60 documents .* 59"),
    "not there": (lambda v: [lambda: [(["x"], v[:1])], away],
                  "shard 1 of the corpus cannot be read .*part-7.safetensors"),
    "all empty": (lambda v: [lambda: [], lambda: []], "the corpus is empty"),
    "mixed": (lambda v: [lambda: [(["x"], v[:1])], lambda: [(["y"], v[:1].astype("i1"))]],
              r"float32 \(chunk 0 of shard 0 .*\), int8 \(chunk 0 of shard 1 of the corpus\)"),
    "no id": (lambda v: [lambda: [(["x", ""], v[:2])]],
              "chunk 0 of the corpus: the id of a document is empty"),
    "nothing made": (lambda v: [lambda: [(["x"], v[:1])], lambda: None],
                     "shard 1 of the corpus: .*iterator .*NoneType"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_SHARDS)
def test_wrong_shards_are_refused(name):
    make, words = WRONG_SHARDS[name]
    asked, vectors, qrels = example()
    with pytest.raises(dh.InputError, match=words):
        quiet(dh.evaluate_corpus)(qrels, named(asked), make(vectors), ["MRR"])


def test_places_without_a_document_are_told():
    asked, vectors, qrels = example()
    shards = sharded(vectors, [np.arange(100), np.arange(103, 300)])
    found = quiet(dh.evaluate_corpus)(qrels, named(asked), shards, ["MRR"])
    assert any(
        re.search(r"3 positions .*300.* document.* 100\b", words) for words in found.warnings
    )


def test_tie_statistics_of_shards_add_up():
    asked, vectors, qrels = example()
    bits = named(asked > 0)
    options = {"similarity": "hamming", "exact_ties": True}
    whole = dh.evaluate_corpus(qrels, bits, in_chunks(vectors > 0), ["MRR"], **options)
    shards = sharded(vectors > 0, [np.arange(0, 300, 2), np.arange(1, 300, 2)])
    found = dh.evaluate_corpus(qrels, bits, shards, ["MRR"], **options)
    assert found.to_json() == whole.to_json()


def test_documents_named_by_numbers():
    asked, vectors, _ = example()
    qrels = {"q0": {"7": 1, "200": 1}, "q1": {"299": 1}}
    shards = [lambda: [(range(100), vectors[:100])], lambda: [(range(100, 300), vectors[100:])]]
    found = quiet(dh.evaluate_corpus)(qrels, named(asked), shards, ["MRR"])
    texts = [([str(d) for d in range(300)], vectors)]
    assert (
        found.to_json() == quiet(dh.evaluate_corpus)(qrels, named(asked), texts, ["MRR"]).to_json()
    )


def test_an_engine_wants_functions():
    class Elsewhere:
        pool = None

    asked, vectors, qrels = example()
    with pytest.raises(dh.InputError, match=r"engine .*RayCluster.*'ray'"):
        dh.evaluate_corpus(qrels, named(asked), in_chunks(vectors), ["MRR"], engine="ray")
    with pytest.raises(dh.InputError, match=r"engine.*function.*shard"):
        dh.evaluate_corpus(qrels, named(asked), in_chunks(vectors), ["MRR"], engine=Elsewhere())


def test_a_machine_that_multiplies_otherwise_is_refused():
    """As a worker of an engine does before it counts."""
    asked, _, _ = example()
    products = Products.of(asked, "dot", "native")
    digest = digest_products(products)
    make_worker(products, digest)
    with pytest.raises(dh.InputError, match=rf"{re.escape(platform.node())}.*last bits"):
        make_worker(Products.of(np.nextafter(asked, 9), "dot", "native"), digest)


def test_progress_is_told_block_by_block(monkeypatch):
    asked, vectors, qrels = example()
    for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
        monkeypatch.setattr(corpus_chunks, limit, 64)
    told = []
    shards = [lambda: in_chunks(vectors)[:2], lambda: in_chunks(vectors)[2:]]
    found = dh.evaluate_corpus(
        qrels, named(asked), shards, ["MRR"], progress=lambda *step: told.append(step)
    )
    assert told[:2] == [("reading ids", 1, 2), ("reading ids", 2, 2)]
    assert {step[::2] for step in told[2:]} == {("counting", 300)}
    counted = [done for _, done, _ in told[2:]]
    assert counted == sorted(counted) and counted[-1] == 300
    assert len(counted) == 5  # three blocks of 180 documents, and two of 120
    assert found.to_json() == dh.evaluate_corpus(qrels, named(asked), shards, ["MRR"]).to_json()


def test_ids_that_do_not_match_are_shown():
    asked, vectors, _ = example()
    for chunks in (in_chunks(vectors), in_chunks(vectors, 1)):
        found = quiet(dh.evaluate_corpus)({"q0": {"0": 1, "1": 1}}, named(asked), chunks, ["MRR"])
        text = "documents .*'0' and '1'.*'d0' and 'd1'"
        assert any(re.search(text, warning) for warning in found.warnings)


def test_a_corpus_of_one_document_that_is_not_judged():
    """With two queries a list of two rows names the same document twice."""
    one = np.ones((2, 4), np.float32)
    found = quiet(dh.evaluate_corpus)({"q0": {"d": 1}}, named(one), [(["x"], one[:1])], ["MRR"])
    assert found["MRR"].expected == 0
    assert any(re.search("documents .*'d'.*'x'", warning) for warning in found.warnings)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_says_what_it_cannot_do():
    program = """if True:
        import os, sys
        import numpy as np, polars as pl
        import deadheat as dh
        one = np.ones((1, 2), np.float32)
        corpus = {"q": {"d": 1}}, (["q"], one), [(["d"], one)], ["MRR"]
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


def test_ids_are_hashed_alike_in_every_process():
    program = "import polars as pl; print(pl.Series(['a', 'b7']).hash().to_list())"
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
