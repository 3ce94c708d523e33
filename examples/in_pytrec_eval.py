"""A script for pytrec_eval with one changed import: four views of a run with many ties.

Needs `pip install '.[pytrec-eval]'`. The run is synthetic: replace it by yours.
"""

from __future__ import annotations

import numpy as np

from deadheat.integrations import pytrec_eval  # was: import pytrec_eval

rng = np.random.default_rng(0)
qrels, run = {}, {}
for query in range(50):
    relevant = rng.random(100) < 0.05
    scores = np.round(rng.normal(size=100) + 1.5 * relevant, 0)  # whole numbers tie
    qrels[f"q{query}"] = {f"d{doc}": int(grade) for doc, grade in enumerate(relevant)}
    run[f"q{query}"] = {f"d{doc}": score for doc, score in enumerate(scores)}

print("view       ndcg_cut_10  recip_rank")
for view in ("oblivious", "expected", "worst", "best"):
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10", "recip_rank"}, view=view)
    values = evaluator.evaluate(run).values()
    means = [np.mean([each[name] for each in values]) for name in ("ndcg_cut_10", "recip_rank")]
    print(f"{view:9}  {means[0]:11.4f}  {means[1]:10.4f}")
