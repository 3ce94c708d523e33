"""Vector search: the documents that an index finds, and all that tie with the last one.

An index returns the k nearest documents and drops others that are exactly as near as the last of
them. `search` fetches these, too. So every view of a measure with a cutoff of at most k is that of
the whole collection, although few more than k documents are fetched. faiss, usearch, hnswlib,
qdrant and lancedb are supported; for others, write a subclass of `Index`.
"""

from deadheat.integrations.vector_search.completing import (
    Completed as Completed,
    complete_groups as complete_groups,
    search as search,
)
from deadheat.integrations.vector_search.libraries import (
    Faiss as Faiss,
    Hnswlib as Hnswlib,
    Index as Index,
    LanceDB as LanceDB,
    Qdrant as Qdrant,
    USearch as USearch,
)
