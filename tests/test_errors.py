"""Error messages for bad input name the problem, where it is, and what to do."""

from __future__ import annotations

import gzip
import lzma
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, strategies as st

import deadheat as dh

QRELS = {"q": {"d1": 1}}
RUN = {"q": {"d1": 0.5, "d2": 0.5}}
NAN = float("nan")
INF = float("inf")


def raises_input_error(*facts: str):
    """Expect an `InputError` whose message has these facts, in this order."""
    return pytest.raises(dh.InputError, match="(?s)" + ".*".join(map(re.escape, facts)))


def frame(**changes) -> pl.DataFrame:
    data = {"query_id": ["q", "q"], "doc_id": ["d1", "d2"], "score": [0.5, 0.5]}
    return pl.DataFrame({**data, **changes}, strict=False)


RUN_LINE = b"q Q0 d1 1 0.5 t\n"
FILES = [
    # name of the case, content of the run file, what the message has after the file's name
    ("empty", b"", ["the file is empty"]),
    ("blank", b" \n\t\n", ["the file is empty"]),
    ("comments only", b"# a\n#b\n", ["no scored documents"]),
    ("too few fields", RUN_LINE + b"q Q0 d 1 0.5\n", ["line 2", "expected 6", "found 5", "q Q0 d"]),
    ("too many fields", RUN_LINE + b"q Q0 d 2 1 0.5 t\n", ["line 2", "expected 6", "found 7"]),
    ("too few, tabs", b"q\tQ0\td2\t1\t0.5\n", ["line 1", "expected 6", "found 5"]),
    ("line after comment", b"# c\n\n" + b"q Q0\n", ["line 3", "found 2"]),
    ("score no number", RUN_LINE + b"q Q0 d2 2 abc t\n", ["line 2", "score", "'abc'", "q Q0 d2"]),
    ("score 1_0", b"q Q0 d2 2 1_0 t\n", ["line 1", "score is not a number", "'1_0'"]),
    ("score hex", b"q Q0 d2 2 0x10 t\n", ["line 1", "score is not a number", "'0x10'"]),
    ("nan", RUN_LINE + b"q Q0 d2 2 nan t\n", ["'q'", "'d2'", "NaN", "nan='last'", "--nan last"]),
    ("duplicate", RUN_LINE * 2, ["'q'", "'d1'", "more than once", "keep one"]),
    ("far duplicate", RUN_LINE + b"r Q0 d1 1 1 t\n" + RUN_LINE, ["'q'", "'d1'", "more than once"]),
    ("judgements", b"q 0 d1 1\n", ["line 1", "shape of judgements", "swapped?"]),
    ("binary", bytes(range(256)), ["binary file"]),
    ("utf-16", RUN_LINE.decode().encode("utf-16"), ["binary file"]),
    ("latin-1 id", RUN_LINE + b"q Q0 d\xe9 1 0.5 t\n", ["line 2", "UTF-8", "d\\\\xe9", "convert"]),
    ("cut gzip", gzip.compress(RUN_LINE)[:-4], ["compressed data is damaged"]),
    ("cut xz", lzma.compress(RUN_LINE)[:-4], ["compressed data is damaged"]),
    ("bad gzip", gzip.compress(RUN_LINE) + b"xx", ["compressed data is damaged"]),
    ("bad zstd", zstandard.compress(RUN_LINE) + b"xx", ["compressed data is damaged"]),
    ("empty gzip", gzip.compress(b""), ["the file is empty"]),
    ("no parquet", b"PAR1 and no more", ["cannot be read as Parquet"]),
    ("JSON", b'{"q": {"d1": 0.5,}}', ["not valid JSON", "line 1 column"]),
    ("JSON list", b'{"q":\n ["d1"]}', ["'q', hit 0", "(document, score)", "ranked_groups"]),
    ("JSON text", b'{"q": {"d1": "x"}}', ["score", "'d1'", "'q'", "not a number", "'x'"]),
    ("JSON null", b'{"q": {"d1": null}}', ["'d1'", "'q'", "not a number: None"]),
    ("JSON twice", b'{"q": {"d1": 1, "d1": 2}}', ["'d1'", "appears twice"]),
    ("JSON query twice", b'{"q": {"d1": 1}, "q": {"d2": 2}}', ["'q'", "appears twice"]),
    ("JSON latin-1", b'{"q": {"d\xe9": 1}}', ["UTF-8", "convert"]),
    ("JSON deep", b'{"a":' * 50_000, ["not valid JSON"]),
    ("JSON empty", b"{}", ["no scored documents"]),
    ("JSON of empties", b'{"q": {}}', ["no scored documents"]),
    ("JSONL cut", b'{"query_id":"q","doc_id":"d","score":1}\n{"query_id":\n', ["line 2", "JSON"]),
    ("JSONL list", b'{"query_id":"q","doc_id":"d","score":1}\n[1]\n', ["line 2", "JSON object"]),
    ("JSONL no score", b'{"query_id":"q","doc_id":"d"}\n', ["no column 'score'", "'doc_id'"]),
    ("JSONL nested", b'{"query_id":"q","doc_id":"d","score":[1]}\n', ["score of row 1"]),
    ("TSV judgements", b"query_id\tdoc_id\trelevance\nq\td\t1\n", ["judgements", "swapped?"]),
    ("TSV row", b"query_id\tdoc_id\tscore\nq\td\t1\nq\te\t1\t1\n", ["line 3", "4 fields", "3"]),
    ("TSV score", b"query_id\tdoc_id\tscore\nq\td\tx\n", ["score of row 1", "'q'", "'x'"]),
    ("TSV no id", b"query_id\tdoc_id\tscore\nq\t\t1\n", ["doc_id of row 1 is empty"]),
    ("TSV no rows", b"query_id\tdoc_id\tscore\n", ["no scored documents"]),
]  # fmt: skip


