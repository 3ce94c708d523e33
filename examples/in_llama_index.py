"""A retriever of LlamaIndex with binary embeddings, which tie many passages.

Needs `pip install '.[llama-index]'`; downloads nothing. Embeddings are synthetic.
"""

from __future__ import annotations

import zlib

import numpy as np
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode

from deadheat.integrations.llama_index import RetrieverEvaluator, result_of


class Binary(BaseEmbedding):
    """A vector of signs for each topic; each text flips some of them."""

    def _get_text_embedding(self, text: str) -> list[float]:
        topic = np.random.default_rng(zlib.crc32(text.split()[0].encode()))
        own = np.random.default_rng(zlib.crc32(text.encode()))
        signs = np.where(topic.random(24) < 0.5, 1.0, -1.0)
        return (signs * np.where(own.random(24) < 0.3, -1.0, 1.0)).tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


topics = [f"topic{i}" for i in range(20)]
nodes = [
    TextNode(id_=f"{topic}-{i}", text=f"{topic} passage {i}") for topic in topics for i in range(10)
]
index = VectorStoreIndex(nodes, embed_model=Binary())
evaluator = RetrieverEvaluator.from_metric_names(
    ["mrr"], retriever=index.as_retriever(similarity_top_k=100)
)
results = [
    evaluator.evaluate(f"{topic} question", expected_ids=[f"{topic}-{i}" for i in range(3)])
    for topic in topics
]
print(result_of(results, ["MRR@10", "nDCG@10", "Recall@10"]))
