"""Evaluate with BEIR and one replaced module: values under its tie rule, and expected values.

Needs `pip install '.[beir]'`. The results are synthetic: replace them by yours.
"""

from __future__ import annotations

import numpy as np
from beir.retrieval import evaluation

from deadheat.integrations import pytrec_eval

rng = np.random.default_rng(0)
qrels, results = {}, {}
for query in range(50):
    relevant = rng.random(100) < 0.05
    scores = np.round(rng.normal(size=100) + 1.5 * relevant, 0)  # whole numbers tie
    qrels[f"q{query}"] = {f"d{doc}": int(grade) for doc, grade in enumerate(relevant)}
    results[f"q{query}"] = {f"d{doc}": float(score) for doc, score in enumerate(scores)}

evaluate = evaluation.EvaluateRetrieval.evaluate
for name, module in (("BEIR", evaluation.pytrec_eval), ("expected", pytrec_eval)):
    evaluation.pytrec_eval = module
    ndcg, _, recall, _ = evaluate(qrels, results, [1, 10])
    print(f"{name:9} {ndcg}  {recall}")
