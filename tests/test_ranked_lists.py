"""Ranked lists: documents in the order of a tie rule, with their tie groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from test_rules import collections

import deadheat as dh
from deadheat.settings import EvalSettings
from deadheat.ties import rank_lists


def build_lists(run: dict, qrels: dict, top: int, **options: object):
    settings = EvalSettings(**options)
    return rank_lists(dh.read_run(run), dh.read_qrels(qrels), list(qrels), top, settings)


def test_cut_list_counts_the_omitted_documents():
    run = {"q": {"a": 3.0, "b": 1.0, "c": 2.0, "d": 1.0, "e": 1.0, "f": 0.0}}
    lists = build_lists(run, {"q": {"b": 1, "e": 2, "x": 1, "c": 0}, "absent": {"a": 1}}, 3)
    assert lists.doc_ids == ["a", "c", "b"]
    assert (lists.above.tolist(), lists.size.tolist()) == ([0, 1, 2], [1, 1, 3])
    assert lists.shown.tolist() == [3, 0]
    assert lists.retrieved.tolist() == [6, 0]
    assert lists.rest.tolist() == [2, 0]
    assert lists.rest_relevant.tolist() == [1, 0]
    assert lists.missing.tolist() == [1, 1]
    np.testing.assert_array_equal(lists.grades, [np.nan, 0, 1])


@pytest.mark.parametrize(
    ("rule", "order"),
    [("input", "bca"), ("id_asc", "abc"), ("id_desc", "cba"), ("pytrec_eval", "cba")],
)
def test_tied_documents_follow_the_tie_rule(rule, order):
    run = {"q": {"b": 1.0, "c": 1.0, "a": 1.0, "z": 0.5, "y": 2.0}}
    lists = build_lists(run, {"q": {"a": 1}}, 9, tie_break=rule)
    assert "".join(lists.doc_ids) == f"y{order}z"
    assert lists.above.tolist() == [0, 1, 1, 1, 4]


def test_rank_rule_uses_the_rank_column(tmp_path):
    path = tmp_path / "x.run"
    path.write_text("q Q0 a 2 1.0 t\nq Q0 b 1 1.0 t\n")
    run, qrels = dh.read_run(path, with_ranks=True), dh.read_qrels({"q": {"a": 1}})
    assert rank_lists(run, qrels, ["q"], 5, EvalSettings("rank")).doc_ids == ["b", "a"]


def test_tie_tolerance_and_nan_policy_apply_to_lists():
    run = {"q": {"a": 1.0, "b": 0.99, "c": float("nan"), "d": float("-inf"), "e": float("inf")}}
    lists = build_lists(run, {"q": {"a": 1}}, 9, tie_tolerance=0.1, nan="last")
    assert lists.doc_ids == ["e", "a", "b", "d", "c"]
    assert lists.above.tolist() == [0, 1, 1, 3, 4]
    assert np.isnan(lists.scores[4])  # the list keeps the NaN


# The order of a list gives the oblivious value.

NEAR_TIE = {"q": {"z": 0.1, "a": 0.1 + 1e-12}}
"""Distinct in float64, tied in float32 and with a tolerance of 1e-9."""


@pytest.mark.filterwarnings("ignore:1 query with an oblivious value outside")
@pytest.mark.parametrize(
    ("options", "order", "oblivious"),
    [
        ({"tie_break": "pytrec_eval"}, ["z", "a"], 0.5),  # tied in float32; the larger id is first
        ({"tie_break": "pytrec_eval", "tie_tolerance": 1e-9}, ["z", "a"], 0.5),
        ({"tie_break": "id_desc"}, ["a", "z"], 1),
        ({"tie_break": "id_desc", "tie_tolerance": 1e-9}, ["a", "z"], 1),  # without tolerance
        ({"tie_break": "input", "tie_tolerance": 1e-9}, ["a", "z"], 1),
    ],
)
def test_list_order_matches_the_oblivious_value(options, order, oblivious):
    lists = build_lists(NEAR_TIE, {"q": {"a": 1}}, 9, **options)
    assert lists.doc_ids == order
    tied = "tie_tolerance" in options
    assert dict(zip(order, lists.size.tolist(), strict=True)) == dict.fromkeys(order, 1 + tied)
    result = dh.evaluate({"q": {"a": 1}}, NEAR_TIE, "MRR", **options)
    assert result["MRR"].oblivious == oblivious


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize("rule", [rule for rule in dh.settings.TIE_RULES if rule != "rank"])
@settings(max_examples=40)
@given(collection=collections(), top=st.integers(1, 12))
def test_listed_ranks_match_the_oblivious_mrr(rule, collection, top):
    """If a document is the only relevant one, its listed rank is 1 / oblivious MRR."""
    qrels, run = collection
    read, by_rule = (dh.read_run(run), dh.read_qrels(qrels)), EvalSettings(rule)
    lists = rank_lists(*read, list(run), settings=by_rule)
    ends = np.cumsum(lists.shown)
    for query, start, end in zip(run, ends - lists.shown, ends, strict=True):
        listed = lists.doc_ids[start:end]
        assert sorted(listed) == sorted(run[query])
        alone = dh.evaluate(
            {doc: {doc: 1} for doc in listed},  # a query for each document, with this list
            dict.fromkeys(listed, run[query]),
            "MRR",
            tie_break=rule,
        )
        ranks = dict(zip(alone.query_ids, 1 / alone.views[dh.MRR].oblivious, strict=True))
        assert ranks == {doc: pytest.approx(place) for place, doc in enumerate(listed, 1)}
        short = rank_lists(*read, [query], top, by_rule)
        assert short.doc_ids == listed[:top]
        scores = list(run[query].values())
        for doc, above, size in zip(
            listed, lists.above[start:end], lists.size[start:end], strict=True
        ):
            assert above == sum(score > run[query][doc] for score in scores)
            assert size == scores.count(run[query][doc])
