"""The class Result: numbers, tables and serialisation."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import assume, given, strategies as st
from quiet import quiet
from rich.console import Console

import deadheat as dh
from deadheat._internal.remarks import note, warning
from deadheat.cli import main
from deadheat.evaluation import Views, name_runs, read_results, results_table
from deadheat.measures import MEASURES
from deadheat.provenance import Provenance
from deadheat.settings import EvalSettings
from deadheat.tables import render

QRELS = {"q1": {"d1": 1, "d3": 1}, "q2": {"d2": 2}}
RUN = {"q1": {"d1": 0.9, "d2": 0.5, "d3": 0.5}, "q2": {"d1": 1.0, "d2": 0.0}}
HOSTILE_TEXT = "<script>alert('x|y')</script> a_b & 100% \\ {x} *y* `z`"


@pytest.fixture
def result() -> dh.Result:
    return dh.evaluate(QRELS, RUN, ["Recall@2", "MRR", "ERR"])


def test_summary(result):
    recall = result["Recall@2"]
    assert recall.measure == "Recall@2"
    assert (recall.expected, recall.best, recall.worst) == (0.875, 1.0, 0.75)
    assert (recall.range, recall.oblivious, recall.bias) == (0.25, 0.75, -0.125)
    assert recall.std == pytest.approx(0.25 / 2)  # one of two queries: 0.5 or 1
    assert recall.sampling_error == pytest.approx(np.std([0.75, 1.0], ddof=1) / math.sqrt(2))
    assert recall.queries == 2
    assert result["ERR"].std is None
    one = dh.evaluate({"q1": QRELS["q1"]}, {"q1": RUN["q1"]}, "MRR")["MRR"]
    assert one.sampling_error is None


def test_per_query(result):
    frame = result.per_query
    assert isinstance(frame, pl.DataFrame)
    names = "query_id measure expected best worst range std oblivious bias"
    assert frame.columns == names.split()
    assert frame["query_id"].to_list() == ["q1", "q2"] * 3
    assert frame["measure"].to_list() == ["Recall@2"] * 2 + ["MRR"] * 2 + ["ERR"] * 2
    assert frame.row(0) == ("q1", "Recall@2", 0.75, 1.0, 0.5, 0.5, 0.25, 0.5, -0.25)
    assert frame.filter(measure="ERR")["std"].to_list() == [None, None]
    assert all(frame[name].dtype == pl.Float64 for name in frame.columns[2:])
    for summary in result.values():
        mean = frame.filter(measure=summary.measure)["expected"].mean()
        assert mean == pytest.approx(summary.expected, abs=1e-15)


def test_getitem_by_any_alias(result):
    for name in ("recall_2", "R@2", "recall_at_2", dh.Recall @ 2, " Recall @ 2 "):
        assert result[name] is result["Recall@2"]
        assert name in result
    assert result["recip_rank"] is result["MRR"]
    assert len(result) == 3
    assert list(result) == list(result.keys()) == ["Recall@2", "MRR", "ERR"]
    assert [summary.measure for summary in result.values()] == list(result)
    assert dict(result) == dict(result.items())
    assert {**result}["MRR"] is result["MRR"]


def test_getitem_of_a_measure_that_was_not_evaluated(result):
    with pytest.raises(KeyError, match=r"nDCG@10 was not evaluated; .*Recall@2, MRR, ERR"):
        result["ndcg_cut_10"]
    with pytest.raises(dh.InputError, match="'mmr': did you mean MRR"):
        result["mmr"]
    for name in ("nDCG@10", "mmr", "", 5, None, dh.MRR @ 10):
        assert name not in result
        assert result.get(name) is None and result.get(name, 0) == 0


# Not \r: before Python 3.13 csv does not quote it unless it ends the lines.
text = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=5)
finite = st.floats(-1e100, 1e100)


@st.composite
def results(draw):
    ids = draw(st.lists(text, min_size=1, max_size=4, unique=True))
    values = st.lists(finite, min_size=len(ids), max_size=len(ids)).map(np.array)
    variance = st.one_of(st.none(), values.map(np.abs))

    def draw_views():
        worst, expected, best = np.sort([draw(values) for _ in range(3)], axis=0)
        return Views(expected, best, worst, draw(values), draw(variance))

    views = {
        measure: draw_views()
        for measure in draw(
            st.lists(st.sampled_from(MEASURES), min_size=1, max_size=3, unique=True)
        )
    }
    value = st.integers(0, 9) | text
    remarks = draw(st.lists(st.builds(note, text, x=value) | st.builds(warning, text)))
    tolerance = draw(st.floats(0, 1e100))
    return dh.Result(
        ids,
        views,
        Provenance(draw(text), settings=EvalSettings(tie_tolerance=tolerance)),
        (*remarks,),
    )


def are_identical(a: dh.Result, b: dh.Result) -> bool:
    def raw(result):
        return [
            (repr(m), name, None if v is None else v.tobytes())
            for m, views in result.views.items()
            for name, v in vars(views).items()
        ]

    other = ("query_ids", "provenance", "remarks")
    return raw(a) == raw(b) and all(getattr(a, name) == getattr(b, name) for name in other)


@given(results())
def test_json_round_trip_is_exact(result):
    assert are_identical(dh.Result.from_dict(result.to_dict()), result)
    assert are_identical(dh.Result.from_json(result.to_json()), result)
    assert are_identical(dh.Result.from_json(result.to_json().encode()), result)


def test_round_trip_of_an_evaluation(result):
    again = dh.Result.from_json(result.to_json())
    assert are_identical(again, result)
    assert dict(again) == dict(result)
    assert again.per_query.equals(result.per_query)
    assert str(again) == str(result)


def test_options_as_numpy_scalars_can_be_stored():
    result = dh.evaluate(QRELS, RUN, "MRR", tie_tolerance=np.float32(0.25))
    assert json.loads(result.to_json())["provenance"]["settings"]["tie_tolerance"] == 0.25


def test_to_dict_has_plain_values(result):
    data = result.to_dict(per_query=False)
    assert "per_query" not in data
    assert data["measures"]["Recall@2"]["expected"] == 0.875
    assert data["measures"]["Recall@2"]["range"] == 0.25
    provenance = data["provenance"]
    assert (provenance["run"], provenance["qrels"]) == ("run", "qrels")
    assert provenance["settings"]["tie_break"] == "input"
    assert provenance["versions"]["deadheat"] == dh.__version__
    assert {"counting", "numpy", "polars", "python"} <= set(provenance["versions"])


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("per_query"),
        lambda data: data.pop("remarks"),
        lambda data: data["per_query"].pop("query_id"),
        lambda data: data["per_query"]["MRR"].pop("best"),
        lambda data: data["per_query"]["MRR"].update(best=["x", "y"]),
        lambda data: data["per_query"]["MRR"].update(best=[1.0]),
        lambda data: data["per_query"].update(MRR=5),
    ],
)
def test_damaged_result_is_rejected(result, damage):
    data = json.loads(result.to_json())
    damage(data)
    with pytest.raises(dh.InputError, match="not a stored deadheat result"):
        dh.Result.from_dict(data)


INVALID_FIELDS = [
    ("expected", [10**400, 1], ["1e+150", "[1000"]),
    ("expected", [float("inf"), 1], ["1e+150", "[inf"]),
    ("worst", [float("nan"), 1], ["1e+150", "[nan"]),
    ("best", [1e200, 1], ["1e+150", "[1e+200"]),
    ("oblivious", [True, 1], ["per_query.MRR.oblivious", "2 numbers"]),
    ("variance", [0, -0.25], ["per_query.MRR:", "variance below 0"]),
    ("expected", [1, 1, 1], ["per_query.MRR.expected", "2 numbers"]),
    ("best", [[1], [1]], ["per_query.MRR.best", "2 numbers"]),
    ("worst", ["1", "1"], ["per_query.MRR.worst", "2 numbers"]),
    ("oblivious", None, ["1e+150", "None"]),
    ("expected", [7, 0.5], ["per_query.MRR:", "expected is not between worst"]),
    ("worst", [1, 1], ["per_query.MRR:", "expected is not between worst"]),
    ("query_id", ["q1", "q1"], ["per_query.query_id", "distinct texts"]),
    ("query_id", [["q1"], ["q2"]], ["per_query.query_id", "distinct texts"]),
    ("query_id", [True, False], ["per_query.query_id", "distinct texts"]),
    ("query_id", ["\ud800", "q2"], ["per_query.query_id", "distinct whole numbers"]),
    ("tie_tolerance", 10**400, ["Provenance.settings.tie_tolerance", "1000"]),
    ("tie_tolerance", float("nan"), ["tie_tolerance must be", "0 or more", "not nan"]),
    ("queries", "some", ["queries must be", "judged, intersection, all", "'some'"]),
    ("nan", "first", ["nan must be", "raise, last", "'first'"]),
]


@pytest.mark.parametrize(
    ("name", "value", "facts"),
    INVALID_FIELDS,
    ids=[f"{name}-{i}" for i, (name, *_) in enumerate(INVALID_FIELDS)],
)
def test_invalid_field_is_named_in_the_error(tmp_path, result, name, value, facts):
    """Every reader rejects it, and the command line prints no traceback."""
    data = json.loads(result.to_json())
    settings = data["provenance"]["settings"]
    where = settings if name in settings else data["per_query"]
    where = where if name == "query_id" or where is settings else where["MRR"]
    where[name] = value
    path = tmp_path / "invalid.json"
    path.write_text(json.dumps(data))
    readers = [
        lambda: dh.Result.from_dict(data),
        lambda: dh.Result.from_json(path.read_text()),
        lambda: read_results(path),
    ]
    messages = []
    for read in readers:
        with pytest.raises(dh.InputError) as caught:
            read()
        messages.append(str(caught.value))
    assert "invalid.json: " in messages[-1]
    completed = CliRunner().invoke(main, ["report", str(path), "-o", str(tmp_path / "page.html")])
    assert completed.exit_code == 2 and isinstance(completed.exception, SystemExit)
    assert f"{path}: " in completed.output
    for message in (*messages, completed.output):
        assert all(fact in message for fact in facts), message


@pytest.mark.parametrize("stored", ["", "{", "[]", "null", "5", '"x"', "{}"])
def test_other_json_is_rejected(stored):
    with pytest.raises(dh.InputError, match=r"not valid JSON|not a stored deadheat result"):
        dh.Result.from_json(stored)


def test_csv_has_full_precision(result):
    table = list(csv.DictReader(io.StringIO(result.to_csv())))
    for row, summary in zip(table, result.values(), strict=True):
        assert row["measure"] == summary.measure
        for name in ("expected", "std", "worst", "best", "range", "oblivious", "bias"):
            value = getattr(summary, name)
            assert row[name] == ("" if value is None else repr(value))
    each = list(csv.DictReader(io.StringIO(result.to_csv(per_query=True))))
    assert [row["query_id"] for row in each] == ["q1", "q2"] * 3


@given(results())
def test_csv_can_be_parsed_with_any_ids(result):
    for per_query in (True, False):
        text = result.to_csv(per_query=per_query)
        assume("\0" not in text or sys.version_info >= (3, 11))  # csv of Python 3.10 rejects it
        lines = list(csv.reader(io.StringIO(text, newline="")))
        assert len({len(line) for line in lines}) == 1
        assert {line[0] for line in lines[1:]} == {result.name}
        if per_query:
            assert [line[1] for line in lines[1:]] == result.query_ids * len(result.views)


@pytest.fixture
def hostile_result() -> dh.Result:
    result = dh.evaluate({HOSTILE_TEXT: {"d": 1}}, {HOSTILE_TEXT: {"d": 1.0}}, "MRR")
    return rename_result(replace(result, remarks=(note(HOSTILE_TEXT),)), HOSTILE_TEXT)


def rename_result(result: dh.Result, name: str) -> dh.Result:
    return replace(result, provenance=replace(result.provenance, run=name))


def render_results(results: list[dh.Result], style: str, **options: bool) -> str:
    return render([results_table(results, **options)], style)


def test_html_escapes(hostile_result):
    for html in (
        hostile_result._repr_html_(),
        render_results([hostile_result, hostile_result], "html", per_query=True),
    ):
        assert "<script>" not in html
        assert "&lt;script&gt;" in html
        assert html.count("<table") == html.count("</table>") == 1


def test_markdown_escapes(hostile_result):
    text = render_results([hostile_result], "markdown", per_query=True)
    header, rule, row = text.split("\n\n")[0].splitlines()
    unescaped = row.replace("\\\\", "").replace("\\|", "")
    assert unescaped.count("|") == header.count("|") == rule.count("|")
    assert "\\<script>" in row
    assert "\\*y\\*" in row
    newline = dh.evaluate({"a\nb": {"d": 1}}, {"a\nb": {"d": 1.0}}, "MRR")
    table = render_results([newline], "markdown", per_query=True).split("\n\n")[0]
    assert len(table.splitlines()) == 3


def test_latex_escapes(hostile_result):
    table = render_results([hostile_result], "latex", per_query=True).partition("\n% obl")[0]
    row = table.splitlines()[-3]
    assert r"a\_b \& 100\% \textbackslash{} \{x\}" in row
    columns = re.search(r"\\begin{tabular}{([lr]+)}", table)[1]
    assert row.replace(r"\&", "").count("&") == len(columns) - 1
    header = hostile_result.to_latex().partition("\n% obl")[0].splitlines()
    assert header[1] == r"\begin{tabular}{lrrrrrrr}"
    assert r"$\pm$ tie std" in header[3]
    assert header[-1] == r"\end{tabular}"


def test_markdown_and_latex_tables(result):
    markdown = result.to_markdown().splitlines()
    assert markdown[0].split(" | ")[1:3] == ["expected", "± tie std"]
    assert markdown[2] == (
        "| Recall@2 | 0.8750 | 0.1250 | 0.7500 | 1.0000 | 0.2500 | 0.7500 | −0.1250 |"
    )
    assert "| 87.50 | 12.50 |" in result.to_markdown(percent=True)
    assert " – " in markdown[4]  # the tie std of ERR is not computed
    assert "87.50 & 12.50" in result.to_latex(percent=True)


def test_unknown_style(result):
    with pytest.raises(dh.InputError, match=r"table style 'pdf': .*table"):
        render_results([result], "pdf")


def test_str_is_plain_text(result):
    assert "\x1b" not in str(result)
    assert str(result).startswith("run · 2 queries")
    assert "oblivious: ties in input order" in str(result)


def test_str_in_a_notebook_is_plain_text(result, monkeypatch):
    plain = str(result)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(result) == plain


def test_brackets_in_names_are_not_markup(hostile_result):
    hostile_result = rename_result(hostile_result, "bm25[bold][x=1].run")
    assert str(hostile_result).startswith("bm25[bold][x=1] · 1 query")
    terminal = Console(file=io.StringIO(), force_terminal=True, width=200)
    terminal.print(hostile_result)
    assert "bm25[bold][x=1]" in terminal.file.getvalue()
    assert "\x1b" in terminal.file.getvalue()


IMPORT = """
import sys, time
start = time.process_time()
import numpy, polars
libraries = time.process_time() - start
import deadheat
print((time.process_time() - start) / libraries)
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["out/bm25.run.gz", "out/bf16.RUN"], ["bm25", "bf16"]),
        (["round4-a.x-t5.txt", "round4-b-t5.txt"], ["round4-a.x-t5", "round4-b-t5"]),
        (["a/x.run", "b/x.run", "y.run"], ["a/x.run", "b/x.run", "y"]),  # different folders
        (["x.run", "x.txt"], ["x.run", "x.txt"]),  # different endings
        ([".run", "one.run"], [".run", "one"]),
        (["runs/input.bm25.txt.gz"], ["bm25"]),
        (["input.x", "x.run", "input.input.x"], ["input.x", "x.run", "input.input.x"]),
        (["folder/"], ["folder"]),
        (["-"], ["-"]),
        ([], []),
    ],
)
def test_name_runs(paths, names):
    assert name_runs(paths) == names


