"""Draw the figures of the README and the documentation: `make figures`.

The data are the recordings of `deadheat demo`. Figures are SVG files with a light and a dark theme.
Screenshots of the report, one for each theme, need Chromium and chromedriver; without them,
existing screenshots are kept.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from themes import in_both_themes

import deadheat as dh
from deadheat import demo
from deadheat.comparison import ranking
from deadheat.evaluation import rank_query
from deadheat.provenance import DatasetProvenance
from deadheat.report.figures import comparison, curves, rank_intervals, ranked_list, style
from deadheat.report.figures.style import Plot
from deadheat.scoring import score
from deadheat.scoring.regimes import scoring_provenance

REGIMES = {"native": "", "hps": " + HPS", "head": " + FP32 head"}
GRADES = (2, 3, 4, 6, 8, 11, 16, 21, 31, 51, 71, 101, 201)
FINER = (8, 12, 20, 40, 100, 200)
"""Numbers of grades that are estimated from four grades."""
DTYPES = {"bfloat16": "BF16", "float16": "FP16", "float32": "FP32"}


def evaluate_regimes(path: Path, measures: Any) -> Mapping[str, dh.Result]:
    """Score the logits of each model dtype in each regime, and evaluate the scores."""
    results = {}
    for (dtype,), rows in pl.read_parquet(path).group_by("model_dtype", maintain_order=True):
        qrels = rows.select("query_id", "doc_id", relevance=pl.col("relevance").clip(0, 1))
        for regime, label in REGIMES.items() if dtype != "float32" else [("native", "")]:
            scores = score(
                "sigmoid" if "logit" in rows.columns else "softmax",
                regime=regime,
                model_dtype=dtype,
                logits=select_logits(rows, "logit"),
                head_logits=select_logits(rows, "head_logit"),
            )
            run = rows.select("query_id", "doc_id", score=pl.Series(scores))
            result = dh.evaluate(qrels, run, measures)
            scoring = scoring_provenance(regime, dtype)
            origin = replace(
                result.provenance, dataset=DatasetProvenance(path.stem), scoring=scoring
            )
            results[DTYPES[dtype] + label] = replace(result, provenance=origin)
    return results


def select_logits(rows: pl.DataFrame, name: str) -> Any:
    """Return one logit per document, or the two of no and yes."""
    if name in rows.columns:
        return rows[name].to_numpy()
    return rows[f"{name}_no"].to_numpy(), rows[f"{name}_yes"].to_numpy()


@contextmanager
def browser(profile: Path) -> Iterator[Any]:
    """Start Chromium without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser")
    for flag in ("headless", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={profile}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def save_screenshots(output: Path) -> None:
    """Save the first screen of the tutorial's report as `page.png` and `page-dark.png`."""
    if not (shutil.which("chromedriver") and shutil.which("chromium")):
        print("no Chromium with chromedriver: the screenshots were not updated")
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        runs = [f"demo/reranker-{run}.run" for run in ("native", "head", "fp32")]
        for arguments in (
            ("demo", "--files", "demo"),
            ("report", "--qrels", "demo/reranker-qrels.txt", *runs, "-o", page.name),
        ):
            command = [sys.executable, "-m", "deadheat.cli", *arguments]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        with browser(Path(folder) / "profile") as driver:
            driver.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": 1200, "height": 760, "deviceScaleFactor": 1, "mobile": False},
            )
            for theme, name in (("light", "page.png"), ("dark", "page-dark.png")):
                preferred = {"name": "prefers-color-scheme", "value": theme}
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preferred]})
                driver.get(page.as_uri())
                driver.execute_async_script("setTimeout(arguments[0], 1000)")  # wait for the charts
                driver.save_screenshot(str(output / name))
                print(output / name)


