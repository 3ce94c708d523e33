"""Codes of 64 bits, and an index of every vector library over them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deadheat.integrations import vector_search


@dataclass(frozen=True)
class Codes:
    """Random codes: with 64 bits and thousands of documents nearly every top 10 ends in a tie."""

    documents: np.ndarray
    """``[documents, 8]`` bytes."""
    queries: np.ndarray
    ids: np.ndarray
    """Ids for indexes that accept ids: the row numbers, in order or shuffled."""

    @classmethod
    def make(cls, documents: int = 5_000, queries: int = 100, *, shuffled: bool = False) -> Codes:
        rng = np.random.default_rng(0)
        codes = [rng.integers(0, 256, (n, 8), np.uint8) for n in (documents, queries)]
        return cls(*codes, rng.permutation(documents) if shuffled else np.arange(documents))

    @property
    def distances(self) -> np.ndarray:
        """Hamming distances, ``[queries, documents]``."""
        return (bits(self.queries)[:, None] != bits(self.documents)).sum(2)


def bits(codes: np.ndarray, dtype: Any = np.uint8) -> np.ndarray:
    """Return 0 or 1 for each bit."""
    return np.unpackbits(codes, axis=1).astype(dtype)


def signs(codes: np.ndarray) -> np.ndarray:
    """Return −1 or 1 for each bit; inner product = width − 2 × Hamming distance."""
    return 2 * bits(codes, np.float32) - 1


@dataclass(frozen=True)
class Built:
    """An index, its queries, and a function from its scores to Hamming distances."""

    index: vector_search.Index
    queries: np.ndarray
    differing: Callable[[np.ndarray], np.ndarray]
    exact: bool


def faiss_binary_flat(codes: Codes) -> Built:
    import faiss

    index = faiss.IndexBinaryFlat(64)
    index.add(codes.documents)
    return Built(vector_search.Faiss(index), codes.queries, lambda s: s, True)


def faiss_binary_hnsw(codes: Codes) -> Built:
    import faiss

    index = faiss.IndexBinaryHNSW(64, 16)
    index.hnsw.efSearch = 100
    index.add(codes.documents)
    return Built(vector_search.Faiss(index), codes.queries, lambda s: s, False)


def faiss_flat_l2(codes: Codes) -> Built:
    import faiss

    index = faiss.IndexFlatL2(64)
    index.add(bits(codes.documents, np.float32))
    return Built(vector_search.Faiss(index), bits(codes.queries, np.float32), lambda s: s, True)


def faiss_flat_ip(codes: Codes) -> Built:
    import faiss

    index = faiss.IndexFlatIP(64)
    index.add(signs(codes.documents))
    return Built(vector_search.Faiss(index), signs(codes.queries), lambda s: (64 - s) / 2, True)


def faiss_pq_fast_scan(codes: Codes) -> Built:
    """An index of 4-bit codes; its distances are those between codes."""
    import faiss

    index = faiss.IndexPQFastScan(64, 16, 4)
    index.train(bits(codes.documents, np.float32))
    index.add(bits(codes.documents, np.float32))
    return Built(vector_search.Faiss(index), bits(codes.queries, np.float32), lambda s: s, False)


def usearch_exact(codes: Codes) -> Built:
    from usearch.index import Index

    index = Index(ndim=64, metric="hamming", dtype="b1")
    index.add(codes.ids, codes.documents)
    return Built(vector_search.USearch(index, exact=True), codes.queries, lambda s: s, True)


def usearch_hnsw(codes: Codes) -> Built:
    built = usearch_exact(codes)
    return Built(vector_search.USearch(built.index.index), codes.queries, lambda s: s, False)


def hnswlib_hnsw(codes: Codes) -> Built:
    import hnswlib

    index = hnswlib.Index(space="l2", dim=64)
    index.init_index(len(codes.documents), ef_construction=200, M=16, random_seed=0)
    index.add_items(bits(codes.documents, np.float32), codes.ids, num_threads=1)
    index.set_ef(100)
    return Built(vector_search.Hnswlib(index), bits(codes.queries, np.float32), lambda s: s, False)


def hnswlib_brute_force(codes: Codes) -> Built:
    import hnswlib

    index = hnswlib.BFIndex(space="l2", dim=64)
    index.init_index(len(codes.documents))
    index.add_items(bits(codes.documents, np.float32), codes.ids)
    return Built(vector_search.Hnswlib(index), bits(codes.queries, np.float32), lambda s: s, True)


def _qdrant(codes: Codes, distance: str, vectors: Callable[[np.ndarray], np.ndarray]) -> Any:
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    config = models.VectorParams(size=64, distance=models.Distance(distance))
    client.create_collection("codes", vectors_config=config)
    client.upload_collection("codes", vectors(codes.documents), ids=codes.ids.tolist())
    return vector_search.Qdrant(client, "codes")


def qdrant_manhattan(codes: Codes) -> Built:
    index = _qdrant(codes, "Manhattan", lambda c: bits(c, np.float32))
    return Built(index, bits(codes.queries, np.float32), lambda s: s, True)


def qdrant_dot(codes: Codes) -> Built:
    index = _qdrant(codes, "Dot", signs)
    return Built(index, signs(codes.queries), lambda s: (64 - s) / 2, True)


def lancedb_hamming(codes: Codes) -> Built:
    import lancedb
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(codes.documents.reshape(-1)), 8)
    rows = pa.table({"id": pa.array(codes.ids), "vector": vectors})
    table = lancedb.connect(tempfile.mkdtemp()).create_table("codes", rows)
    index = vector_search.LanceDB(table, distance_type="hamming", id_column="id")
    return Built(index, codes.queries, lambda s: s, True)


INDEXES: dict[str, tuple[str, Callable[[Codes], Built]]] = {
    "faiss IndexBinaryFlat": ("faiss", faiss_binary_flat),
    "faiss IndexBinaryHNSW": ("faiss", faiss_binary_hnsw),
    "faiss IndexFlatL2": ("faiss", faiss_flat_l2),
    "faiss IndexFlatIP": ("faiss", faiss_flat_ip),
    "faiss IndexPQFastScan": ("faiss", faiss_pq_fast_scan),
    "usearch, exact": ("usearch", usearch_exact),
    "usearch": ("usearch", usearch_hnsw),
    "hnswlib BFIndex": ("hnswlib", hnswlib_brute_force),
    "hnswlib Index": ("hnswlib", hnswlib_hnsw),
    "qdrant (local), Manhattan": ("qdrant_client", qdrant_manhattan),
    "qdrant (local), dot": ("qdrant_client", qdrant_dot),
    "lancedb, hamming": ("lancedb", lancedb_hamming),
}
"""Module and builder of each index."""
