"""Make the figures of the README and the documentation: `python docs/make_figures.py RECORDED`.

RECORDED is the folder of the recorded logits, `cross-encoder-wikiqa.parquet` and
`qwen2.5-0.5b-noveleval.parquet`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

import deadheat as dh
from deadheat.comparison import ranking
from deadheat.evaluation import rank_query
from deadheat.provenance import DatasetProvenance
from deadheat.report.figures import comparison, curves, rank_intervals, ranked_list
from deadheat.scoring import score
from deadheat.scoring.regimes import scoring_provenance

REGIMES = {"native": "", "hps": " + HPS", "head": " + FP32 head"}
DTYPES = {"bfloat16": "BF16", "float16": "FP16", "float32": "FP32"}


def evaluate_regimes(path: Path, measures: Any) -> Mapping[str, dh.Result]:
    """Score the logits of each model dtype in each regime, and evaluate the scores."""
    results = {}
    for (dtype,), rows in pl.read_parquet(path).group_by("model_dtype", maintain_order=True):
        qrels = rows.select("query_id", "doc_id", relevance=pl.col("relevance").clip(0, 1))
        for regime, words in REGIMES.items() if dtype != "float32" else [("native", "")]:
            scores = score(
                "sigmoid" if "logit" in rows.columns else "softmax",
                regime=regime,
                model_dtype=dtype,
                logits=columns(rows, "logit"),
                head_logits=columns(rows, "head_logit"),
            )
            run = rows.select("query_id", "doc_id", score=pl.Series(scores))
            result = dh.evaluate(qrels, run, measures)
            scoring = scoring_provenance(regime, dtype)
            origin = replace(
                result.provenance, dataset=DatasetProvenance(path.stem), scoring=scoring
            )
            results[DTYPES[dtype] + words] = replace(result, provenance=origin)
    return results


def columns(rows: pl.DataFrame, name: str) -> Any:
    """One logit per document, or the two of no and yes."""
    if name in rows.columns:
        return rows[name].to_numpy()
    return rows[f"{name}_no"].to_numpy(), rows[f"{name}_yes"].to_numpy()


def main() -> None:
    """Draw each figure and print its caption."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recorded", type=Path, help="folder of the recorded logits")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "images")
    folders = parser.parse_args()

    # One document above three tied ones, two of which are relevant.
    qrels = {"q": {"d1": 1, "d2": 1, "d3": 1}}
    run = {"q": {"d1": 0.9, "d2": 0.5, "d3": 0.5, "d4": 0.5}}
    cutoffs = [m @ k for m in (dh.nDCG, dh.MRR) for k in range(1, 11)]
    qwen = evaluate_regimes(folders.recorded / "qwen2.5-0.5b-noveleval.parquet", cutoffs)
    cross = evaluate_regimes(folders.recorded / "cross-encoder-wikiqa.parquet", "MRR@10")
    plots = {
        "ranked-list": ranked_list(rank_query(qrels, run, "q", "Recall@3")),
        "curves": curves(qwen, percent=True, width="full"),
        "comparison": comparison(cross, percent=True),
        "ranks": rank_intervals(ranking(dict(cross)), what="MRR@10"),
    }
    for name, plot in plots.items():
        print(plot.save(folders.output / f"{name}.svg", force=True), plot.caption, sep="\n")
        plot.save(folders.output / f"{name}.png", force=True)


if __name__ == "__main__":
    main()
