"""ir_measures: tie views parse and run there, and match its values where no scores tie."""

from __future__ import annotations

import importlib.util
import math
import shutil

import numpy as np
import pytest
from needed import import_host

import deadheat as dh

irm = import_host("ir-measures")

from deadheat.integrations import ir_measures as ours  # noqa: E402
from deadheat.measures import MEASURES  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")

TREC = [
    *("nDCG", "nDCG@3", "nDCG(judged_only=True)@2", "RR", "RR(rel=2)", "RR@2", "RR(rel=2)@3"),
    *(
        "AP",
        "AP@3",
        "AP(rel=2)@2",
        "AP(judged_only=True)",
        "R@2",
        "R(rel=2)@2",
        "P@2",
        "P(rel=2)@9",
    ),
    *(
        "Success@2",
        "Success(rel=2)@1",
        "Rprec",
        "Rprec(rel=2)",
        "Bpref",
        "Bpref(rel=2)",
        "Judged@3",
    ),
]
GDEVAL = ["nDCG(dcg='exp-log2')@3", "ERR@2", "ERR@20"]


def make_data(seed, scores):
    """Return judgements and lists of 40 queries; some are short or without relevant documents."""
    rng = np.random.default_rng(seed)
    judged, run = {}, {}
    for query in map(str, range(40)):
        documents = [f"d{i}" for i in rng.permutation(9)]
        judged[query] = {doc: int(rng.integers(0, 4)) for doc in documents[: rng.integers(1, 9)]}
        listed = [f"d{i}" for i in rng.permutation(12)[: rng.integers(1, 12)]]
        run[query] = dict(zip(listed, rng.permutation(scores).tolist(), strict=False))
    return judged, {query: run[query] for query in list(run)[3:]}


def calculate(names, judged, run):
    parsed = [irm.parse_measure(name) for name in names]
    found = {(str(m.measure), m.query_id): m.value for m in irm.iter_calc(parsed, judged, run)}
    assert len(found) == len(names) * len(judged)
    return {(name, query): found[str(irm.parse_measure(name)), query]
            for name in names for query in judged}  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1])
def test_measures_match_ir_measures_without_ties(seed):
    judged, run = make_data(seed, np.arange(12) / 8)
    theirs = calculate(TREC, judged, run)
    for prefix in ("E", "Best", "Worst"):
        views = calculate([f"{prefix}_{name}" for name in TREC], judged, run)
        for (name, query), value in theirs.items():
            assert views[f"{prefix}_{name}", query] == pytest.approx(value, abs=1e-9), name
    for prefix in ("Range", "Std", "Bias"):
        views = calculate([f"{prefix}_{name}" for name in TREC], judged, run)
        assert max(map(abs, views.values())) < 1e-7


@pytest.mark.parametrize("seed", [0, 1])
def test_bias_is_the_value_of_ir_measures_minus_the_expected_value(seed):
    judged, run = make_data(seed, np.arange(12) // 4 / 2)
    theirs = calculate(TREC, judged, run)
    expected = calculate([f"E_{name}" for name in TREC], judged, run)
    bias = calculate([f"Bias_{name}" for name in TREC], judged, run)
    for (name, query), value in theirs.items():
        found = expected[f"E_{name}", query] + bias[f"Bias_{name}", query]
        assert found == pytest.approx(value, abs=1e-9), name


@pytest.mark.skipif(not shutil.which("perl"), reason="ir_measures runs gdeval in Perl")
def test_values_match_gdeval_to_five_digits_without_ties():
    judged = {"1": {"d1": 3, "d2": 0, "d3": 1, "d4": 4}, "2": {"d1": 2, "d5": 1}}
    run = {"1": {"d2": 0.5, "d1": 0.4, "d9": 0.3, "d4": 0.2}, "2": {"d5": 2.0, "d1": 1.0}}
    theirs = calculate(GDEVAL, judged, run)
    found = calculate([f"E_{name}" for name in GDEVAL], judged, run)
    for (name, query), value in theirs.items():
        assert found[f"E_{name}", query] == pytest.approx(value, abs=6e-6)
        assert value > 0


@pytest.mark.skipif(importlib.util.find_spec("cwl") is None, reason="ir_measures needs cwl_eval")
def test_rbp_matches_cwl_eval_without_ties():
    judged, run = {"1": {"d1": 1, "d3": 2}}, {"1": {"d1": 0.5, "d2": 0.4, "d3": 0.3}}
    names = ["RBP(rel=1)", "RBP(rel=2,p=0.5)"]
    theirs = calculate(names, judged, run)
    found = calculate([f"E_{name}" for name in names], judged, run)
    for (name, query), value in theirs.items():
        assert found[f"E_{name}", query] == pytest.approx(value, abs=1e-6)


JUDGED = {"q1": {"a": 1, "b": 0}, "q2": {"a": 2, "c": 1}, "missed": {"a": 1}, "none": {"a": 0}}
RUN = {"q1": dict.fromkeys("abcd", 0.5), "q2": {"a": 1.0, "b": 1.0, "c": 0.0}, "none": {"a": 1.0}}


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("prefix", ours.VIEW_PREFIXES)
def test_every_view_of_every_measure_matches_evaluate(measure, prefix):
    name = f"{prefix}_{ours._host_names(measure)[-1]}"
    if name == "Std_ERR":
        with pytest.raises(NameError):
            irm.parse_measure(name)
        return
    parsed = irm.parse_measure(name)
    assert getattr(ours, name) is irm.measures.registry[name]
    result = dh.evaluate(
        JUDGED, RUN, [parsed.measure], tie_break=ours.tie_rule(parsed.measure), queries="all"
    )
    view = ours.VIEW_PREFIXES[prefix]
    assert irm.calc_aggregate([parsed], JUDGED, RUN)[parsed] == pytest.approx(
        getattr(result[parsed.measure], view), abs=1e-12
    )


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("E_MRR@10", "E_RR@10"),
        ("Range_MAP(rel=2)@3", "Range_AP(rel=2)@3"),
        ("Best_Recall@5", "Best_R@5"),
        ("E_NDCG(dcg='exp-log2')@5", "E_nDCG(dcg='exp-log2')@5"),
        ("Worst_R_Precision", "Worst_Rprec"),
        ("E_MAP(divisor='min')@3", "E_AP(divisor='min')@3"),
        ("Std_RBP_residual(p=0.5)", "Std_RBP_residual(p=0.5)"),
    ],
)
def test_names_parse_and_print_canonically(name, canonical):
    parsed = irm.parse_measure(name)
    assert str(parsed) == canonical
    assert irm.parse_measure(str(parsed)) == parsed


