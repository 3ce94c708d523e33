"""Recall of an approximate nearest-neighbour index, with tied distances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.numbers import check_number
from deadheat._internal.remarks import Remark, emits_warnings, note, warning
from deadheat.errors import InputError
from deadheat.evaluation.evaluate import versions, views_of
from deadheat.evaluation.result import Result
from deadheat.formats import Run, RunLike, read_run
from deadheat.measures import Judged, Recall
from deadheat.provenance import Provenance
from deadheat.settings import EvalSettings
from deadheat.ties import Ints, JudgedLists, build_groups, rank_nan


@emits_warnings
def neighbour_recall(
    found: RunLike, exact: RunLike, k: int | None = None, *, tie_tolerance: float = 0.0
) -> Result:
    """Return the recall of an index: the share of the k nearest neighbours that it found.

    If documents tie with the k-th neighbour, the exact search returns an arbitrary selection of
    them. A comparison of ids then counts equally near documents as missed. This function compares
    scores. The neighbours nearer than the k-th are fixed. The other places up to k go to a random
    selection of the documents that tie with the k-th. ``expected`` is the mean over all
    selections, ``best`` and ``worst`` are the largest and the smallest recall, and ``oblivious``
    is the comparison of ids in the order of the exact search.

    ann-benchmarks counts the documents found that are at least as near as the k-th neighbour. That
    equals ``best``, unless the index missed nearer neighbours and returned more tied documents
    than there are places for: ann-benchmarks counts these as hits.

    Parameters
    ----------
    found
        The documents that the index found, in any form of a run. The best k of each query count.
    exact
        The result of an exact search for k documents or more, with the same queries and the same
        kind of scores. The number of documents that tie with the k-th is known if the list
        continues below its score, or if `deadheat.search_results` got ``last_group_size``.
        Otherwise there is a warning. A list shorter than k must be the whole collection.
    k
        Number of neighbours. Default: the length of the longest list of `found`.
    tie_tolerance
        Scores at most this far apart are tied, because the two searches may round differently.
        Default: 0.

    Returns
    -------
    Result
        A result with one measure, ``Recall@k``.

    Examples
    --------
    Distances 1, 2, 2, 2, 3: the first two of the exact search are a and b, the index found a and c.

    >>> import deadheat as dh
    >>> exact = dh.search_results([[*"abcde"]], [[1, 2, 2, 2, 3]], larger_is_better=False)
    >>> found = dh.search_results([["a", "c"]], [[1, 2]], larger_is_better=False)
    >>> recall = dh.evaluation.neighbour_recall(found, exact)["Recall@2"]
    >>> recall.oblivious, recall.best, recall.worst, round(recall.expected, 4)
    (0.5, 1.0, 0.5, 0.6667)
    """
    settings = EvalSettings(tie_tolerance=tie_tolerance)
    answers, truth = (rank_nan(read_run(run), "refuse") for run in (found, exact))
    _check_comparable(answers, truth)
    k = check_number("k", int(np.diff(answers.offsets).max()) if k is None else k, least=1)
    order, owner, _ = _sort_rows(answers)
    best = np.arange(len(order)) - answers.offsets[owner] < k
    number = np.array([truth.query_index[query] for query in answers.query_ids])
    query, row = number[owner[best]], order[best]
    by_query = np.argsort(query, kind="stable")
    query, row = query[by_query], row[by_query]
    lists, remarks = _make_lists(truth, answers, query, row, settings.tie_tolerance, k)
    groups = build_groups(lists, settings)
    # The documents found are the judged ones.
    [recall] = views_of(groups, [Judged @ k]).values()

    neighbours = np.minimum(np.diff(truth.offsets), k)
    short = int((np.bincount(query, minlength=len(neighbours)) < neighbours).sum())
    if short:
        pattern = "{queries:query} with fewer than k documents found: the rest counts as missed"
        remarks.append(note(pattern, queries=short))
    provenance = Provenance(answers.source, truth.source, settings, versions=versions())
    return Result(truth.query_ids, {Recall @ k: recall}, provenance, tuple(remarks))


def _check_comparable(answers: Run, truth: Run) -> None:
    """Raise an error for runs of different queries, and for scores that float64 cannot hold."""
    for run in (answers, truth):
        if run.exact is not None:
            raise InputError(
                f"{run.source}: float64 cannot hold the scores, so the two searches cannot be "
                "compared: scale or round the scores first"
            )
    if one_sided := set(answers.query_ids) ^ set(truth.query_ids):
        query = min(one_sided)
        here, there = ("found", "exact") if query in answers.query_index else ("exact", "found")
        raise InputError(
            f"query {query!r} is in {here} but not in {there}: search for the same queries in both"
        )


def _sort_rows(run: Run) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Sort rows by list and score, ties in input order; return the rows, their lists and scores."""
    owner = np.repeat(np.arange(len(run.query_ids)), np.diff(run.offsets))
    scores = run.scores.astype(np.float64)
    order = np.lexsort((-scores, owner))
    return order, owner, scores[order]


