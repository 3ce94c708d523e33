"""Vector search: what an index finds, and all documents that tie with the last one.

An index gives the k nearest documents and drops others that are exactly as near as the last of
them. `search` fetches these as well, so that every view of a measure with a cutoff of at most k is
that of the whole collection, although little more than k documents are fetched. faiss, usearch,
hnswlib, qdrant and lancedb are supported; for others, write a subclass of `Index`.
"""

from deadheat.integrations.vector_search.completing import (
    Completed as Completed,
    complete_groups as complete_groups,
    search as search,
)
from deadheat.integrations.vector_search.index import Index as Index
from deadheat.integrations.vector_search.libraries import (
    Faiss as Faiss,
    Hnswlib as Hnswlib,
    LanceDB as LanceDB,
    Qdrant as Qdrant,
    USearch as USearch,
)
