"""Expected values against other tools, wherever those are correct."""

from __future__ import annotations

import numpy as np
import pytest
import trm
from hypothesis import given, strategies as st
from sklearn.metrics import ndcg_score

import deadheat as dh

labelled = st.lists(
    st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 3)), min_size=2, max_size=30
)


@given(documents=labelled, cutoff=st.one_of(st.none(), st.integers(1, 40)))
def test_expected_ndcg_matches_scikit_learn(documents, cutoff):
    scores, relevance = zip(*documents, strict=True)
    theirs = ndcg_score([relevance], [scores], k=cutoff)
    result = dh.evaluate_arrays([relevance], [scores], [dh.nDCG(cutoff=cutoff)], queries="all")
    (summary,) = result.values()
    assert summary.expected == pytest.approx(theirs, abs=1e-9)


@given(
    lists=st.lists(
        st.lists(
            st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()),
            min_size=10,
            max_size=25,
        ).filter(lambda row: any(relevant for _, relevant in row)),
        min_size=1,
        max_size=4,
    )
)
def test_views_match_trm(lists):
    """The package of the paper's authors is correct for the lists that the strategy draws.

    These have binary labels, at least k documents and every relevant document.
    """
    scores = [[score for score, _ in row] for row in lists]
    relevance = [[relevant for _, relevant in row] for row in lists]
    names = ["ndcg", "mrr", "map", "recall", "precision", "f1", "hits"]
    theirs = trm.evaluate(scores, relevance, metrics=names, k_list=[1, 3, 10])
    ours = dh.evaluate_arrays(relevance, scores, [f"{name}@1,3,10" for name in names])
    for name in names:
        for k in (1, 3, 10):
            summary, other = ours[f"{name}@{k}"], theirs.metrics[name][k]
            assert summary.expected == pytest.approx(other.expected, abs=1e-9), (name, k)
            assert summary.best == pytest.approx(other.maximum, abs=1e-9), (name, k)
            assert summary.worst == pytest.approx(other.minimum, abs=1e-9), (name, k)
            assert summary.oblivious == pytest.approx(other.oblivious, abs=1e-9), (name, k)


def test_list_shorter_than_k_where_trm_is_wrong():
    """The expected value must lie between worst and best."""
    scores, relevance = [[0.5, 0.5, 0.1]], [[True, False, True]]
    theirs = trm.evaluate(scores, relevance, metrics=["precision"], k_list=[10])
    ours = dh.evaluate_arrays(relevance, scores, ["Precision@10"])["Precision@10"]
    other = theirs.metrics["precision"][10]
    assert not other.minimum <= other.expected <= other.maximum
    assert ours.worst <= ours.expected <= ours.best == 0.2


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_small_integers_do_not_overflow(dtype):
    scores = np.array([[0, 127, 100]], dtype)
    result = dh.evaluate_arrays([[0, 1, 0]], scores, ["MRR"])
    assert result["MRR"].expected == 1
