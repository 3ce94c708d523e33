"""ranx: its `evaluate` with any view of ties, and conversion to its objects.

``from deadheat.integrations import ranx`` replaces ``import ranx``; names that are not defined here
are those of the original. `deadheat.evaluate` accepts a `Run` and a `Qrels` of ranx.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from deadheat._internal.remarks import emit_warnings
from deadheat.errors import InputError
from deadheat.evaluation import VIEWS, Result, check_views
from deadheat.formats import QrelsLike, RunLike, read_qrels, read_run
from deadheat.integrations.base import (
    ByQuery,
    average,
    evaluate_lists,
    load_attribute,
    load_host,
    read_lists,
    view_name,
    warnings_without,
)
from deadheat.measures import Measure, parse_measure

_LEVEL = re.compile(r"(.+)-l(\d{1,9})")


def __getattr__(name: str) -> Any:
    return load_attribute("ranx", name)


def evaluate(
    qrels: object,
    run: Any,
    metrics: str | Iterable[str],
    return_mean: bool = True,
    return_std: bool = False,
    threads: int = 0,
    save_results_in_run: bool = True,
    make_comparable: bool = False,
    *,
    view: str = "expected",
) -> Any:
    """Evaluate like ``ranx.evaluate``, with a view of ties.

    Names, definitions and the type of the result are the original's. The mean is over every query
    of the judgements; a query without a relevant document counts as 0. A NaN score is an error.

    Parameters
    ----------
    qrels, run
        A `Qrels` and a `Run` of ranx, or dicts of dicts.
    metrics
        Names of ranx: ``"ndcg@10"``, ``"map@100-l2"``, ``"rbp.95"``.
    return_mean, return_std
        Whether to return means over queries, and with them the standard deviation over queries;
        otherwise an array with a value per query, in the order of their ids.
    threads
        Not used.
    save_results_in_run
        Whether to store the values in `run`, as in ranx: ``run.scores``, ``run.mean_scores`` and
        ``run.std_scores``. Views other than the expected value have names such as
        ``"ndcg@10_range"``.
    make_comparable
        Whether to add empty lists to `run` for queries that it misses, and to remove queries that
        are not judged, as in the original.
    view
        View to return: ``"expected"``, ``"best"``, ``"worst"``, ``"range"``, ``"std"``,
        ``"bias"``, or ``"oblivious"``, which for a `Run` is the value of the original.

    Examples
    --------
    >>> evaluate({"q": {"d1": 1}}, {"q": {"d1": 0.5, "d2": 0.5}}, "mrr")
    0.75
    """
    check_views([view])
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    measures = {name: _parse_metric(name) for name in names}
    host = load_host("ranx")
    is_run = isinstance(run, host.Run)
    if is_run:
        if make_comparable and isinstance(qrels, host.Qrels):
            run = run.make_comparable(qrels)
        if not run.sorted:
            run.sort()
    judged, listed = _read(qrels, "qrels"), _read(run, "run")
    if not judged or judged.keys() != listed.keys():
        raise InputError(
            "qrels and run must have the same queries, at least one; make_comparable=True counts "
            "queries that the run misses as 0 and drops queries that are not judged"
        )
    values: dict[str, dict[str, float]] = {}
    for level in {level for _, level in measures.values()}:
        # ranx treats a grade between 0 and the level as 0, for every measure.
        grades = {
            query: {doc: 0 if 0 < grade < level else grade for doc, grade in docs.items()}
            for query, docs in sorted(judged.items())
        }
        own = {name: measure for name, (measure, lowest) in measures.items() if lowest == level}
        found, result = evaluate_lists(grades, listed, own, view)
        values |= found
        if result is not None:  # a query of an empty list is 0
            emit_warnings(warnings_without(result, "missing"))
    returned: dict[str, object] = {}
    for name in measures:
        column, kept = np.array(list(values[name].values())), view_name(name, view)
        means = {"mean": average(column, view), "std": np.std(column)}
        if is_run and save_results_in_run:
            run.scores[kept].update(values[name])
            run.mean_scores[kept] = means["mean"]
            if return_mean and return_std:
                run.std_scores[kept] = means["std"]
        mean = means if return_std else means["mean"]
        returned[name] = mean if return_mean else column
    return returned if len(names) > 1 else returned[names[0]]


def save(run: Any, result: Result, views: Sequence[str] = VIEWS) -> None:
    """Store a result of deadheat in the ``scores`` and ``mean_scores`` of a `Run` of ranx.

    The names are those of `deadheat.Result.flat`.
    """
    check_views(views)
    run.mean_scores.update(result.flat(views=views))
    for measure, of_measure in result.views.items():
        for view in views:
            values = getattr(of_measure, view)
            if values is not None:
                kept = run.scores[view_name(repr(measure), view)]
                kept.update(zip(result.query_names, values.tolist(), strict=True))


def to_run(run: RunLike, name: str | None = None) -> Any:
    """Make a `Run` of ranx from any run that `deadheat.evaluate` accepts."""
    return load_host("ranx").Run.from_dict(read_run(run).to_dict(), name)


def to_qrels(qrels: QrelsLike, name: str | None = None) -> Any:
    """Make `Qrels` of ranx from any judgements that `deadheat.evaluate` accepts."""
    read = read_qrels(qrels)
    if (read.grades != np.floor(read.grades)).any():
        raise InputError(f"{read.source}: ranx needs whole grades; scale the fractions first")
    made = load_host("ranx").Qrels.from_dict(
        {q: {d: int(grade) for d, grade in docs.items()} for q, docs in read.to_dict().items()}
    )
    made.name = name
    return made


def _parse_metric(name: object) -> tuple[Measure, int]:
    """Parse a name of ranx: the measure, and the lowest relevant grade."""
    if not isinstance(name, str):
        raise InputError(f"metrics must be names of ranx such as 'ndcg@10', not {name!r:.60}")
    level = _LEVEL.fullmatch(name)
    plain = level[1] if level else name
    return parse_measure(plain.replace("rbp@", "rbp.")), int(level[2]) if level else 1


def _read(value: Any, name: str) -> ByQuery:
    """Read an object of ranx, or a dict of dicts."""
    lists = value.to_dict() if hasattr(value, "to_dict") else value
    return read_lists(lists, name, "an object of ranx or ")
