"""TopCounter: it keeps the first k documents, and gives the views of whole lists."""

from __future__ import annotations

from functools import reduce
from operator import add

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from quiet import quiet

import deadheat as dh
from deadheat.measures import MEASURES
from deadheat.scoring import hamming
from deadheat.ties.top import CROWD

VIEWS = ("expected", "best", "worst", "oblivious", "variance")
TYPES = {
    "float64": lambda scores: scores / 3,
    "float32": lambda scores: (scores / 3).astype(np.float32),
    "float16": lambda scores: scores.astype(np.float16),
    "bfloat16": lambda scores: scores.astype(ml_dtypes.bfloat16),
    "int8": lambda scores: scores.astype(np.int8),
    "uint8": lambda scores: (scores + 9).astype(np.uint8),
    "int64": lambda scores: scores.astype(np.int64) * 2**40,
}


def to_tensor(scores):
    torch = pytest.importorskip("torch")
    if scores.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(scores.astype(np.float32)).bfloat16()
    return torch.from_numpy(scores)


def make_ids(scores):
    return {
        "query_ids": [f"q{q}" for q in range(scores.shape[0])],
        "document_ids": [f"d{d}" for d in range(scores.shape[1])],
    }


def make_qrels(grades, *, absent=0):
    """Return judgements without grades below 0, and with documents that are in no list."""
    qrels = {}
    for q, row in enumerate(grades):
        qrels[f"q{q}"] = {f"d{d}": int(g) for d, g in enumerate(row) if g >= 0}
        qrels[f"q{q}"].update({f"absent{i}": 1 for i in range(absent)})
    return qrels


def evaluate_whole(scores, qrels, measures):
    run = {
        f"q{q}": {f"d{d}": s for d, s in enumerate(np.asarray(row, np.float64).tolist())}
        for q, row in enumerate(scores)
    }
    return quiet(dh.evaluate)(qrels, run, measures)


def assert_same_views(found, expected):
    assert found.query_ids == expected.query_ids
    for measure, views in expected.views.items():
        for view in VIEWS:
            actual, desired = getattr(found.views[measure], view), getattr(views, view)
            if desired is not None:
                # Ties past the cutoff are not stored here, which can change the last bit.
                message = f"{measure} {view}"
                np.testing.assert_allclose(actual, desired, rtol=1e-13, atol=1e-15, err_msg=message)


