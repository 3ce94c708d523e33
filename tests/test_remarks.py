"""Remarks: stored as data, merged over runs, and emitted as warnings by public functions only."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, strategies as st

import deadheat as dh
from deadheat._internal.remarks import Remark, add_remarks, lines, note, texts, warning
from deadheat.comparison import compare_results
from deadheat.evaluation import evaluate_run

QRELS = {"q1": {"d1": 1}, "q2": {"d1": 1}, "q3": {"d1": 1}}
RUN = {"q1": {"d1": 1.0, "d2": 0.5}}


def test_format_and_json_round_trip():
    remark = warning("{missing:query} missing, for example {example}", missing=1, example="'q'")
    assert str(remark) == "1 query missing, for example 'q'"
    assert Remark.from_dict(remark.to_dict()) == remark


def test_remarks_that_differ_in_numbers_are_merged():
    remarks = {f"r{i}": [warning("{n:query} missing", n=i)] for i in range(1, 6)}
    assert lines({"r1": remarks["r1"]}, "warning") == ["r1: 1 query missing"]
    three = {name: remarks[name] for name in ("r1", "r2", "r3")}
    assert lines(three, "warning") == ["r1, r2, r3: 1–3 queries missing"]
    assert lines(remarks, "warning") == ["all 5 runs: 1–5 queries missing"]
    assert lines({**remarks, "fine": []}, "warning") == ["5 of 6 runs: 1–5 queries missing"]
    assert lines(remarks, "note") == []
    both = {"a": [note("one")], "b": [note("two"), note("one")]}
    assert lines(both, "note", of="system") == ["a, b: one", "b: two"]


def test_add_remarks_sums_the_counts():
    parts = [[note("{n:judgement} below 0", n=2)], [], [note("{n:judgement} below 0", n=3)]]
    assert texts(add_remarks(parts), "note") == ["5 judgements below 0"]
    named = [[warning("{n:query}, for example {e}", n=1, e="'a'")]] * 2
    assert texts(add_remarks(named), "warning") == ["2 queries, for example 'a'"]


@given(st.text(), st.dictionaries(st.text(max_size=3), st.integers() | st.text()))
def test_untrusted_pattern_cannot_access_attributes(pattern, values):
    """Only plain names in braces are replaced; the rest of a stored pattern is text."""
    hostile = pattern + "{n.__class__.__init__.__globals__}{n!r}{n:>999999999}{0}{n[0]}"
    assert "function" not in str(Remark("note", hostile, {**values, "n": 1}))
    assert len(str(Remark("note", hostile, {"n": "x"}))) < len(hostile) + 100


@pytest.mark.parametrize(
    "data",
    [
        {"level": "shout", "pattern": "x", "values": {}},
        {"level": "note", "pattern": 1, "values": {}},
        {"level": "note", "pattern": "x", "values": {"n": [1]}},
        {"level": "note", "pattern": "x", "values": []},
        {"level": "note"},
        [],
    ],
)
def test_invalid_remark_data_is_rejected(data):
    with pytest.raises((TypeError, ValueError, AttributeError)):
        Remark.from_dict(data)


# Only public functions emit warnings, each once.


def test_internal_functions_emit_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = evaluate_run(dh.read_qrels(QRELS), dh.read_run(RUN), [dh.MRR])
        compare_results({"a": result, "b": result})
    assert len(result.warnings) == 1


def test_public_functions_warn_once_and_name_the_file_of_the_caller():
    with pytest.warns(dh.DeadheatWarning) as caught:
        result = dh.evaluate(QRELS, RUN, "MRR")
    assert [str(each.message) for each in caught] == result.warnings
    assert {each.filename for each in caught} == {__file__}
    with pytest.warns(dh.DeadheatWarning) as caught:
        dh.compare(QRELS, {f"s{i}": RUN for i in range(5)}, "MRR")
    missing = [str(each.message) for each in caught if "missing" in str(each.message)]
    assert len(missing) == 1 and missing[0].startswith("all 5 systems: 2 queries")
    assert {each.filename for each in caught} == {__file__}


def test_cut_lists_of_many_runs_give_one_warning():
    qrels = {f"q{i}": {"d1": 1, "d9": 1} for i in range(4)}
    runs = {
        f"s{n}": {q: {"d1": 1.0, "d2": 1.0 if i < n else 0.5} for i, q in enumerate(qrels)}
        for n in range(1, 5)
    }
    with pytest.warns(dh.DeadheatWarning) as caught:
        dh.compare(qrels, runs, "MRR@5")
    messages = [str(each.message) for each in caught]
    assert any(text.startswith("all 4 systems: 1–4 lists cut") for text in messages)


def test_listed_values_of_many_runs_are_deduplicated():
    remarks = {
        "a": [warning("{n:list} cut, affecting {m:each}", n=2, m="MAP; RBP(p=0.5, rel=2)")],
        "b": [warning("{n:list} cut, affecting {m:each}", n=1, m="MRR; MAP")],
    }
    text = "cut, affecting MAP; RBP(p=0.5, rel=2); MRR"
    assert lines(remarks, "warning") == [f"a, b: 1–2 lists {text}"]
