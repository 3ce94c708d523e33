"""A comparison as large as a round of TREC-COVID: 126 systems, 50 queries, four measures.

The runs are synthetic. As in TREC-COVID, they come from teams whose runs are similar. Every fifth
run has few distinct scores, and so many ties. Every seventh run copies another run of its team,
with some queries changed.

    python benchmarks/comparing.py        # seconds, memory, verdicts
"""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
from scipy import stats

import deadheat as dh

MEASURES = ["nDCG@20", "MRR", "MAP", "Precision@20"]
SYSTEMS, QUERIES, DOCUMENTS, TEAM = 126, 50, 200, 4
SECONDS, GIGABYTES = 15, 1
"""Limits for this comparison on two cores."""


def evaluate_systems() -> dict[str, dh.Result]:
    """Evaluate the systems."""
    rng = np.random.default_rng(0)
    shape = (QUERIES, DOCUMENTS)
    relevance = (rng.random(shape) < 0.15).astype(np.int8)
    relevance[:, 0] = 1
    difficulty = rng.normal(0, 0.5, shape)
    results = {}
    for i in range(SYSTEMS):
        if i % TEAM == 0:
            scores = (0.4 + i / SYSTEMS) * relevance + difficulty + rng.normal(0, 0.6, shape)
        if i % 7 == 6:
            scores[: QUERIES // 5] += rng.normal(0, 0.3, (QUERIES // 5, DOCUMENTS))
        else:
            scores = scores + rng.normal(0, 0.15, shape)
        grid = 3 if i % 5 == 0 else 256
        results[f"team{i // TEAM:02d}-run{i % TEAM}"] = dh.evaluate_arrays(
            relevance, np.round(scores * grid) / grid, MEASURES
        )
    return results


def compare_all() -> dh.Comparison:
    """Compare all pairs in all measures."""
    return dh.compare(evaluate_systems())


def time_scipy(systems: dict[str, dh.Result]) -> float:
    """Return the seconds that scipy needs for all pairs, extrapolated from one."""
    a, b = (next(iter(s.views.values())).expected for s in list(systems.values())[:2])
    start = time.perf_counter()
    stats.permutation_test(
        (a - b,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        n_resamples=9999,
        vectorized=True,
    )
    pairs = len(list(combinations(systems, 2))) * len(MEASURES)
    return (time.perf_counter() - start) * pairs


if __name__ == "__main__":
    systems = evaluate_systems()
    start = time.perf_counter()
    comparison = dh.compare(systems)
    took, tested = time.perf_counter() - start, len(comparison.pairs)
    print(f"{tested:,} comparisons: {took:.1f} s (bar: {SECONDS} s)")
    print(comparison.verdicts)
    print(f"printed: {len(str(comparison).splitlines()):,} lines")
