"""Tie groups of lists that are in memory, ranked by a tie rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from deadheat._internal.fork_guard import check_fork
from deadheat._internal.lazy import pl
from deadheat._internal.remarks import Remark
from deadheat.errors import InputError
from deadheat.formats import Judgements, Run
from deadheat.settings import EvalSettings
from deadheat.ties.counting import Counts, count_lists
from deadheat.ties.groups import Ints, JudgedDocuments, TieGroups
from deadheat.ties.lists import JudgedLists, MatchReport, match_lists
from deadheat.ties.numpy_counting import Scores, is_group_start
from deadheat.ties.scores import merge_near, place_nan_last, prepare_scores


class RuleOrder(NamedTuple):
    """How a rule orders lists: by the scores that it sees, high to low, then by a key."""

    scores: Scores
    key: Callable[[Ints], pl.Series] | None
    """Returns the sort keys of rows of a run; None keeps tied documents in input order."""
    descending: bool = False


def rule_order(rule: str, run: Run) -> RuleOrder:
    """Return the order of a rule; everything that depends on the rule's name is decided here."""
    if rule == "input":
        return RuleOrder(run.scores, None)
    check_fork()
    if rule == "rank":
        ranks = run.ranks
        if ranks is None:
            raise InputError("the tie rule 'rank' needs a run with a column of ranks")
        return RuleOrder(run.scores, lambda rows: pl.Series(ranks[rows]))
    scores = run.scores
    if rule == "pytrec_eval":
        with np.errstate(over="ignore"):  # as in C, a double beyond float32 becomes infinite
            scores = run.rounded.astype(np.float32, copy=False)
        if np.isnan(scores).any():
            scores, _ = place_nan_last(scores)
    return RuleOrder(scores, run.documents.ids, descending=rule != "id_asc")


def list_order(order: RuleOrder, start: int, stop: int, top: int | None = None) -> Ints:
    """Return rows ``start … stop − 1``, one query's list, as the rule orders them.

    Parameters
    ----------
    top
        Only the first rows, and those that the rule ties with the last of them.

    Examples
    --------
    >>> ids = pl.Series(["a", "b", "c"])
    >>> by_id = RuleOrder(np.array([0.5, 0.5, 0.75]), ids.gather, descending=True)
    >>> list_order(by_id, 0, 3)
    array([2, 1, 0])
    """
    own = order.scores[start:stop]
    rows = np.argsort(-own, kind="stable")
    if top is not None and top < len(rows):
        rows = rows[: int((own >= own[rows[top - 1]]).sum())] if top else rows[:0]
    if order.key is not None and len(rows):
        frame = pl.DataFrame({"score": own[rows], "key": order.key(start + rows)})
        by_rule = frame.select(
            pl.arg_sort_by("score", "key", descending=[True, order.descending], maintain_order=True)
        )
        rows = rows[by_rule.to_series().to_numpy()]
    in_order: Ints = start + rows
    return in_order


def build_groups(lists: JudgedLists, settings: EvalSettings | None = None) -> TieGroups:
    """Build the tie groups of `lists`, with ranks under the tie rule of the settings.

    With a tolerance near scores are tied. The ranks, which say what a tool that ignores ties
    does, are still those of the scores as they are.
    """
    settings = settings or EvalSettings()
    order = rule_order(settings.tie_break, lists.run)
    documents, counts = _count(lists, order.scores)
    before = counts[2] if order.key is None else _count_before(order, documents, counts, lists)
    rank = counts[0] + 1 + before
    scores = lists.run.scores
    if settings.tie_tolerance > 0:
        scores = merge_near(scores, lists.bounds, settings.tie_tolerance, lists.run.exact)
    if scores is not order.scores:
        rows = _rows(documents, lists)
        documents, counts = _count(lists, scores)
        rank = _reorder(rank, rows, _rows(documents, lists))
    retrieved = lists.bounds[1] - lists.bounds[0]
    if lists.n_tied_beyond_cut is not None:
        retrieved += lists.n_tied_beyond_cut
    return TieGroups.from_counts(
        documents,
        counts,
        retrieved,
        rank=rank,
        end=_find_ends(documents, counts, retrieved, scores, lists),
        top_grade=lists.max_grade,
    )


class Counted(NamedTuple):
    """All that measures need of the queries that count, and how these fit the judgements."""

    query_ids: Sequence[str | int]
    groups: TieGroups
    report: MatchReport
    remarks: list[Remark]


def count_groups(
    judgements: Judgements, run: Run, settings: EvalSettings, *, with_judged: bool
) -> Counted:
    """Build the tie groups of a run; judgements and run may be parts.

    With `with_judged`, judged documents that are not relevant are of interest, too.
    """
    run, remarks = prepare_scores(run, settings)
    lists, report = match_lists(judgements, run, queries=settings.queries, with_judged=with_judged)
    return Counted(lists.own_ids, build_groups(lists, settings), report, remarks)


