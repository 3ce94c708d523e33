"""Compare the speed of deadheat with other evaluators, as ratios measured in one run.

deadheat computes all views of a measure (expected, tie std, best, worst, oblivious); the others
compute one value. The data is synthetic and shaped like MS MARCO: scores rounded to BF16, three
relevant documents per query.

    python benchmarks/bench.py            # all benchmarks, as in the documentation
    python benchmarks/bench.py --queries 500
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import comparing
import ml_dtypes
import numpy as np
import polars as pl
from corpus_cluster import bench_workers
from corpus_speed import bench_corpus, bench_threads
from rich.console import Console
from rich.table import Table
from small_calls import bench_small_calls
from starting import bench_starting

import deadheat as dh

MEASURES = ["nDCG@10", "MRR@10", "MAP@100", "Recall@100"]
RELEVANT = 3


def seconds(call: Callable[[], Any], repeat: int = 3) -> float:
    """Return the shortest time of several calls."""
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return float(best)


def time_calls(calls: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Return the shortest time of each call; calls alternate, so that load affects all of them."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(repeat):
        for name, call in calls.items():
            best[name] = min(best[name], seconds(call, 1))
    return best


def make_arrays(queries: int, documents: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return scores rounded to BF16, and relevance."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(queries, documents)).astype(np.float32)
    scores = scores.astype(ml_dtypes.bfloat16).astype(np.float32)
    relevance = np.zeros((queries, documents), np.int8)
    columns = rng.random((queries, documents)).argpartition(RELEVANT, axis=1)[:, :RELEVANT]
    np.put_along_axis(relevance, columns, 1, axis=1)
    return scores, relevance


def make_ids(queries: int, documents: int) -> tuple[list[str], np.ndarray]:
    """Return ids as in MS MARCO: numbers of seven digits."""
    rng = np.random.default_rng(1)
    step = 8_841_823 // documents
    docs = np.arange(documents) * step + rng.integers(0, step, (queries, documents))
    return [str(1_000_000 + q) for q in range(queries)], docs


def make_dicts(scores: np.ndarray, relevance: np.ndarray) -> tuple[dict, dict]:
    """Return judgements and a run as dicts of dicts."""
    names, docs = make_ids(*scores.shape)
    run, qrels = {}, {}
    for q, name in enumerate(names):
        keys = [str(d) for d in docs[q].tolist()]
        run[name] = dict(zip(keys, scores[q].tolist(), strict=True))
        qrels[name] = {keys[i]: 1 for i in np.flatnonzero(relevance[q])}
    return qrels, run


def write_trec(qrels: dict, run: dict, folder: Path) -> tuple[Path, Path]:
    with (folder / "run.txt").open("w") as file:
        for query, docs in run.items():
            ranked = sorted(docs.items(), key=lambda x: -x[1])
            file.write(
                "".join(f"{query} Q0 {d} {r} {s!r} bench\n" for r, (d, s) in enumerate(ranked, 1))
            )
    with (folder / "qrels.txt").open("w") as file:
        file.write(
            "".join(f"{q} 0 {d} {g}\n" for q, docs in qrels.items() for d, g in docs.items())
        )
    return folder / "qrels.txt", folder / "run.txt"


def peak_memory(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the peak memory in GB of one call in a new process."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_call_and_measure, (function, arguments))


def _call_and_measure(function: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    function(*arguments)
    # Not ru_maxrss, which a child process inherits from its parent.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e6


def evaluate_files(qrels: Path, run: Path) -> None:
    dh.evaluate(qrels, run, MEASURES)


def import_optional(name: str) -> Any:
    """Return a module, or None if it is not installed."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module(name)
    except ImportError:
        return None


class Report:
    """The table of results, and the benchmarks that missed their bar."""

    def __init__(self) -> None:
        self.table = Table("input", "what", "seconds", "ratio", "bar", title_justify="left")
        self.missed: list[str] = []

    def add_deadheat(self, input_: str, value: float, what: str = "deadheat, every view") -> None:
        self.table.add_section()
        self.table.add_row(input_, f"[bold]{what}[/]", f"{value:.4f}", "", "")

    def add_limit(self, what: str, ours: float, yardstick: float, bar: float) -> None:
        self._row(what, yardstick, f"deadheat takes {ours / yardstick:.1f} ×", f"≤ {bar:g} ×")
        if ours / yardstick > bar:
            self.missed.append(f"{what}: {ours / yardstick:.1f} × instead of ≤ {bar:g} ×")

    def add_ratio(self, what: str, ours: float, yardstick: float) -> None:
        self._row(what, yardstick, f"deadheat takes {ours / yardstick:.1f} ×", "")

    def add_speedup(self, what: str, ours: float, theirs: float, bar: float | None = None) -> None:
        text = "" if bar is None else f"≥ {bar:g} ×"
        self._row(what, theirs, f"deadheat is {theirs / ours:.1f} × faster", text)
        if bar is not None and theirs / ours < bar:
            self.missed.append(f"{what}: {theirs / ours:.1f} × faster instead of {bar:g} ×")

    def _row(self, what: str, value: float, ratio: str, bar: str) -> None:
        self.table.add_row("", what, f"{value:.4f}", ratio, bar)