@given(st.lists(st.text("ab1-_. /", max_size=8), unique=True, max_size=5))
def test_name_runs_returns_distinct_names(paths):
    assert len(set(name_runs(paths))) == len(paths)


def test_import_is_fast_and_loads_no_heavy_packages():
    """The import takes less than twice the time of NumPy and polars."""
    best = math.inf
    for _ in range(3):  # the machine may be busy
        completed = subprocess.run(
            [sys.executable, "-c", IMPORT],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        ratio, modules = completed.stdout.splitlines()
        heavy = {"torch", "matplotlib", "pandas", "pyarrow", "scipy", "transformers", "ray", "rich"}
        assert not heavy & set(modules.split())
        best = min(best, float(ratio))
    assert best < 2


def test_equality_compares_all_values():
    qrels = {"q": {"a": 1}, "r": {"b": 1}}
    run = {"q": {"a": 0.5, "b": 0.5}, "r": {"a": 1.0, "b": 0.5}}
    result, again = (dh.evaluate(qrels, run, ["MRR", "ERR"]) for _ in range(2))
    other = dh.evaluate(qrels, {**run, "r": {"b": 1.0}}, ["MRR", "ERR"])
    assert result == again
    assert result != other
    assert result.views != other.views
    assert (result == 3, result != None) == (False, True)  # noqa: E711
    assert dh.Result.from_json(result.to_json()) == result


def test_repr_is_one_line(result):
    assert repr(result) == "<Result run, 2 queries: Recall@2 0.8750, MRR 0.7500, ERR 0.3516>"
    many = dh.evaluate(QRELS, RUN, "nDCG@1,2,3,4,5,6,7,8,9,10")
    assert repr(many).endswith(", 6 more>")
    assert len(repr(many)) < 120
    comparison = quiet(dh.compare)(QRELS, {"a": RUN, "b": RUN}, "MRR")
    assert repr(comparison).startswith("<Comparison of 2 systems, 2 queries: 1 × ")
    assert repr(dh.diagnose(RUN)).startswith("<Diagnosis of run: 40.0% ")


def test_result_is_a_mapping(result):
    assert dict(result)["MRR"] is result["MRR"]
    assert isinstance(result, Mapping)
    assert list(result.keys()) == [name for name, _ in result.items()]
    assert result.get("MRR") is result["MRR"] and result.get("MAP") is None
    assert float(result["Recall@2"]) == 0.875
    assert {name: float(summary) for name, summary in result.items()}["MRR"] == 0.75


def test_to_pandas(result):
    pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert frame["measure"].tolist() == list(result)
    assert frame["expected"].tolist() == result.aggregate["expected"].to_list()
    assert len(result.to_pandas(per_query=True)) == 6
    comparison = quiet(dh.compare)(QRELS, {"a": RUN, "b": RUN}, "MRR")
    assert comparison.to_pandas().shape == comparison.pairs.shape


def find_cells(html: str) -> list[str]:
    return re.findall(r"<td style=\"([^\"]*)\">(.*?)</td>", html)


def test_html_is_aligned_and_coloured(result):
    html = result._repr_html_()
    styles = [style for style, _ in find_cells(html)]
    assert "text-align:left" in styles[0] and all("text-align:right" in s for s in styles[1:8])
    assert "<style" not in html and "class=" not in html
    other = {**RUN, "q1": {"d1": 0.9, "d2": 0.5, "d3": 0.7}}
    comparison = quiet(dh.compare)(QRELS, {"a": RUN, "b": other}, "Recall@2")._repr_html_()
    assert re.search(r"color:#9a6700[^>]*>undecided: ties</span>", comparison)
    assert "<h1>Ties of run</h1>" in dh.diagnose(QRELS, RUN, "MRR")._repr_html_()


@pytest.mark.parametrize("kind", ["Result", "Comparison", "Leaderboard", "Diagnosis"])
def test_all_result_types_have_the_same_output_methods(kind, result):
    runs = {"a": RUN, "b": {**RUN, "q1": {"d1": 0.9, "d2": 0.5, "d3": 0.7}}}
    printed = {
        "Result": lambda: result,
        "Comparison": lambda: quiet(dh.compare)(QRELS, runs, "Recall@2"),
        "Leaderboard": lambda: quiet(dh.leaderboard)(QRELS, runs, ["Recall@2"]),
        "Diagnosis": lambda: quiet(dh.diagnose)(QRELS, RUN, "Recall@2"),
    }[kind]()
    assert repr(printed).startswith(f"<{kind} ") and "\n" not in repr(printed)
    assert "Recall@2" in str(printed) and "┏" in str(printed)
    assert "<table" in printed._repr_html_() and printed.__rich__().renderables
    assert r"\begin{tabular}" in printed.to_latex() and "| ---" in printed.to_markdown()
    assert printed.to_markdown(percent=True) != printed.to_markdown()
    assert json.loads(printed.to_json()) == json.loads(json.dumps(printed.to_dict()))
    assert "," in printed.to_csv()


def test_plot_and_write_report(tmp_path, result):
    pytest.importorskip("jinja2")
    code = "import deadheat as dh; print(callable(dh.write_report), dh.plot.__name__)"
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert completed.stdout.split() == ["True", "deadheat.report.figures"]
    path = dh.write_report({"mine": result}, tmp_path / "r.html", qrels=QRELS, runs={"mine": RUN})
    page = path.read_text()
    assert "<title>mine</title>" in page and '"d3"' in page
    with pytest.raises(dh.InputError, match="exists already; use force=True"):
        dh.write_report(result, path)
    dh.write_report([result, rename_result(result, "other")], path, force=True)
    assert "other" in path.read_text()
    with pytest.raises(dh.InputError, match="both qrels and runs"):
        dh.write_report(result, tmp_path / "x.html", runs=[RUN])
    with pytest.raises(dh.InputError, match="1 results, but 2 runs"):
        dh.write_report(result, tmp_path / "x.html", qrels=QRELS, runs=[RUN, RUN])
    with pytest.raises(dh.InputError, match=r"results of evaluate .*not a Judgements"):
        dh.write_report(dh.read_qrels(QRELS), tmp_path / "x.html")
    with pytest.raises(dh.InputError, match="no result to report"):
        dh.write_report([], tmp_path / "x.html")
    with pytest.raises(dh.InputError, match="cannot be written"):
        dh.write_report(result, tmp_path / "none" / "x.html")
    assert not (tmp_path / "x.html").exists()


def test_literal_types_match_the_allowed_values():
    from typing import get_args

    from deadheat.settings import (
        NAN_POLICIES,
        QUERY_POLICIES,
        TIE_RULES,
        NanPolicy,
        QueryPolicy,
        TieRule,
    )

    assert set(get_args(TieRule)) == set(TIE_RULES)
    assert set(get_args(QueryPolicy)) == set(QUERY_POLICIES)
    assert set(get_args(NanPolicy)) == set(NAN_POLICIES)


def test_flat_returns_floats_and_omits_missing_values(result):
    flat = result.flat()
    assert flat["Recall@2"] == result["Recall@2"].expected
    assert flat["Recall@2_bias"] == result["Recall@2"].bias
    assert result["ERR"].std is None and "ERR_std" not in flat and "ERR_range" in flat
    assert {type(value) for value in flat.values()} == {float}
    assert len(flat) == 7 * len(result) - 1
    assert next(iter(result.flat("dev/", at=".", views=["worst"]))) == "dev/Recall.2_worst"


def test_flat_with_plain_names():
    measures = ["MAP(divisor='min', rel=2)@10", "R-Precision", "RBP(p=0.95)", "nDCG@10", "R_cap@3"]
    result = dh.evaluate({"q": {"d": 2}}, {"q": {"d": 1.0}}, measures)
    assert list(result.flat("dev/", views=["expected", "range"], plain=True))[::2] == [
        "dev/MAP_rel_2_divisor_min_at_10",
        "dev/R_Precision",
        "dev/RBP_p_0_95",
        "dev/nDCG_at_10",
        "dev/R_cap_at_3",
    ]
    assert list(result.flat(plain=True).values()) == list(result.flat().values())


@pytest.mark.parametrize("views", [["mean"], "range", ["expected", "variance"]])
def test_flat_rejects_unknown_views(result, views):
    with pytest.raises(dh.InputError, match="views must be some of expected"):
        result.flat(views=views)


@pytest.mark.parametrize("fact", [{"tie_break": "in+ut"}, {"score_dtype": "int3"}])
def test_stored_result_with_an_unknown_setting_is_rejected(fact):
    result = dh.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, ["MRR"])
    stored = result.to_dict()
    stored["provenance"]["settings"] |= fact
    with pytest.raises(dh.InputError, match="not a stored deadheat result"):
        dh.Result.from_dict(stored)


def test_result_of_an_older_version_can_be_read():
    result = dh.evaluate(QRELS, RUN, "MRR", tie_break="id_desc", score_dtype="bf16")
    stored = result.to_dict()
    stored["provenance"] |= stored["provenance"].pop("settings")
    assert dh.Result.from_dict(stored) == result
