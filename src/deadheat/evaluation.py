"""From judgements and scores to a result."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import compress
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import InputError
from deadheat.formats import read_qrels, read_run
from deadheat.formats.arrays import flatten, query_names, unlisted_relevant
from deadheat.matching import judged_lists, ranked, without_nan
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.remarks import Remarks, queries_in_words
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
    candidates = read_run(run, with_ranks=tie_break == "rank", copy=False)
    remarks = Remarks.under(tie_break)
    names, lists = judged_lists(judgements, ranked(candidates, nan), wanted, queries, remarks)
    groups = tie_groups(
        lists,
        rule=tie_break,
        ids=candidates.documents.ids,
        rank_column=candidates.ranks,
        tolerance=tie_tolerance,
    )
    sources = {"run": candidates.source, "qrels": judgements.source}
    provenance = _provenance(sources, tie_break, tie_tolerance, queries, nan)
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
    remarks = Remarks.under("input")
    flat, grades, offsets = flatten(scores, relevance)
    names = query_names(query_ids, len(offsets) - 1)
    remarks.note_negative(grades)
    flat = without_nan(flat, offsets, nan, lambda q, i: f"query {names[q]!r}, candidate {i}")
    judged = any(measure.needs_judged for measure in wanted)
    rows = np.arange(len(flat)) if judged else np.flatnonzero(grades > 0)
    query = np.searchsorted(offsets, rows, "right") - 1
    listed = np.bincount(query[grades[rows] > 0], minlength=len(names))
    unlisted = unlisted_relevant(n_relevant, listed)

    counted = (listed + unlisted > 0) | (queries == "all")
    remarks.note_left_out(len(names) - int(counted.sum()))
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
    remarks = Remarks.under("input")
    provenance = _provenance({"run": "tie groups"}, "input", 0.0, "all", "raise")
    names = query_names(query_ids, groups.n_queries)
    return _result(names, groups, parse_measures(measures), provenance, remarks)


def _provenance(
    sources: dict[str, str], tie_break: str, tie_tolerance: float, queries: str, nan: str
) -> dict[str, Any]:
    return {
        **sources,
        "tie_break": tie_break,
        "tie_tolerance": float(tie_tolerance),
        "queries": queries,
        "nan": nan,
        **_versions(),
    }


@cache
def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {
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


def _result(
    names: list[str],
    groups: TieGroups,
    measures: list[Measure],
    provenance: dict[str, Any],
    remarks: Remarks,
) -> Result:
    views = views_of(groups, measures)
    _report_cuts(groups, measures, remarks)
    return Result(names, views, provenance, remarks.warnings, remarks.notes)


def _report_cuts(groups: TieGroups, measures: list[Measure], remarks: Remarks) -> None:
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
        each = [f"{m} ({queries_in_words(int(q.sum()))})" for m, q in reached.items() if q.any()]
        if each:
            report(f"{', '.join(each)}: these lists {text}")


def views_of(groups: TieGroups, measures: list[Measure]) -> dict[Measure, Views]:
    """Every view of every measure."""
    return {
        measure: Views(
            expected=measure.expected(groups),
            best=measure.at(groups, groups.best_rank),
            worst=measure.at(groups, groups.worst_rank),
            oblivious=measure.at(groups, groups.rank),
            variance=measure.variance(groups),
        )
        for measure in measures
    }
