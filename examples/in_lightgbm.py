"""A ranker of few trees on data sorted by label: nDCG of LightGBM, and tie-aware nDCG.

Needs `pip install '.[lightgbm]'`. The data are synthetic; use the same `feval` with yours.
"""

from __future__ import annotations

import lightgbm as lgb
import numpy as np

from deadheat.integrations.lightgbm import feval

rng = np.random.default_rng(0)
features = rng.normal(size=(4000, 5)).round(1)
labels = np.clip((features[:, 0] + features[:, 1] + rng.normal(size=4000)).round(), 0, 3)
# In each list of 20, relevant documents come first, as in many datasets for reranking.
order = np.lexsort((-labels, np.repeat(np.arange(200), 20)))
features, labels = features[order], labels[order]
train = lgb.Dataset(features[:3000], labels[:3000], group=[20] * 150)
valid = lgb.Dataset(features[3000:], labels[3000:], group=[20] * 50, reference=train)
history: dict[str, dict[str, list[float]]] = {}
lgb.train(
    {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "num_leaves": 3, "verbose": -1},
    train,
    num_boost_round=20,
    valid_sets=[valid],
    feval=feval("ndcg@10", ["expected", "worst"]),
    callbacks=[lgb.record_evaluation(history)],
)
print("trees  ndcg@10  expected  worst")
for trees in (1, 2, 5, 10, 20):
    values = [values[trees - 1] for values in history["valid_0"].values()]
    print(f"{trees:5}  {values[0]:7.4f}  {values[1]:8.4f}  {values[2]:.4f}")
