"""Candidate lists with their judged documents: where judgements meet scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import InputError
from deadheat.formats import Judgements, Run
from deadheat.formats.arrays import unlisted_relevant
from deadheat.remarks import Remark, note, warning
from deadheat.ties.counting import Bounds
from deadheat.ties.groups import Floats, Ints
from deadheat.ties.labels import find_nonzero
from deadheat.ties.scores import Scored, place_nan_last


@dataclass(frozen=True)
class JudgedLists:
    """Candidate lists of all queries, and the documents of interest among them.

    Documents of interest are the relevant ones, or all judged ones where a measure asks for
    them.
    """

    query_ids: list[str]
    scores: NDArray[Any]
    """float32 or float64, without NaN."""
    bounds: Bounds
    query: Ints
    """Per document of interest: index of its query."""
    position: Ints
    """Per document of interest: its place in its query's list, starting at 0."""
    grade: Floats
    """Per document of interest: its grade."""
    unretrieved: tuple[Ints, Floats]
    """Query and grade of the documents of interest that are not in their query's list."""
    complete: bool = False
    """Whether the lists are known to hold every candidate there is: nothing was cut from them."""
    exact: NDArray[Any] | None = None
    """Where `scores` are only places, because float64 cannot hold the scores: the scores given."""
    max_grade: float | None = None
    """The highest grade of all judgements, also of queries that do not count, where known."""
    n_tied_beyond_cut: Ints | None = None
    """Per query, where known: candidates that tie with the last of the list and are not in it."""
    numbered: bool = False
    """Whether the queries were given as whole numbers."""

    @property
    def own_ids(self) -> Sequence[str | int]:
        """The ids of the queries as they were given: whole numbers, or text."""
        return [int(query) for query in self.query_ids] if self.numbered else self.query_ids


def list_judged(
    judgements: Judgements, run: Run, *, queries: str, with_judged: bool
) -> tuple[JudgedLists, list[Remark]]:
    """Find the judged documents in the lists of a run without NaN.

    Parameters
    ----------
    queries
        Which queries count, one of `deadheat.evaluation.QUERY_POLICIES`.
    with_judged
        Whether judged documents that are not relevant are of interest, too.

    Returns
    -------
    lists, remarks
        The lists of the queries that count, an empty one where the run misses the query; and
        what a reader should know of how judgements and run fit.
    """
    lists, report = match_lists(judgements, run, queries=queries, with_judged=with_judged)
    report.check(judgements, run.source)
    return lists, report.remarks(judgements)


@dataclass(frozen=True)
class MatchReport:
    """How judgements and a run fit: counts, and those of parts of the queries add up."""

    judged: int = 0
    """Queries of the run that are judged."""
    unjudged: int = 0
    """Queries of the run that are not."""
    queries: tuple[str, ...] = ()
    """Some queries of the run."""
    counted: int = 0
    """Judged queries that count."""
    left_out: int = 0
    """Judged queries that do not count because they have no relevant document."""
    missing: int = 0
    """Queries that count and are not in the run."""
    first_missing: str | None = None
    scores_look_like_grades: bool = True
    """Whether all scores are small whole numbers, as grades are."""
    below: int = 0
    """Judgements below 0."""
    sought: tuple[str, ...] = ()
    """Some judged documents of queries in the run, where there are relevant ones among them."""
    retrieved: bool = False
    """Whether a relevant document was retrieved."""
    documents: tuple[str, ...] = ()
    """Some documents of the run."""

    def __add__(self, other: MatchReport) -> MatchReport:
        def first(name: str) -> Any:
            return getattr(self, name) or getattr(other, name)

        sums = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("judged", "unjudged", "counted", "left_out", "missing", "below")
        }
        firsts = {
            name: first(name)
            for name in ("queries", "first_missing", "sought", "documents", "retrieved")
        }
        return MatchReport(
            **sums,
            **firsts,
            scores_look_like_grades=self.scores_look_like_grades and other.scores_look_like_grades,
        )

    def check(self, judgements: Judgements, source: str) -> None:
        """Refuse judgements and a run of which nothing can be evaluated."""
        if not self.judged:
            raise InputError(
                f"{source}: no query of the run is judged: the judgements name queries like "
                f"{_examples(judgements.query_ids)}, the run like {_examples(self.queries)}"
            )
        if not self.counted:
            raise InputError(
                f"{judgements.source}: no query has a relevant document (a grade above 0): there "
                "is nothing to evaluate"
            )

    def remarks(self, judgements: Judgements) -> list[Remark]:
        """Say what a reader should know of it."""
        remarks: list[Remark] = []
        if self.unjudged:
            remarks.append(
                warning(
                    "{unjudged:query} of the run without judgements: left out, nothing can be said "
                    "about them",
                    unjudged=self.unjudged,
                )
            )
        if self.scores_look_like_grades and not look_like_grades(judgements.grades):
            remarks.append(
                warning(
                    "the judgements hold fractions, and the run only small whole numbers: are "
                    "judgements and run swapped?"
                )
            )
        remarks += _left_out(self.left_out)
        if self.missing:
            remarks.append(
                warning(
                    "{missing:query} judged but missing from the run, for example {example}: each "
                    "counts as 0 (queries='intersection' leaves such queries out)",
                    missing=self.missing,
                    example=repr(self.first_missing),
                )
            )
        remarks += _below(self.below)
        if self.sought and not self.retrieved:
            remarks.append(
                warning(
                    "no relevant document was retrieved for any query: the judgements name "
                    "documents like {judged}, the run like {listed}; do the ids match?",
                    judged=_examples(self.sought),
                    listed=_examples(self.documents),
                )
            )
        return remarks


