"""Names of measures: names of other tools, parameters and cutoffs, and invalid names."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

import deadheat as dh
from deadheat.measures import MEASURES

ir_measures = pytest.importorskip("ir_measures")

ALIASES = [
    # the paper
    ("nDCG@10", dh.nDCG @ 10),
    ("MRR@10", dh.MRR @ 10),
    ("MAP@3", dh.MAP @ 3),
    ("Recall@10", dh.Recall @ 10),
    ("Precision@10", dh.Precision @ 10),
    ("F1@10", dh.measures.F1 @ 10),
    ("Hits@10", dh.Hits @ 10),
    ("Success@10", dh.Success @ 10),
    ("R-Precision", dh.measures.RPrecision),
    ("RBP", dh.RBP),
    ("ERR@20", dh.ERR @ 20),
    ("Judged@10", dh.measures.Judged @ 10),
    ("DCG", dh.DCG),
    ("bpref", dh.measures.bpref),
    ("RBP-residual(p=0.5)@10", dh.measures.RBPResidual(p=0.5) @ 10),
    # trec_eval
    ("ndcg", dh.nDCG),
    ("ndcg_cut_10", dh.nDCG @ 10),
    ("ndcg_cut.10", dh.nDCG @ 10),
    ("recip_rank", dh.MRR),
    ("map", dh.MAP),
    ("map_cut_3", dh.MAP @ 3),
    ("P_10", dh.Precision @ 10),
    ("recall_1000", dh.Recall @ 1000),
    ("success_5", dh.Success @ 5),
    ("Rprec", dh.measures.RPrecision),
    ("set_P", dh.Precision),
    ("set_recall", dh.Recall),
    ("set_F", dh.measures.F1),
    ("num_rel_ret", dh.Hits),
    # ir_measures
    ("RR@10", dh.MRR @ 10),
    ("RR(rel=2)@10", dh.MRR(rel=2) @ 10),
    ("AP@3", dh.MAP @ 3),
    ("AP(rel=2)@100", dh.MAP(rel=2) @ 100),
    ("P@5", dh.Precision @ 5),
    ("R@1000", dh.Recall @ 1000),
    ("NDCG@10", dh.nDCG @ 10),
    ("nDCG(dcg='exp-log2')@10", dh.nDCG(gain="exp") @ 10),
    ("nDCG(dcg='log2')", dh.nDCG),
    ("RBP(p=0.5)", dh.RBP(p=0.5)),
    # MTEB
    ("ndcg_at_10", dh.nDCG @ 10),
    ("mrr_at_10", dh.MRR @ 10),
    ("map_at_1000", dh.MAP @ 1000),
    ("recall_at_3", dh.Recall @ 3),
    ("precision_at_1", dh.Precision @ 1),
    ("hit_rate_at_5", dh.Success @ 5),
    # ranx, trm, sentence-transformers
    ("ndcg@10", dh.nDCG @ 10),
    ("mrr@10", dh.MRR @ 10),
    ("hits@10", dh.Hits @ 10),
    ("hit_rate@10", dh.Success @ 10),
    ("r-precision", dh.measures.RPrecision),
    ("r_precision", dh.measures.RPrecision),
    ("rbp.95", dh.RBP(p=0.95, gain="linear")),
    ("rbp_p5", dh.RBP(p=0.5, gain="scaled")),
    ("j@10", dh.measures.Judged @ 10),
    ("f1", dh.measures.F1),
    ("accuracy@1", dh.Success @ 1),
    ("accuracy_at_1", dh.Success @ 1),
    ("accuracy", dh.Recall @ 1),  # MTEB's
    ("R_cap@10", dh.measures.RCap @ 10),
    ("relative_P_10", dh.measures.RCap @ 10),
    ("ndcg_burges@10", dh.nDCG(gain="exp") @ 10),
    ("dcg_burges", dh.DCG(gain="exp")),
    ("map@100-l2", dh.MAP(rel=2) @ 100),
    ("mrr-l3", dh.MRR(rel=3)),
    ("hit_rate@10-l2", dh.Success(rel=2) @ 10),
    # extra spaces
    ("  nDCG @ 10 ", dh.nDCG @ 10),
    ("MAP( rel=2 , divisor='min' ) @ 3", dh.MAP(rel=2, divisor="min") @ 3),
    ("nDCG(cutoff=7)", dh.nDCG @ 7),
]


@pytest.mark.parametrize(("name", "measure"), ALIASES, ids=[name for name, _ in ALIASES])
def test_names_of_other_tools_are_parsed(name, measure):
    assert dh.measures.parse_measure(name) == measure


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_aliases_are_parsed_in_any_case(measure):
    for alias in (measure.name, *measure.aliases):
        for text in (alias, alias.upper(), alias.lower(), alias.replace("_", "-")):
            assert dh.measures.parse_measure(text) == measure
            if not measure.whole_list:
                assert dh.measures.parse_measure(f"{text}@7") == measure @ 7


def values(measure, name, declared):
    """Draw a valid value of a parameter."""
    if declared.choices:
        return st.sampled_from(list(declared.choices))
    limits = declared.limits
    low = limits.get("above", limits.get("at_least"))
    high = limits.get("below", limits.get("at_most", 2**63 - 1 if declared.whole else 1e100))
    open_ends = {"exclude_min": "above" in limits, "exclude_max": "below" in limits}
    number = st.integers(low, high) if declared.whole else st.floats(low, high, **open_ends)
    others = (declared.default, None, True, 5, 10**6, np.int32(5), np.float64(0.1))
    allowed = [value for value in others if is_allowed(measure, name, value)]
    return st.one_of(number, st.sampled_from(allowed))


def is_allowed(measure, name, value):
    try:
        measure(**{name: value})
    except dh.InputError:
        return False
    return True


@st.composite
def any_measure(draw):
    measure = draw(st.sampled_from(MEASURES))
    declared = measure.parameters()
    return measure(**{name: draw(values(measure, name, declared[name])) for name in declared})


@given(any_measure())
def test_repr_can_be_parsed(measure):
    again = dh.measures.parse_measure(repr(measure))
    assert again == measure
    assert hash(again) == hash(measure)
    assert repr(again) == repr(measure)
    assert dh.measures.parse_measures([measure, repr(measure), again]) == [measure]


def test_cutoffs_and_parameters_can_be_combined():
    assert dh.nDCG @ 10 == dh.nDCG(cutoff=10) == dh.nDCG(gain="linear") @ 10
    assert dh.nDCG @ 10 != dh.nDCG @ 5
    assert dh.nDCG @ 10 != dh.DCG @ 10
    assert dh.nDCG @ 10 @ 5 == dh.nDCG @ 5
    assert (dh.MAP @ 3)(divisor="min") == dh.MAP(divisor="min") @ 3
    assert repr(dh.MAP(divisor="min") @ 3) == "MAP(divisor='min')@3"
    assert (
        len({dh.nDCG @ 10, dh.nDCG @ np.int64(10), dh.measures.parse_measure("ndcg_cut_10")}) == 1
    )
    assert dh.nDCG.cutoff is None  # measures are immutable
    with pytest.raises(AttributeError):
        dh.nDCG.cutoff = 3


def test_numpy_scalars_become_python_numbers():
    assert repr(dh.RBP(p=np.float64(0.5))) == "RBP(p=0.5)"
    assert repr(dh.MAP(rel=np.int64(2)) @ np.int64(3)) == "MAP(rel=2)@3"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("ndgc@10", "nDCG"),
        ("NDCGG", "nDCG"),
        ("recal@5", "Recall"),
        ("precison_at_5", "Precision"),
        ("mrrr", "MRR"),
        ("succes@1", "Success"),
        ("judge@10", "Judged"),
        ("recip_rnk", "MRR"),
    ],
)
def test_unknown_measure_suggests_the_nearest_name(name, nearest):
    with pytest.raises(dh.InputError, match=f"unknown measure '{name}': did you mean {nearest}\\?"):
        dh.measures.parse_measure(name)


def test_unknown_measure_without_a_similar_name_lists_all():
    with pytest.raises(dh.InputError) as caught:
        dh.measures.parse_measure("zzzzqqqq")
    assert "did you mean" not in str(caught.value)
    for measure in MEASURES:
        assert measure.name in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDCG@0", "whole number from 1, not 0"),
        ("nDCG@-1", "whole number from 1, not -1"),
        ("nDCG@2.5", "whole number, not '2.5'"),
        ("nDCG@ten", "whole number, not 'ten'"),
        ("nDCG@", "cannot read the measure"),
        ("@10", "cannot read the measure"),
        ("", "cannot read the measure"),
        ("10", "cannot read the measure"),
        ("nDCG@5,", "whole number, not ''"),
        ("ndcg_cut_0", "whole number from 1, not 0"),
        ("nDCG@99999999999999999999", "cutoff .*99999999999999999999"),
        ("nDCG(gain='cubic')", "gain of nDCG .*'linear' or 'exp', not 'cubic'"),
        ("nDCG(dcg=[])", "gain of nDCG must be"),
        ("nDCG(rel=2)", "nDCG .*no parameter 'rel'.* cutoff, gain"),
        ("MAP(rel=0)", "rel of MAP .*above 0, not 0"),
        ("MAP(rel='a')", "rel of MAP .*number"),
        ("MAP(rel=1e999)", "rel of MAP .*number"),
        ("MAP(divisor='k')", "divisor of MAP .*'N' or 'min'"),
        ("RBP(p=1)", "p of RBP .*above 0 and below 1, not 1"),
        ("RBP(p=0)", "p of RBP .*above 0 and below 1, not 0"),
        ("rbp.0", "p of RBP"),
        ("rbp.5,10", "unknown measure"),
        ("nDCG,MRR", "names 2 measures"),
        ("nDCG10", r"unknown measure .nDCG10.: did you mean nDCG\?.* with a cutoff: nDCG@10"),
        ("P5", r"did you mean Precision\?.*with a cutoff"),
        ("ERR(max_grade=-1)", "max_grade of ERR"),
        ("ERR(max_grade=1e308)", "max_grade of ERR"),
        ("ERR(max_grade=501)", "max_grade of ERR .*above 0 and up to 500, not 501"),
        ("RBP(0.95)@10", r"by name.*RBP has .*p \(a number above 0 and below 1\)"),
        ("nDCG(gain=exp)", r"by name.*nDCG has .*gain \('linear' or 'exp'\)"),
        ("ndcg@10-l2", "nDCG has no parameter 'rel'"),
        ("map@10-l0", "rel of MAP .*above 0"),
        ("bpref@10", "bpref .*no parameter 'cutoff'.* rel"),
        ("bpref(cutoff=3)", "bpref .*no parameter 'cutoff'.* rel"),
        ("nDCG(gain='exp')(cutoff=3)", "cannot read the parameters"),
        ("nDCG(gain='exp', gain='linear')", "gain is given twice"),
        ("nDCG(gain='exp', dcg='log2')", "gain is given twice"),
        ("nDCG(exp)", "cannot read the parameters"),
        ("nDCG('exp')", "cannot read the parameters"),
        ("nDCG(gain=exp)", "cannot read the parameters"),
        ("nDCG(gain=)", "cannot read the parameters"),
        ("nDCG(gain={[]: 1})", "cannot read the parameters"),
        ("nDCG(gain=__import__('os'))", "cannot read the parameters"),
        ("nDCG(gain=" + "-" * 100_000 + "1)", "cannot read the parameters"),
        ("nDCG(gain='\0')", "cannot read the parameters|gain of nDCG"),
        ("nDCG(**{'gain': 'exp'})", "no parameter"),
    ],
)
def test_invalid_measures_are_rejected(text, message):
    with pytest.raises(dh.InputError, match=message):
        dh.measures.parse_measure(text)


@pytest.mark.parametrize(
    ("measure", "name"), [(m, name) for m in MEASURES for name in m.parameters()], ids=str
)
def test_parameter_error_names_parameter_measure_and_rule(measure, name):
    rule = measure.parameters()[name].rule
    message = re.escape(f"{name} of {measure.name} ") + ".*" + re.escape(f"{rule}, not ['x']")
    with pytest.raises(dh.InputError, match=message):
        measure(**{name: ["x"]})
    with pytest.raises(dh.InputError, match=message):
        dh.measures.parse_measure(f"{measure.name}({name}=['x'])")


def test_positional_parameters_are_rejected_in_optimised_python():
    """Optimised Python (`-O`) removes assertions, so the check must not be one."""
    code = "import deadheat; print(deadheat.measures.parse_measure('RBP(0.95)@10'))"
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert "InputError: cannot read the parameters of 'RBP(0.95)@10'" in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "nDCG{}@10",
        "nDCG{}(){}@{}10",
        "nDCG{}!",
        "nDCG(){}!",
        "nDCG@{}!",
        "nDCG({}!",
        "{}nDCG{}x{}(",
    ],
)
def test_spaces_are_parsed_in_linear_time(text):
    start = time.perf_counter()
    with contextlib.suppress(dh.InputError):
        assert dh.measures.parse_measure(text.replace("{}", " " * 20_000)) == dh.nDCG @ 10
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("cutoff", [0, -1, 2.0, "10", True, None.__class__, float("nan"), 2**63])
def test_invalid_cutoffs_are_rejected(cutoff):
    with pytest.raises(dh.InputError, match="cutoff of nDCG"):
        dh.nDCG @ cutoff


@given(st.text(max_size=30))
def test_any_text_is_a_measure_or_an_input_error(text):
    for attempt in (text, f"nDCG({text})@10", f"nDCG@{text}", f"MAP(rel={text})"):
        try:
            assert isinstance(dh.measures.parse_measure(attempt), dh.Measure)
        except dh.InputError as error:
            assert str(error)


@pytest.mark.parametrize("measures", [None, 10, 2.5, object()])
def test_measures_of_invalid_type_are_rejected(measures):
    with pytest.raises(dh.InputError, match="measures must be names"):
        dh.measures.parse_measures(measures)


def test_empty_list_of_measures_is_rejected():
    with pytest.raises(dh.InputError, match="no measure given"):
        dh.measures.parse_measures([])


def test_duplicate_measures_are_evaluated_once():
    names = ["nDCG@10", "ndcg_cut_10", "NDCG@10", dh.nDCG @ 10, "MRR@5,10", "RR@10"]
    assert dh.measures.parse_measures(names) == [dh.nDCG @ 10, dh.MRR @ 5, dh.MRR @ 10]
    result = dh.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, names)
    assert list(result) == ["nDCG@10", "MRR@5", "MRR@10"]
    assert len(result.per_query) == 3


def test_single_name_or_measure_is_accepted():
    assert dh.measures.parse_measures("nDCG@10") == [dh.nDCG @ 10]
    assert dh.measures.parse_measures(dh.nDCG @ 10) == [dh.nDCG @ 10]
    result = dh.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, "MRR")
    assert list(result) == ["MRR"]


def test_several_cutoffs_are_several_measures():
    assert dh.measures.parse_measures("P.5,10") == dh.measures.parse_measures("P_5,10")
    assert dh.measures.parse_measures("P_5,10") == [dh.Precision @ 5, dh.Precision @ 10]
    assert dh.measures.parse_measures("P@5,10-l2") == [dh.Precision(rel=2) @ k for k in (5, 10)]
    with pytest.raises(dh.InputError, match="names 2 measures"):
        dh.measures.parse_measure("nDCG@5,10")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (ir_measures.nDCG @ 10, dh.nDCG @ 10),
        (ir_measures.nDCG(dcg="exp-log2") @ 10, dh.nDCG(gain="exp") @ 10),
        (ir_measures.RR @ 10, dh.MRR @ 10),
        (ir_measures.RR, dh.MRR),
        (ir_measures.MRR(rel=2) @ 5, dh.MRR(rel=2) @ 5),
        (ir_measures.AP(rel=2) @ 100, dh.MAP(rel=2) @ 100),
        (ir_measures.P @ 5, dh.Precision @ 5),
        (ir_measures.R @ 1000, dh.Recall @ 1000),
        (ir_measures.Rprec, dh.measures.RPrecision),
        (ir_measures.Success @ 1, dh.Success @ 1),
        (ir_measures.Judged @ 10, dh.measures.Judged @ 10),
        (ir_measures.RBP(p=0.5), dh.RBP(p=0.5)),
    ],
    ids=str,
)
def test_ir_measures_objects_are_accepted(theirs, ours):
    assert dh.measures.parse_measures([theirs]) == [ours]


def test_unsupported_ir_measures_parameters_are_rejected():
    with pytest.raises(dh.InputError, match="no parameter 'judged_only'"):
        dh.measures.parse_measures([ir_measures.AP(judged_only=True)])


def test_accuracy_of_ir_measures_is_rejected():
    """It is the probability that a relevant document precedes another; deadheat's is Success."""
    with pytest.raises(dh.InputError, match=r"is not .*accuracy"):
        dh.measures.parse_measures([ir_measures.Accuracy @ 10])


@pytest.mark.parametrize(
    "name",
    ["n" * 5_000, "nDCG" + " " * 50_000 + "x", "nDCG(" + " " * 50_000, "nDCG(" + "(" * 5_000 + ")",
     "nDCG@" + "1" * 5_000, "nDCG@x" + "," * 5_000, "RBP." + "9" * 5_000 + "x"],
    ids=range(7),
)  # fmt: skip
def test_huge_names_are_rejected_quickly_with_a_short_error(name):
    begin = time.perf_counter()
    with pytest.raises(dh.InputError) as caught:
        dh.measures.parse_measures(name)
    assert len(str(caught.value)) < 600
    assert time.perf_counter() - begin < 5
