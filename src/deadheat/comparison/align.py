"""Prepare systems for a comparison: distinct names, the same measures, the same queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from deadheat._internal.remarks import Remark, counted, some, warning
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
        ``{name: system}``, or systems, which get the names of their runs.
    result_of
        Function that turns a system into its result.
    """
    if isinstance(given, (str, Path, Result)) or not isinstance(given, Iterable):
        given = [given]
    systems = given.values() if isinstance(given, Mapping) else given
    results = list(map(result_of, systems))
    names = list(map(str, given)) if isinstance(given, Mapping) else name_results(results)
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(
            f"{len(twice)} systems are called {twice[0]!r}; give each system once, or name the "
            "systems with a dict {name: …}"
        )
    return dict(zip(names, results, strict=True))


def check_result(result: object) -> Result:
    """Raise InputError if the object is not a `Result`."""
    if not isinstance(result, Result):
        raise InputError(
            f"results of evaluate are needed, not a {type(result).__name__}; to compare runs, "
            "give judgements and runs: compare(qrels, runs, measures)"
        )
    return result


def list_pairs(systems: dict[str, Result], baseline: str | None) -> list[tuple[int, int]]:
    """Return index pairs (A, B): all pairs, or each other system (A) and the baseline (B)."""
    if baseline is None:
        return list(combinations(range(len(systems)), 2))
    meant = [i for i, name in enumerate(systems) if name == baseline]
    for i, result in enumerate(systems.values()):
        path = result.provenance.run
        if baseline not in systems and baseline in (path, Path(path).name, run_name(path)):
            meant.append(i)
    if len(meant) != 1:
        raise InputError(
            f"the baseline {baseline!r} is not among the systems: {', '.join(map(repr, systems))}"
        )
    return [(i, meant[0]) for i in range(len(systems)) if i != meant[0]]


def check_origins(systems: dict[str, Result]) -> list[Remark]:
    """Refuse systems with different judgements; warn if their tie settings differ."""
    name, first = next(iter(systems.items()))
    for other, result in systems.items():
        if not same_judgements(first, result):
            here, there = first.provenance.judgements, result.provenance.judgements
            raise InputError(
                f"{name} was evaluated with the judgements {here}, {other} with {there}; evaluate "
                "both with the same judgements"
            )
    remarks = []
    for option in ("tie_break", "tie_tolerance", "score_dtype"):
        values = {n: getattr(result.provenance.settings, option) for n, result in systems.items()}
        if others := [other for other, value in values.items() if value != values[name]]:
            text = (
                f"{name} and {some(others, 1)} differ in {option}, {values[name]!r} and "
                f"{values[others[0]]!r}: their ties are not comparable; use the same {option}"
            )
            remarks.append(warning(text))
    return remarks


def align_systems(
    systems: dict[str, Result], measures: str | Measure | Iterable[object] | None, queries: str
) -> tuple[dict[str, Result], list[Remark]]:
    """Restrict results to the measures and queries that all of them have, in one order.

    Parameters
    ----------
    measures
        Measures to compare. Default: all measures that the systems share.
    queries
        ``"intersection"`` drops queries that some system lacks. Otherwise such queries are an
        error.
    """
    remarks = []
    known = dict.fromkeys(m for result in systems.values() for m in result.views)
    asked = list(known) if measures is None else parse_measures(measures)
    common = [m for m in asked if all(m in result.views for result in systems.values())]
    if not common:
        raise InputError("the systems have no measure in common; evaluate the same ones for all")
    if len(common) < len(asked):
        dropped = ", ".join(repr(m) for m in asked if m not in common)
        remarks.append(warning(f"not every system was evaluated in {dropped}: left out"))

    ids = {name: set(result.query_names) for name, result in systems.items()}
    shared, every = set.intersection(*ids.values()), set.union(*ids.values())
    if shared != every:
        name = next(name for name in ids if ids[name] != every)
        if queries != "intersection" or not shared:
            raise InputError(
                f"{name} was not evaluated on query {min(every - ids[name])!r}, but systems are "
                "compared on the same queries; use queries='intersection' (--queries "
                f"intersection) to compare them on the {len(shared):,} queries that all share"
            )
        every_query = counted(len(every), "query")
        remarks.append(warning(f"compared on the {len(shared):,} of {every_query} that all share"))
    chosen = [query for query in next(iter(systems.values())).query_names if query in shared]
    restricted = {name: _restrict(result, common, chosen) for name, result in systems.items()}
    return restricted, remarks


def _restrict(result: Result, measures: list[Measure], query_ids: list[str]) -> Result:
    """Return a result with only these measures and queries."""
    place = {query: i for i, query in enumerate(result.query_names)}
    rows = np.array([place[query] for query in query_ids])
    views = {}
    for measure in measures:
        whole = vars(result.views[measure])
        kept: dict[str, Any] = {k: x if x is None else x[rows] for k, x in whole.items()}
        views[measure] = Views(**kept)
    groups = None if result.groups is None else result.groups.take(rows)
    return replace(result, query_ids=query_ids, views=views, groups=groups)
