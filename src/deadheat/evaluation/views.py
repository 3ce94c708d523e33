"""From tie groups to a result: every view of every measure, and what to know of them."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.packages import own_version
from deadheat._internal.remarks import Remark, note, warning
from deadheat.errors import InputError
from deadheat.evaluation.result import Result, Views
from deadheat.measures import Measure
from deadheat.provenance import Provenance
from deadheat.tables import DIGITS
from deadheat.ties import BACKEND, Ints, TieGroups

SHOWN = 0.5 * 10**-DIGITS
"""What is below this cannot be seen in a table."""
_NOISE = 1e-9
"""Values as close as this, or by this share, may be the same, added up in another order."""


def views_of(groups: TieGroups, measures: Iterable[Measure]) -> dict[Measure, Views]:
    """Compute every view of every measure."""
    computed = {}
    for measure in measures:
        expected, best, worst, oblivious, variance = measure.views(groups)
        known = variance if measure.has_variance else None
        computed[measure] = Views(expected, best, worst, oblivious, known)
    return computed


def result_of(
    query_ids: Sequence[str | int],
    groups: TieGroups,
    measures: Sequence[Measure],
    provenance: Provenance,
    remarks: list[Remark],
) -> Result:
    """Evaluate tie groups, and add what a reader should know of them to the remarks."""
    if groups.known is not None:
        _check_depth(groups, measures, groups.known)
    views = views_of(groups, measures)
    found = remarks + out_of_reach(groups, measures)
    if provenance.settings.tie_break == "pytrec_eval":  # only this rule sees coarser scores
        found += _outside(views)
    if groups.end_above is not None and groups.end_size is not None:
        cut = groups.end_size > 1
        if cut.any():
            found += _cuts(groups, measures, cut, groups.end_above)
    groups.derived.clear()  # as large as the groups
    return Result(query_ids, views, provenance, tuple(found), groups)


def out_of_reach(groups: TieGroups, measures: Iterable[Measure]) -> list[Remark]:
    """Warn of measures to which no document is relevant because no grade is that high."""
    named = [
        repr(m) for m in measures if (rel := getattr(m, "rel", None)) and rel > groups.max_grade
    ]
    if not named or not groups.max_grade:  # another remark says that there is no grade
        return []
    pattern = (
        "{measures:each} is 0 throughout: the highest grade of the judgements is {highest}, so "
        "none reaches rel"
    )
    return [warning(pattern, measures="; ".join(named), highest=f"{groups.max_grade:g}")]


def _outside(views: dict[Measure, Views]) -> list[Remark]:
    """Warn of oblivious values that no order of the tied documents gives."""
    outside = [
        np.maximum(v.worst - v.oblivious, v.oblivious - v.best) > _NOISE * np.maximum(v.best, 1)
        for v in views.values()
    ]
    queries = int(np.any(outside, axis=0).sum())
    pattern = (
        "{queries:query} with an oblivious value outside [worst, best]: the rule sees scores cast "
        "to float32, and ties that the scores as given do not have; with score_dtype='float32' "
        "(--score-dtype float32) all views speak of the ties that it sees"
    )
    return [warning(pattern, queries=queries)] if queries else []


def _check_depth(groups: TieGroups, measures: Sequence[Measure], known: int) -> None:
    """Refuse a measure that looks further than the `known` places of the lists."""
    for measure in measures:
        depth = np.minimum(measure.depth(groups), groups.retrieved)
        if (deepest := int(depth.max(initial=0))) > known:
            raise InputError(
                f"{measure} looks at {deepest:,} places of a list, and only the first {known:,} "
                "are known: give the measure a cutoff, or keep more places"
            )


_CUT = (
    "{lists:list} cut inside a tie group within reach of {measures:each}: documents with the same "
    "score may be missing, and no evaluator can know them; retrieve more documents, or cut at a "
    "score"
)
_COMPLETE = (
    "{lists:list} with an end inside a tie group within reach of {measures:each}: taken to be "
    "complete"
)


def _cuts(
    groups: TieGroups, measures: Sequence[Measure], cut: NDArray[np.bool_], above: Ints
) -> list[Remark]:
    """Report lists that end inside a tie group which can change the digits shown of a measure.

    That is a warning where relevant documents are missing from the list: it is not the whole
    collection, so documents tied with its last ones may be missing, too. Otherwise the list
    may be all there is. `above` is how many documents stand above the last group of each list.
    """
    partial = groups.lacks_relevant
    reached = {repr(m): cut & (m.at_stake(groups, above) >= SHOWN) for m in measures}
    remarks = []
    for lists, remark, text in ((partial, warning, _CUT), (~partial, note, _COMPLETE)):
        felt = {name: own for name, queries in reached.items() if (own := queries & lists).any()}
        if felt:
            queries = int(np.any(list(felt.values()), axis=0).sum())
            remarks.append(remark(text, lists=queries, measures="; ".join(felt)))
    return remarks


def need_judged(measures: Iterable[Measure]) -> bool:
    """Whether a measure asks for judged documents that are not relevant."""
    return any(measure.needs_judged for measure in measures)


@cache
def versions() -> dict[str, str]:
    """Versions of deadheat and of what it computes with."""
    return {
        "deadheat": own_version(),
        "counting": BACKEND,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "polars": version("polars"),
    }
