"""Causes of ties that `diagnose` reports, and cases in which it reports none."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from quiet import quiet

import deadheat as dh
from deadheat.diagnosis.number_grid import find_logit_grid
from deadheat.scoring import FORMATS, sigmoid, softmax


def logit_grid(scores):
    return dh.diagnose({"q": {f"d{i}": s for i, s in enumerate(scores)}}).logit_grid


def find_causes(*lists):
    run = {f"q{i}": {f"d{j}": s for j, s in enumerate(list_)} for i, list_ in enumerate(lists)}
    return {cause.name: cause.statement for cause in dh.diagnose(run).causes}


# Number grids in logit space


@pytest.mark.parametrize(
    ("model_dtype", "column", "name"),
    [
        ("bfloat16", "logit", "bf16"),
        ("float16", "logit", "fp16"),
        ("float32", "logit", None),
        ("bfloat16", "head_logit", None),
    ],
)
def test_recorded_logits_of_a_cross_encoder(recorded, model_dtype, column, name):
    frame = pl.read_parquet(recorded / "cross-encoder-wikiqa.parquet")
    scores = sigmoid(frame.filter(model_dtype=model_dtype)[column].to_numpy(), "fp32")
    grid = logit_grid(scores)
    assert (grid and grid.name) == name
    if grid:
        assert grid.share == 1
        assert re.search(rf"100\.0% of the scores .*sigmoids .* of {name}\b", grid.statement)


@pytest.mark.parametrize(("prefix", "name"), [("", "1/8"), ("head_", None)])
def test_recorded_logits_of_a_language_model(recorded, prefix, name):
    frame = pl.read_parquet(recorded / "qwen2.5-0.5b-noveleval.parquet")
    frame = frame.filter(model_dtype="bfloat16")
    both = [frame[f"{prefix}logit_{word}"].to_numpy() for word in ("no", "yes")]
    grid = logit_grid(softmax(tuple(both), "fp32"))
    assert (grid and grid.name) == name


@pytest.mark.parametrize("scale", [0.1, 1, 5, 15])
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_logit_grid_of_rounded_but_not_of_arbitrary_logits(scale, name):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        logits = rng.normal(rng.normal(0, scale), scale, 400).astype(np.float32)
        arbitrary = np.unique(sigmoid(logits, "fp32"))
        assert find_logit_grid(arbitrary, np.spacing(arbitrary)) is None
        coarse = np.unique(sigmoid(FORMATS[name].round(logits), "fp32"))
        grid = find_logit_grid(coarse, np.spacing(coarse))
        assert grid.name == name
        assert grid.share > 0.99


def test_logit_grid_reports_its_share_and_requires_more_than_half():
    rng = np.random.default_rng(7)
    logits = rng.normal(0, 2, 3000).astype(np.float32)
    coarse = np.rint(logits * 256) / 256
    for share, is_found in ((0.95, True), (0.5, False)):
        mixed = np.where(rng.random(3000) < share, coarse, logits)
        values = np.unique(sigmoid(mixed, "fp32"))
        grid = find_logit_grid(values, np.spacing(values))
        assert (grid is not None) == is_found
        if grid:
            truth = np.isin(values, sigmoid(coarse, "fp32")).mean()
            assert grid.name == "1/256"
            assert grid.share == pytest.approx(truth, abs=0.01)


@pytest.mark.parametrize(
    "scores",
    [
        np.round(1 / (1 + np.exp(-np.arange(-99, 99) / 32)), 3),
        FORMATS["bf16"].round(1 / (1 + np.exp(-np.arange(-99, 99) / 32))),
        np.arange(1, 200) / 201,
        np.arange(200) - 100.0,
        0.5 + np.arange(-2, 3) / 1e4,
        np.round(np.add.outer([0.5, 0.7311], np.arange(-2, 3) / 1e4).ravel(), 4),
        [0.5],
        [0.0, 1.0],
    ],
    ids=[
        "3 decimals",
        "bf16",
        "fractions",
        "negative",
        "near one value",
        "near two values",
        "one value",
        "saturated",
    ],
)
def test_no_logit_grid_for_ambiguous_scores(scores):
    assert logit_grid(scores) is None


def test_text_describes_the_logit_grid():
    logits = FORMATS["bf16"].round(np.random.default_rng(1).normal(0, 2, 500))
    text = str(dh.diagnose({"q": dict(enumerate(sigmoid(logits, "fp32")))}))
    line = " ".join(text.split())
    assert re.search(r"Logits: 100\.0% of the scores .*sigmoids .* of bf16\b", line)


# Causes that are not rounding


def draw_scores(n=300, seed=0):
    return np.random.default_rng(seed).normal(0, 1, n)


def test_rounding_is_not_reported_as_plateaus():
    scores = draw_scores()
    assert find_causes(scores) == {}
    assert find_causes(np.where((scores > 0) & (scores < 0.5), 0.25, scores)).keys() == {"plateaus"}
    assert find_causes(FORMATS["bf16"].round(scores / 50 + 1)) == {}
    assert find_causes(np.round(scores, 1)) == {}
    # A few scores with many decimals do not hide that most scores are rounded.
    mixed = np.concatenate([np.round(scores, 1), draw_scores(5, 1)])
    assert find_causes(mixed) == {}


def test_plateau_statement_counts_groups_and_documents():
    scores = np.concatenate([draw_scores(80), np.full(20, 9.0)])
    reported = find_causes(scores, draw_scores(100, 1))["plateaus"]
    assert re.search(r"1 tie group of 10 documents .* 20 \(10\.0% of all documents\)", reported)


def test_constant_tails_are_reported():
    tail = np.concatenate([draw_scores(50), np.full(30, -9.0)])
    reported = find_causes(tail, draw_scores(80, 1))
    assert reported.keys() == {"constant tails"}
    assert re.search(r"1 tie group of 10 documents .* 30\b", reported["constant tails"])


def test_saturation_is_distinguished_from_plateaus():
    scores = 1 / (1 + np.exp(-draw_scores()))
    scores[:40] = 1.0
    assert find_causes(scores).keys() == {"saturation"}
    assert find_causes(scores * 3).keys() == {"plateaus"}


def test_votes_have_an_integer_grid_and_no_causes():
    votes = np.random.default_rng(3).integers(0, 40, 200)
    diagnosis = dh.diagnose({"q": {f"d{i}": float(vote) for i, vote in enumerate(votes)}})
    assert (diagnosis.grid.name, diagnosis.causes) == ("integer", ())
    assert "whole number" in str(diagnosis) and "votes" in str(diagnosis)


def fuse_ranks(systems, depth=300, k=60, digits=None):
    rng = np.random.default_rng(5)
    total = np.zeros(2 * depth)
    for _ in range(systems):
        total[rng.permutation(2 * depth)[:depth]] += 1 / (k + np.arange(1, depth + 1))
    total = total[total > 0]
    return total if digits is None else np.round(total, digits)


@pytest.mark.parametrize(
    ("systems", "words"), [(1, "are reciprocals"), (2, "up to 2"), (3, "up to 3")]
)
def test_reciprocal_rank_fusion_is_detected(systems, words):
    reported = find_causes(fuse_ranks(systems))["fused ranks"]
    assert reported.startswith("100% of")
    assert words in reported
    assert "reciprocal rank fusion" in reported and "1 / (60 + rank)" in reported


@pytest.mark.parametrize(
    "scores",
    [
        fuse_ranks(2, digits=5),
        fuse_ranks(2) * 1.01,
        fuse_ranks(2, k=47.3137),
        np.abs(draw_scores()) / 50,
    ],
    ids=["5 decimals", "scaled", "another constant", "arbitrary"],
)
def test_other_scores_are_not_reported_as_fusion(scores):
    assert "fused ranks" not in find_causes(scores)


@pytest.mark.parametrize("scores", [[], [np.inf] * 12, [-np.inf, np.inf, 1.0]])
def test_causes_of_runs_without_finite_scores(scores):
    reported = find_causes(scores, [1.0])
    assert reported.keys() <= {"constant tails"}


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize(
    ("run", "names"),
    [
        ("covidex.r4.duot5", {"fused ranks"}),
        ("Emory_rnd4_run1", {"plateaus", "constant tails"}),
        ("ILPS_UvA_big_diverse", set()),  # its scores are adjacent FP32 values
        ("aserini2000-t53", set()),  # BF16
    ],
)
def test_causes_of_official_submissions(shared, run, names):
    path = shared / "trec-covid" / "round4" / "runs" / f"{run}.xz"
    assert {cause.name for cause in dh.diagnose(path).causes} == names


# Ties that only a cast to float32 makes


def test_pairs_that_would_tie_in_float32_are_counted():
    run = {"q1": {"a": 1.0, "b": 1.00000000001, "c": 1.00000000002}, "q2": {"a": 1.0, "b": 2.0}}
    diagnosis = dh.diagnose(run)
    assert diagnosis.anatomy.float32_pairs == 3
    assert "3 further pairs would tie" in " ".join(str(diagnosis).split())
    rounded = dh.diagnose(run, score_dtype="float32")
    assert rounded.anatomy.float32_pairs == 0
    assert "further pair" not in str(rounded)


# Coverage of the run by judgements


def test_top_without_judged_documents_warns():
    run = {"q": {f"d{i}": float(-i) for i in range(500)}}
    wrong = {"q": {f"d{i}": 1 for i in range(300, 400)}}
    with pytest.warns(dh.DeadheatWarning, match="none of the first 10 documents"):
        diagnosis = dh.diagnose(wrong, run, ["Recall@100"])
    assert diagnosis.effect.judged == {100: 0}


@pytest.mark.filterwarnings("error:none of the first 10 documents")
def test_sparse_judgements_do_not_warn():
    run = {f"q{q}": {f"d{i}": float(-i) for i in range(50)} for q in range(10)}
    sparse = {f"q{q}": {"d3" if q < 2 else "d40": 1} for q in range(10)}
    diagnosis = dh.diagnose(sparse, run, ["MAP"])
    assert diagnosis.effect.judged == {10: pytest.approx(0.02)}
    assert "2.0% of the first 10" in str(diagnosis)


def test_rel_above_the_highest_grade_warns():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 0.5}}
    message = r"MAP\(rel=2\); bpref\(rel=3\) is 0 .*highest grade .* 1, .*rel"
    with pytest.warns(dh.DeadheatWarning, match=message):
        dh.evaluate(qrels, run, ["MAP(rel=2)", "MAP(rel=1)", "bpref(rel=3)", "nDCG"])
    with pytest.warns(dh.DeadheatWarning, match=r"MRR\(rel=2\) is 0 .*highest grade"):
        dh.diagnose(qrels, run, "MRR(rel=2)")


# Cut lists


def build_cut_run(n=1000):
    """Build a list that ends in a tie group, and judgements with a relevant document not in it."""
    run = {"q": {f"d{i}": float(max(n - i, 3)) for i in range(n)}}
    return run, {"q": {"d5": 1, "gone": 1}}


@pytest.mark.parametrize(
    ("measure", "warns"),
    [("MAP", True), ("nDCG", True), ("RBP", False), ("RBP(p=0.999)", True), ("MRR", False)],
)
def test_cut_without_visible_effect_does_not_warn(measure, warns):
    run, qrels = build_cut_run()
    result = quiet(dh.evaluate)(qrels, run, measure)
    assert any("cut inside a tie group" in text for text in result.warnings) == warns


def test_lists_that_may_have_been_cut_are_counted():
    run, qrels = build_cut_run(20)
    run["complete"], qrels["complete"] = {"a": 1.0, "b": 1.0}, {"a": 1}
    diagnosis = quiet(dh.diagnose)(qrels, run, "MAP")
    assert diagnosis.anatomy.end_tied == 2
    assert "1 list may have been cut" in diagnosis.check.effect