def bench_arrays(report: Report, scores: np.ndarray, relevance: np.ndarray) -> None:
    queries, documents = scores.shape
    times = time_calls(
        {
            "deadheat": lambda: dh.evaluate_arrays(relevance, scores, MEASURES),
            "sum": scores.sum,
        },
        10,
    )
    ours = times["deadheat"]
    report.add_deadheat(f"arrays {queries:,} × {documents:,}", ours)
    report.add_limit("scores.sum()", ours, times["sum"], 8)
    if ranx := import_optional("ranx"):
        qrels, run = make_dicts(scores, relevance)
        ranx_qrels, ranx_run = ranx.Qrels(qrels), ranx.Run(run)
        names = ["ndcg@10", "mrr@10", "map@100", "recall@100"]
        ranx.evaluate(ranx_qrels, ranx_run, names)
        warm = seconds(lambda: ranx.evaluate(ranx_qrels, ranx_run, names))
        report.add_speedup("ranx, objects built, warm", ours, warm, 50)
    if sklearn := import_optional("sklearn.metrics"):
        part = slice(0, max(1, queries // 10))
        theirs = seconds(lambda: sklearn.ndcg_score(relevance[part], scores[part], k=10), 1)
        report.add_speedup("scikit-learn, nDCG@10 alone (from a tenth)", ours, 10 * theirs)
    if trm := import_optional("trm"):
        part = slice(0, max(1, queries // 35))
        rows = scores[part].tolist(), relevance[part].astype(bool).tolist()
        names = ["ndcg", "mrr", "map", "recall"]
        theirs = seconds(lambda: trm.evaluate(*rows, metrics=names, k_list=[10]), 1)
        report.add_speedup("trm, no std (from a 35th)", ours, theirs * queries / len(rows[0]))


def bench_deep(report: Report, scores: np.ndarray, relevance: np.ndarray) -> None:
    """Measures over the whole list, with bool labels."""
    measures, labels = [*MEASURES[:2], "MAP", "MAP@1000", MEASURES[3]], relevance.astype(bool)
    times = time_calls(
        {
            "deadheat": lambda: dh.evaluate_arrays(labels, scores, measures),
            "sum": scores.sum,
        },
        10,
    )
    report.add_deadheat("the same, MAP and MAP@1000", times["deadheat"])
    report.add_limit("scores.sum(), deep measures", times["deadheat"], times["sum"], 12)


def bench_dicts(report: Report, qrels: dict, run: dict) -> None:
    times = time_calls(
        {
            "deadheat": lambda: dh.evaluate(qrels, run, MEASURES),
            "fromiter": lambda: [np.fromiter(d.values(), float, len(d)) for d in run.values()],
        },
        5,
    )
    ours = times["deadheat"]
    report.add_deadheat("dict of dicts", ours)
    report.add_limit("np.fromiter(d.values()) for all queries", ours, times["fromiter"], 3)
    if pytrec_eval := import_optional("pytrec_eval"):
        names = {"ndcg_cut.10", "recip_rank", "map_cut.100", "recall.100"}
        theirs = seconds(lambda: pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run), 2)
        report.add_speedup("pytrec_eval", ours, theirs, 5)
    if ranx := import_optional("ranx"):
        report.add_speedup(
            "ranx, building its objects",
            ours,
            seconds(lambda: (ranx.Qrels(qrels), ranx.Run(run)), 1),
        )


def bench_files(report: Report, qrels: Path, run: Path) -> None:
    times = time_calls(
        {
            "deadheat": lambda: evaluate_files(qrels, run),
            "polars": lambda: pl.read_csv(run, separator=" ", has_header=False),
        },
        3,
    )
    ours = times["deadheat"]
    report.add_deadheat(f"TREC files, {run.stat().st_size / 1e6:.0f} MB", ours)
    report.add_limit("polars reading the run", ours, times["polars"], 1.3)
    if ir_measures := import_optional("ir_measures"):
        wanted = [ir_measures.parse_measure(m) for m in ("nDCG@10", "RR@10", "AP@100", "R@100")]

        def theirs() -> None:
            ir_measures.calc_aggregate(
                wanted, ir_measures.read_trec_qrels(str(qrels)), ir_measures.read_trec_run(str(run))
            )

        report.add_speedup("ir_measures", ours, seconds(theirs, 1), 10)


def bench_one_tie(report: Report) -> None:
    rng = np.random.default_rng(2)
    scores = np.full((1, 1_000_000), 0.25)
    relevance = np.zeros(scores.shape, np.int8)
    relevance[0, rng.choice(scores.shape[1], 1_000, replace=False)] = 1
    measures = ["nDCG", "DCG", "MRR", "MAP", "Recall", "Precision", "F1", "Hits", "Success"]
    measures += ["R-Precision", "RBP"]
    times = time_calls(
        {
            "deadheat": lambda: dh.evaluate_arrays(relevance, scores, measures),
            "sort": lambda: np.sort(scores[0]),
        },
        20,
    )
    ours = times["deadheat"]
    report.add_deadheat(f"1,000,000 tied, 1,000 relevant, {len(measures)} measures", ours)
    report.add_limit("np.sort of the list", ours, times["sort"], 3)


def bench_comparison(report: Report, console: Console) -> None:
    """Compare 126 systems: seconds, and peak memory in a new process."""
    systems = comparing.evaluate_systems()
    cpu = time.process_time()
    ours = seconds(lambda: dh.compare(systems), 1)
    cpu = time.process_time() - cpu
    size = f"{len(systems)} systems × {comparing.QUERIES} queries × {len(comparing.MEASURES)}"
    report.add_deadheat(f"{size} measures", ours, "deadheat, all pairs, every column")
    report.add_speedup(
        "scipy, p-values alone, pair by pair (from one)", ours, comparing.time_scipy(systems), 10
    )
    memory = peak_memory(comparing.compare_all)
    for what, value, bar, unit in (
        (f"time ({cpu:.1f} s of one core)", ours, comparing.SECONDS, "s"),
        ("peak memory", memory, comparing.GIGABYTES, "GB"),
    ):
        console.print(f"{what} to compare {size} measures: {value:.2f} {unit} (bar: {bar} {unit})")
        if value > bar:
            report.missed.append(f"{what} to compare: {value:.2f} {unit} instead of {bar} {unit}")


def bench_growth(console: Console) -> None:
    """Time for 100 to 100,000 documents per query, and for 100 to 100,000 queries."""
    table = Table("queries", "documents each", "seconds", "per query", "per document")
    table.title, table.title_justify = "growth", "left"
    decades = (100, 1_000, 10_000, 100_000)
    for queries, documents in [*((100, d) for d in decades), *((q, 100) for q in decades)]:
        scores, relevance = make_arrays(queries, documents)
        took = seconds(lambda s=scores, r=relevance: dh.evaluate_arrays(r, s, MEASURES))
        per_query, per_document = 1e6 * took / queries, 1e9 * took / (queries * documents)
        table.add_row(
            f"{queries:,}",
            f"{documents:,}",
            f"{took:.4f}",
            f"{per_query:.1f} µs",
            f"{per_document:.1f} ns",
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=6_980)
    parser.add_argument("--documents", type=int, default=1_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=120)
    report = Report()
    scores, relevance = make_arrays(options.queries, options.documents)
    bench_arrays(report, scores, relevance)
    bench_deep(report, scores, relevance)
    bench_small_calls(report)
    qrels, run = make_dicts(scores, relevance)
    bench_dicts(report, qrels, run)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_trec(qrels, run, Path(folder))
        del qrels, run
        bench_files(report, *paths)
        memory = peak_memory(evaluate_files, *paths)
    bench_one_tie(report)
    bench_comparison(report, console)
    bench_corpus(report, time_calls)
    bench_workers(report)
    bench_starting(report)
    bench_threads(report, time_calls)
    console.print(report.table)
    rows = options.queries * options.documents
    console.print(f"peak memory for {rows:,} rows of TREC file: {memory:.2f} GB (bar: 1.5 GB)")
    if memory > 1.5:
        report.missed.append(f"memory: {memory:.2f} GB instead of 1.5 GB")
    bench_growth(console)
    for miss in report.missed:
        console.print(f"[red]missed:[/] {miss}")
    if not report.missed:
        console.print("every bar reached")


if __name__ == "__main__":
    main()
