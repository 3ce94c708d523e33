"""Scores of real models: the paper's example and the logits recorded for this project."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import deadheat as dh
from deadheat.scoring import FORMATS, score

# fmt: off
# Appendix B: Qwen3-Reranker-0.6B on the first query of MIRACLReranking.
HPS = np.array([
    0.99948066, 0.99933332, 0.99929035, 0.99919587, 0.99914408, 0.99883050, 0.99883050, 0.99875510,
    0.99858958, 0.99829930, 0.99767691, 0.99767691, 0.99752742, 0.99752742, 0.99736834, 0.99719906,
    0.99719906, 0.99701905, 0.99682730, 0.99662340, 0.99662340, 0.99592990, 0.99566853, 0.99566853,
    0.99509466, 0.99509466, 0.99477994, 0.99444515, 0.99444515, 0.99408901, 0.99408901, 0.99408901,
    0.99330717, 0.99330717, 0.99330717, 0.99242276, 0.99142247, 0.99142247, 0.99142247, 0.99087441,
    0.99087441, 0.99029154, 0.98967183, 0.98901308, 0.98901308, 0.98901308, 0.98831278, 0.98831278,
    0.98756832, 0.98593640, 0.98409361, 0.98201376, 0.97838473, 0.97702265, 0.97404259, 0.97068775,
    0.96885622, 0.96885622, 0.96885622, 0.96691406, 0.96691406, 0.96267307, 0.96036118, 0.96036118,
    0.96036118, 0.95791227, 0.95791227, 0.95791227, 0.95791227, 0.95531917, 0.95257413, 0.95257413,
    0.94966936, 0.94966936, 0.94659668, 0.94659668, 0.94659668, 0.93991333, 0.93991333, 0.93245327,
    0.92414182, 0.92414182, 0.91964257, 0.91490096, 0.88720459, 0.88720459, 0.88079703, 0.88079703,
    0.87407720, 0.86703575, 0.77729988, 0.60766321, 0.51561993, 0.46879065, 0.34864515, 0.30735803,
    0.28140560, 0.17328820, 0.08509904, 0.02442309,
])
BF16 = np.array([
    1.00000000, 1.00000000, 1.00000000, 1.00000000, 1.00000000, 1.00000000, 1.00000000, 1.00000000,
    1.00000000, 1.00000000, 0.99609375, 0.99609375, 0.99609375, 0.99609375, 0.99609375, 0.99609375,
    0.99609375, 0.99609375, 0.99609375, 0.99609375, 0.99609375, 0.99609375, 0.99609375, 0.99609375,
    0.99609375, 0.99609375, 0.99609375, 0.99609375, 0.99609375, 0.99218750, 0.99218750, 0.99218750,
    0.99218750, 0.99218750, 0.99218750, 0.99218750, 0.99218750, 0.99218750, 0.99218750, 0.99218750,
    0.99218750, 0.99218750, 0.98828125, 0.98828125, 0.98828125, 0.98828125, 0.98828125, 0.98828125,
    0.98828125, 0.98437500, 0.98437500, 0.98046875, 0.97656250, 0.97656250, 0.97265625, 0.96875000,
    0.96875000, 0.96875000, 0.96875000, 0.96875000, 0.96875000, 0.96093750, 0.96093750, 0.96093750,
    0.96093750, 0.95703125, 0.95703125, 0.95703125, 0.95703125, 0.95703125, 0.95312500, 0.95312500,
    0.94921875, 0.94921875, 0.94531250, 0.94531250, 0.94531250, 0.94140625, 0.94140625, 0.93359375,
    0.92578125, 0.92578125, 0.91796875, 0.91406250, 0.88671875, 0.88671875, 0.87890625, 0.87890625,
    0.87500000, 0.86718750, 0.77734375, 0.60937500, 0.51562500, 0.46875000, 0.34960938, 0.30664062,
    0.28125000, 0.17285156, 0.08496094, 0.02441406,
])
# fmt: on


def test_rounded_hps_scores_equal_the_papers_bf16_scores():
    np.testing.assert_allclose(FORMATS["bf16"].round(HPS), BF16, rtol=0, atol=6e-9)
    assert (len(np.unique(HPS)), len(np.unique(BF16))) == (66, 33)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_native_scores_equal_the_papers_bf16_scores(backend):
    """Logit differences, computed from the HPS scores, are scored in both regimes."""
    if backend == "torch":
        pytest.importorskip("torch")
    yes = FORMATS["bf16"].round(np.log(HPS / (1 - HPS)))
    options = {"model_dtype": "bf16", "logits": (np.zeros(100), yes), "backend": backend}
    hps = score("softmax", regime="hps", **options)
    np.testing.assert_allclose(hps, HPS, rtol=0, atol=1e-7)
    native = score("softmax", regime="native", **options)
    np.testing.assert_allclose(native, BF16, rtol=0, atol=6e-9)


DISTINCT = {
    "cross-encoder-wikiqa": {
        ("bfloat16", "native"): "0.926",
        ("bfloat16", "hps"): "0.928",
        ("bfloat16", "head"): "1.000",
        ("float32", "native"): "1.000",
    },
    "smollm2-wikiqa": {
        ("bfloat16", "native"): "0.708",
        ("bfloat16", "hps"): "0.938",
        ("bfloat16", "head"): "0.999",
        ("bfloat16", "head-logit"): "1.000",  # 0.9996: a question lists one sentence twice
        ("float16", "native"): "0.837",
        ("float16", "hps"): "0.987",
        ("float32", "native"): "0.999",
    },
    "qwen2.5-0.5b-noveleval": {
        ("bfloat16", "native"): "0.340",
        ("bfloat16", "hps"): "0.340",
        ("bfloat16", "head"): "1.000",
        ("float32", "native"): "1.000",
    },
}


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("name", DISTINCT)
def test_share_of_distinct_scores_of_recorded_logits(recorded, name, backend):
    if backend == "torch":
        pytest.importorskip("torch")
    frame = pl.read_parquet(recorded / f"{name}.parquet")
    for (model_dtype, regime), expected in DISTINCT[name].items():
        rows = frame.filter(pl.col("model_dtype") == model_dtype)
        scores = score(
            "sigmoid" if "logit" in rows.columns else "softmax",
            regime=regime,
            model_dtype=model_dtype,
            logits=select_logits(rows, "logit"),
            head_logits=select_logits(rows, "head_logit"),
            backend=backend,
        )
        distinct = rows.select("query_id", score=pl.Series(scores)).n_unique()
        assert f"{distinct / len(rows):.3f}" == expected, (model_dtype, regime)


def select_logits(rows: pl.DataFrame, name: str):
    """Return one logit per document, or the two of no and yes."""
    if name in rows.columns:
        return rows[name].to_numpy()
    return rows[f"{name}_no"].to_numpy(), rows[f"{name}_yes"].to_numpy()


def test_diagnose_counts_ties_of_the_papers_scores():
    """Appendix B: one query, 100 documents. HPS keeps the ties of the logits."""
    in_bf16, with_hps = (
        dh.diagnose(None, {"q": {f"d{i}": float(s) for i, s in enumerate(scores)}})
        for scores in (BF16, HPS)
    )
    assert in_bf16.anatomy.documents == with_hps.anatomy.documents == 100
    for diagnosis, scores in ((in_bf16, BF16), (with_hps, HPS)):
        values, counts = np.unique(scores, return_counts=True)
        assert diagnosis.anatomy.tied == counts[counts > 1].sum()
        assert diagnosis.anatomy.largest == counts.max()
        assert diagnosis.anatomy.distinct == len(values) / 100
    assert (in_bf16.anatomy.largest, with_hps.anatomy.largest) == (19, 4)
