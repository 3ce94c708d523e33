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
from deadheat.formats.shapes import DictDocuments
from deadheat.remarks import Remark, note, warning
from deadheat.ties.groups import Floats, Ints
from deadheat.ties.labels import nonzero_rows
from deadheat.ties.scores import Bounds


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
    beyond: Ints | None = None
    """Per query, where known: candidates that tie with the last of the list and are not in it."""
    numbered: bool = False
    """Whether the queries were given as whole numbers."""

    @property
    def own_ids(self) -> Sequence[str | int]:
        """The ids of the queries as they were given: whole numbers, or text."""
        return [int(query) for query in self.query_ids] if self.numbered else self.query_ids


def judged_lists(
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
    lists, fit = fitted_lists(judgements, run, queries=queries, with_judged=with_judged)
    fit.check(judgements, run.source)
    return lists, fit.remarks(judgements)


@dataclass(frozen=True)
class Fit:
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
    like_grades: bool = True
    """Whether all scores are small whole numbers, as grades are."""
    below: int = 0
    """Judgements below 0."""
    sought: tuple[str, ...] = ()
    """Some judged documents of queries in the run, where there are relevant ones among them."""
    retrieved: bool = False
    """Whether a relevant document was retrieved."""
    documents: tuple[str, ...] = ()
    """Some documents of the run."""

    def __add__(self, other: Fit) -> Fit:
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
        return Fit(**sums, **firsts, like_grades=self.like_grades and other.like_grades)

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
        if self.like_grades and not like_grades(judgements.grades):
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


def fitted_lists(
    judgements: Judgements, run: Run, *, queries: str, with_judged: bool
) -> tuple[JudgedLists, Fit]:
    """Give the lists as `judged_lists` does, be there none; and how judgements and run fit."""
    index = run.query_index
    place = np.array([index.get(query, -1) for query in judgements.query_ids], np.int64)
    counted = _counted(judgements, place, queries)
    missing = (counted & (place < 0)).nonzero()[0]
    judged, n_counted = int(np.count_nonzero(place >= 0)), int(np.count_nonzero(counted))
    left_out = len(counted) - n_counted

    owner = np.arange(len(place)).repeat(judgements.offsets[1:] - judgements.offsets[:-1])
    interest = counted[owner]
    below = int(np.count_nonzero(interest & (judgements.grades < 0)))
    if not with_judged:
        interest &= judgements.grades > 0
    judgement = interest.nonzero()[0]
    query, grade = (counted.cumsum() - 1)[owner[judgement]], judgements.grades[judgement]
    place = place[counted]

    listed = place[query] >= 0
    sought = judgement[listed]
    row = np.full(len(query), -1, np.int64)
    row[listed] = _rows(run, place[query[listed]], judgements, sought)
    retrieved = row >= 0
    found = bool(np.count_nonzero(grade[retrieved] > 0))
    lost = not found and bool((grade[listed] > 0).any())
    some = np.arange(min(2, int(run.offsets[-1]))) if lost else np.empty(0, np.int64)
    fit = Fit(
        judged=judged,
        unjudged=len(run.query_ids) - judged,
        queries=tuple(run.query_ids[:2]),
        counted=n_counted,
        left_out=left_out if queries == "judged" else 0,
        missing=len(missing),
        first_missing=judgements.query_ids[missing[0]] if len(missing) else None,
        like_grades=len(run.scores) > 0 and like_grades(run.rounded),
        below=below,
        sought=tuple(judgements.doc_ids.gather(sought[:2]).to_list()) if lost else (),
        retrieved=found,
        documents=tuple(run.documents.ids(some).to_list()) if lost else (),
    )
    starts, stops = run.offsets[:-1][place], run.offsets[1:][place]
    query_ids = judgements.query_ids
    if len(missing):
        starts, stops = np.where(place >= 0, starts, 0), np.where(place >= 0, stops, 0)
    if left_out:
        query_ids = [query_ids[q] for q in counted.nonzero()[0].tolist()]
    lists = JudgedLists(
        query_ids,
        run.scores,
        (starts, stops),
        query[retrieved],
        row[retrieved] - starts[query[retrieved]],
        grade[retrieved],
        (query[~retrieved], grade[~retrieved]),
        run.complete,
        run.exact,
        float(judgements.grades.max(initial=0)),
        None if run.beyond is None else np.where(place >= 0, run.beyond[place], 0),
        judgements.numbered,
    )
    return lists, fit


def _rows(run: Run, queries: Ints, judgements: Judgements, sought: Ints) -> Ints:
    """Per judgement that is sought: the row of its document in the run, −1 where it is not."""
    if isinstance(run.documents, DictDocuments):
        ids = judgements.id_list
        return run.documents.find_named(queries, [ids[i] for i in sought.tolist()])
    return run.documents.find(queries, judgements.doc_ids.gather(sought))


def _counted(judgements: Judgements, place: Ints, queries: str) -> NDArray[np.bool_]:
    """Which judged queries count."""
    if queries == "judged":
        relevant = np.add.reduceat(judgements.grades > 0, judgements.offsets[:-1], dtype=np.int64)
        return np.asarray(relevant > 0)
    return place >= 0 if queries == "intersection" else np.ones(len(place), bool)


def labelled_lists(
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
    """Take lists whose every candidate carries its grade; the twin of `judged_lists` for arrays.

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
    rows = np.arange(len(scores)) if with_judged else nonzero_rows(grades)
    grade = grades[rows].astype(np.float64)
    query = _owners(offsets, rows)
    remarks: list[Remark] = []
    relevant, n_queries = grade > 0, len(query_ids)
    if np.count_nonzero(relevant) < len(rows):
        remarks = negative_grades(grade)
        if not with_judged:
            rows, query, grade = rows[relevant], query[relevant], grade[relevant]
    known = np.bincount(query[relevant] if with_judged else query, minlength=n_queries)
    absent, absent_grade = query[:0], grade[:0]
    if n_relevant is not None:
        unlisted = unlisted_relevant(n_relevant, known)
        known, absent = known + unlisted, np.arange(n_queries).repeat(unlisted)
        absent_grade = np.ones(len(absent))
    counted = known > 0 if queries == "judged" else np.ones(n_queries, bool)
    starts, stops = offsets[:-1], offsets[1:]
    position = rows - starts[query]
    if left_out := n_queries - int(np.count_nonzero(counted)):
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


def without_nan(run: Run, nan: str) -> Run:
    """Give the run with scores that can be ranked; `nan` is as for `rankable`."""

    def name(query: int, position: int) -> str:
        row = run.offsets[query : query + 1] + position
        document = run.documents.ids(row)[0]
        return f"{run.origin(row[0])}: query {run.query_ids[query]!r}, document {document!r}"

    scores = rankable(run.scores, run.offsets, nan, name)
    return run if scores is run.scores else replace(run, scores=scores)


def rankable(
    scores: NDArray[Any], offsets: Ints, nan: str, name: Callable[[int, int], str]
) -> NDArray[Any]:
    """Give scores without NaN.

    Parameters
    ----------
    offsets
        The scores of query ``q`` are ``scores[offsets[q]:offsets[q + 1]]``.
    nan
        ``"raise"`` and ``"refuse"`` refuse a NaN, the first where ``"last"`` is a choice, too:
        it puts such documents below all others, tied.
    name
        Names the document at a position of a query's list, for the message.
    """
    if not len(scores) or (lowest := scores.min()) == lowest:  # NaN, if there is one
        return scores
    if nan == "last":
        # Below every score, −inf included, and the others as they are: −inf makes room.
        wide = np.where(np.isneginf(scores), np.finfo(np.float64).min, scores.astype(np.float64))
        return np.where(np.isnan(scores), -np.inf, wide)
    row = int(np.flatnonzero(np.isnan(scores))[0])
    query = int(np.searchsorted(offsets, row, "right")) - 1
    choice = ", or rank such documents last with nan='last' (--nan last)" if nan == "raise" else ""
    raise InputError(
        f"{name(query, row - int(offsets[query]))}: the score is NaN, which has no place in a "
        f"ranking; mend the scores{choice}"
    )


def negative_grades(grades: NDArray[Any]) -> list[Remark]:
    """Note grades below 0."""
    return _below(_n_below(grades))


def _n_below(grades: NDArray[Any]) -> int:
    return int(np.count_nonzero(grades < 0)) if grades.size and grades.min() < 0 else 0


def _below(below: int) -> list[Remark]:
    pattern = "{below:judgement} below 0: counted as not relevant"
    return [note(pattern, below=below)] if below else []


def _left_out(queries: int) -> list[Remark]:
    pattern = "{queries:query} without a relevant document: left out"
    return [note(pattern, queries=queries)] if queries else []


def like_grades(numbers: NDArray[Any]) -> bool:
    """Whether the numbers are small and whole, as grades are; mostly the first ones tell."""
    if len(numbers) and not float(numbers[0]).is_integer():
        return False
    return all(
        bool(((np.abs(part) <= 10) & (np.floor(part) == part)).all())
        for part in (numbers[:100], numbers[100:])
    )


def _examples(ids: Sequence[str]) -> str:
    return " and ".join(repr(id_) for id_ in ids[:2])
