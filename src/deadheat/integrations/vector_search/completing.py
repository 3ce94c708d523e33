"""Search results whose last tie group is complete."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deadheat._internal.numbers import check_number, is_tensor, tensor_values
from deadheat.errors import InputError
from deadheat.formats import PADDING, Run, search_results
from deadheat.integrations.vector_search.libraries import Array, Index, Lists, find_index


@dataclass(frozen=True)
class Completed:
    """Search results whose last tie group is complete, for `deadheat.search_results`."""

    ids: list[Array]
    """Per query: the documents found, then the others that tie with the last of them."""
    scores: list[Array]
    """Their scores or distances."""
    last_group_size: list[int]
    """Per query: the number of documents of the index that have the last score."""


def search(
    index: object,
    queries: ArrayLike,
    k: int,
    *,
    query_ids: Sequence[Hashable] | None = None,
    document_ids: Sequence[Hashable] | None = None,
    complete: bool = True,
) -> Run:
    """Search an index, for `deadheat.evaluate` and `deadheat.evaluation.neighbour_recall`.

    Parameters
    ----------
    index
        Of faiss, usearch or hnswlib, a table of lancedb, or one of the classes of this module.
    queries
        ``[queries, width]``, in the type that the index accepts.
    k
        Number of documents to find: the deepest cutoff of the measures.
    query_ids, document_ids
        Names, as for `deadheat.search_results`.
    complete
        Whether to fetch the other documents that tie with the last one found, as in
        `complete_groups`. They follow after the found documents, so the index's own order of ties
        is the tie rule ``"input"``.
    """
    known, vectors = find_index(index), _read_queries(queries)
    found = known.nearest(vectors, check_number("k", k, least=1))
    ids, scores = (list(part) for part in zip(*found, strict=True))
    sizes = None
    if complete:
        whole = complete_groups(known, vectors, ids, scores)
        ids, scores, sizes = whole.ids, whole.scores, whole.last_group_size
    return search_results(
        ids,
        scores,
        query_ids=query_ids,
        document_ids=document_ids,
        larger_is_better=known.larger_is_better,
        last_group_size=sizes,
    )


def complete_groups(
    index: object, queries: ArrayLike, ids: Sequence[ArrayLike], scores: Sequence[ArrayLike]
) -> Completed:
    """Append to each list all documents of the index that have its last score.

    The index is searched with k doubled until the group ends. An approximate index may not find
    all documents of a group.

    Parameters
    ----------
    index, queries
        As for `search`.
    ids, scores
        ``[queries, k]``: the index's results for these queries; missing results are −1.
    """
    index, vectors = find_index(index), _read_queries(queries)
    if len(ids) != len(vectors) or len(scores) != len(vectors):
        raise InputError(
            f"{len(vectors)} queries, but results of {len(ids)} (ids) and {len(scores)} (scores): "
            "give the results of these queries"
        )
    found = [_without_padding(*map(np.asarray, row)) for row in zip(ids, scores, strict=True)]
    worst = np.min if index.larger_is_better else np.max
    last = {q: worst(row) for q, (_, row) in enumerate(found) if len(row)}
    reached = _grow(index, vectors, found, last)
    whole = Completed([own for own, _ in found], [own for _, own in found], [0] * len(found))
    for q, score in last.items():
        near, row = reached[q]
        more = (row == score) & ~np.isin(near, whole.ids[q])
        whole.ids[q] = np.concatenate((whole.ids[q], near[more]))
        whole.scores[q] = np.concatenate((whole.scores[q], row[more]))
        whole.last_group_size[q] = int((whole.scores[q] == score).sum())
    return whole


def _without_padding(ids: Array, scores: Array) -> tuple[Array, Array]:
    listed = ids != PADDING if ids.dtype.kind == "i" else slice(None)
    return ids[listed], scores[listed]


def _grow(index: Index, queries: Array, found: Lists, last: dict[int, float]) -> Lists:
    """Search with growing k until the last group of every list has ended."""
    reached = found.copy()
    k = max((len(ids) for ids, _ in found), default=0)
    unfinished = [q for q in last if len(found[q][0]) == k]  # shorter lists hold all there is
    is_worse = np.less if index.larger_is_better else np.greater
    while unfinished:
        k *= 2
        deeper = index.nearest(queries[unfinished], k)
        for q, listed in zip(unfinished, deeper, strict=True):
            reached[q] = listed
        unfinished = [
            q
            for q, (ids, scores) in zip(unfinished, deeper, strict=True)
            if len(ids) == k and not is_worse(scores, last[q]).any()
        ]
    return reached


def _read_queries(queries: ArrayLike) -> Array:
    vectors = tensor_values("queries", queries) if is_tensor(queries) else np.asarray(queries)
    if vectors.ndim != 2 or not len(vectors):
        raise InputError(
            f"queries must have the shape [queries, width], not {list(vectors.shape)}; wrap a "
            "single query in a list"
        )
    return vectors
