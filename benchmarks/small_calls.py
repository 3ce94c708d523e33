"""Time of small calls with one query, as in training loops, tests and services.

    python benchmarks/small_calls.py
    python benchmarks/small_calls.py --interpreted   # a copy of deadheat without compiled modules

Each call evaluates another list. A row is the median over the lists, in microseconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import deadheat as dh

MEASURES = ["nDCG@10", "MRR@10", "MAP@100", "Recall@100"]
LISTS = 500
BARS = {
    "dict, dh.Evaluator": (150, 250),
    "dict, dh.evaluate": (120, None),
    "arrays, dh.evaluate_arrays": (45, 150),
}
"""Limits in microseconds for lists of ten documents: with one measure, and with all."""
INTERPRETED_BARS = {
    "dict, dh.evaluate, 10 documents, 1 measure": 250,
    "arrays, dh.evaluate_arrays, 10 documents, 1 measure": 115,
    "arrays, 6,980 × 1,000, 4 measures": 600_000,
}
"""Limits in microseconds without compiled modules."""
Row = tuple[str, float, float | None]


def make_lists(length: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return scores rounded to one digit, and grades 0 to 2; the first document is relevant."""
    rng = np.random.default_rng(length)
    scores = rng.normal(size=(LISTS, 1, length)).round(1)
    grades = rng.integers(1, 3, scores.shape) * (rng.random(scores.shape) < share)
    grades[:, 0, 0] = 1
    return scores, grades


def make_calls(names: list[str], length: int, share: float) -> dict[str, Callable[[int], Any]]:
    """Return a function for each way to evaluate a list; its argument is the number of the list."""
    scores, grades = make_lists(length, share)
    documents = [f"d{i}" for i in range(length)]
    runs = [
        {f"q{q}": dict(zip(documents, row[0].tolist(), strict=True))}
        for q, row in enumerate(scores)
    ]
    qrels = [
        {f"q{q}": {documents[i]: int(row[0, i]) for i in np.flatnonzero(row[0])}}
        for q, row in enumerate(grades)
    ]
    evaluator = dh.Evaluator({q: judged for each in qrels for q, judged in each.items()}, names)
    for q in range(LISTS):
        evaluator.query(f"q{q}", {"d0": 1.0})  # the first call prepares the judgements
    return {
        "dict, dh.Evaluator": lambda q: evaluator.query(f"q{q}", runs[q][f"q{q}"]),
        "dict, dh.evaluate": lambda q: dh.evaluate(qrels[q], runs[q], names),
        "arrays, dh.evaluate_arrays": lambda q: dh.evaluate_arrays(grades[q], scores[q], names),
    }


def time_calls(calls: dict[str, Callable[[int], Any]]) -> dict[str, float]:
    """Return the median time of each call over all lists, in microseconds."""
    medians = {}
    for name, call in calls.items():
        took = []
        for q in range(LISTS):
            start = time.perf_counter()
            call(q)
            took.append(1e6 * (time.perf_counter() - start))
        medians[name] = float(np.median(took))
    return medians


def time_small_calls() -> list[Row]:
    """Return name, microseconds and limit for each way to evaluate one list."""
    rows = []
    for length, share in ((10, 0.2), (100, 0.1)):
        for number, names in enumerate((MEASURES[:1], MEASURES)):
            many = f"{len(names)} measure{'s' if number else ''}"
            for way, took in time_calls(make_calls(names, length, share)).items():
                bar = BARS[way][number] if way in BARS and length == 10 else None
                rows.append((f"{way}, {length} documents, {many}", took, bar))
    return rows


def time_large_arrays() -> float:
    """Return the microseconds for 6,980 queries of 1,000 documents, the shortest of three calls."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(6_980, 1_000)).astype(np.float32).round(2)
    relevance = (rng.random(scores.shape) < 0.003).astype(np.int8)
    took = []
    for _ in range(3):
        start = time.perf_counter()
        dh.evaluate_arrays(relevance, scores, MEASURES)
        took.append(1e6 * (time.perf_counter() - start))
    return min(took)


def time_interpreted_calls() -> list[Row]:
    """Time the same calls in a process whose copy of deadheat has no compiled modules."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(dh.__file__).parent
        shutil.copytree(
            source, Path(folder) / "deadheat", ignore=shutil.ignore_patterns("*.so", "*.pyd")
        )
        printed = subprocess.run(
            [sys.executable, __file__, "--json"],
            env={**os.environ, "PYTHONPATH": folder},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return [(what, took, INTERPRETED_BARS.get(what)) for what, took in json.loads(printed)]


def bench_small_calls(report: Any) -> None:
    """Add the small calls to the report of `bench.py`."""
    for title, rows in (
        ("one query", time_small_calls()),
        ("no compiler", time_interpreted_calls()),
    ):
        report.table.add_section()
        for what, took, bar in rows:
            text = "" if bar is None else f"≤ {bar:g} µs"
            report.table.add_row(title, what, f"{took / 1e6:.6f}", f"{took:.0f} µs", text)
            if bar is not None and took > bar:
                report.missed.append(f"{title}, {what}: {took:.0f} µs instead of ≤ {bar:g} µs")


def main(option: str = "") -> None:
    """Print the times, or write them as JSON for `time_interpreted_calls`."""
    if option == "--json":
        rows = [(what, took) for what, took, _ in time_small_calls()]
        print(json.dumps([*rows, ("arrays, 6,980 × 1,000, 4 measures", time_large_arrays())]))
        return
    for what, took, bar in (
        time_interpreted_calls() if option == "--interpreted" else time_small_calls()
    ):
        print(f"{what:55} {took:9.0f} µs", "" if bar is None else f"(bar: {bar:g} µs)")


if __name__ == "__main__":
    main(*sys.argv[1:])
