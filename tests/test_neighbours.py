"""Recall of an approximate index against every set of nearest neighbours that ties allow."""

from __future__ import annotations

import re
from itertools import combinations
from statistics import fmean, pvariance

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from quiet import quiet

import deadheat as dh


def enumerate_recall(distances, found, k):
    """Return recall for every choice of the k nearest documents and for the first k."""
    order = np.argsort(distances, kind="stable")
    last = distances[order[:k]][-1]
    nearer = set(np.flatnonzero(distances < last).tolist())
    tied = np.flatnonzero(distances == last).tolist()
    n = min(k, len(distances))
    values = [
        len((nearer | set(chosen)) & set(found)) / n
        for chosen in combinations(tied, n - len(nearer))
    ]
    return values, len(set(order[:k].tolist()) & set(found)) / n


def compute_by_formula(distances, found, k):
    """Return mean, best, worst and variance by the formulas of the documentation."""
    last = np.sort(distances)[:k][-1]
    a, g = int((distances < last).sum()), int((distances == last).sum())
    n, t = int((distances[found] < last).sum()), int((distances[found] == last).sum())
    k = min(k, len(distances))
    p = (k - a) / g
    return (
        (n + t * p) / k,
        (n + min(t, k - a)) / k,
        (n + max(0, t - (g - (k - a)))) / k,
        t * p * (1 - p) * (g - t) / max(g - 1, 1) / k**2,
    )


def threshold_recall(distances, found, k):
    """Return recall as ann-benchmarks counts it: found documents as near as the k-th neighbour."""
    return sum(distances[found] <= np.sort(distances)[:k][-1]) / min(k, len(distances))


@st.composite
def searches(draw):
    """Draw distances to the documents and the documents that an index found, best first."""
    n = draw(st.integers(1, 9))
    distances = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    k = draw(st.integers(1, 5))
    picked = draw(st.permutations(range(n)))[: draw(st.integers(0, k))]
    found = np.array(sorted(picked, key=lambda d: distances[d]), int)
    return distances, found, k


@given(st.lists(searches(), min_size=1, max_size=3), st.sampled_from(["whole", "cut", "sized"]))
@settings(max_examples=150)
def test_views_match_enumeration(cases, exact_as):
    k = cases[0][2]
    # Each query has its own collection, whose documents are numbered from 0.
    queries, rows, scores, sizes, truth = [], [], [], [], []
    for distances, found, _ in cases:
        found = found[:k]
        order = np.argsort(distances, kind="stable")
        depth = len(order) if exact_as == "whole" else min(k, len(order))
        rows.append((order[:depth], found))
        scores.append((distances[order[:depth]], distances[found]))
        sizes.append(int((distances == distances[order[:depth]][-1]).sum()))
        truth.append((distances, found))
        queries.append(len(queries))
    if not any(len(found) for _, found in truth):
        return
    known = {"last_group_size": sizes} if exact_as != "cut" else {}
    exact = dh.search_results(
        [r[0] for r in rows], [s[0] for s in scores], larger_is_better=False, **known
    )
    found = dh.search_results([r[1] for r in rows], [s[1] for s in scores], larger_is_better=False)
    result = quiet(dh.evaluation.neighbour_recall)(found, exact, k)
    views = result.views[dh.Recall @ k]
    for q, (distances, own) in enumerate(truth):
        values, by_ids = enumerate_recall(distances, own, k)
        assert views.best[q] == pytest.approx(max(values))
        moments = fmean(values), max(values), min(values), pvariance(values)
        assert compute_by_formula(distances, own, k) == pytest.approx(moments, abs=1e-12)
        assert views.oblivious[q] == pytest.approx(by_ids)
        threshold = threshold_recall(distances, own, k)
        assert views.best[q] <= threshold + 1e-12
        if set(np.flatnonzero(distances < np.sort(distances)[:k][-1])) <= set(own.tolist()):
            assert views.best[q] == pytest.approx(threshold)
        if exact_as == "cut" and result.warnings:  # the group may be larger: upper bounds
            assert views.expected[q] >= fmean(values) - 1e-12
            assert views.worst[q] >= min(values) - 1e-12
        elif exact_as != "cut":
            assert views.expected[q] == pytest.approx(fmean(values))
            assert views.variance[q] == pytest.approx(pvariance(values), abs=1e-12)
            assert views.worst[q] == pytest.approx(min(values))
            assert not result.warnings


