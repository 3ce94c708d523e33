"""All input formats give bit-identical results: dictionaries, tuples, and all formats at once."""

from __future__ import annotations

import gzip
import json
import math
from types import SimpleNamespace

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings, strategies as st
from ways_in import MEASURES, QRELS, RUN, columns, facts, rows, same, scattered, written

import deadheat as dh

pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")


# dictionaries


@pytest.mark.parametrize("number", [float, np.float32, np.float64, str], ids=lambda t: t.__name__)
def test_dict_of_numbers_of_any_type(number):
    halves = {"q": {"a": 0.5, "b": 0.5, "c": 0.25}}
    truth = facts(dh.evaluate({"q": {"b": 1}}, halves, MEASURES))
    run = {"q": {d: number(x) for d, x in halves["q"].items()}}
    assert facts(dh.evaluate({"q": {"b": 1}}, run, MEASURES)) == truth


@pytest.mark.parametrize("number", [int, np.int8, np.uint64, np.bool_, float, np.float16])
def test_dict_of_grades_of_any_type(number):
    qrels = {"q": {"a": number(1), "b": number(0)}}
    truth = facts(dh.evaluate({"q": {"a": 1, "b": 0}}, {"q": {"b": 1, "a": 1}}, MEASURES))
    assert facts(dh.evaluate(qrels, {"q": {"b": 1, "a": 1}}, MEASURES)) == truth


def test_dict_with_ids_of_any_type():
    run = {7: {12: 3.0, np.int64(10): 3.0, b"11": 0.1}}
    qrels = {np.str_("7"): {np.str_("10"): 1, 11: 0}}
    truth = facts(dh.evaluate({"7": QRELS["7"]}, {"7": RUN["7"]}, MEASURES))
    assert facts(dh.evaluate(qrels, run, MEASURES)) == truth


@pytest.mark.parametrize("read", [dh.read_run, dh.read_qrels])
def test_to_dict_returns_the_input(read, tmp_path):
    lists = {"q2": {"d1": 2.0, "d0": 1.0}, "q1": {"d9": 1.0}}
    assert read(lists).to_dict() == lists
    assert list(read(lists).to_dict()["q2"]) == ["d1", "d0"]
    rows = [(q, d, number) for q, docs in lists.items() for d, number in docs.items()]
    assert read(rows).to_dict() == lists
    assert read({7: {8: 1}}).to_dict() == {"7": {"8": 1.0}}


def test_empty_dict_of_a_query_counts_as_missing():
    with_empty = dh.evaluate(QRELS, {**RUN, "q1": {}}, MEASURES)
    without = dh.evaluate(QRELS, {q: d for q, d in RUN.items() if q != "q1"}, MEASURES)
    assert facts(with_empty) == facts(without)
    assert with_empty.warnings == without.warnings != []
    both = {**RUN, "q1": {}}
    assert "q1" not in dh.evaluate(QRELS, both, MEASURES, queries="intersection").query_ids


def test_has_relevant_is_false_without_judgements():
    offsets = np.array([0, 0, 1, 1])
    judged = dh.formats.Judgements("x", ["a", "b", "c"], offsets, ["d"], np.array([1.0]))
    assert judged.has_relevant.tolist() == [False, True, False]
    result = dh.evaluate(judged, {"b": {"d": 0.5}}, ["MRR"])
    assert result.query_ids == ["b"] and result["MRR"].expected == 1