def _count(lists: JudgedLists, scores: Scores) -> tuple[JudgedDocuments, Counts]:
    """Sort the documents of interest by `scores`, and count the candidates above and beside them.

    Candidates that tie with the last of a list and are not in it are counted, too.
    """
    bounds = lists.bounds
    score = scores[bounds[0][lists.query] + lists.position]
    documents = JudgedDocuments.sort(
        len(bounds[0]), lists.query, score, lists.grade, lists.position, lists.unretrieved
    )
    rows = _rows(documents, lists)
    counts = count_lists(scores, bounds, documents.offsets, documents.score, rows)
    beyond = lists.n_tied_beyond_cut
    if beyond is not None:
        longer = np.flatnonzero(beyond)
        last = np.full(len(beyond), -np.inf)
        last[longer] = _find_lowest(scores, lists, longer)
        tied = documents.score == last[documents.query]
        counts[1, tied] += beyond[documents.query[tied]]
    return documents, counts


def _rows(documents: JudgedDocuments, lists: JudgedLists) -> Ints:
    """Per document: its index among the scores of `lists`."""
    return documents.position + lists.bounds[0][documents.query]


def _reorder(values: Ints, rows: Ints, asked: Ints) -> Ints:
    """Return the values of the rows `asked`, from values given for `rows`."""
    order = np.argsort(rows)
    return values[order[np.searchsorted(rows[order], asked)]]


def _count_before(
    order: RuleOrder, documents: JudgedDocuments, counts: Counts, lists: JudgedLists
) -> Ints:
    """Count per document the tied candidates that the key of a rule puts before it."""
    before = np.zeros(len(documents.query), np.int64)
    if order.key is None or not len(tied := np.flatnonzero(counts[1] > 1)):
        return before
    query, score = documents.query[tied], documents.score[tied]
    is_start = is_group_start(query, score)
    starts, stops = lists.bounds
    members = [
        starts[q] + np.flatnonzero(order.scores[starts[q] : stops[q]] == value)
        for q, value in zip(query[is_start], score[is_start], strict=True)
    ]
    rows = np.concatenate(members)
    sizes = np.array([len(m) for m in members])
    frame = pl.DataFrame(
        {"group": np.repeat(np.arange(len(members)), sizes), "row": rows, "key": order.key(rows)}
    ).sort("group", "key", descending=[False, order.descending], maintain_order=True)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    before[tied] = _reorder(place, frame["row"].to_numpy(), _rows(documents, lists)[tied])
    return before


def _find_lowest(scores: Scores, lists: JudgedLists, queries: Ints) -> Scores:
    """Find the lowest score of each of these queries' lists."""
    starts, stops = (bound[queries].tolist() for bound in lists.bounds)
    slices = zip(starts, stops, strict=True)
    return np.array([scores[start:stop].min() for start, stop in slices], scores.dtype)


def _find_ends(
    documents: JudgedDocuments, counts: Counts, retrieved: Ints, scores: Scores, lists: JudgedLists
) -> tuple[Ints, Ints] | tuple[None, None]:
    """Return ``(above, size)`` of the group that ends each list, where it can matter.

    It matters where it holds a document of interest, and where relevant documents were not
    retrieved and may have been cut off behind it; elsewhere the size is 0. Where the number of
    candidates with the last score is known, only the latter matters: they may be relevant.
    """
    if lists.complete:
        return None, None
    end_above, end_size = retrieved.copy(), np.zeros(len(retrieved), np.int64)
    above, equal, _ = counts
    last = above + equal == retrieved[documents.query]
    end_above[documents.query[last]] = above[last]
    end_size[documents.query[last]] = equal[last]
    lacking, grade = lists.unretrieved
    if not len(lacking):
        return end_above, end_size
    lacks_relevant = np.bincount(lacking[grade > 0], minlength=len(retrieved)) > 0
    missing = np.flatnonzero(lacks_relevant & (retrieved > 0) & (end_size == 0))
    starts, stops = lists.bounds[0][missing], lists.bounds[1][missing]
    lowest = _find_lowest(scores, lists, missing)
    one_each = np.arange(len(missing) + 1)
    end_above[missing], end_size[missing], _ = count_lists(
        scores, (starts, stops), one_each, lowest, starts
    )
    if lists.n_tied_beyond_cut is not None:
        is_cut = lacks_relevant & (lists.n_tied_beyond_cut > 0)
        end_size = np.where(is_cut, retrieved - end_above, 0)
    return end_above, end_size