@pytest.mark.parametrize(("data", "facts"), [f[1:] for f in FILES], ids=[f[0] for f in FILES])
def test_bad_run_files(tmp_path, data, facts):
    path = tmp_path / "bad.run"
    path.write_bytes(data)
    with raises_input_error("bad.run", *facts):
        dh.evaluate(QRELS, path, "MRR")


QRELS_FILES = [
    ("empty", b"", ["the file is empty"]),
    ("comments only", b"# a\n", ["no judgements"]),
    ("fields", b"q 0 d1 1\nq d2 1\n", ["line 2", "expected 4", "found 3", "q d2 1"]),
    ("grade no number", b"q 0 d1 1\nq 0 d2 x\n", ["line 2", "relevance is not a number", "'x'"]),
    ("grade nan", b"q 0 d1 nan\n", ["'d1'", "'q'", "NaN"]),
    ("grade inf", b"q 0 d1 inf\n", ["'d1'", "'q'", "inf", "not valid"]),
    ("conflict", b"q 0 d1 1\nq 0 d1 2\n", ["'d1'", "'q'", "different grades (1, 2)", "keep one"]),
    ("run", RUN_LINE, ["line 1", "shape of a run", "swapped?"]),
    (
        "ranked table",
        b"query_id\tdoc_id\trank\tscore\nq\td1\t1\t0.5\n",
        ["no column 'relevance'", "swapped?"],
    ),
    ("no grade above 0", b"q 0 d1 0\n", ["no query has a relevant document"]),
]


@pytest.mark.parametrize(
    ("data", "facts"), [f[1:] for f in QRELS_FILES], ids=[f[0] for f in QRELS_FILES]
)
def test_bad_qrels_files(tmp_path, data, facts):
    path = tmp_path / "bad.qrels"
    path.write_bytes(data)
    with raises_input_error("bad.qrels", *facts):
        dh.evaluate(path, RUN, "MRR")


@pytest.mark.parametrize("sep", [",", "\t"])
def test_csv_errors_have_the_line_and_the_columns(tmp_path, sep):
    path = tmp_path / "run.csv"
    path.write_text("query_id,doc_id,score\nq,d1,1\nq,d2,1,1\n")
    with raises_input_error("run.csv", "line 3", "4 fields", "3", "d2"):
        dh.read_run(path)
    path.write_text("q,d1,1\n")
    with raises_input_error("run.csv", "no column 'query_id'", "'q', 'd1', '1'"):
        dh.read_run(path)
    path.write_bytes(b"query_id,doc_id,score\nq,d1,1\nq,d\xe9,1\n")
    with raises_input_error("run.csv", "line 3", "UTF-8"):
        dh.read_run(path)


