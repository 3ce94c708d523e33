"""An approximate index of 64-bit codes: nDCG with and without the whole last tie group, and recall.

Needs `pip install '.[usearch]'`. The codes are synthetic: replace them by yours.
"""

from __future__ import annotations

import numpy as np
from usearch.index import Index

import deadheat as dh
from deadheat.integrations import vector_search

rng = np.random.default_rng(0)
codes = rng.integers(0, 256, (5_000, 8), np.uint8)
relevant = rng.permutation(5_000)[:100]
queries = codes[relevant] ^ np.packbits(rng.random((100, 64)) < 0.3, axis=1)  # some bits flipped
qrels = {query: {document} for query, document in enumerate(relevant)}

index = Index(ndim=64, metric="hamming", dtype="b1")
index.add(np.arange(len(codes)), codes, threads=1)

ten = vector_search.search(index, queries, 10, complete=False)
whole = vector_search.search(index, queries, 10)
exact = vector_search.search(vector_search.USearch(index, exact=True), queries, 10)

print("nDCG@10 of lists of ten, and with the rest of their last tie group")
for name, run in (("ten", ten), ("whole group", whole)):
    summary = dh.evaluate(qrels, run, "nDCG@10")["nDCG@10"]
    print(f"{name:12} {summary.expected:.4f}  from {summary.worst:.4f} to {summary.best:.4f}")

print("\nrecall@10 against an exact search of the same index")
recall = dh.evaluation.neighbour_recall(ten, exact)["Recall@10"]
print(f"by ids {recall.oblivious:.3f}, by distance {recall.best:.3f}")
