"""Real runs, judgements and logits; skipped if the shared data folder is missing."""

from __future__ import annotations

import csv
import gzip

import polars as pl
import pytest

import deadheat as dh


def test_id_desc_equals_the_golden_file_of_trec_eval_10(shared):
    """Compare all numbers of trec_eval's golden file for which deadheat has a measure."""
    names = {
        "map": "MAP",
        "Rprec": "Rprec",
        "recip_rank": "MRR",
        "num_rel_ret": "Hits",
        "ndcg": "nDCG",
        "set_P": "Precision",
        "set_recall": "Recall",
        "rbp": "RBP(p=0.9)",
        "rbp_resid": "RBP-residual(p=0.9)",
        "bpref": "bpref",
    }
    for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000):
        names |= {f"{m}_{k}": f"{m}_{k}" for m in ("P", "recall", "ndcg_cut", "map_cut")}
    names |= {f"success_{k}": f"success_{k}" for k in (1, 5, 10)}
    folder = shared / "trec_eval"
    result = dh.evaluate(
        folder / "qrels.test.gz",
        folder / "results.test.gz",
        list(names.values()),
        tie_break="id_desc",
        queries="intersection",
    )
    rows = {(r["query_id"], r["measure"]): r["oblivious"] for r in result.per_query.to_dicts()}
    compared = 0
    with gzip.open(folder / "out.test.aq.gz", "rt") as golden:
        for line in golden:
            name, query, value = line.split()
            if name not in names:
                continue
            measure = names[name]
            if query == "all":
                if name != "num_rel_ret":  # trec_eval sums this one over queries
                    assert result[measure].oblivious == pytest.approx(float(value), abs=6e-5), name
            else:
                key = (query, repr(dh.measures.parse_measure(measure)))
                assert rows[key] == pytest.approx(float(value), abs=6e-5), name
            compared += 1
    assert compared > 150


def test_ids_may_contain_hash_signs(shared):
    """The test files of trec_eval have ids with #, which does not start a comment."""
    folder = shared / "trec_eval"
    with pytest.warns(dh.DeadheatWarning):
        result = dh.evaluate(folder / "qrels.comment.test.gz", folder / "results.comment.test.gz")
    assert len(result.query_ids) == 30
    assert result["nDCG@10"].expected > 0.3


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize("tag", ["UPrrf38rrf3-r4", "ILPS_UvA_big_diverse", "BITEM_BERT4"])
def test_published_rbp_and_bpref_of_trec_covid(shared, tag):
    """The published RBP is graded, with p = 0.5."""
    folder = shared / "trec-covid"
    with (folder / "round4" / "leaderboard.csv").open(newline="") as board:
        published = next(row for row in csv.DictReader(board) if row["tag"] == tag)
    run, graded = folder / "round4" / "runs" / f"{tag}.xz", "RBP(p=0.5, gain='scaled')"
    result = dh.evaluate(
        folder / "round4.qrels.gz", run, [graded, "RBP(p=0.5)", "bpref"], tie_break="pytrec_eval"
    )
    assert f"{result['bpref'].oblivious:.4f}" == published["bpref"]
    assert f"{result[graded].oblivious:.4f}" == published["rbp_p5"]
    assert f"{result['RBP(p=0.5)'].oblivious:.4f}" != published["rbp_p5"]


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize(
    ("qrels", "run", "worst", "best"),
    [
        ("round4", "round4-ILPS_UvA_big_diverse", 0.003, 0.400),
        ("round3", "round3-Emory_IRLab_rnd3_r1", 0.561, 0.643),
    ],
)
def test_range_of_trec_covid_runs_with_many_ties(shared, qrels, run, worst, best):
    folder = shared / "trec-covid"
    result = dh.evaluate(folder / f"{qrels}.qrels.gz", folder / f"{run}.run.gz", ["nDCG@10"])
    assert result["nDCG@10"].worst == pytest.approx(worst, abs=6e-4)
    assert result["nDCG@10"].best == pytest.approx(best, abs=6e-4)


@pytest.mark.parametrize(
    ("dtype", "column", "expected", "width", "bias"),
    [
        ("float32", "logit", 79.84, 0.0, 0.0),
        ("bfloat16", "logit", 79.81, 0.15, -0.04),
        ("bfloat16", "head_logit", 79.89, 0.0, 0.0),
    ],
)
def test_evaluation_of_recorded_cross_encoder_logits(shared, dtype, column, expected, width, bias):
    """A sigmoid in FP32 keeps the order of logits, so logits give the values of hps and head."""
    frame = pl.read_parquet(shared / "recorded" / "cross-encoder-wikiqa.parquet")
    frame = frame.filter(model_dtype=dtype)
    run = frame.select("query_id", "doc_id", score=pl.col(column))
    summary = dh.evaluate(frame.select("query_id", "doc_id", "relevance"), run, ["nDCG@10"])
    ndcg = summary["nDCG@10"]
    assert 100 * ndcg.expected == pytest.approx(expected, abs=0.006)
    assert 100 * ndcg.range == pytest.approx(width, abs=0.006)
    assert 100 * ndcg.bias == pytest.approx(bias, abs=0.006)


ASKUBUNTU = {  # published by Lei et al. 2016, worst and best, in percent
    "dev": {"MAP": (52.0, 52.01, 52.09), "MRR": (66.0, 65.83, 66.02), "P@1": (51.9, 51.85, 51.85),
            "P@5": (42.1, 42.12, 42.22)},
    "test": {"MAP": (56.0, 55.89, 56.01), "MRR": (68.0, 67.94, 68.03), "P@1": (53.8, 53.76, 53.76),
             "P@5": (42.5, 42.47, 42.58)},
}  # fmt: skip


@pytest.mark.parametrize("part", ASKUBUNTU)
def test_input_order_equals_published_bm25_values_of_askubuntu(shared, part):
    folder = shared / "askubuntu"
    files = folder / f"{part}.qrels", folder / f"{part}-bm25.run.gz"
    known = ASKUBUNTU[part]
    original = dh.evaluate(*files, list(known))
    cast = dh.evaluate(*files, list(known), score_dtype="bf16")
    assert len(original.query_ids) == {"dev": 189, "test": 186}[part]
    for measure, (published, worst, best) in known.items():
        summary = original[measure]
        assert round(100 * summary.oblivious, 1) == published
        bounds = [100 * summary.worst, 100 * summary.best]
        assert bounds == pytest.approx([worst, best], abs=0.006)
        # A cast to BF16 adds ties, so the range contains that of the original scores.
        assert cast[measure].worst <= summary.worst <= summary.best <= cast[measure].best
    assert cast["MAP"].range > 10 * original["MAP"].range
