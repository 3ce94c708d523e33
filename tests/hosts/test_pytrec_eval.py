"""pytrec_eval: the same call, the same names, and every view of ties."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from needed import import_host

import deadheat as dh

original = import_host("pytrec-eval")

from deadheat.integrations import pytrec_eval as drop_in  # noqa: E402

OURS = {
    *("map", "ndcg", "recip_rank", "Rprec", "bpref"),
    *("map_cut.1,3", "ndcg_cut_2", "P_1,4", "recall", "relative_P_2", "success.2"),
}
documents = st.sampled_from(["d1", "d2", "d3", "d10", "é", "z"])
# Some of these are equal only after a cast to float32.
values = st.sampled_from([0.5, 0.5 + 1e-12, 1.0, -2.0, 1e-3])
queries = st.sampled_from(["q1", "q2", "q3"])
runs = st.dictionaries(queries, st.dictionaries(documents, values, max_size=6))
# If all grades of a query are below 0, pytrec_eval hangs or crashes the process.
grades = st.dictionaries(documents, st.integers(-1, 3), min_size=1).filter(
    lambda judged: max(judged.values()) >= 0
)
qrels = st.dictionaries(queries, grades, min_size=1)


def evaluate(*args, run, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dh.DeadheatWarning)
        return drop_in.RelevanceEvaluator(*args, **options).evaluate(run)


def assert_same(ours, theirs):
    assert list(ours) == list(theirs)
    for query, expected in theirs.items():
        assert list(ours[query]) == list(expected)
        assert ours[query] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(qrels, runs, st.sampled_from([None, 1, 2]), st.booleans())
def test_oblivious_view_matches_pytrec_eval(judged, run, level, judged_only):
    theirs = original.RelevanceEvaluator(judged, OURS, level or 1, judged_only).evaluate(run)
    ours = evaluate(judged, OURS, level, judged_only, view="oblivious", run=run)
    assert_same(ours, theirs)


@settings(max_examples=40, deadline=None)
@given(qrels, runs)
def test_expected_values_match_pytrec_eval_without_ties(judged, run):
    distinct_scores = (0.1, 0.4, 0.2, 0.8, 0.3, 0.5)
    run = {query: dict(zip(docs, distinct_scores, strict=False)) for query, docs in run.items()}
    theirs = original.RelevanceEvaluator(judged, OURS).evaluate(run)
    assert_same(evaluate(judged, OURS, run=run), theirs)


JUDGED = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d1": 1, "d4": 0}, "none": {"d1": 0}}
RUN = {
    "q2": {"d9": 0.5, "d1": 0.5, "d8": 0.5},
    "unjudged": {"d1": 1.0},
    "q1": {"d1": 0.7, "d2": 0.7, "d3": 0.7, "d4": 0.7},
    "none": {"d1": 0.1},
}


@pytest.mark.parametrize("view", ["expected", "best", "worst", "range", "std", "oblivious", "bias"])
def test_every_view_matches_evaluate(view):
    values = evaluate(JUDGED, {"ndcg_cut_2", "recip_rank"}, view=view, run=RUN)
    assert list(values) == ["q2", "q1", "none"]
    judged_run = {query: docs for query, docs in RUN.items() if query in JUDGED}
    result = dh.evaluate(
        JUDGED, judged_run, ["ndcg_cut_2", "recip_rank"], tie_break="pytrec_eval", queries="all"
    )
    for query in values:
        for name, measure in (("ndcg_cut_2", "nDCG@2"), ("recip_rank", "MRR")):
            row = result.per_query.row(
                by_predicate=(column("query_id") == query) & (column("measure") == measure),
                named=True,
            )
            assert values[query][name] == row[view]
    assert values["q2"]["recip_rank"] != 0  # tied, so no view is 0


def column(name):
    import polars as pl

    return pl.col(name)


def test_default_view_is_expected():
    assert evaluate({"q": {"a": 1}}, {"recip_rank"}, run={"q": dict.fromkeys("abcd", 0.0)}) == {
        "q": {"recip_rank": pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)}
    }


def test_numeric_ids_keep_their_types():
    judged = {1: {10: 1, 11: 0}, np.int64(2): {10: 1}}
    run = {np.int64(2): {"10": 0.5}, 1: {10: np.float32(0.5), 11: np.float16(0.5)}}
    values = evaluate(judged, {"P_1"}, run=run)
    assert values == {2: {"P_1": 1.0}, 1: {"P_1": 0.5}}
    assert [type(query) for query in values] == [np.int64, int]
    assert isinstance(values[1]["P_1"], float)


def test_fractional_grades():
    judged = {"q": {"a": 0.5, "b": 1.5}}
    run = {"q": {"a": 2.0, "b": 1.0}}
    discount = 1 / np.log2(3)
    ndcg = (0.5 + 1.5 * discount) / (1.5 + 0.5 * discount)
    assert evaluate(judged, {"ndcg", "recip_rank"}, run=run)["q"] == {
        "ndcg": pytest.approx(ndcg),
        "recip_rank": 1.0,
    }
    assert evaluate(judged, {"recip_rank"}, 1, run=run)["q"]["recip_rank"] == 0.5


def test_unsupported_measures_are_computed_by_pytrec_eval():
    names = {"official", "set_map", "infAP", "11pt_avg", "gm_map"}
    with pytest.warns(dh.DeadheatWarning, match=r"does not have .*: pytrec_eval computes them"):
        evaluator = drop_in.RelevanceEvaluator(JUDGED, names, view="oblivious")
    theirs = original.RelevanceEvaluator(JUDGED, names).evaluate(RUN)
    assert_same(evaluator.evaluate(RUN), theirs)


def test_measures_that_ignore_ranks_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluator = drop_in.RelevanceEvaluator(JUDGED, {"num_ret", "set_F", "utility"})
        values = evaluator.evaluate(RUN)
        ranges = drop_in.RelevanceEvaluator(JUDGED, {"num_ret"}, view="range").evaluate(RUN)
    assert values == original.RelevanceEvaluator(JUDGED, {"num_ret", "set_F", "utility"}).evaluate(
        RUN
    )
    assert ranges["q1"] == {"num_ret": 0.0}


def test_module_forwards_to_pytrec_eval():
    assert drop_in.supported_measures is original.supported_measures
    assert drop_in.supported_nicknames is original.supported_nicknames
    assert drop_in.parse_run is original.parse_run
    assert drop_in.compute_aggregated_measure("map", [0.0, 1.0]) == 0.5
    with pytest.raises(AttributeError):
        _ = drop_in.no_such_name


def test_evaluator_keeps_the_result():
    evaluator = drop_in.RelevanceEvaluator(JUDGED, {"map"}, score_dtype="float32")
    evaluator.evaluate({"q1": RUN["q1"]})
    assert evaluator.result["MAP"].range > 0
    assert evaluator.result.provenance.settings.score_dtype == "fp32"


def test_empty_runs():
    assert evaluate(JUDGED, {"map"}, run={}) == {}
    assert evaluate(JUDGED, {"map"}, run={"unjudged": {"d1": 1.0}}) == {}
    assert evaluate(JUDGED, {"map"}, run={"q1": {}}) == {"q1": {"map": 0.0}}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluate(JUDGED, {"ndgc"}, run=RUN), "must be a set of names .*ndgc"),
        (lambda: evaluate(JUDGED, "map", run=RUN), "must be a set of names"),
        (lambda: evaluate(JUDGED, {3}, run=RUN), "must be a set of names"),
        (lambda: evaluate(JUDGED, {"map"}, view="mean", run=RUN), "views must be some of"),
        (lambda: evaluate(JUDGED, {"infAP"}, view="std", run=RUN), "no view 'std'"),
        (lambda: evaluate({}, {"map"}, run=RUN), "no judgements"),
        (lambda: evaluate(JUDGED, {"map"}, run={"q1": ["d1"]}), "the run must be"),
        (lambda: evaluate(JUDGED, {"map"}, run={"q1": {"d1": "x"}}), "is not a number"),
        (lambda: evaluate(JUDGED, {"map"}, run={"q1": {"d1": float("nan")}}), "NaN"),
        (lambda: evaluate(JUDGED, {"map"}, run={1: {}, "1": {}}), "two queries have the same"),
        (
            lambda: evaluate({"q": {"a": 0.5}}, {"num_rel"}, run={"q": {"a": 1.0}}),
            "query 'q': .*num_rel.* whole grades",
        ),
        (
            lambda: evaluate({"q": {"a": -1}}, {"num_rel"}, run={"q": {"a": 1.0}}),
            "query 'q': .*num_rel.*0 or more",
        ),
        (lambda: evaluate({"q": {"a": "x"}}, {"num_rel"}, run={"q": {"a": 1.0}}), "not a number"),
        (lambda: evaluate(JUDGED, {"num_rel"}, run={"q1": {"d1": "x"}}), "not a number"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(dh.InputError, match=message):
        call()


def test_missing_or_unsupported_pytrec_eval_is_reported(monkeypatch):
    from deadheat._internal import packages

    def raise_not_found(package):
        raise packages.PackageNotFoundError(package)

    needed = 'pytrec-eval-terrier<0.6,>=0.5.6; extra == "pytrec-eval"'
    monkeypatch.setattr(packages, "requires", lambda _: [needed])
    monkeypatch.setattr(packages, "version", raise_not_found)
    with pytest.raises(dh.MissingPackageError, match=r"'pytrec-eval-terrier': .*\[pytrec-eval\]"):
        drop_in.RelevanceEvaluator(JUDGED, {"map"})
    monkeypatch.setattr(packages, "version", lambda _: "0.6.1")
    with pytest.raises(dh.InputError, match=r"supports .* <0.6,>=0.5.6, but 0.6.1 is installed"):
        _ = drop_in.supported_measures