def test_run_does_not_change_with_its_source_dict():
    qrels, given = {"q": {"b": 1}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    run, judgements = dh.read_run(given), dh.read_qrels(qrels)
    del given["q"]["a"]
    given["q"]["b"], qrels["q"]["a"] = 9.0, 1
    assert dh.evaluate(judgements, run, "MRR")["MRR"].expected == 0.5
    assert run.documents.ids(np.arange(3)).to_list() == ["a", "b", "c"]


# tuples


@pytest.mark.parametrize("order", [rows, scattered])
@pytest.mark.parametrize("kind", [list, iter, lambda x: (row for row in x), tuple])
def test_tuples_and_lists_of_rows(order, kind):
    same(kind(order(QRELS)), kind([list(row) for row in order(RUN)]))


def test_tuples_of_ir_measures():
    same(
        (ir_measures.Qrel(*row) for row in rows(QRELS)),
        (ir_measures.ScoredDoc(*row) for row in rows(RUN)),
    )


def test_objects_with_attributes():
    names = ("query_id", "doc_id", "relevance", "iteration")
    same(
        [SimpleNamespace(**dict(zip(names, (*row, "0"), strict=True))) for row in rows(QRELS)],
        rows(RUN),
    )


# arbitrary runs in every format

id_text = st.text(
    st.characters(
        codec="utf-8", exclude_categories=("Cc", "Zs", "Zl", "Zp"), exclude_characters="#"
    ),
    min_size=1,
    max_size=4,
).filter(lambda s: s == s.strip() and not s.startswith("{"))
nested_scores = st.dictionaries(
    id_text,
    st.dictionaries(
        id_text,
        st.one_of(st.sampled_from([0.5, 0.25, -0.0, 0.0, math.inf]), st.floats(allow_nan=False)),
        min_size=1,
        max_size=5,
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40)
@given(run=nested_scores, data=st.data())
def test_arbitrary_runs_in_every_format(tmp_path, run, data):
    qrels = {
        q: {d: data.draw(st.integers(0, 3)) for d in [*docs, "absent"]} for q, docs in run.items()
    }
    truth = facts(dh.evaluate(qrels, run, MEASURES, queries="all"))
    frame = pl.DataFrame(columns(run, ("query_id", "doc_id", "score"), scattered))
    path = tmp_path / "run"
    lines = (f"{q} Q0 {d} 1 {x!r} t\n" for q, d, x in scattered(run))
    frame.write_parquet(tmp_path / "run.parquet")
    inputs = [
        frame,
        frame.to_pandas(),
        frame.to_arrow(),
        rows(run),
        written(tmp_path, "run", "".join(lines)),
        written(tmp_path, "run.json", json.dumps(run)),
        tmp_path / "run.parquet",
    ]
    if all(math.isfinite(x) for x in frame["score"]):  # JSON lines have no infinity
        frame.write_ndjson(tmp_path / "run.jsonl")
        inputs.append(tmp_path / "run.jsonl")
    for source in inputs:
        result = dh.evaluate(qrels, source, MEASURES, queries="all")
        assert facts(result) == truth
    assert path.is_file()


@settings(max_examples=150)
@given(data=st.binary(max_size=60), start=st.sampled_from([b"", b"q 0 d 1\n", b"{", b'{"q":{"d":']))
def test_any_bytes_are_read_or_rejected(tmp_path, data, start):
    path = written(tmp_path, "file", start + data)
    for read in (dh.read_run, dh.read_qrels):
        try:
            read(path)
        except dh.InputError as error:
            assert "file" in str(error)


# NaN last


@given(
    row=st.lists(
        st.sampled_from([math.nan, -math.inf, -1e308, 0.5, 0.5 + 1e-12, 0.6, math.inf]),
        min_size=1,
        max_size=6,
    ),
    data=st.data(),
)
def test_nan_last_ranks_nan_below_all_other_scores(row, data):
    """This holds for every tie rule and tolerance."""
    labels = data.draw(st.lists(st.integers(0, 1), min_size=len(row), max_size=len(row)))
    assume(any(labels))
    rule = data.draw(st.sampled_from(["input", "id_desc", "pytrec_eval"]))
    tolerance = data.draw(st.sampled_from([0, 0.2]))
    options = {"tie_break": rule, "tie_tolerance": tolerance, "nan": "last"}
    # The expected result: replace NaN by −inf, and −inf by a finite number above it.
    by_hand = [-math.inf if x != x else -1.5e308 if x == -math.inf else x for x in row]
    if rule == "pytrec_eval":  # −1.5e308 and −1e308 are −inf in float32
        assume(sum(x != x or x < -1e300 for x in row) <= 1)
    qrels = {"q": {str(i): x for i, x in enumerate(labels)}}
    runs = [{"q": {str(i): x for i, x in enumerate(values)}} for values in (row, by_hand)]
    actual, truth = (facts(dh.evaluate(qrels, run, MEASURES, **options)) for run in runs)
    assert actual == truth


# real files


def test_real_run_files_match_their_dictionaries(shared):
    for run, qrels in [
        ("round3-Emory_IRLab_rnd3_r1.run.gz", "round3.qrels.gz"),
        ("round4-ILPS_UvA_big_diverse.run.gz", "round4.qrels.gz"),
    ]:
        run_path, qrels_path = shared / "trec-covid" / run, shared / "trec-covid" / qrels
        nested: dict = {}
        for line in gzip.decompress(run_path.read_bytes()).decode().splitlines():
            q, _, d, _, x, _ = line.split()
            nested.setdefault(q, {})[d] = float(x)
        from_file = dh.evaluate(qrels_path, run_path, MEASURES)
        assert facts(from_file) == facts(dh.evaluate(qrels_path, nested, MEASURES))
        assert from_file["nDCG@3"].range > 0
