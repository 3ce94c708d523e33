"""Judgements meet a run: which queries count, and where their judged documents stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.formats import Judgements, Run
from deadheat.measures import Measure
from deadheat.remarks import Remarks, queries_in_words
from deadheat.ties import Lists

Ints = NDArray[np.int64]


def judged_lists(
    judgements: Judgements, run: Run, measures: list[Measure], queries: str, remarks: Remarks
) -> tuple[list[str], Lists]:
    """Queries that count, and the candidate lists of a run without NaN for them."""
    selected, found = _select(judgements, run, queries, remarks)
    with_judged = any(measure.needs_judged for measure in measures)
    lists = _lists(judgements, run, selected, found, remarks, with_judged=with_judged)
    return [judgements.query_ids[q] for q in selected.tolist()], lists


def _select(judgements: Judgements, run: Run, queries: str, remarks: Remarks) -> tuple[Ints, Ints]:
    """Judged queries that count, and the index of each in the run, −1 where it is missing."""
    found = np.array([run.query_index.get(q, -1) for q in judgements.query_ids])
    if not (found >= 0).any():
        raise InputError(
            f"{run.source}: no query of the run is judged: the judgements name queries like "
            f"{_examples(judgements.query_ids)}, the run like {_examples(run.query_ids)}"
        )
    if unjudged := len(run.query_ids) - int((found >= 0).sum()):
        remarks.warn(
            f"{queries_in_words(unjudged)} of the run without judgements: left out, nothing can be "
            "said about them"
        )
    if not _like_grades(judgements.grades) and _like_grades(run.scores):
        remarks.warn(
            "the judgements hold fractions, and the run only small whole numbers: are judgements "
            "and run swapped?"
        )
    relevant = np.add.reduceat(judgements.grades > 0, judgements.offsets[:-1], dtype=np.int64)
    counted = {
        "judged": relevant > 0,
        "intersection": found >= 0,
        "all": np.ones(len(found), bool),
    }[queries]
    if queries == "judged":
        remarks.note_left_out(int((relevant == 0).sum()))
    selected = np.flatnonzero(counted)
    if not len(selected):
        raise InputError(
            f"{judgements.source}: no query has a relevant document (a grade above 0): there is "
            "nothing to evaluate"
        )
    if missing := int((found[selected] < 0).sum()):
        example = judgements.query_ids[selected[found[selected] < 0][0]]
        remarks.warn(
            f"{queries_in_words(missing)} judged but missing from the run, for example {example!r}"
            ": each counts as 0 (queries='intersection' leaves such queries out)"
        )
    return selected, found[selected]


def _lists(
    judgements: Judgements,
    run: Run,
    selected: Ints,
    found: Ints,
    remarks: Remarks,
    *,
    with_judged: bool,
) -> Lists:
    """Candidate lists of the selected queries, and the judged documents in them."""
    lengths = np.diff(judgements.offsets)[selected]
    query = np.repeat(np.arange(len(selected)), lengths)
    first = np.repeat(judgements.offsets[selected] - np.cumsum(lengths) + lengths, lengths)
    judged = first + np.arange(len(query))
    grade = judgements.grades[judged]
    remarks.note_negative(grade)
    if not with_judged:
        of_interest = np.flatnonzero(grade > 0)
        query, judged, grade = query[of_interest], judged[of_interest], grade[of_interest]

    row = np.full(len(query), -1, np.int64)
    present = np.flatnonzero(found[query] >= 0)
    doc_ids = judgements.doc_ids.gather(judged[present])
    row[present] = run.documents.find(found[query[present]], doc_ids)
    retrieved = row >= 0
    if not (retrieved & (grade > 0)).any() and (grade[present] > 0).any():
        in_run = run.documents.ids(np.arange(min(2, len(run.scores))))
        remarks.warn(
            "no relevant document was retrieved for any query: the judgements name documents like "
            f"{_examples(doc_ids.to_list())}, the run like {_examples(in_run.to_list())}; do the "
            "ids match?"
        )
    starts = np.where(found >= 0, run.offsets[found], 0)
    stops = np.where(found >= 0, run.offsets[found + 1], 0)
    return Lists(
        run.scores,
        (starts, stops),
        query[retrieved],
        row[retrieved] - starts[query[retrieved]],
        grade[retrieved],
        (query[~retrieved], grade[~retrieved]),
    )


def ranked(run: Run, nan: str) -> Run:
    """The run with scores that can be ranked."""

    def where(q: int, place: int) -> str:
        doc = run.documents.ids(run.offsets[q : q + 1] + place)[0]
        return f"{run.source}: query {run.query_ids[q]!r}, document {doc!r}"

    return replace(run, scores=without_nan(run.scores, run.offsets, nan, where))


def without_nan(
    scores: NDArray[Any], offsets: Ints, nan: str, where: Callable[[int, int], str]
) -> NDArray[Any]:
    """Give scores that can be ranked; `where` names the place of a NaN."""
    if not len(scores) or not np.isnan(np.min(scores)):
        return scores
    if nan == "last":
        # Below every score, −inf included, and the others as they are: −inf makes room.
        lowest = np.where(np.isneginf(scores), np.finfo(np.float64).min, scores.astype(np.float64))
        return np.where(np.isnan(scores), -np.inf, lowest)
    row = int(np.flatnonzero(np.isnan(scores))[0])
    q = int(np.searchsorted(offsets, row, "right")) - 1
    raise InputError(
        f"{where(q, row - int(offsets[q]))}: the score is NaN, which has no place in a ranking; "
        "mend the scores, or rank such documents last with nan='last' (--nan last)"
    )


def _like_grades(numbers: NDArray[Any]) -> bool:
    """Whether the numbers are small and whole, as grades are."""
    return bool(((np.abs(numbers) <= 10) & (np.floor(numbers) == numbers)).all())


def _examples(ids: list[str]) -> str:
    return " and ".join(repr(id_) for id_ in ids[:2])