def draw_grades() -> Plot:
    """Draw the range of nDCG@10 by number of grades, and estimates from four grades."""
    with style.styled():
        figure = style.new_figure("column", 2.4)
        axes = figure.subplots()
        recorded = demo.recordings()
        shown = [recorded[name] for name in ("softmax", "sigmoid", "product")]
        for recording, colour, marker in zip(shown, style.COLOURS, style.MARKERS, strict=False):
            run, qrels = recording.runs["fp32"], recording.qrels
            rounded = dh.diagnose(qrels, run, "nDCG@10", levels=GRADES).effect
            share = (run.scores - run.scores.min()) / np.ptp(run.scores)
            four = replace(run, scores=np.rint(3.0 * share))
            refined = dh.diagnose(qrels, four, "nDCG@10", levels=FINER).effect
            for effect, how, options in (
                (rounded, "rounded", {"label": recording.model, "markerfacecolor": colour}),
                (refined, "refined", {"linestyle": "none", "markerfacecolor": "white"}),
            ):
                rows = [row for row in effect.scales if row.how == how]
                points = [row.levels for row in rows], [row.range for row in rows]
                axes.plot(*points, marker=marker, markersize=3, color=colour, **options)
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
        axes.plot([], [], marker="o", markersize=3, color=style.INK, label="estimated", **hollow)
        style.legend(figure, *axes.get_legend_handles_labels())
    return Plot(
        figure,
        "Range of nDCG@10 when the scores of three recorded FP32 models are rounded to this number "
        "of grades (filled), and the estimate from four grades alone (hollow).",
    )


def draw_histograms() -> Plot:
    """Draw histograms of scores near 1 of the trained BF16 reranker in three regimes."""
    recording = demo.recordings()["reranker"]
    shown = {"native": "native: softmax in BF16", "hps": "hps: softmax in FP32"}
    shown["head"] = "head: last layer in FP32, too"
    low, bins = 0.98, np.linspace(0.98, 1.0005, 83)
    with style.styled():
        figure = style.new_figure("full", 3.6)
        panels = figure.subplots(len(shown), 1, sharex=True)
        for axes, (regime, label), colour in zip(
            panels, shown.items(), style.COLOURS, strict=False
        ):
            scores = recording.scores[regime]
            near = scores[scores >= low]
            values = len(np.unique(near))
            axes.hist(near, bins=bins, color=colour, linewidth=0)
            axes.set_title(
                f"{label}: {values:,} values of {len(near):,} scores", loc="left", fontsize=7
            )
            axes.set_ylabel("scores")
        panels[-1].set_xlabel("score (probability of yes)")
        panels[-1].set_xlim(low, bins[-1])
    return Plot(
        figure,
        "Scores from 0.98 to 1 of a trained yes/no reranker (SmolLM2-135M with LoRA, WikiQA test "
        "part) after one BF16 forward pass. Computed in BF16 they take six values; in FP32 as many "
        "as the logits tell apart.",
    )


def main() -> None:
    """Draw all figures, print their captions, and save screenshots of the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "images")
    parser.add_argument(
        "--figures-only", action="store_true", help="without screenshots of the report"
    )
    given = parser.parse_args()

    # One document above three tied ones, two of which are relevant.
    qrels = {"q": {"d1": 1, "d2": 1, "d3": 1}}
    run = {"q": {"d1": 0.9, "d2": 0.5, "d3": 0.5, "d4": 0.5}}
    cutoffs = [m @ k for m in (dh.nDCG, dh.MRR) for k in range(1, 11)]
    recorded = Path(demo.__file__).parent / "data"
    qwen = evaluate_regimes(recorded / "qwen2.5-0.5b-noveleval.parquet", cutoffs)
    cross = evaluate_regimes(recorded / "cross-encoder-wikiqa.parquet", "MRR@10")
    softmax = demo.recordings()["softmax"]
    query = rank_query(softmax.qrels, softmax.runs["native"], "3", "nDCG@10")
    plots = {
        "query": ranked_list(query, rows=14, width="full"),
        "ranked-list": ranked_list(rank_query(qrels, run, "q", "Recall@3")),
        "curves": curves(qwen, percent=True, width="full"),
        "comparison": comparison(cross, percent=True),
        "ranks": rank_intervals(ranking(dict(cross)), what="MRR@10"),
        "grades": draw_grades(),
        "score-histograms": draw_histograms(),
    }
    for name, plot in plots.items():
        path = given.output / f"{name}.svg"
        path.write_text(in_both_themes(plot.render("svg").decode()), encoding="utf-8")
        print(path, plot.caption, sep="\n")
    if not given.figures_only:
        save_screenshots(given.output)


if __name__ == "__main__":
    main()
