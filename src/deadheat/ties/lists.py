"""Prepare the scores of lists, and find the judged documents in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat._internal.remarks import Remark, note, warning
from deadheat.errors import InputError
from deadheat.formats import Judgements, Run, SharedDocuments, id_column, unlisted_relevant
from deadheat.settings import EvalSettings
from deadheat.ties.counting import Bounds
from deadheat.ties.numpy_counting import Floats, Ints, Scores

if TYPE_CHECKING:
    from deadheat._internal.dtypes import Format


def prepare_scores(run: Run, settings: EvalSettings) -> tuple[Run, list[Remark]]:
    """Return the run with rounded scores and without NaN, by the settings; and remarks."""
    if run.n_tied_beyond_cut is not None and (settings.tie_tolerance or settings.score_dtype):
        # With more ties, the last tie group of a list may be larger than last_group_size.
        if run.n_tied_beyond_cut.any():
            raise InputError(
                f"{run.source}: last_group_size counts documents with exactly the same score, but "
                "with tie_tolerance or score_dtype others tie, too: leave one of the two out"
            )
        run = replace(run, n_tied_beyond_cut=None)
    run, remarks = round_scores(run, settings.score_format)
    return rank_nan(run, settings.nan), remarks


def round_scores(run: Run, format: Format | None) -> tuple[Run, list[Remark]]:
    """Round the scores of a run to a format; None does not round.

    Also returns a warning if scores are beyond the largest number of the format.

    >>> from deadheat.formats import read_run
    >>> run = read_run({"q": {"a": 1.0, "b": 1.00000000001}})
    >>> from deadheat._internal.dtypes import parse_format
    >>> round_scores(run, parse_format("float32"))[0].scores
    array([1., 1.], dtype=float32)
    """
    if format is None:
        return run, []
    scores = run.scores if run.exact is None else run.exact
    with np.errstate(over="ignore"):
        rounded = format.round(scores)
    lost = int((np.isinf(rounded) & (scores != rounded)).sum())
    pattern = (
        "{lost:score} beyond the largest number of {format}: rounded to infinity, so these tie"
    )
    remarks = [warning(pattern, lost=lost, format=format.name)] if lost else []
    return replace(run, scores=rounded, exact=None), remarks


def rank_nan(run: Run, nan: str) -> Run:
    """Return the run without NaN scores.

    Parameters
    ----------
    nan
        ``"last"`` ranks documents with NaN below all others, tied; the others do not change.
        ``"raise"`` raises an error that suggests ``"last"``, ``"refuse"`` one that does not.
    """
    scores = run.scores
    if not len(scores) or (lowest := scores.min()) == lowest:  # NaN, if there is one
        return run
    if nan == "last":
        ranked, exact = place_nan_last(scores)
        return replace(run, scores=ranked, exact=exact if run.exact is None else run.exact)
    row = np.flatnonzero(np.isnan(scores))[:1]
    query = int(np.searchsorted(run.offsets, row[0], "right")) - 1
    if run.documents is None:
        document = f"candidate {row[0] - run.offsets[query]}"
    else:
        document = f"document {run.documents.ids(row)[0]!r}"
    choice = ", or rank such documents last with nan='last' (--nan last)" if nan == "raise" else ""
    raise InputError(
        f"{run.source}: query {run.query_ids[query]!r}, {document}: the score is NaN, "
        f"which cannot be ranked; correct the scores{choice}"
    )


def place_nan_last(scores: Scores) -> tuple[Scores, Floats | None]:
    """Return scores in which NaN ranks below all others; also the original scores, if needed.

    NaN becomes −inf. If another score is −inf, or would be in float32, scores are replaced by
    their index among the distinct scores, and the original scores are returned, too.

    >>> place_nan_last(np.array([0.5, np.nan]))
    (array([ 0.5, -inf]), None)
    >>> place_nan_last(np.array([0.5, -np.inf, np.nan]))[0]
    array([  1.,   0., -inf])
    """
    missing = np.isnan(scores)
    if scores.min(where=~missing, initial=0) >= np.finfo(np.float32).min:
        return np.where(missing, scores.dtype.type(-np.inf), scores), None
    places = np.unique(scores, return_inverse=True)[1].reshape(scores.shape).astype(np.float64)
    return np.where(missing, -np.inf, places), scores.astype(np.float64)


def merge_near(
    scores: Scores,
    bounds: tuple[Ints, Ints],
    tolerance: float,
    exact: NDArray[np.generic] | None = None,
) -> Floats:
    """Replace the scores of each query by the number of their tie group, lowest first.

    Neighbours in the sorted list are in one group if they are at most `tolerance` apart (in
    float64). A chain of such neighbours is one group, whatever the distance of its ends. So any
    two documents within the tolerance are tied, and the order of the documents does not matter.
    If float64 cannot hold the numbers, `scores` has only their order; the numbers are in `exact`
    and are compared exactly.

    >>> merge_near(np.array([0.9, 0.5, 0.89, 0.88]), (np.array([0]), np.array([4])), 0.0101)
    array([1., 0., 1., 1.])
    """
    merged = np.zeros(len(scores), np.float64)
    for start, stop in zip(*bounds, strict=True):
        list_ = scores[start:stop].astype(np.float64)
        order = np.argsort(list_, kind="stable")
        lower, upper = list_[order][:-1], list_[order][1:]
        with np.errstate(invalid="ignore"):  # inf − inf
            near = upper - lower <= tolerance
        if exact is not None:
            numbers = exact[start:stop][order].tolist()
            near = np.array([_are_near(*pair, tolerance) for pair in pairwise(numbers)], np.bool_)
        apart = ~(near | (upper == lower))
        merged[start:stop][order[1:]] = np.cumsum(apart)
    return merged


def _are_near(low: int | float | Fraction, high: int | float | Fraction, tolerance: float) -> bool:
    """Return whether two numbers are finite and at most `tolerance` apart, exactly."""
    if low - low != 0 or high - high != 0:
        return False
    return Fraction(high) - Fraction(low) <= tolerance


class JudgedLists(NamedTuple):
    """The lists of the queries that count, and the documents of interest in them.

    Documents of interest are the relevant ones, or all judged ones if a measure needs them.
    """

    query_ids: list[str]
    run: Run
    """The run, without NaN scores."""
    bounds: Bounds
    """Per query: where its list starts and stops in the rows of the run."""
    query: Ints
    """Per document of interest: index of its query."""
    position: Ints
    """Per document of interest: its position in the list of its query, starting at 0."""
    grade: Floats
    """Per document of interest: its grade."""
    unretrieved: tuple[Ints, Floats]
    """Query and grade of the documents of interest that were not retrieved."""
    complete: bool = False
    """Whether the lists are known to be complete: nothing was cut off."""
    max_grade: float | None = None
    """The highest grade of all judgements, also of queries that do not count; None if unknown."""
    n_tied_beyond_cut: Ints | None = None
    """Per query: number of unlisted candidates that tie with the last document; None if unknown."""
    numbered: bool = False
    """Whether the queries were given as whole numbers."""

    @property
    def own_ids(self) -> Sequence[str | int]:
        """Ids of the queries: whole numbers if they were given as numbers, else text."""
        return list(map(int, self.query_ids)) if self.numbered else self.query_ids

    def keep(self, counted: NDArray[np.bool_]) -> JudgedLists:
        """Return the lists of the queries for which `counted` is True."""
        number = counted.cumsum() - 1
        own, (absent, absent_grade) = counted[self.query], self.unretrieved
        kept = counted[absent]
        beyond = self.n_tied_beyond_cut
        return self._replace(
            query_ids=list(compress(self.query_ids, counted)),
            bounds=(self.bounds[0][counted], self.bounds[1][counted]),
            query=number[self.query[own]],
            position=self.position[own],
            grade=self.grade[own],
            unretrieved=(number[absent[kept]], absent_grade[kept]),
            n_tied_beyond_cut=None if beyond is None else beyond[counted],
        )


@dataclass(frozen=True)
class MatchReport:
    """Counts of how judgements and a run match; reports of parts can be added."""

    judged: int = 0
    """Number of queries of the run that are judged."""
    unjudged: int = 0
    """Number of queries of the run that are not judged."""
    queries: tuple[str, ...] = ()
    """Some queries of the run."""
    counted: int = 0
    """Number of judged queries that count."""
    left_out: int = 0
    """Number of judged queries that do not count because they have no relevant document."""
    missing: int = 0
    """Number of queries that count and are not in the run."""
    first_missing: str | None = None
    has_fine_scores: bool = False
    """Whether not all scores are small whole numbers, as grades are."""
    below: int = 0
    """Number of judgements below 0."""
    sought: tuple[str, ...] = ()
    """Some judged documents of queries in the run; empty if none of them is relevant."""
    retrieved: bool = False
    """Whether a relevant document was retrieved."""
    documents: tuple[str, ...] = ()
    """Some documents of the run."""

    def __add__(self, other: MatchReport) -> MatchReport:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return MatchReport(*(a + b if type(a) is int else a or b for a, b in pairs))

    def check(self, judgements: Judgements, source: str) -> list[Remark]:
        """Return remarks; raise `InputError` if no query can be evaluated."""
        if not self.judged:
            raise InputError(
                f"{source}: no query of the run is judged: the judgements have queries like "
                f"{_examples(judgements.query_ids)}, the run like {_examples(self.queries)}; do "
                "the ids match?"
            )
        if not self.counted:
            raise InputError(
                f"{judgements.source}: no query has a relevant document (a grade above 0): there "
                "is nothing to evaluate"
            )
        remarks: list[Remark] = []
        if self.unjudged:
            text = "{unjudged:query} of the run without judgements: left out"
            remarks.append(warning(text, unjudged=self.unjudged))
        if not self.has_fine_scores and has_fractions(judgements.grades):
            remarks.append(warning(_SWAPPED))
        if self.left_out:
            remarks.append(note(_LEFT_OUT, queries=self.left_out))
        if self.missing:
            text = (
                "{missing:query} judged but missing from the run, for example {example}: each "
                "counts as 0 (queries='intersection' leaves such queries out)"
            )
            remarks.append(warning(text, missing=self.missing, example=repr(self.first_missing)))
        if self.below:
            remarks.append(note(_BELOW, below=self.below))
        if self.sought and not self.retrieved:
            text = (
                "no relevant document was retrieved for any query: the judgements have "
                "documents like {judged}, the run like {listed}; do the ids match?"
            )
            names = {"judged": _examples(self.sought), "listed": _examples(self.documents)}
            remarks.append(warning(text, **names))
        return remarks


_BELOW = "{below:judgement} below 0: counted as not relevant"
_LEFT_OUT = "{queries:query} without a relevant document: left out"
_SWAPPED = (
    "grades are fractions, and scores only small whole numbers: are judgements and run swapped?"
)


def list_shared(
    judgements: Judgements,
    source: str,
    query_ids: list[str],
    doc_ids: Sequence[str],
    *,
    queries: str = "judged",
    with_judged: bool,
) -> tuple[JudgedLists, Ints, list[Remark]]:
    """Find the judged documents in lists that all have the same documents in the same order.

    The lists have no scores. Returns the lists, per query its index in `query_ids`, and remarks.
    Queries that are missing from `query_ids` are numbered after them.
    """
    offsets = np.arange(len(query_ids) + 1, dtype=np.int64) * len(doc_ids)
    documents = SharedDocuments(id_column(doc_ids))
    run = Run(source, query_ids, offsets, np.empty(0), documents, complete=True)
    lists, report = match_lists(judgements, run, queries=queries, with_judged=with_judged)
    index, _ = find_lists(run, lists.query_ids)
    missing = index < 0
    index[missing] = len(query_ids) + np.arange(np.count_nonzero(missing))
    return lists, index, report.check(judgements, source)


def find_lists(run: Run, query_ids: Sequence[str]) -> tuple[Ints, Bounds]:
    """Return the index of each query in a run, −1 if it is missing, and the bounds of its list."""
    index = run.query_index
    place = np.array([index.get(query, -1) for query in query_ids], np.int64)
    is_listed = place >= 0
    starts = np.where(is_listed, run.offsets[:-1][place], 0)
    return place, (starts, np.where(is_listed, run.offsets[1:][place], 0))


def match_lists(
    judgements: Judgements, run: Run, *, queries: str, with_judged: bool
) -> tuple[JudgedLists, MatchReport]:
    """Find the judged documents in the lists of a run without NaN.

    Parameters
    ----------
    queries
        Which queries count, one of `deadheat.settings.QUERY_POLICIES`.
    with_judged
        Whether judged documents that are not relevant are documents of interest, too.

    Returns
    -------
    lists, report
        The lists of the queries that count, an empty list for a query that is not in the run; and
        the match of judgements and run.
    """
    grades, query_ids = judgements.grades, judgements.query_ids
    place, bounds = find_lists(run, query_ids)
    is_listed, starts = place >= 0, bounds[0]
    beyond = run.n_tied_beyond_cut
    rows = np.arange(len(grades)) if with_judged else (grades > 0).nonzero()[0]
    query, grade = judgements.query[rows], grades[rows]
    sought = is_listed[query]
    rows, row = rows[sought], np.full(len(query), -1)
    sought_ids = [judgements.doc_ids[i] for i in rows.tolist()]
    row[sought] = run.documents.find(place[query[sought]], sought_ids)
    found = row >= 0
    lists = JudgedLists(
        query_ids=query_ids,
        run=run,
        bounds=bounds,
        query=query[found],
        position=(row - starts[query])[found],
        grade=grade[found],
        unretrieved=(query[~found], grade[~found]),
        complete=run.complete,
        max_grade=judgements.max_grade,
        n_tied_beyond_cut=None if beyond is None else np.where(is_listed, beyond[place], 0),
        numbered=judgements.numbered,
    )
    below, n_judged = grades < 0, int(np.count_nonzero(is_listed))
    counted = {"judged": judgements.has_relevant, "intersection": is_listed}.get(queries)
    if counted is not None and np.count_nonzero(counted) < len(counted):
        lists = lists.keep(counted)
        below, is_listed = below & counted[judgements.query], is_listed[counted]
    first_missing = None
    if n_missing := len(is_listed) - int(np.count_nonzero(is_listed)):
        first_missing = lists.query_ids[int(np.argmin(is_listed))]
    is_retrieved = bool(np.count_nonzero(grade[found] > 0))
    lost = not is_retrieved and bool((grades[rows] > 0).any())
    report = MatchReport(
        judged=n_judged,
        unjudged=len(run.query_ids) - n_judged,
        queries=tuple(run.query_ids[:2]),
        counted=len(lists.query_ids),
        left_out=len(query_ids) - len(lists.query_ids) if queries == "judged" else 0,
        missing=n_missing,
        first_missing=first_missing,
        has_fine_scores=run.exact is not None or not look_like_grades(run.scores),
        below=int(np.count_nonzero(below)),
        sought=tuple(sought_ids[:2]) if lost else (),
        retrieved=is_retrieved,
        documents=tuple(run.documents.ids(np.arange(min(2, run.offsets[-1])))) if lost else (),
    )
    return lists, report


def list_labelled(
    run: Run,
    grades: NDArray[np.generic],
    n_relevant: ArrayLike | None = None,
    *,
    queries: str,
    with_judged: bool,
    numbered: bool = False,
) -> tuple[JudgedLists, list[Remark]]:
    """Find the judged documents of arrays, in which every candidate has a grade.

    Parameters
    ----------
    grades
        Per row of the run: its grade, in any type of numbers.
    n_relevant
        Number of relevant documents of each query. Those that are not candidates have grade 1.
        Default: all relevant documents are candidates.
    numbered
        Whether the queries were given as whole numbers.
    """
    starts, stops, n_queries = run.offsets[:-1], run.offsets[1:], len(run.query_ids)
    if with_judged:
        rows = np.arange(len(grades))
    else:
        rows = (grades if grades.dtype == bool else grades != 0).nonzero()[0]
    grade = grades[rows].astype(np.float64)
    query = np.zeros(len(rows), np.int64)
    if n_queries > 1:
        query = np.arange(n_queries).repeat(np.diff(rows.searchsorted(run.offsets)))
    remarks: list[Remark] = []
    if look_like_grades(run.scores) and has_fractions(grades):
        remarks.append(warning(_SWAPPED))
    is_relevant = grade > 0
    relevant = query
    if np.count_nonzero(is_relevant) < len(rows):
        if below := int(np.count_nonzero(grade < 0)):
            remarks.append(note(_BELOW, below=below))
        relevant = query[is_relevant]
        if not with_judged:
            rows, query, grade = rows[is_relevant], relevant, grade[is_relevant]
    known = np.bincount(relevant, minlength=n_queries)
    absent, absent_grade = query[:0], grade[:0]
    if n_relevant is not None:
        unlisted = unlisted_relevant(n_relevant, known)
        known, absent = known + unlisted, np.arange(n_queries).repeat(unlisted)
        absent_grade = np.ones(len(absent))
    lists = JudgedLists(
        query_ids=run.query_ids,
        run=run,
        bounds=(starts, stops),
        query=query,
        position=rows - starts[query],
        grade=grade,
        unretrieved=(absent, absent_grade),
        complete=not len(absent),
        numbered=numbered,
    )
    if queries == "judged" and (left_out := n_queries - int(np.count_nonzero(known))):
        if left_out == n_queries:
            raise InputError("no query has a relevant document: there is nothing to evaluate")
        remarks.append(note(_LEFT_OUT, queries=left_out))
        lists = lists.keep(known > 0)
    return lists, remarks


def look_like_grades(numbers: NDArray[Any]) -> bool:
    """Return whether the numbers are small and whole, like grades; checks the first ones first."""
    if not len(numbers) or not float(numbers[0]).is_integer():
        return False
    return all(
        bool(((np.abs(part) <= 10) & (np.floor(part) == part)).all())
        for part in (numbers[:100], numbers[100:])
    )


def has_fractions(numbers: NDArray[Any]) -> bool:
    """Return whether some of the numbers are not whole."""
    return bool((np.floor(numbers) != numbers).any())


def _examples(ids: Sequence[str]) -> str:
    return " and ".join(repr(id_) for id_ in ids[:2])
