"""Vector search: what an index finds, with the tie group that the cut at k goes through made whole.

An index gives the k nearest documents and drops others that are exactly as near as the last of
them. `search` asks for these, too, so that every view of a measure with a cutoff of at most k is
that of the whole collection, though little more than k documents are fetched. faiss, usearch,
hnswlib, qdrant and lancedb are known; anything else with the two methods of `Index` will do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.formats import Run, search_results
from deadheat.formats.search import PADDING
from deadheat.numbers import is_tensor, tensor_values
from deadheat.packages import require_host
from deadheat.ties.checks import check_number

__all__ = [
    "Completed",
    "Faiss",
    "Hnswlib",
    "Index",
    "LanceDB",
    "Qdrant",
    "USearch",
    "complete_groups",
    "search",
]

Array: TypeAlias = NDArray[Any]
Lists: TypeAlias = list[tuple[Array, Array]]
"""Per query: ids of documents, and their scores or distances, best first."""


class Index(ABC):
    """An index that can be searched, and perhaps asked for all documents down to a score."""

    larger_is_better: bool = False
    """Whether its scores are similarities; False where they are distances."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many documents it holds."""

    @abstractmethod
    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query, fewer where there are fewer."""

    def within(self, queries: Array, last: Sequence[float]) -> Lists | None:
        """All documents of each query that are as near as a score; None where nobody can ask."""
        return None

    def beyond(self, score: float) -> Any:
        """The next float32 that is worse than a score: a limit that leaves the score inside."""
        worse = -np.inf if self.larger_is_better else np.inf
        return np.nextafter(np.float32(score), np.float32(worse))


@dataclass(frozen=True)
class Completed:
    """Search results whose last tie group is whole; `deadheat.search_results` takes its fields."""

    ids: list[Array]
    """Per query: the documents found, then the others that tie with the last of them."""
    scores: list[Array]
    """Their scores or distances."""
    last_group_size: list[int]
    """Per query: how many documents of the index have the last score."""
    asked: str
    """How the index was asked: ``"range search"`` or ``"growing k"``."""


def search(
    index: Any,
    queries: Any,
    k: int,
    *,
    query_ids: Sequence[Any] | None = None,
    document_ids: Sequence[Any] | None = None,
    complete: bool = True,
) -> Run:
    """Search an index; `deadheat.evaluate` and `deadheat.neighbour_recall` take what it gives.

    Parameters
    ----------
    index
        Of faiss, usearch or hnswlib, a table of lancedb, or one of the classes of this module.
    queries
        ``[queries, width]``, in the type that the index takes.
    k
        How many documents to find, the deepest cutoff of the measures.
    query_ids, document_ids
        Names, as for `deadheat.search_results`.
    complete
        Whether to ask for the other documents that tie with the last one found, as
        `complete_groups` does. They stand behind those found: the order of ties that the index
        chose is the rule ``"input"``.
    """
    known = _index(index)
    vectors = _vectors(queries)
    found = known.nearest(vectors, check_number("k", k, least=1))
    sizes = None
    if complete:
        found, _ = _completed(known, vectors, found)
        sizes = _last_group_sizes(found, known.larger_is_better)
    return search_results(
        [ids for ids, _ in found],
        [scores for _, scores in found],
        query_ids=query_ids,
        document_ids=document_ids,
        larger_is_better=known.larger_is_better,
        last_group_size=sizes,
    )


def complete_groups(index: Any, queries: Any, ids: Any, scores: Any) -> Completed:
    """Ask an index which documents have the last score of each list, and put them behind it.

    An index that has a range search is asked for all documents that are as near. Any other is
    searched with k doubled until the group ends. An approximate index finds as much of a group as
    it finds of anything.

    Parameters
    ----------
    index, queries
        As for `search`.
    ids, scores
        ``[queries, k]``: what the index found for these queries, −1 where it found fewer.
    """
    known = _index(index)
    vectors = _vectors(queries)
    if len(ids) != len(vectors) or len(scores) != len(vectors):
        raise InputError(
            f"{len(vectors)} queries, but results of {len(ids)} (ids) and {len(scores)} (scores): "
            "give the results of these queries"
        )
    found = [_without_padding(*row) for row in zip(ids, scores, strict=True)]
    whole, asked = _completed(known, vectors, found)
    return Completed(
        [row for row, _ in whole],
        [row for _, row in whole],
        _last_group_sizes(whole, known.larger_is_better),
        asked,
    )


def _completed(index: Index, queries: Array, found: Lists) -> tuple[Lists, str]:
    """Put the other documents that tie with the last one behind each list."""
    filled = [q for q, (ids, _) in enumerate(found) if len(ids)]
    last = {q: _last(found[q][1], index.larger_is_better) for q in filled}
    reached = index.within(queries[filled], list(last.values())) if filled else []
    asked = "range search"
    if reached is None or not _agree(found, last, dict(zip(filled, reached, strict=True))):
        asked = "growing k"
        reached = _grown(index, queries, found, last)
    whole = list(found)
    for q, (ids, scores) in zip(filled, reached, strict=True):
        own_ids, own_scores = found[q]
        more = (scores == last[q]) & ~np.isin(ids, own_ids)
        whole[q] = (
            np.concatenate((own_ids, ids[more])),
            np.concatenate((own_scores, scores[more])),
        )
    return whole, asked


def _agree(found: Lists, last: dict[int, Any], reached: dict[int, tuple[Array, Array]]) -> bool:
    """Whether a range search gives the documents of each last group the score they have in it.

    Some libraries add up the same distance in another order in another kind of search.
    """
    for q, score in last.items():
        own = found[q][0][found[q][1] == score]
        if not np.isin(own, reached[q][0][reached[q][1] == score]).all():
            return False
    return True


def _grown(index: Index, queries: Array, found: Lists, last: dict[int, Any]) -> Lists:
    """Search with growing k until the last group of every list has ended."""
    reached = {q: found[q] for q in last}
    k = max((len(ids) for ids, _ in found), default=0)
    still_open = [q for q in last if len(found[q][0]) == k]  # shorter lists hold all there is
    while still_open and k < index.size:
        k = min(2 * k, index.size)
        reached.update(zip(still_open, index.nearest(queries[still_open], k), strict=True))
        still_open = [
            q
            for q in still_open
            if len(reached[q][0]) == k
            and not _worse(_last(reached[q][1], index.larger_is_better), last[q], index)
        ]
    return list(reached.values())


def _worse(score: Any, other: Any, index: Index) -> bool:
    return bool(score < other if index.larger_is_better else score > other)


def _last(scores: Array, larger_is_better: bool) -> Any:
    return scores.min() if larger_is_better else scores.max()


def _last_group_sizes(lists: Lists, larger_is_better: bool) -> list[int]:
    return [
        int((scores == _last(scores, larger_is_better)).sum()) if len(scores) else 0
        for _, scores in lists
    ]


def _without_padding(ids: Any, scores: Any) -> tuple[Array, Array]:
    row = np.asarray(ids)
    listed = row != PADDING if row.dtype.kind == "i" else np.ones(len(row), bool)
    return row[listed], np.asarray(scores)[listed]


def _vectors(queries: Any) -> Array:
    vectors = tensor_values("queries", queries) if is_tensor(queries) else np.asarray(queries)
    if vectors.ndim != 2 or not len(vectors):
        raise InputError(
            f"queries must have the shape [queries, width], not {list(vectors.shape)}; wrap a "
            "single query in a list"
        )
    return vectors


# The libraries.


class Faiss(Index):
    """An index of faiss, of floats or of bits.

    A flat index is asked by its range search, any other by growing k. Float distances may differ
    in the last bit between the two searches of a flat index; k grows there, too.
    """

    def __init__(self, index: Any) -> None:
        self._faiss = require_host("faiss", "faiss", "`vector_search.Faiss`")
        self.index = index
        self._bits = isinstance(index, self._faiss.IndexBinary)
        if not self._bits:
            self.larger_is_better = bool(self._faiss.is_similarity_metric(index.metric_type))

    @property
    def size(self) -> int:
        """How many documents it holds."""
        return int(self.index.ntotal)

    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query."""
        scores, ids = self.index.search(queries, k)
        return [_without_padding(*row) for row in zip(ids, scores, strict=True)]

    def within(self, queries: Array, last: Sequence[float]) -> Lists | None:
        """All documents as near as a score, from the range search of a flat index."""
        flat = self._faiss.IndexBinaryFlat if self._bits else self._faiss.IndexFlat
        if not isinstance(self.index, flat):
            return None
        reached: list[tuple[Array, Array]] = [(np.empty(0), np.empty(0))] * len(last)
        for score in sorted(set(last)):
            own = [q for q, value in enumerate(last) if value == score]
            # Both limits are exclusive.
            limit = int(score) + 1 if self._bits else float(self.beyond(score))
            starts, scores, ids = self.index.range_search(queries[own], limit)
            for i, q in enumerate(own):
                piece = slice(int(starts[i]), int(starts[i + 1]))
                reached[q] = ids[piece], scores[piece]
        return reached


