"""From judgements and scores to a result."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import DeadheatWarning, InputError
from deadheat.formats import Judgements, Run, read_qrels, read_run
from deadheat.formats.arrays import flatten, query_names, unlisted_relevant
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.result import Result, Views
from deadheat.ties import BACKEND, Lists, TieGroups, tie_groups
from deadheat.ties.rules import check_rule

Ints = NDArray[np.int64]

DEFAULT_MEASURES = ("nDCG@10", "MRR@10", "MAP", "Recall@100")
QUERY_POLICIES = {
    "judged": "every judged query with a relevant document; one that the run misses scores 0",
    "intersection": "queries that are both judged and in the run, as trec_eval averages",
    "all": "every judged query, those without a relevant document too (they score 0)",
}
NAN_POLICIES = ("raise", "last")


@dataclass
class _Remarks:
    """Warnings and notes, collected on the way."""

    notes: list[str]
    warnings: list[str] = field(default_factory=list)

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        warnings.warn(text, DeadheatWarning, stacklevel=5)


def evaluate(
    qrels: Any,
    run: Any,
    measures: str | Measure | Iterable[Any] = DEFAULT_MEASURES,
    *,
    tie_break: str = "input",
    tie_tolerance: float = 0.0,
    queries: str = "judged",
    nan: str = "raise",
) -> Result:
    """Evaluate a run, with every view of its ties.

    Parameters
    ----------
    qrels, run
        Judgements and scored documents: a path, a dict of dicts, a table of polars, pandas
        or pyarrow, or an iterable of tuples.
    measures
        Names such as ``"nDCG@10"`` (those of trec_eval, ir_measures, MTEB and ranx are
        understood) or measures such as ``dh.nDCG @ 10``.
    tie_break
        The rule by which the tie-oblivious value orders tied documents: one of
        `deadheat.TIE_RULES`.
    tie_tolerance
        Scores at most this far apart are tied, and so are chains of such scores. The
        oblivious value still sees the scores as they are.
    queries
        Which queries count: ``"judged"``, every judged query with a relevant document;
        ``"intersection"``, those of them and others that are in the run; ``"all"``, every
        judged query.
    nan
        ``"raise"`` refuses NaN scores, ``"last"`` ranks them below all others, tied.

    Examples
    --------
    >>> import deadheat as dh
    >>> qrels = {"q1": {"d1": 1, "d3": 1}}
    >>> run = {"q1": {"d1": 0.9, "d2": 0.5, "d3": 0.5, "d4": 0.5}}
    >>> result = dh.evaluate(qrels, run, ["Recall@2"])
    >>> result["Recall@2"].expected, result["Recall@2"].worst, result["Recall@2"].best
    (0.6666666666666666, 0.5, 1.0)
    """
    wanted = parse_measures(measures)
    _check_options(tie_break, tie_tolerance, queries, QUERY_POLICIES, nan)
    judgements = read_qrels(qrels)
    candidates = read_run(run, with_ranks=tie_break == "rank")
    remarks = _Remarks([f"oblivious = ties in the order of {_RULE_WORDS[tie_break]}"])
    selected, found = _select(judgements, candidates, queries, remarks)
    lists = _lists(
        judgements,
        _ranked(candidates, nan),
        selected,
        found,
        remarks,
        with_judged=any(measure.needs_judged for measure in wanted),
    )
    groups = tie_groups(
        lists,
        rule=tie_break,
        ids=candidates.documents.ids,
        rank_column=candidates.ranks,
        tolerance=tie_tolerance,
    )
    sources = {"run": candidates.source, "qrels": judgements.source}
    provenance = _provenance(sources, tie_break, tie_tolerance, queries, nan)
    names = [judgements.query_ids[q] for q in selected.tolist()]
    return _result(names, groups, wanted, provenance, remarks)


def evaluate_arrays(
    scores: Any,
    relevance: Any,
    measures: str | Measure | Iterable[Any] = DEFAULT_MEASURES,
    *,
    n_relevant: ArrayLike | None = None,
    query_ids: Sequence[Any] | None = None,
    tie_tolerance: float = 0.0,
    queries: str = "judged",
    nan: str = "raise",
) -> Result:
    """Evaluate scores and labels of the same shape, without ids.

    Parameters
    ----------
    scores
        ``[queries, candidates]``: a NumPy array or torch tensor of any number type, or a list
        of lists, which may differ in length.
    relevance
        Grades of the same shape; 0 is not relevant.
    measures, tie_tolerance, nan
        As for `evaluate`. The oblivious value breaks ties by input order.
    n_relevant
        Relevant documents of each query, candidates or not. Those that are not candidates
        count with grade 1. Unless given, the candidates hold them all.
    query_ids
        Names for the queries; their numbers from 0 unless given.
    queries
        ``"judged"`` leaves out queries without a relevant document, ``"all"`` counts them as 0.

    Examples
    --------
    >>> import deadheat as dh
    >>> result = dh.evaluate_arrays([[0.9, 0.5, 0.5, 0.5]], [[1, 0, 1, 0]], ["Recall@2"])
    >>> round(result["Recall@2"].expected, 4)
    0.6667
    """
    wanted = parse_measures(measures)
    _check_options("input", tie_tolerance, queries, ("judged", "all"), nan)
    remarks = _Remarks([f"oblivious = ties in the order of {_RULE_WORDS['input']}"])
    flat, grades, offsets = flatten(scores, relevance)
    names = query_names(query_ids, len(offsets) - 1)
    _note_negative(grades, remarks)
    flat = _without_nan(flat, offsets, nan, lambda q, i: f"query {names[q]!r}, candidate {i}")
    judged = any(measure.needs_judged for measure in wanted)
    rows = np.arange(len(flat)) if judged else np.flatnonzero(grades > 0)
    query = np.searchsorted(offsets, rows, "right") - 1
    listed = np.bincount(query[grades[rows] > 0], minlength=len(names))
    unlisted = unlisted_relevant(n_relevant, listed)

    counted = (listed + unlisted > 0) | (queries == "all")
    _note_left_out(len(names) - int(counted.sum()), remarks)
    if not counted.any():
        raise InputError("no query has a relevant document: there is nothing to evaluate")
    number = np.cumsum(counted) - 1
    keep = counted[query]
    rows, query = rows[keep], query[keep]
    absent = np.repeat(number, unlisted)
    lists = Lists(
        flat,
        (offsets[:-1][counted], offsets[1:][counted]),
        number[query],
        rows - offsets[query],
        grades[rows].astype(np.float64),
        (absent, np.ones(len(absent))),
    )
    groups = tie_groups(lists, tolerance=tie_tolerance)
    if not len(absent):  # the lists hold all there is, so nothing was cut from them
        groups = replace(groups, end_above=None, end_size=None)
    provenance = _provenance({"run": "arrays"}, "input", tie_tolerance, queries, nan)
    return _result(list(compress(names, counted)), groups, wanted, provenance, remarks)


def evaluate_groups(
    groups: TieGroups,
    measures: str | Measure | Iterable[Any] = DEFAULT_MEASURES,
    *,
    query_ids: Sequence[Any] | None = None,
) -> Result:
    """Evaluate tie groups, such as those of a `deadheat.TieCounter` that a stream passed.

    Parameters
    ----------
    groups
        Of complete lists: that documents may be missing from them is not looked for.
    measures
        As for `evaluate`. A measure of judged documents needs them all announced.
    query_ids
        Names for the queries; their numbers from 0 unless given.

    Examples
    --------
    >>> from deadheat import TieCounter
    >>> counter = TieCounter(1, query=[0], score=[0.5], grade=[1], position=[2])
    >>> counter.update([[0.9, 0.5, 0.5]])
    >>> evaluate_groups(counter.groups(), ["MRR"])["MRR"].best
    0.5
    """
    remarks = _Remarks([f"oblivious = ties in the order of {_RULE_WORDS['input']}"])
    provenance = _provenance({"run": "tie groups"}, "input", 0.0, "all", "raise")
    names = query_names(query_ids, groups.n_queries)
    return _result(names, groups, parse_measures(measures), provenance, remarks)


_RULE_WORDS = {
    "input": "the input",
    "id_desc": "descending document ids",
    "id_asc": "ascending document ids",
    "rank": "the rank column",
    "pytrec_eval": "descending document ids, scores cast to float32",
}


def _provenance(
    sources: dict[str, str], tie_break: str, tie_tolerance: float, queries: str, nan: str
) -> dict[str, Any]:
    from importlib.metadata import version

    return {
        **sources,
        "tie_break": tie_break,
        "tie_tolerance": float(tie_tolerance),
        "queries": queries,
        "nan": nan,
        "deadheat": version("deadheat"),
        "counting": BACKEND,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "polars": pl.__version__,
    }


def _check_options(
    tie_break: str, tie_tolerance: float, queries: str, policies: Iterable[str], nan: str
) -> None:
    check_rule(tie_break)
    if not isinstance(tie_tolerance, (int, float, np.number)) or not tie_tolerance >= 0:
        raise InputError(f"tie_tolerance must be a number, 0 or more, not {tie_tolerance!r}")
    for name, value, choices in (("queries", queries, policies), ("nan", nan, NAN_POLICIES)):
        if value not in tuple(choices):
            raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def _select(judgements: Judgements, run: Run, queries: str, remarks: _Remarks) -> tuple[Ints, Ints]:
    """Judged queries that count, and the index of each in the run, −1 where it is missing."""
    found = np.array([run.query_index.get(q, -1) for q in judgements.query_ids])
    if not (found >= 0).any():
        raise InputError(
            f"{run.source}: no query of the run is judged: the judgements name queries like "
            f"{_examples(judgements.query_ids)}, the run like {_examples(run.query_ids)}"
        )
    if unjudged := len(run.query_ids) - int((found >= 0).sum()):
        remarks.warn(
            f"{_queries(unjudged)} of the run without judgements: left out, nothing can be said "
            "about them"
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
        _note_left_out(int((relevant == 0).sum()), remarks)
    selected = np.flatnonzero(counted)
    if not len(selected):
        raise InputError(
            f"{judgements.source}: no query has a relevant document (a grade above 0): there is "
            "nothing to evaluate"
        )
    if missing := int((found[selected] < 0).sum()):
        example = judgements.query_ids[selected[found[selected] < 0][0]]
        remarks.warn(
            f"{_queries(missing)} judged but missing from the run, for example {example!r}: each "
            "counts as 0 (queries='intersection' leaves such queries out)"
        )
    return selected, found[selected]


def _lists(
    judgements: Judgements,
    run: Run,
    selected: Ints,
    found: Ints,
    remarks: _Remarks,
    *,
    with_judged: bool,
) -> Lists:
    """Candidate lists of the selected queries, and the judged documents in them."""
    lengths = np.diff(judgements.offsets)[selected]
    query = np.repeat(np.arange(len(selected)), lengths)
    first = np.repeat(judgements.offsets[selected] - np.cumsum(lengths) + lengths, lengths)
    judged = first + np.arange(len(query))
    grade = judgements.grades[judged]
    _note_negative(grade, remarks)
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


def _ranked(run: Run, nan: str) -> Run:
    """The run with scores that can be ranked."""

    def where(q: int, place: int) -> str:
        doc = run.documents.ids(run.offsets[q : q + 1] + place)[0]
        return f"{run.source}: query {run.query_ids[q]!r}, document {doc!r}"

    return replace(run, scores=_without_nan(run.scores, run.offsets, nan, where))


def _without_nan(
    scores: NDArray[Any], offsets: Ints, nan: str, where: Callable[[int, int], str]
) -> NDArray[Any]:
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


def _result(
    names: list[str],
    groups: TieGroups,
    measures: list[Measure],
    provenance: dict[str, Any],
    remarks: _Remarks,
) -> Result:
    views = {
        measure: Views(
            expected=measure.expected(groups),
            best=measure.at(groups, groups.best_rank),
            worst=measure.at(groups, groups.worst_rank),
            oblivious=measure.at(groups, groups.rank),
            variance=measure.variance(groups),
        )
        for measure in measures
    }
    _report_cuts(groups, measures, remarks)
    return Result(names, views, provenance, remarks.warnings, remarks.notes)


def _report_cuts(groups: TieGroups, measures: list[Measure], remarks: _Remarks) -> None:
    """Report lists that end inside a tie group which the cutoff of a measure reaches.

    That is a warning where relevant documents are missing from the list: it is not the whole
    collection, so documents tied with its last ones may be missing, too. Otherwise the list
    may be all there is.
    """
    if groups.end_above is None or groups.end_size is None:
        return
    partial = groups.sum_queries(groups.relevant(None)) < groups.n_relevant(None)
    for lists, report, text in (
        (
            partial,
            remarks.warn,
            "were cut inside a tie group: documents with the same score may be missing, and no "
            "evaluator can know them; retrieve more documents, or cut at a score",
        ),
        (~partial, remarks.notes.append, "end inside a tie group; they are taken to be complete"),
    ):
        reached = {
            measure: (groups.end_size > 1) & (groups.end_above < measure.depth(groups)) & lists
            for measure in measures
        }
        each = [f"{m} ({_queries(int(q.sum()))})" for m, q in reached.items() if q.any()]
        if each:
            report(f"{', '.join(each)}: these lists {text}")


def _like_grades(numbers: NDArray[Any]) -> bool:
    """Whether the numbers are small and whole, as grades are."""
    return bool(((np.abs(numbers) <= 10) & (np.floor(numbers) == numbers)).all())


def _note_left_out(n: int, remarks: _Remarks) -> None:
    if n:
        remarks.notes.append(f"{_queries(n)} without a relevant document: left out")


def _note_negative(grades: NDArray[Any], remarks: _Remarks) -> None:
    if n := int((grades < 0).sum()):
        remarks.notes.append(
            f"{n:,} {'judgement' if n == 1 else 'judgements'} below 0: counted as not relevant"
        )


def _queries(n: int) -> str:
    return f"{n:,} {'query' if n == 1 else 'queries'}"


def _examples(ids: list[str]) -> str:
    return " and ".join(repr(id_) for id_ in ids[:2])