def test_truncated_zstd_that_ends_at_a_line_break_raises_input_error(tmp_path):
    lines = [f"q Q0 d{i} {i} {i} t\n".encode() for i in range(20_000)]
    compressor = zstandard.ZstdCompressor().compressobj()
    data = compressor.compress(b"".join(lines[:10_000])) + compressor.flush(
        zstandard.COMPRESSOBJ_FLUSH_BLOCK
    )
    path = tmp_path / "run.zst"
    path.write_bytes(data)  # complete lines, but the stream does not end
    with raises_input_error("run.zst", "damaged"):
        dh.read_run(path)
    path.write_bytes(data + compressor.compress(b"".join(lines[10_000:])) + compressor.flush())
    assert len(dh.read_run(path).scores) == 20_000


@pytest.mark.parametrize(
    ("path", "facts"),
    [
        ("nowhere.run", ["nowhere.run", "no such file"]),
        (Path("nowhere.run"), ["nowhere.run", "no such file"]),
        ("x" * 5000, ["cannot be read"]),
        ("a\0b", ["not a file name"]),
    ],
)
def test_unreadable_paths(path, facts):
    with raises_input_error(*facts):
        dh.read_run(path)
    with raises_input_error(*facts):
        dh.read_qrels(path)


def test_folder_as_qrels(tmp_path):
    with raises_input_error(str(tmp_path), "cannot be read"):
        dh.read_qrels(tmp_path)


def test_closed_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with raises_input_error("standard input", "closed"):
        dh.read_run("-")


OBJECTS = [
    ("number", 5, ["cannot be read from int"]),
    ("none", None, ["cannot be read from NoneType"]),
    ("empty dict", {}, ["run", "no scored documents"]),
    ("empty list", [], ["run", "no scored documents"]),
    ("empty frame", frame().head(0), ["run", "no scored documents"]),
    ("flat dict", {"q": 0.5}, ["{query: {document: score}}", "'q'", "float"]),
    ("dict text", {"q": {"d1": "x"}}, ["score", "'d1'", "'q'", "not a number", "'x'"]),
    ("dict list", {"q": {"d1": [1]}}, ["score", "'d1'", "'q'", "not a number"]),
    ("pairs text", {"q": [("d1", "x")]}, ["'q'", "hit 0", "(document, score)", "ranked_groups"]),
    ("pairs of 3", {"q": [("d1", 1), ("d2", 1, 2)]}, ["'q'", "hit 1", "(document, score)"]),
    ("pairs none", {"q": [("d1", None)]}, ["'d1'", "'q'", "not a number: None"]),
    ("pairs twice", {"q": [("d1", 1), ("d1", 2)]}, ["'q'", "'d1'", "more than once"]),
    ("pairs 1 and '1'", {"q": [(1, 1), ("1", 2)]}, ["'q'", "'1'", "more than once"]),
    ("groups", {"q": [["d1", "d2"], ["d3"]]}, ["'q'", "hit 0", "ranked_groups"]),
    ("groups of numbers", {"q": [[3, 5], [7, 9]]}, ["'q'", "[3, 5]", "tuple", "ranked_groups"]),
    ("set of ids", {"q": {"d1"}}, ["{query: {document: score}}", "'q'", "set"]),
    ("dict nan", {"q": {"d1": 1, "d2": NAN}}, ["'q'", "'d2'", "NaN", "nan='last'"]),
    ("dict none", {"q": {"d1": None}}, ["'d1'", "'q'", "not a number: None"]),
    ("dict 1 and '1'", {"q": {1: 1, "1": 2}}, ["'q'", "same id"]),
    ("dict queries 1 and '1'", {1: {"d": 1}, "1": {"d": 1}}, ["'1'", "number and as text"]),
    ("dict bytes", {"q": {b"\xff": 1}}, ["\\xff", "UTF-8"]),
    ("tuple of 2", [("q", "d1")], ["entry 0", "query_id, doc_id, score", "('q', 'd1')"]),
    ("TREC tuple", [("q", "Q0", "17", 1, 0.5, "t")], ["entry 0", "query_id, doc_id, score"]),
    ("tuple text", [("q", "d1", 1), ("q", "d2", "x")], ["entry 1", "'x'"]),
    ("tuple nan", [("q", "d1", NAN)], ["'q'", "'d1'", "NaN"]),
    ("tuple twice", [("q", "d1", 1), ("q", "d1", 1)], ["'q'", "'d1'", "more than once"]),
    ("lines", ["q Q0 d1 1 0.5 t\n"], ["entry 0", "a file by its path"]),
    ("three letters", ["qd1"], ["entry 0", "'qd1'"]),
    ("dicts", [{"query_id": "q", "doc_id": "d", "score": 1}], ["entry 0", "as a table"]),
    ("numbers", [1, 2, 3], ["entry 0", "1"]),
    ("frame text", frame(score=["x", "1"]), ["score of row 1", "'q'", "'x'"]),
    ("frame null", frame(score=[1, None]), ["score of row 2", "'q'", "None"]),
    ("frame nan", frame(score=[1, NAN]), ["'q'", "'d2'", "NaN"]),
    ("frame null id", frame(doc_id=["d1", None]), ["doc_id of row 2 is empty"]),
    ("frame twice", frame(doc_id=["d1", "d1"]), ["'q'", "'d1'", "more than once"]),
    ("frame no column", frame().drop("score"), ["no column 'score'", "'query_id', 'doc_id'"]),
    ("frame dates", frame().with_columns(score=pl.date(2020, 1, 1)), ["score of row 1", "date(2"]),
    ("frame list ids", frame().with_columns(doc_id=pl.concat_list("doc_id")), ["not an id"]),
    ("frame grades", frame().rename({"score": "relevance"}), ["judgements", "swapped?"]),
    ("pandas text", frame(score=["x", "1"]).to_pandas(), ["score of row 1", "'q'", "'x'"]),
    ("pandas mixed", frame().to_pandas().assign(score=pd.Series([1.5, "x"], dtype=object)),
     ["score of row 2", "'q'", "'x'"]),
    ("pandas no id", frame().to_pandas().assign(doc_id=["d1", None]), ["doc_id of row 2 is empty"]),
    ("pandas NA id", frame().to_pandas().assign(doc_id=pd.array([1, pd.NA], dtype="Int64")),
     ["doc_id of row 2 is empty"]),
    ("pandas NaN", frame().to_pandas().assign(score=[1, NAN]), ["'q'", "'d2'", "NaN"]),
    ("pandas dates", frame().to_pandas().assign(score=pd.to_datetime(["2020", "2021"])),
     ["score of row 1", "datetime(2020"]),
    ("pandas twice", pd.concat([frame().to_pandas()] * 2, axis=1), ["more than one"]),
    ("arrow text", pa.table(frame(score=["x", "1"]).to_dict(as_series=False)), ["row 1", "'x'"]),
    ("series", pl.Series([1, 2]), ["entry 0"]),
    ("pandas series", pd.Series([1, 2]), ["entry 0"]),
]  # fmt: skip