class USearch(Index):
    """An index of usearch; it has no range search, so k grows.

    Parameters
    ----------
    index
        The index.
    exact
        Whether to search exactly.
    """

    def __init__(self, index: Any, *, exact: bool = False) -> None:
        require_host("usearch.index", "usearch", "`vector_search.USearch`")
        self.index, self.exact = index, exact

    @property
    def size(self) -> int:
        """How many documents it holds."""
        return len(self.index)

    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query."""
        found = self.index.search(queries, k, exact=self.exact)
        if len(queries) == 1 and np.ndim(found.keys) == 1:
            return [(np.asarray(found.keys), np.asarray(found.distances))]
        rows = zip(found.keys, found.distances, found.counts, strict=True)
        return [(keys[:n], distances[:n]) for keys, distances, n in rows]


class Hnswlib(Index):
    """An index of hnswlib, `Index` or `BFIndex`; it has no range search, so k grows.

    While a group is completed ``ef`` is at least k; afterwards it is what it was.
    """

    def __init__(self, index: Any) -> None:
        require_host("hnswlib", "hnswlib", "`vector_search.Hnswlib`")
        self.index = index

    @property
    def size(self) -> int:
        """How many documents it holds."""
        return int(self.index.get_current_count())

    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query."""
        ef = getattr(self.index, "ef", None)  # a BFIndex has none
        try:
            if ef is not None and ef < k:
                self.index.set_ef(k)
            ids, distances = self.index.knn_query(queries, min(k, self.size))
        except RuntimeError as error:
            raise InputError(
                f"hnswlib cannot give {k:,} documents ({error}): raise ef or M, or leave the last "
                "group as it is with complete=False"
            ) from None
        finally:
            if ef is not None and ef < k:
                self.index.set_ef(ef)
        return list(zip(ids, distances, strict=True))


