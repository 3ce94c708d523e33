"""A PyTerrier experiment with tie-aware measures: two systems, one of which has ties.

Needs `pip install '.[pyterrier]'`, no Java. The lists are synthetic: replace them by yours.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyterrier as pt

from deadheat.integrations.ir_measures import E_RR, Best_RR, E_nDCG, Range_nDCG, Worst_RR

rng = np.random.default_rng(0)
queries = [f"q{i}" for i in range(50)]
grid = pd.MultiIndex.from_product([queries, [f"d{i}" for i in range(100)]], names=["qid", "docno"])
candidates = grid.to_frame(index=False)
candidates["label"] = (rng.random(len(candidates)) < 0.05).astype(int)
fine = candidates.assign(score=rng.normal(size=len(candidates)) + 1.5 * candidates["label"])
coarse = fine.assign(score=fine["score"].round(0))  # whole numbers tie
systems = [pt.Transformer.from_df(pt.model.add_ranks(each)) for each in (fine, coarse)]

topics = pd.DataFrame({"qid": queries, "query": queries})
table = pt.Experiment(
    systems,
    topics,
    candidates[["qid", "docno", "label"]],
    eval_metrics=["recip_rank", E_RR, Worst_RR, Best_RR, E_nDCG @ 10, Range_nDCG @ 10],
    names=["fine", "coarse"],
    round=4,
)
print(table.to_string(index=False))
