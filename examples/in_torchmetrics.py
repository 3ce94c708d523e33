"""Validate a BF16 ranker in batches: MRR of torchmetrics, and tie-aware measures.

Needs `pip install '.[torchmetrics]'`. Scores are synthetic; use the same metric with yours.
"""

from __future__ import annotations

import torch
from torchmetrics.retrieval import RetrievalMRR

from deadheat.integrations.torchmetrics import TieAwareRetrieval

torch.manual_seed(0)
theirs = RetrievalMRR()
ours = TieAwareRetrieval(["MRR", "nDCG@10"], views=["expected", "worst", "best", "std"])
for batch in range(10):
    target = (torch.rand(8, 100) < 0.05).long()
    scores = torch.sigmoid(torch.randn(8, 100) + 2 * target).bfloat16()
    indexes = (8 * batch + torch.arange(8))[:, None].expand(-1, 100)
    theirs.update(scores, target, indexes=indexes)
    ours.update(scores, target, indexes=indexes)

print(f"{'torchmetrics MRR':16} {theirs.compute():.4f}")
for name, value in ours.compute().items():
    print(f"{name:16} {value:.4f}")