def test_views_and_ir_measures_in_one_call():
    wanted = [irm.nDCG @ 2, ours.E_nDCG @ 2, ours.Range_nDCG @ 2, ours.Std_nDCG @ 2]
    found = irm.calc_aggregate(wanted, JUDGED, RUN)
    assert list(map(str, sorted(found, key=str))) == sorted(map(str, wanted))
    result = dh.evaluate(JUDGED, RUN, "nDCG@2", queries="all")["nDCG@2"]
    assert found[ours.E_nDCG @ 2] == pytest.approx(result.expected)
    assert found[ours.Std_nDCG @ 2] == pytest.approx(result.std)
    assert result.std > 0


def test_evaluators_are_reusable_and_frames_keep_their_ids():
    import pandas as pd

    evaluator = irm.evaluator([ours.E_RR], JUDGED)
    first, second = evaluator.calc_aggregate(RUN), evaluator.calc_aggregate({"q1": {"a": 1.0}})
    assert first[ours.E_RR] > second[ours.E_RR] == 0.25
    qrels = pd.DataFrame({"query_id": [1, 1], "doc_id": [7, 8], "relevance": [1, 0]})
    run = pd.DataFrame({"query_id": [1, 1], "doc_id": [7, 8], "score": [0.5, 0.5]})
    [metric] = irm.iter_calc([ours.E_RR], qrels, run)
    assert (metric.query_id, metric.value) == (1, 0.75)


def test_an_empty_run_is_0():
    assert irm.calc_aggregate([ours.E_RR], JUDGED, {}) == {ours.E_RR: 0.0}
    assert irm.calc_aggregate([ours.E_RR], JUDGED, {"unjudged": {"a": 1.0}}) == {ours.E_RR: 0.0}
    assert math.isnan(ours.Std_RR.aggregator().result())


def test_evaluate_accepts_measures_of_ir_measures():
    result = dh.evaluate(JUDGED, RUN, [irm.nDCG @ 10, irm.AP(rel=2) @ 3])
    assert list(result) == ["nDCG@10", "MAP(rel=2)@3"]


@pytest.mark.filterwarnings("error::deadheat.DeadheatWarning")
def test_missing_queries_do_not_warn():
    judged = {"q1": {"a": 1}, "missed": {"a": 1}}
    assert irm.calc_aggregate([ours.E_P @ 1], judged, {"q1": {"a": 1.0, "b": 0.5}})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("E_nDCG(rel=2)", "nDCG has no parameter 'rel'"),
        ("E_nDCG@0", "cutoff of nDCG .* from 1"),
        ("E_nDCG(dcg='log3')", "gain of nDCG must be"),
        ("E_RBP(p=2)", "p of RBP must be"),
        ("E_RR(judged_only=2)", "judged_only of E_RR must be True or False"),
        ("E_Bpref@3", "bpref has no parameter 'cutoff'"),
    ],
)
def test_bad_parameters_are_refused(name, message):
    with pytest.raises(dh.InputError, match=message):
        irm.parse_measure(name)