@pytest.mark.parametrize("as_tensor", [False, True])
@settings(max_examples=30)
@given(data=st.data())
def test_top_counter_gives_the_views_of_whole_lists(data, as_tensor):
    """For any pieces, in any order and in several counters, with judgements given early or late."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    queries, length, levels = data.draw(st.sampled_from([(1, 1, 1), (2, 9, 3), (3, 60, 6)]))
    name = data.draw(st.sampled_from(sorted(TYPES)))
    scores = TYPES[name](rng.integers(-levels, levels, (queries, length)).astype(np.float64))
    grades = rng.integers(-1, 3, (queries, length))
    grades[:, rng.integers(0, length)] = 1
    k = data.draw(st.integers(1, length + 2))
    cutoffs = sorted({1, (k + 1) // 2, k})
    measures = [m @ cutoff for m in MEASURES if not m.whole_list for cutoff in cutoffs]
    qrels = make_qrels(grades, absent=data.draw(st.integers(0, 2)))
    early = np.nonzero(grades >= 0) if data.draw(st.booleans()) else None
    counters = [dh.ties.TopCounter(queries, k, early) for _ in range(data.draw(st.integers(1, 3)))]
    cuts = sorted(data.draw(st.lists(st.integers(0, length), max_size=5)))
    pieces = list(zip([0, *cuts], [*cuts, length], strict=True))
    for i, (start, stop) in enumerate(data.draw(st.permutations(pieces))):
        columns = data.draw(st.permutations(range(start, stop)))
        piece = scores[:, np.array(columns, int)]
        counter = counters[i % len(counters)]
        counter.update(to_tensor(piece) if as_tensor else piece, positions=columns)
    counter = reduce(add, counters)
    found = quiet(dh.evaluation.evaluate_top)(qrels, counter, measures, **make_ids(scores))
    assert_same_views(found, evaluate_whole(scores, qrels, measures))

    positions, top = counter.top()
    order = np.argsort(-scores.astype(np.float64), kind="stable", axis=1)[:, :k]
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(top, np.take_along_axis(scores.astype(np.float64), order, 1))
    if length >= k:
        at = scores.astype(np.float64) == top[:, -1:]
        np.testing.assert_array_equal(counter.cut()[1], at.sum(1))


def test_top_counter_knows_ties_that_lists_cut_at_ten_lose():
    """The counter keeps as many documents as the lists, and gives the true values."""
    rng = np.random.default_rng(0)
    documents = rng.random((3_000, 48)) < 0.5
    relevant = rng.permutation(3_000)[:80].reshape(40, 2)
    queries = documents[relevant[:, 0]] ^ (rng.random((40, 48)) < 0.3)
    scores = hamming(queries, documents)
    qrels = {f"q{q}": {f"d{d}": 1 for d in row} for q, row in enumerate(relevant)}
    counter = dh.ties.TopCounter(40, 10, (np.repeat(np.arange(40), 2), relevant.ravel()))
    for start in range(0, 3_000, 700):
        counter.update(scores[:, start : start + 700], start)
    truth = evaluate_whole(scores, qrels, ["nDCG@10"])
    found = dh.evaluation.evaluate_top(qrels, counter, ["nDCG@10"], **make_ids(scores))
    assert_same_views(found, truth)
    assert counter.kept.forgotten.sum() > 100
    assert len(counter.kept.query) <= 40 * 10 + 80

    positions, top = counter.top()
    lists = {
        f"q{q}": {f"d{d}": float(s) for d, s in zip(positions[q], top[q], strict=True)}
        for q in range(40)
    }
    cut = quiet(dh.evaluate)(qrels, lists, ["nDCG@10"])
    assert cut["nDCG@10"].range < 0.7 * truth["nDCG@10"].range
    assert abs(cut["nDCG@10"].expected - truth["nDCG@10"].expected) > 0.005


@pytest.mark.parametrize("as_tensor", [False, True])
def test_top_of_increasing_scores(as_tensor):
    """Each piece has higher scores than all earlier pieces, so all of them enter the top."""
    scores = np.arange(2 * 5_000, dtype=np.float32).reshape(5_000, 2).T
    counter = dh.ties.TopCounter(2, 3)
    assert scores.shape[1] // 5 > CROWD * 3
    for start in range(0, 5_000, 1_000):
        piece = np.ascontiguousarray(scores[:, start : start + 1_000])
        counter.update(to_tensor(piece) if as_tensor else piece, start)
    assert counter.top()[0].tolist() == [[4_999, 4_998, 4_997]] * 2


def test_queries_without_candidates_or_judgements():
    counter = dh.ties.TopCounter(2, 1)
    counter.update([[0.5, 0.25], [0.25, 0.5]])
    qrels = {"other": {"a": 1}, "q1": {"a": 1}}
    ids = {"query_ids": ["q0", "q1"], "document_ids": ["a", "b"]}
    result = quiet(dh.evaluation.evaluate_top)(qrels, counter, ["Success@1"], **ids)
    unjudged, missing = result.warnings
    assert "without judgements" in unjudged and "1 query judged but missing" in missing
    assert result.query_ids == ["other", "q1"]
    assert result["Success@1"].expected == 0


def test_judged_document_that_the_counter_does_not_know_raises():
    counter = dh.ties.TopCounter(1, 1, judged=([0], [0]))
    counter.update([[0.5, 0.5, 0.5, 0.25]])
    ids = {"query_ids": ["q"], "document_ids": list("abcd")}
    for document in "bd":  # d ranks below the cut, but the counter did not keep it
        with pytest.raises(dh.InputError, match=r"position \d of query 0 .*judged.* rank 1"):
            dh.evaluation.evaluate_top({"q": {document: 1}}, counter, ["MRR@1"], **ids)
    assert dh.evaluation.evaluate_top({"q": {"a": 1}}, counter, ["MRR@1"], **ids)["MRR@1"].best == 1


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        (lambda c: c.update(np.zeros((3, 4))), "shape"),
        (lambda c: c.update([[np.nan], [1.0]]), "NaN"),
        (lambda c: c.update([["a"], ["b"]]), "numbers"),
        (lambda c: c.update([[1.0], [1.0, 2.0]]), "numbers"),
        (lambda c: c.update([[2**60 + 1], [2**60]]), "across pieces"),
        (lambda c: c.update(np.zeros((2, 2)), positions=[0, 0]), "positions .*twice"),
        (lambda c: c.update(np.zeros((2, 2)), positions=[0]), "positions .* 2 columns"),
        (lambda c: c.update(np.zeros((2, 2)), positions=[-1, 0]), "from 0 on"),
        (lambda c: c.update(np.zeros((2, 2)), start=0.5), "whole numbers"),
        (
            lambda c: (c.update(np.zeros((2, 1))), c.update(np.zeros((2, 1), "f4"))),
            "float32 and of float64",
        ),
        (lambda c: (c.update(np.ones((2, 2))), c.update(np.ones((2, 1))), evaluate(c)), "once"),
        (lambda c: (c.update(np.zeros((2, 3))), evaluate(c, "MRR@2")), "MRR@2 .* 2 .*first 1 "),
        (lambda c: (c.update(np.zeros((2, 3))), evaluate(c, "MAP")), "MAP .* 3 .*first 1 "),
        (
            lambda c: (c.update(np.zeros((2, 2))), evaluate(c)),
            "document_ids .* 3 .* 2 documents",
        ),
        (lambda c: c + dh.ties.TopCounter(2, 2), "same queries, k"),
        (lambda c: c + dh.ties.TopCounter(2, 1, ([0], [0])), "judged"),
        (lambda c: dh.ties.TopCounter(2, 0), "k must be"),
        (lambda c: dh.ties.TopCounter(0, 1), "n_queries must be"),
        (lambda c: dh.ties.TopCounter(2, 1, ([5], [0])), "query index 5"),
        (lambda c: dh.ties.TopCounter(2, 1, ([0], [0, 1])), "judged.* 1, 2"),
    ],
)
def test_bad_pieces_raise(feed, message):
    counter = dh.ties.TopCounter(2, 1)
    with pytest.raises(dh.InputError, match=message):
        feed(counter)


def evaluate(counter, measure="MRR@1"):
    ids = {"query_ids": ["q", "r"], "document_ids": ["a", "b", "c"]}
    return quiet(dh.evaluation.evaluate_top)({"q": {"a": 1}}, counter, [measure], **ids)


def test_tensor_with_nan_raises():
    torch = pytest.importorskip("torch")
    with pytest.raises(dh.InputError, match="NaN"):
        dh.ties.TopCounter(1, 1).update(torch.tensor([[1.0, float("nan")]], dtype=torch.bfloat16))
