"""Measures of ir_measures and their tie-aware variants for a run with many ties.

Needs `pip install '.[ir-measures]'`. The run is synthetic: replace it by yours.
"""

from __future__ import annotations

import ir_measures
import numpy as np

import deadheat.integrations.ir_measures  # noqa: F401 - registers the measures below

rng = np.random.default_rng(0)
qrels, run = {}, {}
for query in range(50):
    relevant = rng.random(100) < 0.05
    scores = np.round(rng.normal(size=100) + 1.5 * relevant, 0)  # whole numbers tie
    qrels[f"q{query}"] = {f"d{doc}": int(grade) for doc, grade in enumerate(relevant)}
    run[f"q{query}"] = {f"d{doc}": float(score) for doc, score in enumerate(scores)}

for name in ("nDCG@10", "RR@10", "RR"):
    views = [name, f"E_{name}", f"Worst_{name}", f"Best_{name}", f"Std_{name}", f"Bias_{name}"]
    measures = [ir_measures.parse_measure(view) for view in views]
    values = ir_measures.calc_aggregate(measures, qrels, run)
    print("  ".join(f"{measure} {values[measure]:.4f}" for measure in measures))