def match_lists(
    judgements: Judgements, run: Run, *, queries: str, with_judged: bool
) -> tuple[JudgedLists, MatchReport]:
    """Find the judged documents as `list_judged` does, without checking that there are any."""
    index, grades = run.query_index, judgements.grades
    place = np.array([index.get(query, -1) for query in judgements.query_ids], np.int64)
    counted = _choose_queries(judgements, place, queries)
    n_judged, n_counted = int(np.count_nonzero(place >= 0)), int(np.count_nonzero(counted))
    left_out = len(counted) - n_counted

    is_kept = np.ones(len(grades), bool) if with_judged else grades > 0
    is_below = grades < 0
    if left_out:
        is_kept &= counted[judgements.query]
        is_below &= counted[judgements.query]
    kept = is_kept.nonzero()[0]
    query, grade, query_ids = judgements.query[kept], grades[kept], judgements.query_ids
    if left_out:
        query, place = (counted.cumsum() - 1)[query], place[counted]
        query_ids = [query_ids[q] for q in counted.nonzero()[0].tolist()]
    starts, stops = run.offsets[:-1][place], run.offsets[1:][place]
    beyond = None if run.n_tied_beyond_cut is None else run.n_tied_beyond_cut[place]
    missing = (place < 0).nonzero()[0]
    if len(missing):
        starts[missing], stops[missing] = 0, 0
        if beyond is not None:
            beyond[missing] = 0
        row = np.full(len(query), -1, np.int64)
        listed = (place[query] >= 0).nonzero()[0]
        sought = kept[listed]
        row[listed] = run.documents.find_judged(place[query[listed]], judgements, sought)
    else:
        sought = kept
        row = run.documents.find_judged(place[query], judgements, sought)

    retrieved, unretrieved = row >= 0, (query[:0], grade[:0])
    if np.count_nonzero(retrieved) < len(row):
        unretrieved = query[~retrieved], grade[~retrieved]
        query, row, grade = query[retrieved], row[retrieved], grade[retrieved]
    found = bool(np.count_nonzero(grade > 0))
    lost = not found and bool((grades[sought] > 0).any())
    first_rows = np.arange(min(2, int(run.offsets[-1])))
    report = MatchReport(
        judged=n_judged,
        unjudged=len(run.query_ids) - n_judged,
        queries=tuple(run.query_ids[:2]),
        counted=n_counted,
        left_out=left_out if queries == "judged" else 0,
        missing=len(missing),
        first_missing=query_ids[missing[0]] if len(missing) else None,
        scores_look_like_grades=len(run.scores) > 0 and look_like_grades(run.rounded),
        below=int(np.count_nonzero(is_below)),
        sought=tuple(judgements.doc_ids.gather(sought[:2]).to_list()) if lost else (),
        retrieved=found,
        documents=tuple(run.documents.ids(first_rows).to_list()) if lost else (),
    )
    lists = JudgedLists(
        query_ids,
        run.scores,
        (starts, stops),
        query,
        row - starts[query],
        grade,
        unretrieved,
        run.complete,
        run.exact,
        judgements.max_grade,
        beyond,
        judgements.numbered,
    )
    return lists, report


def _choose_queries(judgements: Judgements, place: Ints, queries: str) -> NDArray[np.bool_]:
    """Tell per judged query whether it counts."""
    if queries == "judged":
        return judgements.has_relevant
    return place >= 0 if queries == "intersection" else np.ones(len(place), bool)


