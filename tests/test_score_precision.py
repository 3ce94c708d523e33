"""`score_dtype`: scores are rounded to a format before they are evaluated."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import pytrec_eval
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st
from quiet import quiet

import deadheat as dh
from deadheat.cli import main
from deadheat.evaluation import rank_query
from deadheat.formats import read_qrels, read_run
from deadheat.report.figures.inputs import tie_rule
from deadheat.report.page import Collection, System, render_page
from deadheat.scoring import FORMATS
from deadheat.settings import EvalSettings
from deadheat.ties.ranked import rank_lists

QRELS = {"q": {"a": 1}}
RUN = {"q": {"a": 1.00000000001, "b": 1.0}}
"""The relevant document a ranks first. In float32 both tie, and descending ids rank b first."""


def test_oblivious_value_outside_worst_and_best_emits_a_warning():
    with pytest.warns(
        dh.DeadheatWarning, match=r"1 query .*outside \[worst, best\].*score_dtype='float32'"
    ):
        summary = dh.evaluate(QRELS, RUN, "MRR", tie_break="pytrec_eval")["MRR"]
    assert (summary.worst, summary.best, summary.oblivious) == (1, 1, 0.5)


@pytest.mark.parametrize("score_dtype", ["float32", "fp32", np.float32, "torch.float32"])
@pytest.mark.parametrize("rule", ["pytrec_eval", "id_desc"])
@pytest.mark.filterwarnings("error::deadheat.DeadheatWarning")
def test_float32_score_dtype_gives_all_views_the_ties_of_pytrec_eval(score_dtype, rule):
    result = dh.evaluate(QRELS, RUN, "MRR", tie_break=rule, score_dtype=score_dtype)
    views = result["MRR"]
    assert (views.worst, views.best, views.oblivious, views.expected) == (0.5, 1, 0.5, 0.75)
    assert result.provenance.settings.score_dtype == "fp32"
    assert result.notes[0].endswith("; all views: scores rounded to fp32")
    again = dh.Result.from_json(result.to_json())
    assert again.provenance == result.provenance
    assert tie_rule({"run": again}).endswith(", scores rounded to fp32")


lists = st.dictionaries(
    st.text(st.sampled_from("aB1é~_-"), min_size=1, max_size=3),
    st.tuples(
        st.one_of(
            st.sampled_from([0.5, 0.5000000001, 1.0, 1.00000000001, 1.001, -1.0, 7.0]),
            st.floats(-1e4, 1e4),
        ),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60)
@given(documents=lists)
@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_score_dtype_equals_evaluation_of_rounded_scores(documents):
    qrels = {"q": {d: grade for d, (_, grade) in documents.items()}}
    run = {"q": {d: score for d, (score, _) in documents.items()}}
    measures, options = ["nDCG", "MRR", "MAP"], {"tie_break": "id_desc", "queries": "all"}
    from_pytrec_eval = pytrec_eval.RelevanceEvaluator(
        qrels, {"ndcg", "recip_rank", "map"}
    ).evaluate(run)
    for name in ("fp32", "fp16", "bf16"):
        result = dh.evaluate(qrels, run, measures, score_dtype=name, **options)
        rounded = {d: FORMATS[name].round([s])[0] for d, s in run["q"].items()}
        same = dh.evaluate(qrels, {"q": rounded}, measures, **options)
        assert result.aggregate.equals(same.aggregate)
        for view in result.values():
            assert view.worst - 1e-12 <= view.oblivious <= view.best + 1e-12
        if name == "fp32":
            expected = [from_pytrec_eval["q"][m] for m in ("ndcg", "recip_rank", "map")]
            assert [view.oblivious for view in result.values()] == pytest.approx(expected, abs=1e-6)


def round_exactly(x: Fraction, name: str) -> float:
    """Round to nearest in a format, midpoints to even, in exact arithmetic."""
    limits = ml_dtypes.finfo(FORMATS[name].dtype)
    exponent = limits.minexp
    while abs(x) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - limits.nmant)
    value = round(x / unit) * unit
    if abs(value) <= Fraction(float(limits.max)):
        return float(value)
    return np.nan if name == "fp8_e4m3" else np.copysign(np.inf, float(np.sign(value)))


@st.composite
def near_midpoints(draw: st.DrawFn, name: str) -> Fraction:
    """Draw a number at or very close to the midpoint of two values of a format."""
    limits = ml_dtypes.finfo(FORMATS[name].dtype)
    exponent = draw(st.integers(limits.minexp - limits.nmant - 3, limits.maxexp + 2))
    value = draw(st.integers(-(2 ** (limits.nmant + 2)), 2 ** (limits.nmant + 2)))
    value = value * Fraction(2) ** (exponent - limits.nmant)
    distance = draw(st.sampled_from([-1, 0, 1])) * Fraction(2) ** draw(st.integers(-80, -20))
    return value * (1 + distance)


@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"])
@settings(max_examples=300)
@given(data=st.data())
def test_numbers_are_rounded_directly_to_the_format(name, data):
    """For float64, long double, integers and fractions, without an intermediate format."""
    number = data.draw(st.one_of(near_midpoints(name), st.floats(allow_nan=False), st.integers()))
    if isinstance(number, float) and np.isinf(number):
        return
    with np.errstate(over="ignore"):
        exact = FORMATS[name].round(np.array([number, Fraction(number)], object))
        wide = FORMATS[name].round(np.array([float(number)]))
        double = FORMATS[name].round(np.array([float(number)], np.longdouble))
        small = isinstance(number, int) and abs(number) < 2**63
        whole = FORMATS[name].round(np.array([number])) if small else exact[:1]
    np.testing.assert_array_equal(exact, [round_exactly(Fraction(number), name)] * 2)
    np.testing.assert_array_equal(wide, [round_exactly(Fraction(float(number)), name)])
    np.testing.assert_array_equal(double, wide)
    np.testing.assert_array_equal(whole, exact[:1])


@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
def test_scores_that_round_to_different_values_do_not_tie(name):
    """Rounding twice would round scores slightly above a midpoint to it, and then down to 1."""
    half = 2.0 ** -(FORMATS[name].mantissa + 1)
    pairs = [(1 + half + 2.0**-40, 1.0)]
    pairs += [(Fraction(1 + half) + Fraction(1, 2**90), Fraction(1 + half))]
    if name != "fp16":
        pairs += [(2**80 + int(half * 2**80) + 1, 2**80 + int(half * 2**80))]
    for above, one in pairs:
        flat = dh.evaluate_arrays([[0, 1]], [[one, above]], "MRR", score_dtype=name)
        run = dh.evaluate(QRELS, {"q": {"b": one, "a": above}}, "MRR", score_dtype=name)
        assert flat["MRR"].range == run["MRR"].range == 0
        assert flat["MRR"].expected == run["MRR"].expected == 1


def test_diagnose_rounds_directly_to_the_format():
    run = {"q": {"a": 1 + 2.0**-11 + 2.0**-40, "b": 1.0, "c": 0.7310585786300049}}
    rows = {row.format: row for row in dh.diagnose(QRELS, run, "MRR").effect.what_if}
    assert rows["fp16"].range == 0
    assert rows["bf16"].range == 0.5


def test_evaluate_arrays_and_compare_accept_score_dtype():
    scores, relevance = [[1.00000000001, 1.0]], [[0, 1]]
    arrays = dh.evaluate_arrays(relevance, scores, "MRR", score_dtype="float32")
    assert arrays["MRR"].expected == 0.75
    assert arrays.provenance.settings.score_dtype == "fp32"
    runs = {"x": RUN, "y": {"q": {"a": 1.0}}}
    both = quiet(dh.compare)(QRELS, runs, "MRR", score_dtype="float32")
    assert both.ranking["expected"].to_list() == [1, 0.75]
    assert "scores rounded to fp32" in both.notes[0]
    results = [dh.evaluate(QRELS, RUN, "MRR", score_dtype=d) for d in (None, "fp32")]
    mixed = quiet(dh.compare)(dict(zip("xy", results, strict=True)))
    assert any("differ in score_dtype, None and 'fp32'" in text for text in mixed.warnings)


def test_diagnose_uses_rounded_scores():
    assert dh.diagnose(RUN).anatomy.tied == 0
    diagnosis = dh.diagnose(QRELS, RUN, "MRR", score_dtype="float32")
    assert diagnosis.anatomy.tied == 2
    assert diagnosis.grid.name == "integer"
    assert diagnosis.to_dict()["settings"]["score_dtype"] == "fp32"
    assert "scores rounded to fp32" in diagnosis.notes[0]


def test_rank_query_uses_rounded_scores():
    original = rank_query(QRELS, RUN, "q", "MRR")
    rounded = rank_query(QRELS, RUN, "q", "MRR", EvalSettings("id_desc", score_dtype="float32"))
    assert (original.documents.doc_ids, original.documents.size.tolist()) == (["a", "b"], [1, 1])
    assert (rounded.documents.doc_ids, rounded.documents.size.tolist()) == (["b", "a"], [2, 2])
    assert rounded.result["MRR"].worst == 0.5


def test_scores_that_overflow_emit_a_warning_and_tie():
    run = {"q": {"a": 1e5, "b": 70_000.0, "c": 3.0}}
    with pytest.warns(dh.DeadheatWarning, match="2 scores .*largest.* fp16"):
        result = dh.evaluate(QRELS, run, "MRR", score_dtype="fp16")
    assert result["MRR"].expected == 0.75


def test_nan_ranks_below_minus_infinity():
    run = {"q": {"a": float("nan"), "b": -np.inf, "c": -1e39}}
    result = dh.evaluate(QRELS, run, "MRR", nan="last")
    with pytest.warns(dh.DeadheatWarning, match="1 score .*largest.* fp32"):
        rounded = dh.evaluate(QRELS, run, "MRR", nan="last", score_dtype="float32")
    assert result["MRR"].best == rounded["MRR"].best == pytest.approx(1 / 3)


LOWEST = [np.nan, -np.inf, np.finfo(np.float64).min, np.nextafter(np.finfo(np.float64).min, 0)]
LOWEST += [-1e39, float(np.finfo(np.float32).min), -1.0, 0.0, 1e-300, np.inf]


@settings(max_examples=100)
@given(
    scores=st.lists(st.sampled_from(LOWEST), min_size=1, max_size=8),
    narrow=st.booleans(),
    rule=st.sampled_from(["input", "id_asc", "id_desc", "pytrec_eval"]),
    data=st.data(),
)
@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_nan_last_does_not_move_other_documents(scores, narrow, rule, data):
    """Compare with integers in the same order, of which the lowest stands for NaN."""
    with np.errstate(over="ignore"):
        values = np.array(scores, np.float32 if narrow else np.float64)
        cast = values.astype(np.float32)
    docs = [f"d{i}" for i in range(len(scores))]
    qrels = {"q": {d: data.draw(st.integers(0, 2)) for d in docs} | {"other": 1}}

    def as_integers(values):
        numbers = np.unique(values, return_inverse=True)[1] + 1
        return {"q": dict(zip(docs, np.where(np.isnan(values), 0, numbers).tolist(), strict=True))}

    def views(run, rule, tolerance=0.0):
        options = {"tie_break": rule, "nan": "last", "tie_tolerance": tolerance}
        return dh.evaluate(qrels, run, ["nDCG", "MRR", "MAP"], **options).values()

    run = {"q": dict(zip(docs, values, strict=True))}
    expected = views(as_integers(values), "id_desc" if rule == "pytrec_eval" else rule)
    expected_oblivious = views(as_integers(cast), "id_desc") if rule == "pytrec_eval" else expected
    for tolerance in (0.0, 1e-310):
        for own, other, rounded in zip(
            views(run, rule, tolerance), expected, expected_oblivious, strict=True
        ):
            assert own.worst == pytest.approx(other.worst)
            assert own.best == pytest.approx(other.best)
            assert own.expected == pytest.approx(other.expected)
            assert own.oblivious == pytest.approx(rounded.oblivious)
    if rule == "input":
        grades = [[qrels["q"][d] for d in docs]]
        flat = dh.evaluate_arrays(grades, [values], ["MRR"], nan="last", queries="all")["MRR"]
        ints = [[*as_integers(values)["q"].values()]]
        same = dh.evaluate_arrays(grades, ints, ["MRR"], queries="all")["MRR"]
        assert (flat.worst, flat.expected, flat.best) == (same.worst, same.expected, same.best)
    listed = rank_lists(read_run(run), read_qrels(qrels), ["q"], settings=EvalSettings(nan="last"))
    expected_lists = rank_lists(read_run(as_integers(values)), read_qrels(qrels), ["q"])
    assert (listed.doc_ids, listed.size.tolist()) == (
        expected_lists.doc_ids,
        expected_lists.size.tolist(),
    )


@pytest.mark.parametrize(
    ("score_dtype", "message"),
    [
        ("int8", "score_dtype .*float32, fp16, bf16.* int8"),
        ("float23", "unknown number format 'float23'"),
        (7, "unknown number format '7'"),
    ],
)
def test_unsupported_score_dtype_raises(score_dtype, message):
    for call in (
        lambda: dh.evaluate(QRELS, RUN, "MRR", score_dtype=score_dtype),
        lambda: dh.evaluate_arrays([[1]], [[1.0]], "MRR", score_dtype=score_dtype),
        lambda: dh.diagnose(RUN, score_dtype=score_dtype),
    ):
        with pytest.raises(dh.InputError, match=message):
            call()


def test_cli_accepts_score_precision(tmp_path):
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    (tmp_path / "run").write_text("q Q0 a 1 1.00000000001 x\nq Q0 b 2 1.0 x\n")
    files = [str(tmp_path / "qrels"), str(tmp_path / "run")]
    options = ["-m", "MRR", "--tie-break", "pytrec_eval"]
    plain = CliRunner().invoke(main, ["eval", *files, *options, "--strict"])
    assert plain.exit_code == 1
    assert "--score-dtype float32" in plain.stderr
    rounded = CliRunner().invoke(
        main, ["eval", *files, *options, "--strict", "--score-precision", "float32"]
    )
    assert rounded.exit_code == 0, rounded.stderr
    assert "all views: scores rounded to fp32" in " ".join(rounded.stdout.split())
    diagnosis = CliRunner().invoke(main, ["diagnose", *files, "--score-precision", "bf16"])
    assert diagnosis.exit_code == 0
    assert "scores rounded to bf16" in " ".join(diagnosis.stdout.split())


def test_score_precision_of_stored_result_raises(tmp_path):
    stored = tmp_path / "result.json"
    stored.write_text(dh.evaluate(QRELS, RUN, "MRR").to_json())
    page = CliRunner().invoke(
        main,
        ["report", str(stored), "--score-precision", "bf16", "-o", str(tmp_path / "p.html")],
    )
    assert page.exit_code == 2
    assert "--score-dtype" in page.stderr


def test_page_shows_ties_of_rounded_scores():
    qrels, run = read_qrels(QRELS), read_run(RUN)
    pages = [
        render_page(
            [
                Collection(
                    "c",
                    [System(dh.evaluate(qrels, run, "MRR", score_dtype=d), "x", run)],
                    qrels,
                )
            ],
            title="t",
        )
        for d in (None, "float32")
    ]
    assert "scores rounded to fp32" not in pages[0]
    assert "scores rounded to fp32" in pages[1]
    json_of_two_tied = "[[0,2,[[0,1.0,1.0],[1,null,1.0]]]]"
    assert [json_of_two_tied in page for page in pages] == [False, True]


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_official_value_is_outside_without_float32_and_inside_with_it(shared):
    folder = shared / "trec-covid"
    run = folder / "round4" / "runs" / "udel_fang_ltr_nobert.xz"
    options = {"measures": ["nDCG@20"], "tie_break": "pytrec_eval"}
    original = dh.evaluate(folder / "round4.qrels.gz", run, **options)
    rounded = dh.evaluate(folder / "round4.qrels.gz", run, score_dtype="float32", **options)
    official = original["nDCG@20"].oblivious
    assert official == rounded["nDCG@20"].oblivious
    assert not original["nDCG@20"].worst <= official <= original["nDCG@20"].best
    assert rounded["nDCG@20"].worst <= official <= rounded["nDCG@20"].best
    assert any("outside [worst, best]" in text for text in original.warnings)
    assert not any("outside [worst, best]" in text for text in rounded.warnings)
