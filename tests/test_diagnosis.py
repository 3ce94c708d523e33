"""`diagnose`, compared with brute force and recorded models."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st
from test_scoring_recorded import BF16, HPS

import deadheat as dh
from deadheat.cli import main
from deadheat.diagnosis.number_grid import FLOATS, find_grid
from deadheat.diagnosis.what_if import FAMILIES
from deadheat.formats import read_qrels, read_run
from deadheat.scoring import score

ROUNDINGS = {name: rounding for family in FAMILIES for name, rounding in family.items()}
FORMATS = {format.name: format for format in FLOATS}
ignore_warnings = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")


# The number grid

SCORES = st.lists(st.floats(0.01, 100), min_size=1, max_size=60)
GRIDS = st.sampled_from([*FORMATS, "1 decimal", "2 decimals", "4 decimals"])


def count_evidence_bits(name: str, values: np.ndarray) -> float:
    """Return by how many bits the values of a grid are sparser than float64 numbers."""
    values = np.unique(values[values != 0])
    if name in FORMATS:
        spacing = np.spacing(values.astype(FORMATS[name].dtype)).astype(np.float64)
    else:
        spacing = np.full(len(values), 10.0 ** -int(name.split()[0]))
    return float(np.log2(spacing / np.spacing(values)).sum())


@given(SCORES, GRIDS)
def test_find_grid_returns_the_grid_of_rounded_scores_or_a_coarser_one(scores, name):
    values = ROUNDINGS[name](np.array(scores)).astype(np.float64)
    if not values.any():
        return
    grid = find_grid(values)
    assert grid.bits >= count_evidence_bits(name, values) - 1e-6
    if grid.name != name and grid.name in ROUNDINGS:
        dtype = np.float32 if np.array_equal(values.astype(np.float32), values) else np.float64
        assert np.array_equal(ROUNDINGS[grid.name](values).astype(dtype), values)
    if grid.name == "integer":
        assert np.array_equal(np.rint(values), values)
    if "," in grid.name:  # a format written with decimals
        format, digits = grid.name.split(", ")
        rounded = FORMATS[format].round(values).astype(np.float64)
        assert np.array_equal(np.round(rounded, int(digits.split()[0])), values)


@given(SCORES, GRIDS)
def test_one_score_off_the_grid_gives_fp64(scores, name):
    values = ROUNDINGS[name](np.array([*scores, 0.75])).astype(np.float64)
    off = np.append(values, np.nextafter(values, np.inf)[-1])
    assert find_grid(off).name == "fp64"


@pytest.mark.parametrize(
    ("scores", "name"),
    [
        (np.arange(100.0), "integer"),
        (np.arange(0, 2000, 10.0), "integer"),
        (np.round(np.linspace(0, 9, 700), 3), "3 decimals"),
        (np.round(np.linspace(0, 9, 700), 3).astype(np.float32), "3 decimals"),
        (BF16, "bf16, 8 decimals"),
        (HPS, "fp32, 8 decimals"),
        (np.array([float(str(x)) for x in HPS.astype(np.float32) / 3]), "fp32, fewest digits"),
        (np.linspace(0, 1, 700), "fp64"),
        (np.linspace(0, 1, 700, dtype=np.float32), "fp32"),
        (np.linspace(0, 1, 700, dtype=np.float32).astype(np.float64), "fp32"),
        (np.array([-np.inf, np.inf]), "fp64"),
        (np.array([448.0, 1.125, 3.5, 0.0]), "fp8_e4m3"),
        (np.array([np.finfo(np.float64).max, -np.finfo(np.float64).max, 1.0]), "fp64"),
    ],
)
def test_find_grid_on_known_scores(scores, name):
    assert find_grid(scores).name == name


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [1, 10, 100])
@pytest.mark.parametrize("levels", [8, 40, 700])
def test_decimals_of_float32_scores_in_a_float64_array(k, scale, levels):
    """Such scores come from JSON, ``tolist`` and dicts."""
    rounded = np.round(np.random.default_rng(4).random(levels, np.float32) * scale, k)
    grid = find_grid(rounded.astype(np.float64))
    assert (grid.name, grid.name) == (find_grid(rounded).name, f"{k} decimal{'s' * (k > 1)}")
    off = np.append(rounded, np.nextafter(rounded[:1], 9))
    assert find_grid(off.astype(np.float64)).name == find_grid(off).name == "fp32"


def test_diagnose_reports_decimals_of_float32_scores():
    rng = np.random.default_rng(1)
    scores = {f"q{q}": np.round(rng.random(200, np.float32), 2) for q in range(3)}
    run = {q: {f"d{i}": float(s) for i, s in enumerate(own)} for q, own in scores.items()}
    diagnosis = dh.diagnose(run)
    assert diagnosis.grid.name == "2 decimals"
    assert (diagnosis.scale.step, diagnosis.scale.highest) == (0.01, 1.0)
    for numbers in (np.concatenate([*scores.values()]), rng.random(600)):
        assert find_grid(FORMATS["bf16"].round(numbers).astype(np.float64)).name == "bf16"


def test_grid_of_few_scores_lists_the_grids_not_excluded():
    grid = find_grid(np.array([0.5, 0.25]))
    assert grid.name == "fp8_e5m2"
    assert set(grid.not_excluded) == {"fp8_e4m3", "2 decimals"}
    assert find_grid(FORMATS["bf16"].round(HPS)).not_excluded == ()


# Tie groups

LISTS = st.lists(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from([None, 0, 1, 2])), min_size=1, max_size=9
    ),
    min_size=1,
    max_size=5,
)


def build_run_and_qrels(lists):
    run = {
        f"q{q}": {f"d{i}": s / 4 for i, (s, _) in enumerate(docs)} for q, docs in enumerate(lists)
    }
    qrels = {
        f"q{q}": {f"d{i}": g for i, (_, g) in enumerate(docs) if g is not None} | {"gone": 1}
        for q, docs in enumerate(lists)
    }
    return run, qrels


@ignore_warnings
@given(LISTS)
def test_group_sizes_match_brute_force(lists):
    run, _ = build_run_and_qrels(lists)
    diagnosis = dh.diagnose(run)
    groups = [
        (q, score, n) for q, docs in run.items() for score, n in Counter(docs.values()).items()
    ]
    anatomy = diagnosis.anatomy
    assert anatomy.sizes == Counter(n for *_, n in groups)
    assert anatomy.distinct == len(groups) / sum(map(len, lists))
    assert anatomy.tied == sum(n for *_, n in groups if n > 1)
    assert (anatomy.largest_query, anatomy.largest_score, anatomy.largest) in groups
    assert anatomy.largest == max(n for *_, n in groups)
    ends = [min(docs.values()) for docs in run.values()]
    last = [list(docs.values()).count(end) for docs, end in zip(run.values(), ends, strict=True)]
    assert anatomy.end_tied == sum(n > 1 for n in last)


def test_queries_without_documents_have_no_tie_groups():
    run = {"none": {}, "q": {"a": 1.0, "b": 1.0}, "nothing": {}}
    anatomy = dh.diagnose(run).anatomy
    assert (anatomy.sizes, anatomy.largest_query, anatomy.end_tied) == ({2: 1}, "q", 1)
    logits = pl.DataFrame({"query_id": ["q", "q"], "logit": [3.0, 3.0]})
    assert dh.diagnose(run, logits=logits, model_dtype="fp16").origins.model == 1


@ignore_warnings
def test_worst_queries_have_the_largest_range():
    run, qrels = build_run_and_qrels(
        [[(1, 1), (1, 0)], [(2, 1), (1, 0)], [(1, 1), (1, 0), (1, 0), (1, 0)]]
    )
    worst = dh.diagnose(qrels, run, ["MRR", "nDCG@1"], worst=1).effect.worst_queries
    assert [(row["measure"], row["query_id"]) for row in worst] == [("MRR", "q2"), ("nDCG@1", "q0")]
    full = dh.diagnose(qrels, run, ["MRR"], worst=9).effect.worst_queries
    assert [row["query_id"] for row in full] == ["q2", "q0"]  # q1 has no range
    assert full[0]["range"] == pytest.approx(0.75)


# What if


@ignore_warnings
@pytest.mark.parametrize("tie_break", ["input", "id_desc", "pytrec_eval"])
def test_what_if_equals_evaluation_of_rounded_scores(tie_break):
    random = np.random.default_rng(3)
    scores = random.normal(size=(6, 40))
    grades = {f"q{q}": {f"d{i}": int(random.random() < 0.2) for i in range(50)} for q in range(6)}

    def run(values):
        lists = (zip((f"d{i}" for i in range(40)), row.tolist(), strict=True) for row in values)
        return {f"q{q}": dict(row) for q, row in enumerate(lists)}

    measures = ["nDCG@10", "MAP", "Judged@5"]
    effect = dh.diagnose(grades, run(scores), measures, tie_break=tie_break, tolerance=0.01).effect
    unrounded = dh.evaluate(grades, run(scores), measures, tie_break=tie_break)
    rows = {(row.format, row.measure): row for row in effect.what_if}
    assert len(rows) == 3 * (1 + len(ROUNDINGS))
    for name, rounding in ROUNDINGS.items():
        rounded = rounding(scores.ravel()).reshape(scores.shape).astype(np.float64)
        for summary in dh.evaluate(grades, run(rounded), measures, tie_break=tie_break).values():
            row = rows[name, summary.measure]
            change = summary.expected - unrounded[summary.measure].expected
            assert row.expected == pytest.approx(summary.expected, abs=1e-12)
            assert row.change == pytest.approx(change, abs=1e-12)
            assert row.range == pytest.approx(summary.range, abs=1e-12)
            assert row.bias == pytest.approx(summary.bias, abs=1e-12)
            assert row.enough == (abs(change) <= 0.01 and summary.range <= 0.01)
    for measure, formats in effect.enough.items():
        for family in FAMILIES:
            chosen = [name for name in family if name in formats]
            finer = list(itertools.takewhile(lambda f, m=measure: rows[f, m].enough, family))
            assert chosen == finer[-1:]


@ignore_warnings
def test_text_names_the_coarsest_format_that_is_enough():
    run = {"q": {"a": 0.5, "b": 0.5009765625, "c": 0.1}}
    text = str(dh.diagnose({"q": {"a": 1}}, run, "nDCG@10"))
    assert "enough for nDCG@10 ± 0.001: fp16, int8, 3 decimals." in text
    text = str(dh.diagnose({"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}}, "MRR"))
    assert "enough for MRR ± 0.001: none." in text


@ignore_warnings
def test_formats_that_cannot_represent_the_scores_are_omitted():
    effect = dh.diagnose({"q": {"a": 1}}, {"q": {"a": 1e5, "b": 2.0, "c": -np.inf}}, "MRR").effect
    formats = {row.format for row in effect.what_if}
    assert formats.isdisjoint({"fp16", "fp8_e4m3", "fp8_e5m2", "int8"})
    assert {"fp32", "bf16", "1 decimal"} <= formats


# Lists cut inside a tie group


@ignore_warnings
def test_only_lists_missing_relevant_documents_count_as_cut():
    run, qrels = build_run_and_qrels([[(2, 1), (1, 0), (1, 1)], [(2, 1), (1, 1)], [(1, 1), (1, 0)]])
    del qrels["q2"]["gone"]
    # The last document of q1 is not tied; q2 lists every relevant document.
    assert "1 list may have been cut" in dh.diagnose(qrels, run, ["MAP"]).check.effect
    assert "cut" not in dh.diagnose(qrels, run, ["nDCG@1"]).check.effect


# Origins


def load_recorded(shared, name, model_dtype, regime="native"):
    frame = pl.read_parquet(shared / "recorded" / f"{name}.parquet").filter(model_dtype=model_dtype)
    kind = "sigmoid" if "logit" in frame.columns else "softmax"
    ends = [""] if kind == "sigmoid" else ["_no", "_yes"]
    logits, head = (
        tuple(frame[f"{prefix}{end}"].to_numpy() for end in ends)
        for prefix in ("logit", "head_logit")
    )
    scores = score(
        kind,
        regime=regime,
        model_dtype=model_dtype,
        logits=logits if len(ends) > 1 else logits[0],
        head_logits=head if len(ends) > 1 else head[0],
    )
    run = frame.select("query_id", "doc_id", score=pl.Series(scores))
    return frame, run


def count_tied_pairs(run: pl.DataFrame) -> int:
    return (
        int(
            run.group_by("query_id", "score")
            .len()
            .select((pl.col("len") * (pl.col("len") - 1)).sum())
            .item()
        )
        // 2
    )


def test_all_ties_of_the_recorded_language_model_come_from_its_head(shared):
    frame, run = load_recorded(shared, "qwen2.5-0.5b-noveleval", "bfloat16")
    diagnosis = dh.diagnose(frame, run, ["nDCG@10"], logits=frame)
    assert diagnosis.origins.pairs == count_tied_pairs(run) > 0
    assert (diagnosis.origins.scoring, diagnosis.origins.head) == (0, diagnosis.origins.pairs)
    assert diagnosis.origins.model == 0
    assert diagnosis.grid.name == "bf16"
    assert f"{diagnosis.anatomy.distinct:.3f}" == "0.340"
    assert "by the head (gone under head)" in " ".join(str(diagnosis).split())


def test_tie_origins_of_the_recorded_cross_encoder(shared):
    frame, run = load_recorded(shared, "cross-encoder-wikiqa", "bfloat16")
    path = shared / "recorded" / "cross-encoder-wikiqa.parquet"
    origins = dh.diagnose(run, logits=path, model_dtype="bf16").origins
    hps = count_tied_pairs(load_recorded(shared, "cross-encoder-wikiqa", "bfloat16", "hps")[1])
    assert origins.pairs == count_tied_pairs(run)
    assert origins.scoring == origins.pairs - hps > 0
    assert origins.scoring + origins.head + origins.model == origins.pairs
    without = dh.diagnose(run, logits=frame.drop("head_logit")).origins
    assert (without.head, without.model) == (None, hps)


def test_ties_between_equal_head_logits_have_origin_model():
    columns = {
        "query_id": ["q"] * 5,
        "logit": [6.75, 6.78125, 1.0, 1.0, 1.0],
        "head_logit": [6.75, 6.78, 1.0, 1.0, 1.01],
    }
    run = {"q": dict(zip("abcde", [1.0, 1.0, 0.73, 0.73, 0.73], strict=True))}
    origins = dh.diagnose(run, logits=pl.DataFrame(columns), model_dtype="bf16").origins
    # The sigmoid ties a and b, the head ties e with c and d, the model ties c and d.
    assert (origins.pairs, origins.scoring, origins.head, origins.model) == (4, 1, 2, 1)


# Real runs


@ignore_warnings
def test_diagnose_trec_covid_submissions(shared):
    folder = shared / "trec-covid"
    diagnosis = dh.diagnose(
        folder / "round4.qrels.gz",
        folder / "round4-ILPS_UvA_big_diverse.run.gz",
        ["nDCG@10", "MAP"],
    )
    assert diagnosis.anatomy.largest == 733
    assert f"{diagnosis.anatomy.distinct:.3f}" == "0.004"
    assert (diagnosis.grid.name, diagnosis.grid.not_excluded) == (
        "9 decimals",
        ("fp32, fewest digits",),
    )
    assert diagnosis.effect.worst_queries[0]["range"] == 1
    assert diagnosis.effect.enough == {"nDCG@10": [], "MAP": []}
    assert "44 lists may have been cut" in diagnosis.check.effect
    diagnosis = dh.diagnose(folder / "round3-factum-sparse.run.gz")
    assert (diagnosis.effect, diagnosis.anatomy.largest) == (None, 3)


# Presentation and bad input

RUN, QRELS = {"q": {"a": 0.5, "b": 0.5, "c": 0.25}}, {"q": {"b": 1}}


def test_diagnosis_as_json_markdown_and_text():
    diagnosis = dh.diagnose(QRELS, RUN, ["nDCG@10"])
    data = json.loads(diagnosis.to_json())
    assert data["anatomy"]["sizes"] == {"1": 1, "2": 1}
    assert data["effect"]["what_if"][0]["format"] == "as given"
    assert data["effect"]["worst_queries"][0]["query_id"] == "q"
    markdown = diagnosis.to_markdown()
    assert "Queries of the largest range" in markdown and "What if" not in markdown
    full = dh.tables.render(diagnosis.parts(details=True), "markdown")
    assert "| nDCG@10 | as given |" in full
    assert max(map(len, str(diagnosis).splitlines())) <= 96
    assert "Queries of the largest range" in str(diagnosis)
    assert "enough" not in str(dh.diagnose(RUN))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"run": {}}, "no scored documents"),
        (
            {"run": {"q": {"a": float("nan"), "b": 1.0}}},
            "query 'q', document 'a': the score is NaN.* scores$",
        ),
        ({"measures": ["nDCG@10"]}, "need judgements"),
        ({"qrels": QRELS, "measures": ["nope"]}, "unknown measure"),
        ({"tolerance": -1}, "0 or more"),
        ({"tolerance": float("nan")}, "0 or more"),
        ({"worst": -1}, "0 or more"),
        ({"tie_break": "coin"}, "tie_break must be one of"),
        ({"logits": [1, 2, 3]}, "must be a table"),
        ({"logits": pl.DataFrame({"query_id": ["q"], "logit": [1.0]})}, "model_dtype .*none"),
    ],
)
def test_bad_input_raises_input_error(arguments, message):
    with pytest.raises(dh.InputError, match=message):
        dh.diagnose(**{"run": RUN, **arguments})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"query_id": ["q"] * 2, "logit": [1.0, 2.0]}, "query 'q' .*logits of 2 .* 3 documents"),
        ({"query_id": ["q", "q", "p"], "logit": [1.0] * 3}, "query 'q' .*logits of 2"),
        ({"query_id": ["q"] * 4, "logit": [1.0] * 4}, "logits of 4 documents"),
        ({"query_id": ["q"] * 3, "logit_yes": [1.0] * 3}, "no column 'logit'"),
        ({"logit": [1.0] * 3}, "no column 'query_id'"),
        ({"query_id": ["q"] * 3, "logit": [1.0, 2.0, None]}, "not a number"),
        ({"query_id": ["q"] * 3, "logit": [1.0, 2.0, float("nan")]}, "is nan"),
        ({"query_id": ["q"] * 3, "logit": [1.0, 2.0, 0.1]}, "not a bf16 value"),
        ({"query_id": ["q"] * 3, "logit": [1.0] * 3, "model_dtype": ["fp32"] * 3}, "0 documents"),
    ],
)
def test_mismatched_logits_raise_input_error(columns, message):
    with pytest.raises(dh.InputError, match=message):
        dh.diagnose(RUN, logits=pl.DataFrame(columns), model_dtype="bf16")


def test_logits_of_several_models_require_model_dtype():
    columns = {"query_id": ["q"] * 6, "logit": [1.0] * 6, "model_dtype": ["bf16", "fp32"] * 3}
    with pytest.raises(dh.InputError, match=r"one model_dtype .*bf16, fp32"):
        dh.diagnose(RUN, logits=pl.DataFrame(columns))
    diagnosis = dh.diagnose(RUN, logits=pl.DataFrame(columns), model_dtype="bfloat16")
    assert (diagnosis.origins.model_dtype, diagnosis.origins.pairs) == ("bf16", 3)


# The command line


@pytest.fixture
def files(tmp_path):
    (tmp_path / "run").write_text("q 0 a 1 0.5 x\nq 0 b 2 0.5 x\nq 0 c 3 0.25 x\nz 0 a 1 1 x\n")
    (tmp_path / "qrels").write_text("q 0 b 1\nq 0 gone 1\n")
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(main, ["diagnose", *map(str, arguments)])


def test_command_diagnoses_a_file(files):
    result = invoke(files / "run")
    assert result.exit_code == 0
    assert re.search(r"Number grid: .* fp8_e5m2", result.stdout)
    result = invoke(files / "qrels", files / "run", "-m", "MRR@1", "--worst", 1)
    assert result.exit_code == 0
    assert "Queries of the largest range" in result.stdout
    assert "without judgements" in result.stderr
    result = invoke(files / "qrels", files / "run", "--format", "json", "--enough-within", 0.5)
    assert json.loads(result.stdout)["effect"]["tolerance"] == 0.5


def test_command_with_output_file_and_logits(files):
    out = files / "out.md"
    assert invoke(files / "run", "--format", "markdown", "-o", out).exit_code == 0
    assert out.read_text().startswith("# Ties of run")
    assert invoke(files / "run", "-o", out).exit_code == 2
    assert invoke(files / "run", "-o", out, "--force").exit_code == 0
    (files / "logits.csv").write_text("query_id,logit\nq,1\nq,1\nq,0.5\nz,3\n")
    result = invoke(files / "run", "--logits", files / "logits.csv", "--model-dtype", "bf16")
    assert "the head or the model" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing",), "no such file"),
        (("run", "-m", "nDCG@10"), "need judgements"),
        (("qrels", "run", "-m", "nope"), "unknown measure"),
        (("run", "run"), "swapped"),
        (("run", "qrels", "run"), "not 3 files"),
        (("-", "-"), "read only once"),
        (("run", "--logits", "qrels", "--model-dtype", "bf16"), "expected named columns"),
    ],
)
def test_command_exits_with_2_on_bad_input(files, monkeypatch, arguments, message):
    monkeypatch.chdir(files)
    result = invoke(*arguments)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


@ignore_warnings
def test_old_argument_order_works_with_a_deprecation_warning():
    qrels, run = {"q": {"d1": 1}}, {"q": {"d1": 0.5, "d2": 0.5}}
    judgements, candidates = read_qrels(qrels), read_run(run)
    expected = dh.diagnose(qrels, run).to_dict()
    for arguments in ((candidates, judgements), (run, judgements), (candidates, qrels)):
        with pytest.warns(DeprecationWarning, match=r"diagnose\(qrels, run\)") as caught:
            diagnosis = dh.diagnose(*arguments)
        assert diagnosis.to_dict() == expected
        assert caught[0].filename == __file__
    assert dh.diagnose(judgements, candidates).to_dict() == expected  # without a warning
    assert dh.diagnose(candidates).name == dh.diagnose(run).name
