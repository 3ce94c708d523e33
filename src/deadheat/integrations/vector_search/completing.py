"""Search results whose last tie group is whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deadheat.errors import InputError
from deadheat.formats import Run, search_results
from deadheat.integrations.vector_search.index import Array, Index, Lists, without_padding
from deadheat.integrations.vector_search.libraries import known_index
from deadheat.numbers import is_tensor, tensor_values
from deadheat.ties.checks import check_number


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
    known = known_index(index)
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
    known = known_index(index)
    vectors = _vectors(queries)
    if len(ids) != len(vectors) or len(scores) != len(vectors):
        raise InputError(
            f"{len(vectors)} queries, but results of {len(ids)} (ids) and {len(scores)} (scores): "
            "give the results of these queries"
        )
    found = [without_padding(*row) for row in zip(ids, scores, strict=True)]
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


def _vectors(queries: Any) -> Array:
    vectors = tensor_values("queries", queries) if is_tensor(queries) else np.asarray(queries)
    if vectors.ndim != 2 or not len(vectors):
        raise InputError(
            f"queries must have the shape [queries, width], not {list(vectors.shape)}; wrap a "
            "single query in a list"
        )
    return vectors
