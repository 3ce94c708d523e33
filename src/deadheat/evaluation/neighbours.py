"""Recall of an approximate index, where distances tie."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.evaluation.result import Result, Views
from deadheat.evaluation.views import versions, views_of
from deadheat.formats import Run, RunLike, read_run
from deadheat.measures import Measure, Precision, Recall
from deadheat.provenance import Provenance
from deadheat.remarks import Remark, emits_warnings, note, warning
from deadheat.settings import EvalSettings
from deadheat.ties import build_groups
from deadheat.ties.checks import check_number
from deadheat.ties.groups import Ints
from deadheat.ties.lists import JudgedLists
from deadheat.ties.scores import rank_nan


@emits_warnings
def neighbour_recall(
    found: RunLike, exact: RunLike, k: int | None = None, *, tie_tolerance: float = 0.0
) -> Result:
    """Share of the k nearest neighbours that an index found, with every view of ties.

    Where documents tie with the k-th neighbour, which of them are "the" k nearest is an accident
    of the exact search. Comparing ids, as is usual, then says that an index missed neighbours
    when it gave others that are exactly as near. Here the neighbours nearer than the k-th are
    certain, and those that tie with it are drawn at random for the places that are left:
    ``expected`` is the mean over all draws, ``best`` and ``worst`` are the draws most and least
    like what was found, and ``oblivious`` is the share by ids, as the exact search listed them.

    A count of the documents found that are as near as the k-th neighbour, as ann-benchmarks makes
    it, is ``best``, except where an index missed nearer neighbours and gave more tied ones than
    there are places for: the count takes these for hits.

    Parameters
    ----------
    found
        What the index found, in any form of a run: the best k of each query count.
    exact
        The result of an exact search of the same queries for k documents or more, with scores of
        the same kind. How many documents tie with the k-th is known where the lists go on below
        its score, or where `deadheat.search_results` was given ``last_group_size``; a warning says
        where it is not. A list shorter than k holds all documents there are.
    k
        How many neighbours; as many as the longest list of `found` unless given.
    tie_tolerance
        Scores at most this far apart are tied: the two searches may round differently.

    Returns
    -------
    Result
        Its one measure is ``Recall@k``.

    Examples
    --------
    Distances 1, 2, 2, 2, 3: the first two of the exact search are a and b, the index found a and c.

    >>> import deadheat as dh
    >>> exact = dh.search_results([[*"abcde"]], [[1, 2, 2, 2, 3]], larger_is_better=False)
    >>> found = dh.search_results([["a", "c"]], [[1, 2]], larger_is_better=False)
    >>> recall = dh.neighbour_recall(found, exact)["Recall@2"]
    >>> recall.oblivious, recall.best, recall.worst, round(recall.expected, 4)
    (0.5, 1.0, 0.5, 0.6667)
    """
    settings = EvalSettings(tie_tolerance=tie_tolerance)
    answers, truth = (rank_nan(_held(read_run(run)), "refuse") for run in (found, exact))
    place = _same_queries(answers, truth)
    lengths = np.diff(answers.offsets)
    k = check_number("k", int(lengths.max()) if k is None else k, least=1)
    query, row = _nearest(answers, place, k)
    lists, remarks = _lists(truth, answers, query, row, settings.tie_tolerance, k)
    groups = build_groups(lists, settings)
    precision = Precision @ k
    views = views_of(groups, [precision])[precision]
    remarks += _short_answers(np.bincount(query, minlength=len(place)), k, truth)
    provenance = Provenance(answers.source, truth.source, settings, versions=versions())
    neighbours = np.minimum(np.diff(truth.offsets), k)
    recall: dict[Measure, Views] = {Recall @ k: _scaled(views, k / np.maximum(neighbours, 1))}
    return Result(truth.query_ids, recall, provenance, tuple(remarks))


def _held(run: Run) -> Run:
    """Refuse scores that are only places: those of two runs cannot be compared."""
    if run.exact is not None:
        raise InputError(
            f"{run.source}: scores that float64 cannot hold cannot be compared between two "
            "searches: scale or round them first"
        )
    return run


def _same_queries(answers: Run, truth: Run) -> Ints:
    """Index in `answers` of each query of `truth`."""
    for one, other in ((answers, truth), (truth, answers)):
        for query in one.query_ids:
            if query not in other.query_index:
                names = ("found", "exact") if one is answers else ("exact", "found")
                raise InputError(
                    f"query {query!r} is in {names[0]} but not in {names[1]}: search for the same "
                    "queries in both"
                )
    return np.array([answers.query_index[query] for query in truth.query_ids])


def _nearest(answers: Run, place: Ints, k: int) -> tuple[Ints, Ints]:
    """Query of `place`, and row, of the k best documents of each list, ties in input order."""
    queries, rows = [], []
    for q, at in enumerate(place.tolist()):
        start, stop = int(answers.offsets[at]), int(answers.offsets[at + 1])
        best = np.argsort(-answers.scores[start:stop].astype(np.float64), kind="stable")[:k]
        queries.append(np.full(len(best), q))
        rows.append(start + best)
    return np.concatenate(queries), np.concatenate(rows)


def _lists(
    truth: Run, answers: Run, query: Ints, row: Ints, tolerance: float, k: int
) -> tuple[JudgedLists, list[Remark]]:
    """The exact lists, with the documents found as those of interest.

    Documents found that the exact search does not list, but that tie with its last one, are put at
    the end of the list: they belong to its last group.
    """
    n = len(truth.query_ids)
    ids = answers.documents.ids(row)
    at = truth.documents.find(query, ids)
    own = answers.scores[row].astype(np.float64)
    floor = _floor(truth)
    _check_complete(truth, query[at < 0], k)
    nearer = np.flatnonzero((at < 0) & (own > floor[query] + tolerance))
    if len(nearer):
        i = int(nearer[0])
        raise InputError(
            f"query {truth.query_ids[query[i]]!r}: found gives document {ids[i]!r} the score "
            f"{own[i]:.9g}, above {floor[query[i]]:.9g}, the last of exact, which does not list "
            "it: score both searches alike, search exactly for more documents, or give a "
            "tie_tolerance"
        )
    tied = np.flatnonzero((at < 0) & (own >= floor[query] - tolerance))
    scores = np.concatenate(
        (truth.scores.astype(np.float64), np.minimum(own[tied], floor[query[tied]]))
    )
    of_row = np.concatenate((np.repeat(np.arange(n), np.diff(truth.offsets)), query[tied]))
    order = np.argsort(of_row, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(of_row, minlength=n)))).astype(np.int64)
    at[tied] = len(truth.scores) + np.arange(len(tied))
    listed = np.flatnonzero(at >= 0)
    new_row = np.empty(len(order), np.int64)
    new_row[order] = np.arange(len(order))
    added = np.bincount(query[tied], minlength=n)
    unlisted, remarks = _beyond(truth, added, floor, tolerance, k)
    lists = JudgedLists(
        truth.query_ids,
        replace(truth, scores=scores[order]),
        (offsets[:-1], offsets[1:]),
        query[listed],
        new_row[at[listed]] - offsets[query[listed]],
        np.ones(len(listed)),
        (np.empty(0, np.int64), np.empty(0)),
        complete=True,
        n_tied_beyond_cut=unlisted,
    )
    return lists, remarks


def _check_complete(truth: Run, unlisted: Ints, k: int) -> None:
    """Refuse a list shorter than k that lacks a document found: it cannot be all there is."""
    lengths = np.diff(truth.offsets)
    short = unlisted[lengths[unlisted] < k]
    if len(short):
        q = int(short[0])
        raise InputError(
            f"query {truth.query_ids[q]!r}: exact lists {lengths[q]} documents, fewer than k = {k};"
            f" found has others: search exactly for {k} documents"
        )


def _floor(truth: Run) -> NDArray[np.float64]:
    """Per query: the lowest exact score; −inf where there is no document."""
    floor = np.full(len(truth.query_ids), -np.inf)
    filled = np.flatnonzero(np.diff(truth.offsets))
    floor[filled] = np.minimum.reduceat(truth.scores, truth.offsets[filled])
    return floor


def _beyond(
    truth: Run, added: Ints, floor: NDArray[np.float64], tolerance: float, k: int
) -> tuple[Ints | None, list[Remark]]:
    """How many documents tie with the last of each list and are not in it; what is not known."""
    if truth.n_tied_beyond_cut is not None and not tolerance:
        left: Ints = truth.n_tied_beyond_cut - added
        if (left < 0).any():
            q = int(np.flatnonzero(left < 0)[0])
            raise InputError(
                f"query {truth.query_ids[q]!r}: found holds {added[q]} documents of the last exact "
                f"score that exact does not list, and last_group_size leaves room for "
                f"{truth.n_tied_beyond_cut[q]}"
            )
        return left, []
    starts, stops = truth.offsets[:-1].tolist(), truth.offsets[1:].tolist()
    cut = 0
    for q, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        own = truth.scores[start:stop].astype(np.float64)
        if len(own) >= k and np.partition(own, -k)[-k] - floor[q] <= tolerance:
            cut += bool(np.count_nonzero(own - floor[q] <= tolerance) + added[q] > 1)
    pattern = (
        "{queries:query} whose exact list ends inside the tie group of the last neighbour: "
        "documents that tie with it may be missing, and expected and worst recall are then lower; "
        "search exactly for more documents, or give last_group_size"
    )
    return None, [warning(pattern, queries=cut)] if cut else []


def _short_answers(found: Ints, k: int, truth: Run) -> list[Remark]:
    """Note queries for which fewer documents were found than there are neighbours."""
    short = int((found < np.minimum(np.diff(truth.offsets), k)).sum())
    pattern = (
        "{queries:query} with fewer documents found than neighbours: the rest counts as missed"
    )
    return [note(pattern, queries=short)] if short else []


def _scaled(views: Views, factor: NDArray[Any]) -> Views:
    """Views of a measure times a factor per query."""
    variance = None if views.variance is None else views.variance * factor**2
    return Views(
        expected=views.expected * factor,
        best=views.best * factor,
        worst=views.worst * factor,
        oblivious=views.oblivious * factor,
        variance=variance,
    )
