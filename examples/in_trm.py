"""A script for trm with one changed import, on INT8 scores.

Needs only deadheat. The scores are synthetic: replace them by yours.
"""

from __future__ import annotations

import numpy as np

from deadheat.integrations import trm  # was: import trm

rng = np.random.default_rng(0)
relevant = rng.random((50, 100)) < 0.05
similarity = rng.normal(size=(50, 100)) + 1.5 * relevant
scores = np.clip(similarity * 8, -128, 127).round().astype(np.int8)
output = trm.evaluate(list(scores), list(relevant), metrics=["ndcg", "mrr"], k_list=[10])
for name, by_cutoff in output.metrics.items():
    for k, result in by_cutoff.items():
        print(
            f"{name}@{k}: {result.expected:.4f} ± {result.std:.4f} in "
            f"[{result.minimum:.4f}, {result.maximum:.4f}], as reported {result.oblivious:.4f}"
        )