@pytest.mark.parametrize(("run", "facts"), [o[1:] for o in OBJECTS], ids=[o[0] for o in OBJECTS])
def test_bad_run_objects(run, facts):
    with raises_input_error(*facts):
        dh.evaluate(QRELS, run, "MRR")


QRELS_OBJECTS = [
    ("number", 5, ["cannot be read from int"]),
    ("empty dict", {}, ["qrels", "no judgements"]),
    ("empties", {"q": {}}, ["qrels", "no judgements"]),
    ("flat dict", {"q": 1}, ["{query: {document: grade}}", "'q'", "int"]),
    ("set of tuples", {"q": {("d1", 1)}}, ["qrels", "'q'", "a tuple is not an id"]),
    ("text of ids", {"q": "d1"}, ["{query: {document: grade}}", "'q'", "str"]),
    ("empty sets", {"q": set(), "r": []}, ["qrels", "no judgements"]),
    ("text", {"q": {"d1": "x"}}, ["grade", "'d1'", "'q'", "not a number", "'x'"]),
    ("nan", {"q": {"d1": NAN}}, ["'d1'", "'q'", "NaN"]),
    ("inf", {"q": {"d1": INF}}, ["'d1'", "'q'", "inf"]),
    ("absurd", {"q": {"d1": 1e300}}, ["'d1'", "'q'", "1e+300"]),
    ("surrogate", {"q": {"\ud800": 1}}, ["\\ud800", "UTF-8"]),
    ("surrogate query", {"\ud800": {"d": 1}}, ["\\ud800", "UTF-8"]),
    ("tuple conflict", [("q", "d", 1), ("q", "d", 0)], ["'d'", "'q'", "different grades (1, 0)"]),
    ("tuple of a run", [("q", "d", 1, 2)], ["entry 0"]),
    ("frame conflict",
     pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["d", "d"], "relevance": [1, 2]}),
     ["'d'", "'q'", "different grades (1, 2)"]),
    ("frame run", frame(rank=[1, 2]), ["no column 'relevance'", "swapped?"]),
    ("frame null", frame(score=[1, None]), ["score of row 2", "None"]),
    ("none relevant", {"q": {"d1": 0}}, ["no query has a relevant document"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("qrels", "facts"), [o[1:] for o in QRELS_OBJECTS], ids=[o[0] for o in QRELS_OBJECTS]
)
def test_bad_qrels_objects(qrels, facts):
    with raises_input_error(*facts):
        dh.evaluate(qrels, RUN, "MRR")


def test_scored_documents_as_qrels():
    class ScoredDoc:
        query_id, doc_id, score = "q", "d1", 0.5

    with raises_input_error("qrels", "entry 0", "(query_id, doc_id, relevance)"):
        dh.evaluate([ScoredDoc()], RUN, "MRR")


def test_swapped_dicts_warn():
    with pytest.warns(dh.DeadheatWarning, match="swapped"):
        result = dh.evaluate(RUN, QRELS, "MRR")
    assert any("swapped" in text for text in result.warnings)
    # Fractions as grades and integers as scores are valid.
    assert not dh.evaluate({"q": {"d1": 0.5}}, {"q": {"d1": 0.25}}, "MRR").warnings
    assert not dh.evaluate({"q": {"d1": 0.5}}, {"q": {"d1": 200}}, "MRR").warnings
    assert not dh.evaluate({"q": {"d1": 1}}, {"q": {"d1": 1}}, "MRR").warnings


def test_ids_that_do_not_match_show_examples_of_both_inputs(tmp_path):
    qrels = {"q1": {"d": 1}, "q2": {"d": 1}, "q3": {"d": 1}}
    path = tmp_path / "my.run"
    path.write_text("1 Q0 d 1 1 t\n2 Q0 d 1 1 t\n3 Q0 d 1 1 t\n")
    with raises_input_error("my.run", "no query", "'q1' and 'q2'", "'1' and '2'"):
        dh.evaluate(qrels, path, "MRR")
    with pytest.warns(dh.DeadheatWarning, match=r"'d1' and 'd2'.*'1' and '2'.*ids match"):
        dh.evaluate({"q": {"d1": 1, "d2": 1}}, {"q": {1: 1.0, 2: 0.5}}, "MRR")


def test_missing_and_unjudged_queries_warn():
    with pytest.warns(dh.DeadheatWarning) as caught:
        result = dh.evaluate(
            {"a": {"d": 1}, "b": {"d": 1}}, {"a": {"d": 1.0}, "x": {"d": 1.0}}, "MRR"
        )
    texts = [str(w.message) for w in caught]
    assert any("1 query judged but missing" in t and "'b'" in t for t in texts)
    assert any("1 query of the run without judgements" in t for t in texts)
    assert result["MRR"].expected == 0.5


def test_negative_grades_have_one_note_and_no_effect():
    result = dh.evaluate({"q": {"d1": 1, "d2": -2, "d3": -1}}, RUN, "nDCG")
    assert sum("below 0" in note for note in result.notes) == 1
    assert "2 judgements below 0" in " ".join(result.notes)
    assert result["nDCG"].expected == dh.evaluate(QRELS, RUN, "nDCG")["nDCG"].expected


def test_infinite_scores_are_ranked():
    run = {"q": {"d1": INF, "d2": INF, "d3": -INF, "d4": 0.0, "d5": -INF}}
    for rule in ("input", "id_desc", "id_asc", "pytrec_eval"):
        for tolerance in (0, 0.5):
            options = {"tie_break": rule, "tie_tolerance": tolerance}
            result = dh.evaluate({"q": {"d1": 1}}, run, "MRR", **options)["MRR"]
            assert (result.best, result.worst, result.expected) == (1, 0.5, 0.75)
            result = dh.evaluate({"q": {"d5": 1}}, run, "MRR", **options)["MRR"]
            assert (result.best, result.worst) == (1 / 4, 1 / 5)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"tie_break": "random"}, ["tie_break", "input, id_desc", "'random'"]),
        ({"tie_break": ["input"]}, ["tie_break must be one of"]),
        ({"tie_break": "rank"}, ["'rank'", "column of ranks"]),
        ({"tie_tolerance": -1}, ["tie_tolerance", "-1"]),
        ({"tie_tolerance": NAN}, ["tie_tolerance", "nan"]),
        ({"tie_tolerance": "0.1"}, ["tie_tolerance", "'0.1'"]),
        ({"tie_tolerance": None}, ["tie_tolerance", "None"]),
        ({"queries": "some"}, ["queries", "judged, intersection, all", "'some'"]),
        ({"queries": ["q"]}, ["queries", "['q']"]),
        ({"nan": "first"}, ["nan", "raise, last", "'first'"]),
    ],
)
def test_bad_options(options, facts):
    with raises_input_error(*facts):
        dh.evaluate(QRELS, RUN, "MRR", **options)


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize("measure", ["ERR", "nDCG(gain='exp')"])
@pytest.mark.parametrize("run", [RUN, {"q": {"d2": 1.0, "d3": 2.0}}], ids=["listed", "unlisted"])
def test_grades_too_large_for_exponential_gain(measure, run):
    with raises_input_error("2 to the power of a grade", "2000"):
        dh.evaluate({"q": {"d1": 2000, "d2": 1}}, run, measure)
    assert dh.evaluate({"q": {"d1": 2000}}, RUN, "nDCG")["nDCG"].best == 1