def test_ann_benchmarks_counts_tied_documents_in_place_of_nearer_ones():
    distances = np.array([1, 1, 2, 2, 2, 2, 3])
    exact = dh.search_results([list(range(7))], [distances], larger_is_better=False)
    found = dh.search_results([[2, 3, 4]], [distances[[2, 3, 4]]], larger_is_better=False)
    recall = dh.evaluation.neighbour_recall(found, exact)["Recall@3"]
    assert threshold_recall(distances, np.array([2, 3, 4]), 3) == 1
    assert recall.best == pytest.approx(1 / 3) and recall.worst == 0
    assert recall.expected == pytest.approx(3 / 4 / 3)


def test_exact_list_that_ends_inside_a_tie_group_warns():
    exact = dh.search_results([["a", "b"]], [[1, 2]], larger_is_better=False)
    found = dh.search_results([["a", "c"]], [[1, 2]], larger_is_better=False)
    with pytest.warns(dh.DeadheatWarning, match="1 query .*exact.*last_group_size"):
        recall = dh.evaluation.neighbour_recall(found, exact)["Recall@2"]
    assert (recall.oblivious, recall.expected, recall.best) == (0.5, 0.75, 1)
    # No warning without ties.
    assert not dh.evaluation.neighbour_recall(exact, exact).warnings


def test_searches_that_round_differently_need_a_tie_tolerance():
    exact = dh.search_results([["a", "b", "c"]], [[0.9, 0.5, 0.4]])
    found = dh.search_results([["a", "d"]], [[0.9, 0.4000001]])
    with pytest.raises(dh.InputError, match=r"'d' .*0.4000001.* 0.4,.*tie_tolerance"):
        dh.evaluation.neighbour_recall(found, exact, 3)
    recall = quiet(dh.evaluation.neighbour_recall)(found, exact, 3, tie_tolerance=1e-6)["Recall@3"]
    assert recall.best == pytest.approx(2 / 3) and recall.oblivious == pytest.approx(1 / 3)
    # The list continues below the group at the cut, so the size of the group is known.
    near = dh.search_results([["a", "b", "c", "d"]], [[0.9, 0.5, 0.4999999, 0.1]])
    found = dh.search_results([["a", "c"]], [[0.9, 0.5]])
    recall = dh.evaluation.neighbour_recall(found, near, tie_tolerance=1e-6)["Recall@2"]
    assert (recall.worst, recall.expected, recall.best) == (0.5, 0.75, 1)


def test_plain_runs_are_accepted_and_only_the_best_k_count():
    exact = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    found = {"q": [("c", 1.0), ("b", 2.0), ("a", 3.0)]}
    assert dh.evaluation.neighbour_recall(found, exact, 2)["Recall@2"].worst == 1
    assert list(dh.evaluation.neighbour_recall(found, exact)) == ["Recall@3"]


def test_fewer_documents_than_k():
    exact = {"q": {"a": 2.0, "b": 1.0}, "r": {"a": 2.0, "b": 1.0}}
    found = {"q": {"a": 2.0, "b": 1.0}, "r": {"a": 2.0}}
    result = dh.evaluation.neighbour_recall(found, exact, 5)
    assert result.views[dh.Recall @ 5].expected.tolist() == [1, 0.5]
    assert re.search("1 query .*fewer .*missed", result.notes[-1])


@pytest.mark.parametrize(
    ("found", "exact", "options", "message"),
    [
        ({"q": {"a": 1}}, {"r": {"a": 1}}, {}, "'q' .*in found .*not in exact"),
        ({"q": {"a": 1}}, {"q": {"a": 1}, "r": {"a": 1}}, {}, "'r' .*in exact .*not in found"),
        ({"q": {"a": 1, "b": 0.5}}, {"q": {"a": 1}}, {}, "fewer than k = 2"),
        ({"q": {"c": 1.5}}, {"q": {"a": 1}}, {}, "'c' .*1.5.* 1,.*exact.*tie_tolerance"),
        ({"q": {"a": float("nan")}}, {"q": {"a": 1}}, {}, "NaN"),
        ({"q": {"a": 2**60 + 1}}, {"q": {"a": 1}}, {}, "float64 cannot hold"),
        ({"q": {"a": 1}}, {"q": {"a": 1}}, {"k": 0}, "k must be a whole number"),
        ({"q": {"a": 1}}, {"q": {"a": 1}}, {"tie_tolerance": -1}, "tie_tolerance"),
    ],
)
def test_invalid_searches_are_rejected(found, exact, options, message):
    with pytest.raises(dh.InputError, match=message):
        dh.evaluation.neighbour_recall(found, exact, **options)


def test_too_small_last_group_size_is_rejected():
    exact = dh.search_results([["a", "b"]], [[2, 1]], last_group_size=[2])
    found = dh.search_results([["c", "d"]], [[1, 1]])
    with pytest.raises(dh.InputError, match=r"2 documents .*last_group_size .*1"):
        dh.evaluation.neighbour_recall(found, exact)