class Qdrant(Index):
    """A collection of qdrant; a threshold of the score asks for all documents that are as near.

    Parameters
    ----------
    client, collection
        A ``QdrantClient``, and the name of the collection.
    using
        The name of the vector, where the collection has several.
    params
        ``SearchParams`` of every search: ``SearchParams(exact=True)``, say.
    """

    def __init__(
        self, client: Any, collection: str, *, using: str | None = None, params: Any = None
    ) -> None:
        require_host("qdrant_client", "qdrant", "`vector_search.Qdrant`")
        self._models = require_host("qdrant_client.models", "qdrant", "`vector_search.Qdrant`")
        self.client, self.collection, self.using, self.params = client, collection, using, params
        vectors = client.get_collection(collection).config.params.vectors
        if isinstance(vectors, dict):
            if using not in vectors:
                names = ", ".join(map(repr, vectors))
                raise InputError(
                    f"the collection {collection!r} has the vectors {names}: name one with using="
                )
            vectors = vectors[using]
        distances = self._models.Distance
        self.larger_is_better = vectors.distance in (distances.COSINE, distances.DOT)

    @property
    def size(self) -> int:
        """How many documents it holds."""
        return int(self.client.count(self.collection).count)

    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query."""
        return self._ask(queries, [{"limit": k}] * len(queries))

    def within(self, queries: Array, last: Sequence[float]) -> Lists | None:
        """All documents as near as a score."""
        n = self.size
        limits = [{"limit": n, "score_threshold": float(self.beyond(score))} for score in last]
        return self._ask(queries, limits)

    def _ask(self, queries: Array, limits: Sequence[dict[str, Any]]) -> Lists:
        requests = [
            self._models.QueryRequest(
                query=query.tolist(), using=self.using, params=self.params, **limit
            )
            for query, limit in zip(queries, limits, strict=True)
        ]
        answers = self.client.query_batch_points(self.collection, requests)
        return [
            (
                _ids([point.id for point in answer.points]),
                np.array([p.score for p in answer.points]),
            )
            for answer in answers
        ]


class LanceDB(Index):
    """A table of lancedb; a range of distances asks for all documents that are as near.

    Parameters
    ----------
    table
        The table.
    distance_type
        ``"l2"``, ``"cosine"``, ``"dot"`` or ``"hamming"``.
    id_column
        The column that names documents; the number of the row unless given.
    vector_column
        The column of vectors, where the table has several.
    prepare
        What to do with every query before it runs: ``lambda query: query.nprobes(20)``, say.
    """

    def __init__(
        self,
        table: Any,
        *,
        distance_type: str = "l2",
        id_column: str | None = None,
        vector_column: str | None = None,
        prepare: Callable[[Any], Any] | None = None,
    ) -> None:
        require_host("lancedb", "lancedb", "`vector_search.LanceDB`")
        self.table, self.distance_type, self.id_column = table, distance_type, id_column
        self.vector_column, self.prepare = vector_column, prepare

    @property
    def size(self) -> int:
        """How many documents it holds."""
        return int(self.table.count_rows())

    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query."""
        return [self._ask(query, k) for query in queries]

    def within(self, queries: Array, last: Sequence[float]) -> Lists | None:
        """All documents as near as a score."""
        n = self.size
        limits = zip(queries, last, strict=True)
        return [self._ask(query, n, float(self.beyond(score))) for query, score in limits]

    def _ask(self, query: Array, k: int, limit: float | None = None) -> tuple[Array, Array]:
        names = {} if self.vector_column is None else {"vector_column_name": self.vector_column}
        asked = self.table.search(query, **names).distance_type(self.distance_type).limit(k)
        if limit is not None:
            asked = asked.distance_range(upper_bound=limit)  # exclusive
        if self.prepare is not None:
            asked = self.prepare(asked)
        if self.id_column is None:
            found = asked.with_row_id(True).select(["_distance"]).to_arrow()
        else:
            found = asked.select([self.id_column, "_distance"]).to_arrow()
        ids = found[self.id_column or "_rowid"].to_pylist()
        return _ids(ids), np.array(found["_distance"].to_pylist(), np.float64)


def _ids(ids: Sequence[Any]) -> Array:
    """Ids as an array that leaves them as they are."""
    if all(isinstance(value, int) for value in ids):
        return np.array(ids, np.int64)
    array = np.empty(len(ids), object)
    array[:] = ids
    return array


_KINDS: dict[str, Callable[[Any], Index]] = {
    "faiss": Faiss,
    "usearch": USearch,
    "hnswlib": Hnswlib,
    "lancedb": LanceDB,
}
"""What reads an index, by the package that it comes from."""


def _index(index: Any) -> Index:
    if isinstance(index, Index):
        return index
    package = type(index).__module__.partition(".")[0]
    if package == "qdrant_client":
        raise InputError("name the collection: vector_search.Qdrant(client, collection)")
    if package not in _KINDS:
        raise InputError(
            f"a {type(index).__name__} is no index of {', '.join(_KINDS)}: describe it by a "
            "subclass of vector_search.Index, or give its results to deadheat.search_results"
        )
    return _KINDS[package](index)