def test_max_grade_of_err_below_a_grade():
    with raises_input_error("max_grade of ERR is 1", "the grade 3"):
        dh.evaluate({"q": {"d1": 3}}, RUN, "ERR(max_grade=1)")


ROW, LABELS = [[0.5, 0.25]], [[1, 0]]
ARRAYS = [
    ("shapes", np.zeros((2, 3)), np.zeros((2, 2)), {}, ["[2, 3]", "[2, 2]", "differ in shape"]),
    ("one row", np.zeros(3), np.ones(3), {}, ["[queries, candidates]", "[3]", "wrap"]),
    ("flat list", [0.5, 0.25], [1, 0], {}, ["query 0", "wrap a single query in a list"]),
    ("three levels", np.zeros((1, 2, 3)), np.ones((1, 2, 3)), {}, ["[1, 2, 3]"]),
    ("queries", [[1.0], [2.0]], [[1]], {}, ["2 queries", "1"]),
    ("lengths", [[1.0, 2.0], [1.0]], [[1, 0], [1, 0]], {}, ["query 1", "1", "2"]),
    ("nested", [[[1.0], [1.0, 2.0]]], [[[1], [1, 0]]], {}, ["scores", "numbers"]),
    ("deep", [[[1.0], [2.0]]], [[[1], [0]]], {}, ["scores", "numbers"]),
    ("deep labels", [[1.0, 2.0]], [[[1], [0]]], {}, ["relevance", "numbers"]),
    ("no labels", ROW, None, {}, ["relevance"]),
    ("no scores", None, LABELS, {}, ["scores"]),
    ("nothing", [], [], {}, ["scores", "empty"]),
    ("no query", np.zeros((0, 3)), np.zeros((0, 3)), {}, ["scores", "empty"]),
    ("text", [["a", "b"]], LABELS, {}, ["scores must be numbers", "a"]),
    ("complex", np.array([[1j, 2]]), LABELS, {}, ["scores must be numbers", "complex"]),
    ("dates", np.array([["2020", "2021"]], "M8[D]"), LABELS, {}, ["must be numbers", "datetime"]),
    ("masked", np.ma.MaskedArray([[1.0, 2.0]], [[False, True]]), LABELS, {}, ["masked"]),
    ("nan", [[1.0, NAN]], LABELS, {}, ["query '0'", "candidate 1", "NaN", "nan='last'"]),
    ("label text", ROW, [["a", "b"]], {}, ["relevance must be numbers"]),
    ("label complex", np.array(ROW), np.array([[1j, 0]]), {}, ["relevance must be numbers"]),
    ("label masked", np.array(ROW), np.ma.MaskedArray(LABELS, [[0, 1]]), {}, ["masked"]),
    ("label nan", np.array(ROW), np.array([[1, NAN]]), {}, ["[0, 1]", "nan"]),
    ("ragged label nan", ROW, [[1, NAN]], {}, ["[0, 1]", "nan"]),
    ("label inf", np.array(ROW, np.float32), np.array([[1, INF]], np.float32), {}, ["inf"]),
    ("none relevant", ROW, [[0, 0]], {}, ["no query has a relevant document"]),
    ("n_relevant low", ROW, [[1, 1]], {"n_relevant": [1]}, ["query 0", "smaller", "2"]),
    ("n_relevant length", ROW, LABELS, {"n_relevant": [1, 1]}, ["n_relevant", "1 queries"]),
    ("n_relevant half", ROW, LABELS, {"n_relevant": [1.5]}, ["n_relevant", "whole number"]),
    ("n_relevant text", ROW, LABELS, {"n_relevant": "3"}, ["n_relevant", "whole number"]),
    ("n_relevant ragged", ROW, LABELS, {"n_relevant": [[1], [1, 2]]}, ["n_relevant"]),
    ("ids twice", ROW * 2, LABELS * 2, {"query_ids": ["a", "a"]}, ["each of the 2 queries"]),
    ("ids count", ROW, LABELS, {"query_ids": ["a", "b"]}, ["query_ids", "1 queries"]),
    ("ids number", ROW, LABELS, {"query_ids": 5}, ["query_ids"]),
    ("ids text", ROW, LABELS, {"query_ids": "a"}, ["query_ids"]),
    ("intersection", ROW, LABELS, {"queries": "intersection"}, ["queries", "judged, all"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("scores", "relevance", "options", "facts"),
    [a[1:] for a in ARRAYS],
    ids=[a[0] for a in ARRAYS],
)
def test_bad_arrays(scores, relevance, options, facts):
    with raises_input_error(*facts):
        dh.evaluate_arrays(relevance, scores, "MRR", **options)


def test_tie_counter_rejects_integers_that_float64_rounds():
    """Ranks of such integers would differ between pieces, so the counts would be wrong."""
    with raises_input_error("float64 cannot hold", "across pieces"):
        dh.ties.TieCounter(1, query=[0], score=[2**60 + 1], grade=[1], position=[0])
    counter = dh.ties.TieCounter(1, query=[0], score=[5], grade=[1], position=[0])
    with raises_input_error("float64 cannot hold", "across pieces"):
        counter.update([[5, 2**60, 2**60 + 1]])


arbitrary = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner, inner),
        st.dictionaries(st.one_of(st.text(max_size=2), st.integers()), inner, max_size=3),
    ),
    max_leaves=12,
)


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@given(qrels=arbitrary, run=arbitrary)
def test_arbitrary_objects_are_evaluated_or_raise_input_error(qrels, run):
    for q, r in ((qrels, RUN), (QRELS, run), (qrels, run)):
        if "-" in (q, r):
            continue
        try:
            result = dh.evaluate(q, r, ["nDCG", "MRR", "ERR"])
        except dh.InputError as error:
            assert str(error)
        else:
            views = result.values()
            assert all(0 <= s.worst <= s.expected + 1e-12 <= s.best + 2e-12 for s in views)


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@given(scores=arbitrary, relevance=arbitrary)
def test_arbitrary_arrays_are_evaluated_or_raise_input_error(scores, relevance):
    for s, r in ((scores, LABELS), (ROW, relevance), (scores, relevance)):
        try:
            result = dh.evaluate_arrays(r, s, ["nDCG", "MRR"])
        except dh.InputError as error:
            assert str(error)
        else:
            views = result.values()
            assert all(0 <= m.worst <= m.expected + 1e-12 <= m.best + 2e-12 for m in views)


@pytest.mark.parametrize("call", [dh.evaluate, dh.Evaluator, dh.compare, dh.diagnose, dh.check])
def test_unknown_option_suggests_the_closest_name(call):
    arguments = (QRELS,) if call is dh.Evaluator else (QRELS, RUN)
    with pytest.raises(TypeError, match=r"unknown option 'tiebreak'; did you mean 'tie_break'\?"):
        call(*arguments, tiebreak="input")
    with pytest.raises(TypeError, match=r"unknown option 'xyz'$"):
        call(*arguments, xyz=1)


def test_compare_rejects_a_single_run_and_results_outside_a_list():
    for run in (RUN, dh.formats.read_run(RUN)):
        with raises_input_error("several systems", "compare(qrels, {name: run"):
            dh.compare(QRELS, run)
    result = dh.evaluate(QRELS, RUN, ["MRR"])
    with raises_input_error("compare([a, b])"):
        dh.compare(result, result)
