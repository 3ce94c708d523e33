"""What one small call costs: one query, as in training loops, tests and services.

    python benchmarks/small_calls.py

Every call takes a list that no call has seen; a row is the median over the lists, in microseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import deadheat as dh

MEASURES = ["nDCG@10", "MRR@10", "MAP@100", "Recall@100"]
LISTS = 500
BARS = {"dict, dh.Evaluator": (150, 250), "arrays, dh.evaluate_arrays": (80, 150)}
"""Microseconds for lists of ten documents: one measure, and all of them."""


def lists(length: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores rounded to one digit, and grades from 0 to 2, the first document always relevant."""
    rng = np.random.default_rng(length)
    scores = rng.normal(size=(LISTS, 1, length)).round(1)
    grades = rng.integers(1, 3, scores.shape) * (rng.random(scores.shape) < share)
    grades[:, 0, 0] = 1
    return scores, grades


def ways(names: list[str], length: int, share: float) -> dict[str, Callable[[int], Any]]:
    """Every way to evaluate a list, by its number."""
    scores, grades = lists(length, share)
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
        evaluator.query(f"q{q}", {"d0": 1.0})  # judgements are prepared when a query is first met
    return {
        "dict, dh.Evaluator": lambda q: evaluator.query(f"q{q}", runs[q][f"q{q}"]),
        "dict, dh.evaluate": lambda q: dh.evaluate(qrels[q], runs[q], names),
        "arrays, dh.evaluate_arrays": lambda q: dh.evaluate_arrays(grades[q], scores[q], names),
    }


def microseconds(calls: dict[str, Callable[[int], Any]]) -> dict[str, float]:
    """Median time of each call over all lists, one after the other as in a loop."""
    medians = {}
    for name, call in calls.items():
        took = []
        for q in range(LISTS):
            start = time.perf_counter()
            call(q)
            took.append(1e6 * (time.perf_counter() - start))
        medians[name] = float(np.median(took))
    return medians


def small_calls() -> list[tuple[str, float, float | None]]:
    """Every way to evaluate one list: what it is, its microseconds, and its bar."""
    rows = []
    for length, share in ((10, 0.2), (100, 0.1)):
        for number, names in enumerate((MEASURES[:1], MEASURES)):
            many = f"{len(names)} measure{'s' if number else ''}"
            for way, took in microseconds(ways(names, length, share)).items():
                bar = BARS[way][number] if way in BARS and length == 10 else None
                rows.append((f"{way}, {length} documents, {many}", took, bar))
    return rows


def bench_small_calls(report: Any) -> None:
    """Add the small calls to the report of `bench.py`."""
    report.table.add_section()
    for what, took, bar in small_calls():
        text = "" if bar is None else f"≤ {bar:g} µs"
        report.table.add_row("one query", what, f"{took / 1e6:.6f}", f"{took:.0f} µs", text)
        if bar is not None and took > bar:
            report.missed.append(f"one query, {what}: {took:.0f} µs instead of ≤ {bar:g} µs")


if __name__ == "__main__":
    for what, took, bar in small_calls():
        print(f"{what:55} {took:6.0f} µs", "" if bar is None else f"(bar: {bar:g} µs)")
