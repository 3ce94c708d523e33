"""A BM25 pipeline of Haystack over short texts with many equal scores.

Needs `pip install '.[haystack]'`; downloads nothing. Texts are synthetic.
"""

from __future__ import annotations

import numpy as np
from haystack import Document
from haystack.components.evaluators import DocumentMRREvaluator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from deadheat.integrations.haystack import TieAwareDocumentEvaluator

rng = np.random.default_rng(0)
words = [f"word{i}" for i in range(40)]
texts = [" ".join(rng.choice(words, 4, replace=False)) for _ in range(300)]
store = InMemoryDocumentStore()
store.write_documents([Document(id=str(i), content=text) for i, text in enumerate(texts)])
retriever = InMemoryBM25Retriever(store, top_k=300)

# A question has two words of its relevant text.
questions = [" ".join(text.split()[:2]) for text in texts[:40]]
relevant = [[Document(id=str(i))] for i in range(40)]
retrieved = [retriever.run(query=question)["documents"] for question in questions]
theirs = DocumentMRREvaluator().run([[Document(content=texts[i])] for i in range(40)], retrieved)
ours = TieAwareDocumentEvaluator(["MRR", "nDCG@10"], document_comparison_field="id").run(
    relevant, retrieved
)
print(f"MRR of Haystack: {theirs['score']:.4f}")
print(ours["result"])