def list_labelled(
    query_ids: list[str],
    scores: NDArray[Any],
    offsets: Ints,
    grades: NDArray[Any],
    n_relevant: ArrayLike | None = None,
    *,
    queries: str,
    with_judged: bool,
    exact: NDArray[Any] | None = None,
    numbered: bool = False,
) -> tuple[JudgedLists, list[Remark]]:
    """Take lists whose every candidate carries its grade; the twin of `list_judged` for arrays.

    Parameters
    ----------
    offsets
        The candidates of query ``q`` are ``offsets[q]:offsets[q + 1]`` of scores and grades.
    n_relevant
        Relevant documents of each query; those that are not among its candidates count with
        grade 1. Unless given, the candidates hold them all.
    exact
        The scores themselves, where `scores` are only places.
    numbered
        Whether the queries were given as whole numbers.
    """
    rows = np.arange(len(scores)) if with_judged else find_nonzero(grades)
    grade = grades[rows].astype(np.float64)
    query = _owners(offsets, rows)
    remarks: list[Remark] = []
    relevant, n_queries = grade > 0, len(query_ids)
    if np.count_nonzero(relevant) < len(rows):
        remarks = _below(int(np.count_nonzero(grade < 0)))
        if not with_judged:
            rows, query, grade = rows[relevant], query[relevant], grade[relevant]
    known = np.bincount(query[relevant] if with_judged else query, minlength=n_queries)
    absent, absent_grade = query[:0], grade[:0]
    if n_relevant is not None:
        unlisted = unlisted_relevant(n_relevant, known)
        known, absent = known + unlisted, np.arange(n_queries).repeat(unlisted)
        absent_grade = np.ones(len(absent))
    starts, stops = offsets[:-1], offsets[1:]
    position = rows - starts[query]
    left_out = n_queries - int(np.count_nonzero(known)) if queries == "judged" else 0
    if left_out:
        counted = known > 0
        remarks += _left_out(left_out)
        if left_out == n_queries:
            raise InputError("no query has a relevant document: there is nothing to evaluate")
        number = np.cumsum(counted) - 1
        kept = counted[query]
        query, position, grade = number[query[kept]], position[kept], grade[kept]
        starts, stops, absent = starts[counted], stops[counted], number[absent]
        query_ids = [query_ids[q] for q in np.flatnonzero(counted).tolist()]
    lists = JudgedLists(
        query_ids,
        scores,
        (starts, stops),
        query,
        position,
        grade,
        (absent, absent_grade),
        complete=not len(absent),
        exact=exact,
        numbered=numbered,
    )
    return lists, remarks


_MANY = 1_000
"""Of so many rows it pays to look whether lists are of one length."""


def _owners(offsets: Ints, rows: Ints) -> Ints:
    """Per row, of lists that these offsets part: the index of its list."""
    if len(offsets) == 2:
        return np.zeros(len(rows), np.int64)
    length = offsets[1]
    if len(rows) > _MANY and (offsets[1:] - offsets[:-1] == length).all():
        return np.asarray(rows // length)
    return np.asarray(offsets.searchsorted(rows, "right") - 1)


def rank_nan(run: Run, nan: str) -> Run:
    """Return the run with scores that can be ranked; `nan` is as for `rank_nan_scores`."""

    def name(query: int, position: int) -> str:
        row = run.offsets[query : query + 1] + position
        document = run.documents.ids(row)[0]
        return f"{run.origin(row[0])}: query {run.query_ids[query]!r}, document {document!r}"

    return rank_nan_scores(run, nan, name)


def rank_nan_scores(given: Scored, nan: str, name: Callable[[int, int], str]) -> Scored:
    """Return a run, or arrays, with scores without NaN.

    Parameters
    ----------
    nan
        ``"raise"`` and ``"refuse"`` refuse a NaN, the first where ``"last"`` is a choice, too:
        it puts such documents below all others, tied. The order and the ties of the others stay
        as they are.
    name
        Names the document at a position of a query's list, for the message.
    """
    scores, offsets = given.scores, given.offsets
    if not len(scores) or (lowest := scores.min()) == lowest:  # NaN, if there is one
        return given
    if nan == "last":
        ranked, exact = place_nan_last(scores)
        return replace(given, scores=ranked, exact=exact if given.exact is None else given.exact)
    row = int(np.flatnonzero(np.isnan(scores))[0])
    query = int(np.searchsorted(offsets, row, "right")) - 1
    choice = ", or rank such documents last with nan='last' (--nan last)" if nan == "raise" else ""
    raise InputError(
        f"{name(query, row - int(offsets[query]))}: the score is NaN, which has no place in a "
        f"ranking; mend the scores{choice}"
    )


def _below(below: int) -> list[Remark]:
    pattern = "{below:judgement} below 0: counted as not relevant"
    return [note(pattern, below=below)] if below else []


def _left_out(queries: int) -> list[Remark]:
    pattern = "{queries:query} without a relevant document: left out"
    return [note(pattern, queries=queries)] if queries else []


def look_like_grades(numbers: NDArray[Any]) -> bool:
    """Whether the numbers are small and whole, as grades are; mostly the first ones tell."""
    if len(numbers) and not float(numbers[0]).is_integer():
        return False
    return all(
        bool(((np.abs(part) <= 10) & (np.floor(part) == part)).all())
        for part in (numbers[:100], numbers[100:])
    )


def _examples(ids: Sequence[str]) -> str:
    return " and ".join(repr(id_) for id_ in ids[:2])
