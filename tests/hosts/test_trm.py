"""trm: the same call, with the same values where trm is correct and corrected values elsewhere."""

from __future__ import annotations

import math
import time

import ml_dtypes
import numpy as np
import pytest
from needed import import_host

import deadheat as dh

original = import_host("trm")

from deadheat.integrations import trm  # noqa: E402

VIEWS = ("expected", "maximum", "minimum", "oblivious", "range", "bias")


def make_data(seed, queries=12, shortest=8):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shortest, 20, queries)
    scores = [(rng.integers(0, 5, n) / 4).tolist() for n in lengths]
    labels = [(rng.random(n) < 0.3).tolist() for n in lengths]
    labels[0] = [False] * len(labels[0])
    return scores, labels


@pytest.mark.parametrize("seed", range(3))
def test_values_match_trm_on_lists_of_at_least_k_documents(seed):
    scores, labels = make_data(seed)
    theirs = original.evaluate(scores, labels, original.SUPPORTED_METRICS, [1, 3, 8])
    ours = trm.evaluate(scores, labels, trm.SUPPORTED_METRICS, [1, 3, 8])
    assert list(ours.metrics) == list(theirs.metrics) and ours.k_list == theirs.k_list
    for name, by_cutoff in theirs.metrics.items():
        for k, result in by_cutoff.items():
            for view in VIEWS:
                mine = getattr(ours.metrics[name][k], view)
                assert mine == pytest.approx(getattr(result, view), abs=1e-12), (name, k, view)
                assert [getattr(r, view) for r in ours.per_query[name][k]] == pytest.approx(
                    [getattr(r, view) for r in theirs.per_query[name][k]], abs=1e-12
                )
    theirs_flat, ours_flat = theirs.to_dict(), ours.to_dict()
    assert {name: ours_flat[name] for name in theirs_flat} == pytest.approx(theirs_flat)
    assert set(ours_flat) - set(theirs_flat) == {
        name.replace("_expected", "_std") for name in theirs_flat if name.endswith("_expected")
    }


def test_defaults_match_trm():
    scores, labels = make_data(0, shortest=15)
    theirs, ours = (module.evaluate(scores, labels) for module in (original, trm))
    assert {m: list(r) for m, r in ours.metrics.items()} == {
        m: list(r) for m, r in theirs.metrics.items()
    }
    assert trm.DEFAULT_K_LIST == original.DEFAULT_K_LIST
    assert trm.SUPPORTED_METRICS == original.SUPPORTED_METRICS


def test_tie_groups_match_trm():
    for scores, labels in zip(*make_data(1), strict=True):
        assert trm.build_tie_groups(scores, labels) == original.build_tie_groups(scores, labels)
    assert trm.build_tie_groups([], []) == original.build_tie_groups([], []) == []


def test_expected_value_of_short_lists_is_within_the_range():
    for name in ("precision", "f1"):
        theirs, ours = (
            module.evaluate([[0.5, 0.5]], [[True, False]], [name], [5]).metrics[name][5]
            for module in (original, trm)
        )
        assert not theirs.minimum <= theirs.expected <= theirs.maximum
        assert ours.minimum <= ours.expected <= ours.maximum
        assert ours.expected == pytest.approx(theirs.expected)


def test_duplicate_cutoff_counts_once():
    theirs, ours = (
        module.evaluate([[0.5, 0.25]], [[1, 0]], ["recall"], [1, 1]) for module in (original, trm)
    )
    assert (theirs.metrics["recall"][1].expected, ours.metrics["recall"][1].expected) == (2, 1)
    assert ours.k_list == [1]


def test_single_metric_name_is_accepted():
    with pytest.raises(ValueError, match="Unknown metric"):
        original.evaluate([[0.5]], [[1]], "map", [1])
    assert trm.evaluate([[0.5]], [[1]], "map", [1]).metrics["map"][1].expected == 1


def test_graded_labels_are_binary():
    theirs, ours = (
        module.evaluate([[0.5]], [[3]], ["mrr"], [1]).metrics["mrr"][1]
        for module in (original, trm)
    )
    assert (theirs.expected, ours.expected) == (3, 1)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float16, ml_dtypes.bfloat16])
def test_score_order_is_kept_for_every_dtype(dtype):
    low = np.iinfo(dtype).min if np.dtype(dtype).kind in "iu" else 0
    scores = np.array([low, low + 3], dtype)
    result = trm.evaluate([scores], [[0, 1]], ["mrr"], [2]).metrics["mrr"][2]
    assert result.oblivious == result.expected == 1
    if dtype == np.uint8:
        theirs = original.evaluate([scores], [[0, 1]], ["mrr"], [2]).metrics["mrr"][2]
        assert theirs.oblivious == 0.5 != theirs.expected


def test_10_000_tied_documents_are_fast():
    start = time.perf_counter()
    result = trm.evaluate([np.zeros(10_000)], [np.arange(10_000) < 3], ["mrr"], [10_000])
    assert time.perf_counter() - start < 2  # trm takes 14 s
    assert 0 < result.metrics["mrr"][10_000].expected < 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: trm.evaluate([[math.nan, 1]], [[1, 0]]), "the score is NaN"),
        (lambda: trm.evaluate([], []), "empty"),
        (lambda: trm.evaluate([[1.0]], [[1]], ["ndgc"]), "did you mean nDCG"),
        (lambda: trm.evaluate([[1.0]], [[1]], ["mrr"], [0]), "cutoff of MRR"),
        (lambda: trm.evaluate([[1.0]], [[1], [0]]), "1 queries .* scores, 2 .* relevance"),
        (lambda: trm.evaluate([[1.0, 2.0]], [[1]]), "query 0: scores of 2 .*relevance of 1"),
        (lambda: trm.build_tie_groups([1.0], [1, 0]), "two rows of the same length"),
        (lambda: trm.build_tie_groups([math.nan], [1]), "NaN"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(dh.InputError, match=message):
        call()
