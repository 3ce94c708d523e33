"""`Evaluator` returns the same values, notes and warnings as `evaluate`."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deadheat as dh
from deadheat.measures import MEASURES

ALL = [m for m in MEASURES if m.name != "ERR"] + [dh.nDCG @ 2, dh.MAP @ 3, dh.ERR(max_grade=3)]
DOCS = ["a", "b", "c", "d", "e", "f"]
lists = st.dictionaries(
    st.sampled_from(DOCS), st.sampled_from([-0.0, 0.0, 0.5, 0.75, -math.inf]), min_size=1
)
judged = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([-1, 0, 1, 2, 3]), min_size=1)
rules = st.sampled_from(["input", "id_desc", "id_asc", "pytrec_eval"])


@settings(max_examples=60, deadline=None)
@given(grades=judged, scores=lists, rule=rules)
def test_single_query_matches_evaluate(grades, scores, rule):
    # The highest grade of the judgements is in another query.
    qrels = {"q": {**grades, "x": 1}, "other": {"a": 3}}
    with warnings.catch_warnings(record=True) as warnings_of_query:
        warnings.simplefilter("always")
        result = dh.Evaluator(qrels, ALL, tie_break=rule).query("q", scores)
    with warnings.catch_warnings(record=True) as warnings_of_run:
        warnings.simplefilter("always")
        expected = dh.evaluate(qrels, {"q": scores}, ALL, tie_break=rule, queries="intersection")
    assert result.query_ids == ["q"]
    assert result.views == expected.views
    assert result.notes == expected.notes
    assert [str(w.message) for w in warnings_of_query] == [str(w.message) for w in warnings_of_run]


@settings(max_examples=30, deadline=None)
@given(
    qrels=st.dictionaries(st.sampled_from("pqr"), judged.map(lambda d: d | {"a": 1}), min_size=1),
    run=st.dictionaries(st.sampled_from("pqr"), lists, min_size=1),
)
@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_single_queries_match_the_whole_run(qrels, run):
    both = [query for query in run if query in qrels]
    if not both:
        return
    evaluator = dh.Evaluator(qrels, ALL, queries="intersection")
    expected = evaluator(run)
    assert expected.views == dh.evaluate(qrels, run, ALL, queries="intersection").views
    for query in both:
        one = evaluator.query(query, run[query])
        i = expected.query_ids.index(query)
        for measure, views in one.views.items():
            for name, values in vars(views).items():
                if values is not None:
                    assert values[0] == getattr(expected.views[measure], name)[i], (measure, name)


def test_evaluator_copies_its_judgements():
    qrels = {"q": {"d1": 1}}
    evaluator = dh.Evaluator(qrels, "MRR")
    qrels["q"]["d2"] = 1
    values = [evaluator.query("q", {"d1": 0.1, "d2": s})["MRR"].expected for s in (0.0, 0.1, 0.2)]
    assert values == [1, 0.75, 0.5]
    assert repr(evaluator) == "<Evaluator qrels, 1 queries: MRR>"


def test_query_accepts_integer_ids_and_pairs():
    evaluator = dh.Evaluator({7: {1: 1}}, "MRR")
    assert evaluator.query(7, {2: 0.5, 1: 0.5})["MRR"].worst == 0.5
    assert evaluator.query("7", [("2", 0.5), ("1", 0.5)])["MRR"].worst == 0.5


def test_options_of_evaluate():
    scores = {"d1": 0.5, "d2": 0.5 + 1e-12, "d3": float("nan")}
    qrels = {"q": {"d1": 1}}
    assert dh.Evaluator(qrels, "MRR", nan="last").query("q", scores)["MRR"].range == 0
    tolerant = dh.Evaluator(qrels, "MRR", nan="last", tie_tolerance=1e-9).query("q", scores)
    assert tolerant["MRR"].range == 0.5
    float32 = dh.Evaluator(qrels, "MRR", nan="last", score_dtype="float32").query("q", scores)
    assert float32["MRR"].range == 0.5
    with pytest.raises(dh.InputError, match=r"query 'q', document 'd3'.*NaN"):
        dh.Evaluator(qrels, "MRR").query("q", scores)
    no_relevant = dh.Evaluator({"q": {"d1": 0}}, "MRR", queries="all").query("q", {"d1": 1.0})
    assert no_relevant["MRR"].best == 0


@pytest.mark.parametrize(
    ("query", "scores", "message"),
    [
        ("x", {"d1": 1.0}, "qrels: query 'x' .*judge"),
        ("none", {"d1": 1.0}, "query 'none' has no relevant document .*queries='all'"),
        ("q", {}, "no scored documents"),
        ("q", {"d1": "high"}, "score .*'d1' .*'q' .*'high'"),
        ("q", 3, "query 'q' .*int"),
        (None, {"d1": 1.0}, "NoneType is not an id"),
    ],
)
def test_bad_input_raises_input_error(query, scores, message):
    evaluator = dh.Evaluator({"q": {"d1": 1}, "none": {"d1": 0}}, "MRR")
    with pytest.raises(dh.InputError, match=message):
        evaluator.query(query, scores)


def test_ids_that_do_not_match_warn():
    with pytest.warns(dh.DeadheatWarning, match="documents .*'d1'.*'8'"):
        dh.Evaluator({"q": {"d1": 1}}, "MRR").query("q", {8: 1.0})


def test_bad_options_raise_input_error_on_construction():
    with pytest.raises(dh.InputError, match="unknown measure"):
        dh.Evaluator({"q": {"d1": 1}}, "nDGC")
    with pytest.raises(dh.InputError, match="tie_break must be one of"):
        dh.Evaluator({"q": {"d1": 1}}, "MRR", tie_break="luck")


def test_values_of_a_query_do_not_depend_on_other_queries():
    """With or without ties in other queries, the values are equal bit by bit."""
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(30, 40)).round(1)
    scores[::2] = rng.permuted(np.arange(40.0)[None].repeat(15, 0), axis=1)  # no ties
    labels = rng.integers(0, 3, scores.shape) * (rng.random(scores.shape) < 0.1)
    labels[:, 0] = 1
    measures = [m for m in ALL if not m.needs_judged and m.name != "ERR"]
    expected = dh.evaluate_arrays(labels, scores, measures)
    for q in range(len(scores)):
        one = dh.evaluate_arrays(labels[q : q + 1], scores[q : q + 1], measures)
        for measure, views in one.views.items():
            if getattr(measure, "gain", None) == "scaled":
                continue
            for name, values in vars(views).items():
                assert values[0] == getattr(expected.views[measure], name)[q], (measure, name)
