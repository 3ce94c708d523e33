"""Systems that can be compared: under distinct names, with the same measures and queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import numpy as np

from deadheat._internal.remarks import Remark, warning
from deadheat.errors import InputError
from deadheat.evaluation import Result, Views, name_results, run_name, same_judgements
from deadheat.measures import Measure, parse_measures

T = TypeVar("T")


def name_systems(
    given: T | Mapping[str, T] | Iterable[T], result_of: Callable[[T], Result]
) -> dict[str, Result]:
    """Return the results of systems under distinct names.

    Parameters
    ----------
    given
        ``{name: system}``, or systems that are named by what was evaluated.
    result_of
        Turns a system into its result.
    """
    if isinstance(given, (str, Path, Result)):
        given = [given]
    systems = given.values() if isinstance(given, Mapping) else given
    results = list(map(result_of, systems))  # type: ignore[arg-type]
    names = list(map(str, given)) if isinstance(given, Mapping) else name_results(results)
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(
            f"{len(twice)} systems are called {twice[0]!r}: give each once, or name them with a "
            "dict {name: …}"
        )
    return dict(zip(names, results, strict=True))


def check_result(result: object) -> Result:
    """Refuse what is not a result."""
    if not isinstance(result, Result):
        raise InputError(
            f"results of evaluate are compared, not a {type(result).__name__}; to compare runs, "
            "give judgements and runs: compare(qrels, runs, measures)"
        )
    return result


def list_pairs(systems: dict[str, Result], baseline: str | None) -> list[tuple[str, str]]:
    """Return the names of A and B: all pairs, or every other system as A and the baseline as B."""
    if baseline is None:
        return list(combinations(systems, 2))
    paths = {name: result.provenance.run for name, result in systems.items()}
    meant = [
        name for name, path in paths.items() if baseline in (path, Path(path).name, run_name(path))
    ]
    if baseline in systems:
        meant = [baseline]
    if len(meant) != 1:
        raise InputError(
            f"the baseline {baseline!r} is not among the systems: {', '.join(map(repr, systems))}"
        )
    return [(name, meant[0]) for name in systems if name != meant[0]]


def check_origins(systems: dict[str, Result]) -> list[Remark]:
    """Refuse systems with different judgements; warn where their ties mean different things."""
    name, first = next(iter(systems.items()))
    for other, result in systems.items():
        if not same_judgements(first, result):
            here, there = first.provenance.judgements, result.provenance.judgements
            raise InputError(
                f"{name} was evaluated with the judgements {here}, {other} with {there}: systems "
                "can be compared on the same judgements only"
            )
    remarks = []
    for option in ("tie_break", "tie_tolerance", "score_dtype"):
        values = {n: getattr(result.provenance.settings, option) for n, result in systems.items()}
        others = [other for other, value in values.items() if value != values[name]]
        if others:
            remarks.append(
                warning(
                    "{name} and {other}{more} differ in {option}, {mine} and {theirs}: evaluate "
                    "them alike, or their ties do not compare",
                    name=name,
                    other=others[0],
                    more=f" (and {len(others) - 1} more)" if len(others) > 1 else "",
                    option=option,
                    mine=repr(values[name]),
                    theirs=repr(values[others[0]]),
                )
            )
    return remarks


def align_systems(
    systems: dict[str, Result], measures: str | Measure | Iterable[object] | None, queries: str
) -> tuple[dict[str, Result], list[Remark]]:
    """Restrict results to the measures and queries that all of them have, in one order.

    Parameters
    ----------
    measures
        Those to compare in; all that the systems share unless given.
    queries
        ``"intersection"`` leaves out queries that some system lacks; otherwise they are refused.
    """
    remarks = []
    known = dict.fromkeys(m for result in systems.values() for m in result.views)
    asked = list(known) if measures is None else parse_measures(measures)
    common = [m for m in asked if all(m in result.views for result in systems.values())]
    if not common:
        raise InputError("the systems have no measure in common: evaluate them in the same ones")
    if len(common) < len(asked):
        dropped = ", ".join(repr(m) for m in asked if m not in common)
        pattern = "not every system was evaluated in {dropped}: left out"
        remarks.append(warning(pattern, dropped=dropped))

    ids = {name: set(result.query_names) for name, result in systems.items()}
    shared, every = set.intersection(*ids.values()), set.union(*ids.values())
    if shared != every:
        name = next(name for name in ids if ids[name] != every)
        if queries != "intersection" or not shared:
            raise InputError(
                f"{name} was not evaluated on query {min(every - ids[name])!r}: systems can be "
                f"compared on the same queries only; the {len(shared):,} queries that all share "
                "are compared with queries='intersection' (--queries intersection)"
            )
        pattern = "compared on the {shared} of {every:query} that all share"
        remarks.append(warning(pattern, shared=len(shared), every=len(every)))
    chosen = [query for query in next(iter(systems.values())).query_names if query in shared]
    restricted = {name: _restrict(result, common, chosen) for name, result in systems.items()}
    return restricted, remarks


def _restrict(result: Result, measures: list[Measure], query_ids: list[str]) -> Result:
    """Return a result in some of its measures and queries."""
    place = {query: i for i, query in enumerate(result.query_names)}
    rows = np.array([place[query] for query in query_ids])
    views = {}
    for measure in measures:
        whole = result.views[measure]
        expected, best, worst, oblivious = (
            values[rows] for values in (whole.expected, whole.best, whole.worst, whole.oblivious)
        )
        variance = None if whole.variance is None else whole.variance[rows]
        views[measure] = Views(expected, best, worst, oblivious, variance)
    groups = None if result.groups is None else result.groups.take(rows)
    return replace(result, query_ids=query_ids, views=views, groups=groups)
