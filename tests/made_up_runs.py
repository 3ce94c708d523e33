"""Generate judgements and runs with many ties."""

from __future__ import annotations

import numpy as np


def make_runs(queries: int = 30, systems: int = 3, seed: int = 0):
    """Return random judgements and runs; systems differ in noise and in the rounding of scores."""
    rng = np.random.default_rng(seed)
    relevance = rng.random((queries, 15)) < 0.2
    relevance[:, 0] = True
    qrels, runs = {}, {f"s{i}": {} for i in range(systems)}
    for q in range(queries):
        docs = [f"d{d}" for d in rng.permutation(15)]
        grades = dict(zip(docs, relevance[q].astype(int).tolist(), strict=True))
        qrels[f"q{q}"] = grades
        for i in range(systems):
            noisy = relevance[q] + rng.normal(0, 0.5 + 0.3 * i, 15)
            scores = np.floor(noisy * (2 + 2 * i)).tolist()
            runs[f"s{i}"][f"q{q}"] = dict(zip(docs, scores, strict=True))
    return qrels, runs
