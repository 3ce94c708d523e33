"""Vector search: what an index finds, with the tie group that the cut at k goes through made whole.

An index gives the k nearest documents and drops others that are exactly as near as the last of
them. `search` asks for these, too, so that every view of a measure with a cutoff of at most k is
that of the whole collection, though little more than k documents are fetched. faiss, usearch,
hnswlib, qdrant and lancedb are known; anything else with the two methods of `Index` will do.
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