def _make_lists(
    truth: Run, answers: Run, query: Ints, row: Ints, tolerance: float, k: int
) -> tuple[JudgedLists, list[Remark]]:
    """Return the exact lists, in which the documents found are the documents of interest.

    Documents that the exact search does not list, but that tie with its last document, are added to
    the end of the list, in its last group. `query` and `row`, of the documents found, are sorted by
    query.
    """
    n = len(truth.query_ids)
    ids = answers.documents.ids(row)
    at = truth.documents.find(query, ids.to_list())
    own = answers.scores[row].astype(np.float64)
    lengths = np.diff(truth.offsets)
    short = query[(at < 0) & (lengths[query] < k)]
    if len(short):
        q = int(short[0])
        raise InputError(
            f"query {truth.query_ids[q]!r}: exact has {lengths[q]} documents, fewer than k = {k}, "
            f"and found has others: run the exact search for {k} documents"
        )
    _, owner, ranked = _sort_rows(truth)
    floor = np.append(ranked, -np.inf)[np.where(lengths, truth.offsets[1:] - 1, -1)]
    nearer = np.flatnonzero((at < 0) & (own > floor[query] + tolerance))
    if len(nearer):
        i = int(nearer[0])
        raise InputError(
            f"query {truth.query_ids[query[i]]!r}: document {ids[i]!r} has the score {own[i]:.9g} "
            f"in found, above {floor[query[i]]:.9g}, the last score of exact, but exact does not "
            "list it: use the same scores in both, run the exact search for more documents, or set "
            "tie_tolerance"
        )
    tied = np.flatnonzero((at < 0) & (own >= floor[query] - tolerance))
    added = np.bincount(query[tied], minlength=n)
    unlisted, remarks = None, list[Remark]()
    if truth.n_tied_beyond_cut is not None and not tolerance:
        unlisted = truth.n_tied_beyond_cut - added
        if (unlisted < 0).any():
            q = int(np.flatnonzero(unlisted < 0)[0])
            raise InputError(
                f"query {truth.query_ids[q]!r}: found has {added[q]} documents with the last score "
                "of exact that exact does not list, but last_group_size allows "
                f"{truth.n_tied_beyond_cut[q]}: correct last_group_size"
            )
    else:
        kth = np.append(ranked, np.inf)[np.where(lengths >= k, truth.offsets[:-1] + k - 1, -1)]
        last = np.bincount(owner[ranked - floor[owner] <= tolerance], minlength=n)
        cut = int(((kth - floor <= tolerance) & (last + added > 1)).sum())
        pattern = (
            "{queries:query} whose exact list ends inside the tie group of the k-th neighbour: "
            "tied documents may be missing, which would lower expected and worst recall; run the "
            "exact search for more documents, or give last_group_size"
        )
        remarks += [warning(pattern, queries=cut)] if cut else []

    of_tied = query[tied]
    lowest = np.minimum(own[tied], floor[of_tied])
    scores = np.insert(truth.scores.astype(np.float64), truth.offsets[of_tied + 1], lowest)
    offsets = np.append(0, np.cumsum(lengths + added))
    position = at - truth.offsets[query]
    number = np.arange(len(tied)) - np.searchsorted(of_tied, of_tied)
    position[tied] = lengths[of_tied] + number
    listed = at >= 0
    listed[tied] = True
    lists = JudgedLists(
        query_ids=truth.query_ids,
        run=replace(truth, scores=scores),
        bounds=(offsets[:-1], offsets[1:]),
        query=query[listed],
        position=position[listed],
        grade=np.ones(np.count_nonzero(listed)),
        unretrieved=(np.empty(0, np.int64), np.empty(0)),
        complete=True,
        n_tied_beyond_cut=unlisted,
    )
    return lists, remarks
