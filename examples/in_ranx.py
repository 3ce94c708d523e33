"""A script for ranx with one changed import: four views of runs with more and more ties.

Needs `pip install '.[ranx]'`. The runs are synthetic: replace them by yours.
"""

from __future__ import annotations

import numpy as np

from deadheat.integrations import ranx  # was: import ranx

rng = np.random.default_rng(0)
relevant = rng.random((50, 100)) < 0.05
scores = rng.normal(size=(50, 100)) + 1.5 * relevant
qrels = ranx.Qrels(
    {f"q{q}": {f"d{d:02}": int(relevant[q, d]) for d in range(100)} for q in range(50)}
)

print("digits  " + "".join(f"{view:>10}" for view in ("ranx", "expected", "worst", "best")))
for digits in (3, 1, 0):
    lists = np.round(scores, digits).tolist()
    run = ranx.Run(
        {f"q{q}": {f"d{d:02}": lists[q][d] for d in range(100)} for q in range(50)},
        name=f"{digits} digits",
    )
    values = {
        view: ranx.evaluate(qrels, run, "ndcg@10", view=view)
        for view in ("oblivious", "expected", "worst", "best")
    }
    print(f"{digits:6}  " + "".join(f"{value:10.4f}" for value in values.values()))
