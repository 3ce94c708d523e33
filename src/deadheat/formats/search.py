"""Read search results, ``[queries, k]`` ids and scores, and rankings without scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat._internal.fork_guard import check_fork
from deadheat._internal.lazy import pl
from deadheat._internal.numbers import FloatArray
from deadheat.errors import InputError
from deadheat.formats.arrays import counts_per_query, flatten_rows
from deadheat.formats.dicts import run_from_dict
from deadheat.formats.hits import read_hits
from deadheat.formats.ids import id_column, query_names, text_id
from deadheat.formats.types import ColumnDocuments, Ints, Run, repeated_document

Key = TypeVar("Key")
PADDING = -1
"""The id that fills a list if a search found fewer documents than requested."""


def search_results(
    ids: object,
    scores: object = None,
    *,
    query_ids: Sequence[object] | None = None,
    document_ids: Sequence[object] | None = None,
    larger_is_better: bool | None = None,
    last_group_size: ArrayLike | None = None,
) -> Run:
    """Build a run from the search results of an index.

    Parameters
    ----------
    ids
        ``[queries, k]``: the documents found for each query, an array, a tensor, or a list of
        lists, which may differ in length. If ids are whole numbers, −1 fills lists that are
        shorter than the others. Or ``{query: hits}``, the hits of each query from a search
        service, each with its score or distance; see `deadheat.read_run`.
    scores
        Scores or distances, of the same shape. Not allowed with hits.
    query_ids
        Names of the queries. Default: numbers from 0.
    document_ids
        Names of the documents; `ids` are then indices into this sequence.
    larger_is_better
        False if `scores` are distances; they are then negated. Default for arrays: True. Hits with
        a distance need this argument.
    last_group_size
        Per query: the number of documents of the whole collection that have the last score of its
        list, including the listed ones. A list cut at k does not have this number. With it, views
        of measures with a cutoff of at most k are exact for the whole collection, if the list also
        has the relevant documents of the last tie group; if they may be missing, there is a
        warning. `deadheat.integrations.vector_search.search` returns both.

    Examples
    --------
    Two documents are listed at distance 5, and the index holds three more.

    >>> import deadheat as dh
    >>> found = {"ids": [[7, 3, 9]], "scores": [[4, 5, 5]], "larger_is_better": False}
    >>> cut = dh.evaluate({0: [3]}, dh.search_results(**found), "MRR@3")["MRR@3"]
    >>> whole = dh.search_results(**found, last_group_size=[5])
    >>> known = dh.evaluate({0: [3]}, whole, "MRR@3")["MRR@3"]
    >>> (round(cut.worst, 4), cut.best), (known.worst, known.best)
    ((0.3333, 0.5), (0.0, 0.5))
    """
    check_fork()
    if isinstance(ids, Mapping):
        if scores is not None or query_ids is not None:
            raise InputError("{query: hits} has scores and queries: leave scores and query_ids out")
        ids, scores, query_ids = _split_hits(ids, is_oriented=larger_is_better is not None)
    larger_is_better = larger_is_better is not False
    floats, exact, flat, offsets = flatten_rows(scores, "ids", ids)
    found = flat if isinstance(flat, np.ndarray) else np.fromiter(flat, object, len(flat))
    n_queries = len(offsets) - 1
    query = np.repeat(np.arange(n_queries), np.diff(offsets))
    if found.dtype.kind in "iO" and (padding := found == PADDING).any():
        listed = np.flatnonzero(~padding)
        found, floats, query = found[listed], floats[listed], query[listed]
        exact = None if exact is None else exact[listed]
    if not larger_is_better:  # 0 becomes 0, not −0
        floats, exact = 0 - floats, None if exact is None else 0 - exact
    names = query_names(query_ids, n_queries)
    offsets = np.searchsorted(query, np.arange(n_queries + 1)).astype(np.int64)
    if not len(query):
        raise InputError("search results are empty: there are no documents")
    _check_direction(floats, query, larger_is_better)
    documents = ColumnDocuments("search results", names, offsets, _names(found, document_ids))
    beyond = None if last_group_size is None else _count_beyond(floats, offsets, last_group_size)
    return Run(
        "search results", names, offsets, floats, documents, exact=exact, n_tied_beyond_cut=beyond
    )


def _split_hits(
    hits_by_query: Mapping[object, object], *, is_oriented: bool
) -> tuple[list[list[object]], list[list[object]], list[object]]:
    """Return the ids and the scores of all hits by query, and the query ids."""
    ids, scores = list[list[object]](), list[list[object]]()
    for query, hits in hits_by_query.items():
        at = f"search results, query {query!r:.60}"
        if not isinstance(hits, (list, tuple)):
            raise InputError(f"{at}: expected a list of hits, not a {type(hits).__name__}")
        pairs = read_hits(at, hits, is_oriented=is_oriented)
        ids.append([doc for doc, _ in pairs])
        scores.append([score for _, score in pairs])
    return ids, scores, list(hits_by_query)


def ranked_groups(rankings: Mapping[Key, object]) -> Run:
    """Build a run from rankings without scores that may contain ties.

    Listwise and pairwise rerankers return such rankings. An unranked tail is one last group.

    Parameters
    ----------
    rankings
        ``{query: [group, …]}``, best first. A group is a list, set, tuple or array of tied
        document ids, or one id. Each group must be complete.

    Examples
    --------
    >>> import deadheat as dh
    >>> run = dh.formats.ranked_groups({"q": ["d7", ["d1", "d3"], {"d2", "d4", "d5"}]})
    >>> summary = dh.evaluate({"q": {"d3"}}, run, "MRR")["MRR"]
    >>> round(summary.expected, 4), round(summary.worst, 4), summary.best
    (0.4167, 0.3333, 0.5)
    """
    if not isinstance(rankings, Mapping):
        raise InputError(
            f"ranked groups must be {{query: [group, …]}}, not a {type(rankings).__name__}"
        )
    lists = {query: _rank(query, groups) for query, groups in rankings.items()}
    if not any(lists.values()):
        raise InputError("ranked groups are empty: there are no documents")
    run = run_from_dict("ranked groups", lists)
    return replace(run, n_tied_beyond_cut=np.zeros(len(run.query_ids), np.int64))


def _rank(query: object, groups: object) -> dict[str, float]:
    """Return the negated index of its group as the score of each document."""
    at = f"ranked groups, query {query!r:.60}"
    if not isinstance(groups, (list, tuple, np.ndarray)):
        raise InputError(f"{at}: expected a list of groups, not a {type(groups).__name__}")
    scores: dict[str, float] = {}
    for i, group in enumerate(groups):
        is_group = isinstance(group, (list, tuple, np.ndarray, AbstractSet))
        ids = [text_id(doc, at) for doc in (group if is_group else [group])]
        for doc in sorted(ids) if isinstance(group, AbstractSet) else ids:
            if doc in scores:
                raise repeated_document("ranked groups", str(query), doc)
            scores[doc] = 0.0 - i
    return scores


def _names(found: NDArray[np.generic], document_ids: Sequence[object] | None) -> pl.Series:
    """Return the ids of documents as text."""
    if document_ids is None:
        if found.dtype.kind in "iu":
            ids: pl.Series = pl.Series(found).cast(pl.String)
            return ids
        return id_column([text_id(doc, "search results") for doc in found.tolist()])
    if isinstance(document_ids, (str, bytes)) or not hasattr(document_ids, "__len__"):
        raise InputError("document_ids must be a sequence of names, one for each document")
    n = len(document_ids)
    for doc in found.tolist():
        if not isinstance(doc, int) or not 0 <= doc < n:
            raise InputError(f"the id {doc!r:.60} is not an index of the {n:,} document_ids")
    places = found.astype(np.int64)
    return id_column([text_id(doc, "document_ids") for doc in document_ids]).gather(places)


def _check_direction(scores: FloatArray, query: Ints, larger_is_better: bool) -> None:
    """Raise an error if all lists are worst first: distances used as scores, or the reverse."""
    before, after = scores[:-1], scores[1:]
    inside = query[1:] == query[:-1]
    if (inside & (after < before)).any() or not (inside & (after > before)).any():
        return
    rise, value = ("rise", "False") if larger_is_better else ("fall", "True")
    raise InputError(
        f"the scores {rise} along every list, but lists must be best first: pass "
        f"larger_is_better={value}, or reverse the lists if they are worst first"
    )


def _count_beyond(scores: FloatArray, offsets: Ints, last_group_size: ArrayLike) -> Ints:
    """Return, per query, the number of unlisted documents with the last score of the list."""
    n = len(offsets) - 1
    sizes = counts_per_query("last_group_size", last_group_size, n)
    listed = np.zeros(n, np.int64)
    filled = np.flatnonzero(np.diff(offsets))
    lowest = np.minimum.reduceat(scores, offsets[filled])
    last = scores == np.repeat(lowest, np.diff(offsets)[filled])
    listed[filled] = np.add.reduceat(last, offsets[filled], dtype=np.int64)
    unlisted = sizes - listed
    wrong = (unlisted < 0) | ((listed == 0) & (sizes > 0))
    if wrong.any():
        q = int(np.argmax(wrong))
        raise InputError(
            f"last_group_size of query {q} is {sizes[q]}, but its list ends with {listed[q]} "
            "documents of one score (NaN ties with nothing)"
        )
    return unlisted
