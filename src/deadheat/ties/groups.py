"""Tie groups, the input of all measures; and their construction from lists in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.fork_guard import check_fork
from deadheat._internal.lazy import pl
from deadheat._internal.remarks import Remark
from deadheat.errors import InputError
from deadheat.formats import Judgements, Run
from deadheat.settings import EvalSettings
from deadheat.ties import counting
from deadheat.ties.counting import Bounds, Counts, count_lists
from deadheat.ties.lists import (
    JudgedLists,
    MatchReport,
    match_lists,
    merge_near,
    place_nan_last,
    prepare_scores,
)
from deadheat.ties.numpy_counting import (
    Floats as Floats,
    Ints as Ints,
    Scores,
    is_group_start,
    offsets_of,
)


class JudgedDocuments(NamedTuple):
    """Documents of interest, sorted by query, score (high to low) and position."""

    query: Ints
    """Per document: index of its query."""
    score: Scores
    """Per document: its score."""
    grade: Floats
    """Per document: its grade."""
    position: Ints
    """Per document: its position in the list of its query, starting at 0; 0 if unknown."""
    offsets: Ints
    """The documents of query ``q`` are ``offsets[q]:offsets[q + 1]``."""
    unretrieved: tuple[Ints, Floats]
    """Query and grade of the documents of interest that were not retrieved."""

    @classmethod
    def sort(
        cls,
        n_queries: int,
        query: Ints,
        score: Scores,
        grade: Floats,
        position: Ints,
        unretrieved: tuple[Ints, Floats],
    ) -> JudgedDocuments:
        """Sort documents given in any order."""
        order, offsets = counting.active.sort_documents(query, score, position, n_queries)
        columns = query[order], score[order], grade[order], position[order]
        return cls(*columns, offsets, unretrieved)


ARRAYS = {
    "groups": ("query", "above", "size"),
    "documents": ("group", "grade", "rank"),
    "ideal": ("ideal_query", "ideal_grade"),
    "queries": ("retrieved",),
    "queries, where known": ("end_above", "end_size", "zeros"),
}
"""The arrays of tie groups: those per group, per document and per query."""
INDEXED = {"query": "retrieved", "ideal_query": "retrieved", "group": "size"}
"""Per array of indices: an array of the kind that it indexes."""


@dataclass(frozen=True)
class TieGroups:
    """The tie groups that have documents of interest, for all queries.

    Documents of interest are the relevant ones, or all judged ones if a measure needs them. The
    arrays have one entry per group, per retrieved document of interest, or per query. Groups are
    sorted by query and score (high to low), documents by group and grade (high to low).
    """

    query: Ints
    """Per group: index of its query."""
    above: Ints
    """Per group: number of candidates above it (``c``)."""
    size: Ints
    """Per group: number of candidates in it (``g``)."""
    group: Ints
    """Per document: index of its group."""
    grade: Floats
    """Per document: its grade."""
    rank: Ints
    """Per document: its rank under the tie rule, starting at 1."""
    retrieved: Ints
    """Per query: number of candidates."""
    ideal_query: Ints
    """Per document with a positive grade, retrieved or not: its query, ascending."""
    ideal_grade: Floats
    """Per document of `ideal_query`: its grade, from high to low inside a query."""
    end_above: Ints | None = None
    """Per query: number of candidates above the last group of the list, if that can matter."""
    end_size: Ints | None = None
    """Per query: number of candidates in the last group of the list."""
    zeros: Ints | None = None
    """Per query: number of documents of interest of grade 0, retrieved or not."""
    top_grade: float | None = None
    """The highest grade of all judgements; None if it is that of these queries."""
    known: int | None = None
    """The last known rank of each list; None if the whole list is known."""
    derived: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Cache of arrays that measures compute from the others."""

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.retrieved)

    @classmethod
    def from_counts(
        cls,
        documents: JudgedDocuments,
        counts: Counts,
        retrieved: Ints,
        *,
        rank: Ints | None = None,
        end: tuple[Ints, Ints] | tuple[None, None] = (None, None),
        top_grade: float | None = None,
        known: int | None = None,
    ) -> TieGroups:
        """Build tie groups from counts of candidates.

        Parameters
        ----------
        counts
            Three rows per document: candidates above it, equal to it, and tied before it.
        retrieved
            Per query: number of candidates.
        rank
            Per document: its rank under the tie rule. Default: the rank in input order.
        end
            ``(above, size)`` of the last group of each list.
        top_grade, known
            As the fields of this class.
        """
        query, grade = documents.query, documents.grade
        above, equal, before = counts
        first, group, order = counting.active.group_documents(query, documents.score, grade)
        if rank is None:
            rank = above + 1 + before
        ideal_query, ideal_grade = query, grade
        if len(documents.unretrieved[0]):
            ideal_query = np.concatenate((query, documents.unretrieved[0]))
            ideal_grade = np.concatenate((grade, documents.unretrieved[1]))
        positive = ideal_grade > 0
        if np.count_nonzero(positive) < len(positive):
            zeros = np.bincount(ideal_query[ideal_grade == 0], minlength=len(retrieved))
            ideal_query, ideal_grade = ideal_query[positive], ideal_grade[positive]
        else:
            zeros = np.zeros(len(retrieved), np.int64)
        # Equal grades of a query can be in any order.
        by_grade, _ = counting.active.sort_documents(
            ideal_query, ideal_grade, ideal_query, len(retrieved)
        )
        return cls(
            query=query[first],
            above=above[first],
            size=equal[first],
            group=group,
            grade=grade[order],
            rank=rank[order],
            retrieved=retrieved,
            ideal_query=ideal_query[by_grade],
            ideal_grade=ideal_grade[by_grade],
            end_above=end[0],
            end_size=end[1],
            zeros=zeros,
            top_grade=top_grade,
            known=known,
        )

    def __getstate__(self) -> dict[str, object]:
        """Return the fields without the cache."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"derived": {}}

    @classmethod
    def concat(cls, parts: Sequence[TieGroups]) -> TieGroups:
        """Return the groups of several parts with different queries as one."""

        def join(name: str) -> NDArray[Any] | None:
            arrays = [getattr(part, name) for part in parts]
            if any(array is None for array in arrays):
                return None
            if name in INDEXED:
                starts = accumulate((len(getattr(p, INDEXED[name])) for p in parts), initial=0)
                arrays = [array + start for array, start in zip(arrays, starts, strict=False)]
            return np.concatenate(arrays)

        arrays: dict[str, Any] = {name: join(name) for kind in ARRAYS.values() for name in kind}
        return cls(
            **arrays,
            top_grade=max((p.top_grade for p in parts if p.top_grade is not None), default=None),
            known=min((part.known for part in parts if part.known is not None), default=None),
        )

    def take(self, queries: Ints) -> TieGroups:
        """Return the groups of these queries, in this order."""

        def keep(places: Ints) -> Ints:
            """Return the indices of the entries that are not −1, sorted by entry."""
            order = np.argsort(places, kind="stable")
            return order[np.count_nonzero(places < 0) :]

        place = np.full(self.n_queries, -1)
        place[queries] = np.arange(len(queries))
        groups = keep(place[self.query])
        group_place = np.full(len(self.size), -1)
        group_place[groups] = np.arange(len(groups))
        kept = {
            "groups": groups,
            "documents": keep(group_place[self.group]),
            "ideal": keep(place[self.ideal_query]),
            "queries": queries,
            "queries, where known": queries,
        }
        arrays: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[kept[kind]]
            for kind, names in ARRAYS.items()
            for name in names
        }
        for name, counted in INDEXED.items():
            arrays[name] = (place if counted == "retrieved" else group_place)[arrays[name]]
        return replace(self, **arrays, top_grade=self.max_grade)

    @cached_property
    def document_query(self) -> Ints:
        """Per document: index of its query."""
        return self.query[self.group]

    @cached_property
    def first_document(self) -> Ints:
        """Per group: index of its first document, one of its highest grade."""
        return offsets_of(self.group, len(self.size))

    @property
    def best_rank(self) -> Ints:
        """Per document: its rank when every group lists its highest grades first."""
        offset = self.above + 1 - self.first_document
        return offset[self.group] + np.arange(len(self.group))

    @cached_property
    def deepest(self) -> int:
        """Length of the longest list or ideal ranking."""
        ends = self.above + self.size  # groups that were extended are longer than their lists
        ideal = np.bincount(self.ideal_query)
        return int(max(array.max(initial=0) for array in (self.retrieved, ends, ideal)))

    @cached_property
    def max_grade(self) -> float:
        """The highest grade of the judgements, 0 if no grade is positive."""
        own = float(self.ideal_grade.max(initial=0.0))
        return own if self.top_grade is None else max(own, self.top_grade)

    @property
    def lacks_relevant(self) -> NDArray[np.bool_]:
        """Per query: whether some relevant document was not retrieved."""
        found = np.bincount(self.query[self.group[self.grade > 0]], minlength=self.n_queries)
        return np.asarray(found < np.bincount(self.ideal_query, minlength=self.n_queries))


class RuleOrder(NamedTuple):
    """The order of a tie rule: by score, high to low, then by a key."""

    scores: Scores
    key: Callable[[Ints], pl.Series] | None
    """Returns the sort keys of rows of a run; None keeps tied documents in input order."""
    descending: bool = False


def rule_order(rule: str, run: Run) -> RuleOrder:
    """Return the order of a tie rule. No other function depends on the name of the rule."""
    if rule == "input":
        return RuleOrder(run.scores, None)
    check_fork()
    if rule == "rank":
        ranks = run.ranks
        if ranks is None:
            raise InputError(
                "the tie rule 'rank' needs a run with a column of ranks (whole numbers)"
            )
        return RuleOrder(run.scores, lambda rows: pl.Series(ranks[rows]))
    scores = run.scores
    if rule == "pytrec_eval":
        with np.errstate(over="ignore"):  # as in C, a double too large for float32 becomes infinite
            scores = run.rounded.astype(np.float32, copy=False)
        if np.isnan(scores).any():
            scores, _ = place_nan_last(scores)
    return RuleOrder(scores, run.documents.ids, descending=rule != "id_asc")


def build_groups(lists: JudgedLists, settings: EvalSettings | None = None) -> TieGroups:
    """Build the tie groups of `lists`, with ranks under the tie rule of the settings."""
    documents, counts, rank, scores = rank_documents(lists, settings or EvalSettings())
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


def rank_documents(
    lists: JudgedLists, settings: EvalSettings
) -> tuple[JudgedDocuments, Counts, Ints, Scores]:
    """Count the candidates of the documents of interest, and rank these under the tie rule.

    With a tolerance, near scores are tied. The ranks of the oblivious value ignore the tolerance.
    Returns the documents, their counts, their ranks, and the scores that decide which tie.
    """
    order = rule_order(settings.tie_break, lists.run)
    documents, rows, counts = _count(lists, order.scores)
    if order.key is not None:
        counts[2] = _count_before(order, lists.bounds, documents, rows, counts[1])
    rank = counts[0] + 1 + counts[2]
    scores = lists.run.scores
    if settings.tie_tolerance > 0:
        scores = merge_near(scores, lists.bounds, settings.tie_tolerance, lists.run.exact)
    if scores is not order.scores:
        ranked_rows = rows
        documents, rows, counts = _count(lists, scores)
        rank = _reorder(rank, ranked_rows, rows)
    return documents, counts, rank, scores


class Counted(NamedTuple):
    """The tie groups of the queries that count, and the match of judgements and run."""

    query_ids: Sequence[str | int]
    groups: TieGroups
    report: MatchReport
    remarks: list[Remark]


def count_groups(
    judgements: Judgements, run: Run, settings: EvalSettings, *, with_judged: bool
) -> Counted:
    """Build the tie groups of a run.

    Judgements and run may be parts; then check the sum of all reports (`MatchReport.check`). With
    `with_judged`, judged documents that are not relevant are documents of interest, too.
    """
    run, remarks = prepare_scores(run, settings)
    lists, report = match_lists(judgements, run, queries=settings.queries, with_judged=with_judged)
    return Counted(lists.own_ids, build_groups(lists, settings), report, remarks)


def _count(lists: JudgedLists, scores: Scores) -> tuple[JudgedDocuments, Ints, Counts]:
    """Sort the documents of interest by `scores`, and count their candidates.

    Returns the documents, their indices in the scores, and their counts. The counts include
    candidates that tie with the last document of a list and are not in it.
    """
    bounds = lists.bounds
    score = scores[bounds[0][lists.query] + lists.position]
    documents = JudgedDocuments.sort(
        len(bounds[0]), lists.query, score, lists.grade, lists.position, lists.unretrieved
    )
    rows = documents.position + bounds[0][documents.query]
    counts = count_lists(scores, bounds, documents.offsets, documents.score, rows)
    beyond = lists.n_tied_beyond_cut
    if beyond is not None:
        longer = np.flatnonzero(beyond)
        last = np.full(len(beyond), -np.inf)
        last[longer] = _find_lowest(scores, lists, longer)
        tied = documents.score == last[documents.query]
        counts[1, tied] += beyond[documents.query[tied]]
    return documents, rows, counts


def _reorder(values: Ints, rows: Ints, asked: Ints) -> Ints:
    """Return the values of the rows `asked`, from values given for `rows`."""
    order = np.argsort(rows)
    return values[order[np.searchsorted(rows[order], asked)]]


def _count_before(
    order: RuleOrder, bounds: Bounds, documents: JudgedDocuments, rows: Ints, equal: Ints
) -> Ints:
    """Return, per document, the number of tied candidates that the rule puts before it."""
    before = np.zeros(len(equal), np.int64)
    if order.key is None or not len(tied := np.flatnonzero(equal > 1)):
        return before
    query, score = documents.query[tied], documents.score[tied]
    is_start = is_group_start(query, score)
    starts, stops = bounds
    members = [
        starts[q] + np.flatnonzero(order.scores[starts[q] : stops[q]] == value)
        for q, value in zip(query[is_start], score[is_start], strict=True)
    ]
    row = np.concatenate(members)
    sizes = np.array([len(m) for m in members])
    frame = pl.DataFrame(
        {"group": np.repeat(np.arange(len(members)), sizes), "row": row, "key": order.key(row)}
    ).sort("group", "key", descending=[False, order.descending], maintain_order=True)
    place = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    before[tied] = _reorder(place, frame["row"].to_numpy(), rows[tied])
    return before


def _find_lowest(scores: Scores, lists: JudgedLists, queries: Ints) -> Scores:
    """Return the lowest score of the list of each query."""
    starts, stops = (bound[queries].tolist() for bound in lists.bounds)
    slices = zip(starts, stops, strict=True)
    return np.array([scores[start:stop].min() for start, stop in slices], scores.dtype)


def _find_ends(
    documents: JudgedDocuments, counts: Counts, retrieved: Ints, scores: Scores, lists: JudgedLists
) -> tuple[Ints, Ints] | tuple[None, None]:
    """Return ``(above, size)`` of the last group of each list; the size is 0 if it cannot matter.

    The group matters if it has a document of interest, or if relevant documents were not retrieved
    and may have been cut off after it. If the number of candidates with the last score is known,
    only the second case matters.
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
