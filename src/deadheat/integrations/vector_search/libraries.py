"""The interface of an index, and indexes of faiss, usearch, hnswlib, qdrant and lancedb."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.packages import require_host
from deadheat.errors import InputError

Array: TypeAlias = NDArray[Any]
Lists: TypeAlias = list[tuple[Array, Array]]
"""Per query: ids of documents, and their scores or distances, best first."""


class Index(ABC):
    """An index that can be searched; a subclass defines `nearest`."""

    larger_is_better: bool = False
    """Whether its scores are similarities; False if they are distances."""

    @abstractmethod
    def nearest(self, queries: Array, k: int) -> Lists:
        """Return the k nearest documents of each query, or all if there are fewer."""


class Faiss(Index):
    """An index of faiss, of floats or of bits."""

    def __init__(self, index: Any) -> None:
        faiss: Any = require_host("faiss", "faiss", "`vector_search.Faiss`")
        self.index = index
        if not isinstance(index, faiss.IndexBinary):
            self.larger_is_better = bool(faiss.is_similarity_metric(index.metric_type))

    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query."""
        scores, ids = self.index.search(queries, k)
        return list(zip(ids, scores, strict=True))


@dataclass(eq=False)
class USearch(Index):
    """An index of usearch.

    Parameters
    ----------
    index
        The index.
    exact
        Whether to search exactly.
    """

    index: Any
    _: KW_ONLY
    exact: bool = False

    def __post_init__(self) -> None:
        require_host("usearch.index", "usearch", "`vector_search.USearch`")

    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query."""
        found = self.index.search(queries, k, exact=self.exact)
        lists = [found] if np.ndim(found.keys) == 1 else found  # one query, or several
        return [(each.keys, each.distances) for each in lists]


class Hnswlib(Index):
    """An index of hnswlib, `Index` or `BFIndex`.

    During a search, ``ef`` is at least k; afterwards the old value is restored.
    """

    def __init__(self, index: Any) -> None:
        require_host("hnswlib", "hnswlib", "`vector_search.Hnswlib`")
        self.index = index

    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query."""
        ef = getattr(self.index, "ef", None)  # a BFIndex has none
        try:
            if ef is not None and ef < k:
                self.index.set_ef(k)
            reachable = min(k, self.index.get_current_count())
            ids, distances = self.index.knn_query(queries, reachable)
        except RuntimeError as error:
            raise InputError(
                f"hnswlib cannot give {k:,} documents ({error}): raise ef or M, or leave the last "
                "group as it is with complete=False"
            ) from None
        finally:
            if ef is not None and ef < k:
                self.index.set_ef(ef)
        return list(zip(ids, distances, strict=True))


@dataclass(eq=False)
class Qdrant(Index):
    """A collection of qdrant.

    Parameters
    ----------
    client, collection
        A ``QdrantClient``, and the name of the collection.
    using
        The name of the vector, if the collection has several.
    params
        ``SearchParams`` of every search, such as ``SearchParams(exact=True)``.
    """

    client: Any
    collection: str
    _: KW_ONLY
    using: str | None = None
    params: object = None

    def __post_init__(self) -> None:
        self._models = require_host("qdrant_client.models", "qdrant", "`vector_search.Qdrant`")
        vectors = self.client.get_collection(self.collection).config.params.vectors
        if isinstance(vectors, dict):
            if self.using not in vectors:
                raise InputError(
                    f"the collection {self.collection!r} has the vectors "
                    f"{', '.join(map(repr, vectors))}: name one with using="
                )
            vectors = vectors[self.using]
        distances = self._models.Distance
        self.larger_is_better = vectors.distance in (distances.COSINE, distances.DOT)

    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query."""
        options = {"using": self.using, "params": self.params, "limit": k}
        requests = [self._models.QueryRequest(query=query.tolist(), **options) for query in queries]
        answers = self.client.query_batch_points(self.collection, requests)
        return [
            (np.array([p.id for p in points], object), np.array([p.score for p in points]))
            for points in (answer.points for answer in answers)
        ]


@dataclass(eq=False)
class LanceDB(Index):
    """A table of lancedb.

    Parameters
    ----------
    table
        The table.
    distance_type
        ``"l2"``, ``"cosine"``, ``"dot"`` or ``"hamming"``.
    id_column
        The column of document ids. Default: the row number.
    vector_column
        The column of vectors, if the table has several.
    prepare
        Function that changes every query before it runs: ``lambda query: query.nprobes(20)``.
    """

    table: Any
    _: KW_ONLY
    distance_type: str = "l2"
    id_column: str | None = None
    vector_column: str | None = None
    prepare: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        require_host("lancedb", "lancedb", "`vector_search.LanceDB`")

    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query."""
        own = [self.id_column] if self.id_column else []
        lists = []
        for query in queries:
            search = self.table.search(query, self.vector_column)
            search = search.distance_type(self.distance_type).limit(k)
            if self.prepare is not None:
                search = self.prepare(search)
            found = search.with_row_id(not own).select([*own, "_distance"]).to_arrow()
            ids = found[self.id_column or "_rowid"]
            lists.append((ids.to_numpy(), found["_distance"].to_numpy()))
        return lists


_KINDS: dict[str, Callable[[object], Index]] = {
    "faiss": Faiss,
    "usearch": USearch,
    "hnswlib": Hnswlib,
    "lancedb": LanceDB,
}
"""The class that searches an index, by the package that the index comes from."""


def find_index(index: object) -> Index:
    """Return the object that searches an index, by the package that the index comes from."""
    if isinstance(index, Index):
        return index
    kind = _KINDS.get(type(index).__module__.partition(".")[0])
    if kind is None:
        raise InputError(
            f"a {type(index).__name__} is no index of {', '.join(_KINDS)}: give a collection as "
            "vector_search.Qdrant(client, collection), another index as a subclass of "
            "vector_search.Index, or its results to deadheat.search_results"
        )
    return kind(index)
