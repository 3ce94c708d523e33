"""What a diagnosis claims of causes: found where they are, and not where they are not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from quiet import quiet

import deadheat as dh
from deadheat.diagnosis.number_grid import find_logit_grid
from deadheat.scoring import FORMATS, sigmoid, softmax


def logit_grid(scores):
    return dh.diagnose({"q": {f"d{i}": s for i, s in enumerate(scores)}}).logit_grid


def causes(*lists):
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
    found = logit_grid(scores)
    assert (found and found.name) == name
    if found:
        assert found.share == 1
        assert f"100.0% of the scores are sigmoids (or two-way softmaxes) of values of {name}" in (
            found.statement
        )


@pytest.mark.parametrize(("prefix", "name"), [("", "1/8"), ("head_", None)])
def test_recorded_logits_of_a_language_model(recorded, prefix, name):
    frame = pl.read_parquet(recorded / "qwen2.5-0.5b-noveleval.parquet")
    frame = frame.filter(model_dtype="bfloat16")
    both = [frame[f"{prefix}logit_{word}"].to_numpy() for word in ("no", "yes")]
    found = logit_grid(softmax(tuple(both), "fp32"))
    assert (found and found.name) == name


@pytest.mark.parametrize("scale", [0.1, 1, 5, 15])
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_simulated_logits_are_recognised_and_arbitrary_ones_are_not(scale, name):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        logits = rng.normal(rng.normal(0, scale), scale, 400).astype(np.float32)
        arbitrary = np.unique(sigmoid(logits, "fp32"))
        assert find_logit_grid(arbitrary, np.spacing(arbitrary)) is None
        coarse = np.unique(sigmoid(FORMATS[name].round(logits), "fp32"))
        found = find_logit_grid(coarse, np.spacing(coarse))
        assert found.name == name
        assert found.share > 0.99


def test_a_share_is_told_and_half_is_not_enough():
    rng = np.random.default_rng(7)
    logits = rng.normal(0, 2, 3000).astype(np.float32)
    coarse = np.rint(logits * 256) / 256
    for kept, named in ((0.95, True), (0.5, False)):
        mixed = np.where(rng.random(3000) < kept, coarse, logits)
        values = np.unique(sigmoid(mixed, "fp32"))
        found = find_logit_grid(values, np.spacing(values))
        assert (found is not None) == named
        if found:
            truth = np.isin(values, sigmoid(coarse, "fp32")).mean()
            assert found.name == "1/256"
            assert found.share == pytest.approx(truth, abs=0.01)


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
        "beside one",
        "beside two",
        "one",
        "saturated",
    ],
)
def test_nothing_is_claimed_of_scores_that_cannot_tell(scores):
    assert logit_grid(scores) is None


def test_the_logits_are_told_in_words():
    logits = FORMATS["bf16"].round(np.random.default_rng(1).normal(0, 2, 500))
    text = str(dh.diagnose({"q": dict(enumerate(sigmoid(logits, "fp32")))}))
    words = " ".join(text.split())
    assert "Logits: 100.0% of the scores are sigmoids (or two-way softmaxes) of values of bf16" in (
        words
    )


# Causes that are not rounding


def ragged(n=300, seed=0):
    return np.random.default_rng(seed).normal(0, 1, n)


def test_a_plateau_is_no_rounding_and_rounding_is_no_plateau():
    scores = ragged()
    assert causes(scores) == {}
    assert causes(np.where((scores > 0) & (scores < 0.5), 0.25, scores)).keys() == {"plateaus"}
    assert causes(FORMATS["bf16"].round(scores / 50 + 1)) == {}
    assert causes(np.round(scores, 1)) == {}
    # Nine scores in ten have few decimals: a few others do not make the grid a fine one.
    mixed = np.concatenate([np.round(scores, 1), ragged(5, 1)])
    assert causes(mixed) == {}


def test_a_plateau_says_how_many_documents_it_holds():
    scores = np.concatenate([ragged(80), np.full(20, 9.0)])
    told = causes(scores, ragged(100, 1))["plateaus"]
    assert "1 tie group of 10 documents or more, up to 20 (10.0% of all documents)" in told


def test_a_constant_tail_is_told():
    tail = np.concatenate([ragged(50), np.full(30, -9.0)])
    told = causes(tail, ragged(80, 1))
    assert told.keys() == {"constant tails"}
    assert "1 tie group of 10 documents or more, up to 30" in told["constant tails"]


def test_saturation_is_told_apart_from_plateaus():
    scores = 1 / (1 + np.exp(-ragged()))
    scores[:40] = 1.0
    assert causes(scores).keys() == {"saturation"}
    assert causes(scores * 3).keys() == {"plateaus"}


def test_votes_are_whole_numbers():
    votes = np.random.default_rng(3).integers(0, 40, 200)
    found = dh.diagnose({"q": {f"d{i}": float(vote) for i, vote in enumerate(votes)}})
    assert (found.grid.name, found.causes) == ("integer", ())
    assert "every score is a whole number, as counts, votes" in str(found)


def fused(systems, depth=300, k=60, digits=None):
    rng = np.random.default_rng(5)
    total = np.zeros(2 * depth)
    for _ in range(systems):
        total[rng.permutation(2 * depth)[:depth]] += 1 / (k + np.arange(1, depth + 1))
    total = total[total > 0]
    return total if digits is None else np.round(total, digits)


@pytest.mark.parametrize(
    ("systems", "words"), [(1, "are reciprocals"), (2, "up to 2"), (3, "up to 3")]
)
def test_fused_reciprocal_ranks_are_recognised(systems, words):
    told = causes(fused(systems))["fused ranks"]
    assert told.startswith("100% of")
    assert words in told
    assert "reciprocal rank fusion" in told and "1 / (60 + rank)" in told


@pytest.mark.parametrize(
    "scores",
    [fused(2, digits=5), fused(2) * 1.01, fused(2, k=47.3137), np.abs(ragged()) / 50],
    ids=["5 decimals", "scaled", "another constant", "arbitrary"],
)
def test_what_may_be_coincidence_is_not_called_fusion(scores):
    assert "fused ranks" not in causes(scores)


@pytest.mark.parametrize("scores", [[], [np.inf] * 12, [-np.inf, np.inf, 1.0]])
def test_runs_without_finite_scores_have_causes_too(scores):
    told = causes(scores, [1.0])
    assert told.keys() <= {"constant tails"}


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize(
    ("run", "names"),
    [
        ("covidex.r4.duot5", {"fused ranks"}),
        ("Emory_rnd4_run1", {"plateaus", "constant tails"}),
        ("ILPS_UvA_big_diverse", set()),  # its few scores lie on neighbouring values of FP32
        ("aserini2000-t53", set()),  # BF16
    ],
)
def test_causes_of_official_submissions(shared, run, names):
    path = shared / "trec-covid" / "round4" / "runs" / f"{run}.xz"
    assert {cause.name for cause in dh.diagnose(path).causes} == names


# Ties that only a cast to float32 makes


def test_ties_that_float32_would_add_are_counted():
    run = {"q1": {"a": 1.0, "b": 1.00000000001, "c": 1.00000000002}, "q2": {"a": 1.0, "b": 2.0}}
    diagnosis = dh.diagnose(run)
    assert diagnosis.anatomy.float32_pairs == 3
    assert "3 further pairs would tie" in " ".join(str(diagnosis).split())
    rounded = dh.diagnose(run, score_dtype="float32")
    assert rounded.anatomy.float32_pairs == 0
    assert "further pair" not in str(rounded)


# How judgements and run fit


def test_no_judged_document_in_the_top_asks_for_the_judgements():
    run = {"q": {f"d{i}": float(-i) for i in range(500)}}
    wrong = {"q": {f"d{i}": 1 for i in range(300, 400)}}
    with pytest.warns(dh.DeadheatWarning, match="none of the first 10 documents"):
        diagnosis = dh.diagnose(wrong, run, ["Recall@100"])
    assert diagnosis.effect.judged == {100: 0}


@pytest.mark.filterwarnings("error:none of the first 10 documents")
def test_sparse_judgements_are_judgements():
    run = {f"q{q}": {f"d{i}": float(-i) for i in range(50)} for q in range(10)}
    sparse = {f"q{q}": {"d3" if q < 2 else "d40": 1} for q in range(10)}
    diagnosis = dh.diagnose(sparse, run, ["MAP"])
    assert diagnosis.effect.judged == {10: pytest.approx(0.02)}
    assert "2.0% of the first 10" in str(diagnosis)


def test_a_grade_that_no_judgement_reaches_is_told():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 0.5}}
    says = r"MAP\(rel=2\); bpref\(rel=3\) is 0 .*highest grade .* 1, .*rel"
    with pytest.warns(dh.DeadheatWarning, match=says):
        dh.evaluate(qrels, run, ["MAP(rel=2)", "MAP(rel=1)", "bpref(rel=3)", "nDCG"])
    with pytest.warns(dh.DeadheatWarning, match=r"MRR\(rel=2\) is 0 .*highest grade"):
        dh.diagnose(qrels, run, "MRR(rel=2)")


# Cut lists


def cut_run(n=1000):
    """A list that ends inside a tie group, while a relevant document is missing."""
    run = {"q": {f"d{i}": float(max(n - i, 3)) for i in range(n)}}
    return run, {"q": {"d5": 1, "gone": 1}}


@pytest.mark.parametrize(
    ("measure", "felt"),
    [("MAP", True), ("nDCG", True), ("RBP", False), ("RBP(p=0.999)", True), ("MRR", False)],
)
def test_a_cut_that_cannot_move_a_digit_is_not_told(measure, felt):
    run, qrels = cut_run()
    result = quiet(dh.evaluate)(qrels, run, measure)
    assert any("cut inside a tie group" in text for text in result.warnings) == felt


def test_lists_that_may_have_been_cut_are_counted():
    run, qrels = cut_run(20)
    run["whole"], qrels["whole"] = {"a": 1.0, "b": 1.0}, {"a": 1}
    found = quiet(dh.diagnose)(qrels, run, "MAP")
    assert found.anatomy.end_tied == 2
    assert "1 list may have been cut" in found.check.effect
