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

import numpy as np
import polars as pl

import deadheat as dh
from deadheat.comparison import ranking
from deadheat.demo import recordings
from deadheat.evaluation import rank_query
from deadheat.provenance import DatasetProvenance
from deadheat.report.figures import comparison, curves, rank_intervals, ranked_list, style
from deadheat.report.figures.style import Plot
from deadheat.scoring import score
from deadheat.scoring.regimes import scoring_provenance

REGIMES = {"native": "", "hps": " + HPS", "head": " + FP32 head"}
GRADES = (2, 3, 4, 6, 8, 11, 16, 21, 31, 51, 71, 101, 201)
FINER = (8, 12, 20, 40, 100, 200)
"""Scales to which four grades are refined."""
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


def grades() -> Plot:
    """Draw the range of nDCG@10 over the number of grades, and what four grades foretell."""
    with style.styled():
        figure = style.new_figure("column", 2.4)
        axes = figure.subplots()
        for recording, colour, marker in zip(
            recordings(), style.COLOURS, style.MARKERS, strict=False
        ):
            run, qrels = recording.runs["fp32"], recording.qrels
            rounded = dh.diagnose.quiet(run, qrels, "nDCG@10", levels=GRADES).effect
            share = (run.scores - run.scores.min()) / np.ptp(run.scores)
            four = replace(run, scores=np.rint(3.0 * share))
            refined = dh.diagnose.quiet(four, qrels, "nDCG@10", levels=FINER).effect
            for effect, how, look in (
                (rounded, "rounded", {"label": recording.model, "markerfacecolor": colour}),
                (refined, "refined", {"linestyle": "none", "markerfacecolor": "white"}),
            ):
                rows = [row for row in effect.scales if row.how == how]
                points = [row.levels for row in rows], [row.range for row in rows]
                axes.plot(*points, marker=marker, markersize=3, color=colour, **look)
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis, ticks in (
            (axes.xaxis, [2, 4, 11, 21, 51, 101, 201]),
            (axes.yaxis, [0.001, 0.01, 0.1, 1]),
        ):
            axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("grades")
        axes.set_ylabel("range of nDCG@10")
        hollow: dict[str, Any] = {"markerfacecolor": "white", "linestyle": "none"}
        axes.plot([], [], marker="o", markersize=3, color=style.INK, label="foretold", **hollow)
        style.legend(figure, *axes.get_legend_handles_labels())
    return Plot(
        figure,
        "Range of nDCG@10 when the scores of three recorded FP32 models are rounded to so many "
        "grades (filled), and what is foretold from four grades alone (hollow).",
    )


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
        "grades": grades(),
    }
    for name, plot in plots.items():
        print(plot.save(folders.output / f"{name}.svg", force=True), plot.caption, sep="\n")
        plot.save(folders.output / f"{name}.png", force=True)


if __name__ == "__main__":
    main()
