"""What one small call costs: one query, ten documents, as in training loops, tests and services.

    python benchmarks/small_calls.py

Microseconds. What measures make of a short list is kept between calls, by the pattern of its ties:
the first rows repeat one list and give the shortest call, the last ones take a new list each time
and give the median.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import deadheat as dh

MEASURES = ["nDCG@10", "MRR@10", "MAP@100", "Recall@100"]
SCORES = [0.9, 0.75, 0.75, 0.5, 0.25, 0.25, 0.25, 0.125, 0.0625, 0.03125]
"""Two tie groups with relevant documents in them."""
GRADES = [0, 1, 0, 0, 2, 0, 0, 0, 1, 0]
DOCUMENTS = [f"d{i}" for i in range(len(SCORES))]
CALLS, NEW = 500, 200


def microseconds(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Shortest time of each call, taken in turns so that all meet the same machine."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(CALLS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: 1e6 * value for name, value in best.items()}


def one_list() -> list[tuple[str, float, float | None]]:
    """Each way to evaluate one list: what it is, its microseconds, and its bar."""
    run = {"q": dict(zip(DOCUMENTS, SCORES, strict=True))}
    qrels = {"q": {doc: grade for doc, grade in zip(DOCUMENTS, GRADES, strict=True) if grade}}
    scores, labels = np.array([SCORES], np.float32), np.array([GRADES])
    rows = []
    for names, bars in ((MEASURES[:1], (None, 150, 80)), (MEASURES, (None, 250, 150))):
        evaluator = dh.Evaluator(qrels, names)
        took = microseconds(
            {
                "dict, dh.evaluate": lambda names=names: dh.evaluate(qrels, run, names),
                "dict, dh.Evaluator": lambda e=evaluator: e.query("q", run["q"]),
                "arrays": lambda names=names: dh.evaluate_arrays(scores, labels, names),
            }
        )
        many = "one measure" if len(names) == 1 else f"{len(names)} measures"
        for (way, value), bar in zip(took.items(), bars, strict=True):
            rows.append((f"{way}, {many}", value, bar))
    return rows


def new_lists() -> list[tuple[str, float, float | None]]:
    """Lists that nobody has seen, each evaluated once: the median, and the bars of one list."""
    rng = np.random.default_rng(4)
    rows = []
    for length, share, bars in ((10, 0.2, (80, 150)), (100, 0.1, (None, None))):
        for names, bar in zip((MEASURES[:1], MEASURES), bars, strict=True):
            scores = rng.normal(size=(NEW, 1, length)).round(1)
            labels = (rng.random(scores.shape) < share).astype(np.int64)
            labels[:, 0, 0] = 1
            took = []
            for row, grades in zip(scores, labels, strict=True):
                start = time.perf_counter()
                dh.evaluate_arrays(row, grades, names)
                took.append(1e6 * (time.perf_counter() - start))
            many = "one measure" if len(names) == 1 else f"{len(names)} measures"
            what = f"arrays, a new list of {length} documents, {many}"
            rows.append((what, float(np.median(took)), bar))
    return rows


def bench_small_calls(report: Any) -> None:
    """Add the small calls to the report of `bench.py`."""
    report.table.add_section()
    for what, took, bar in one_list() + new_lists():
        text = "" if bar is None else f"≤ {bar:g} µs"
        report.table.add_row("one query", what, f"{took / 1e6:.6f}", f"{took:.0f} µs", text)
        if bar is not None and took > bar:
            report.missed.append(f"one query, {what}: {took:.0f} µs instead of ≤ {bar:g} µs")


if __name__ == "__main__":
    for what, took, bar in one_list() + new_lists():
        print(f"{what:45} {took:6.0f} µs", "" if bar is None else f"(bar: {bar:g} µs)")
