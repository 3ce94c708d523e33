"""ranx: its `evaluate` with any view of ties, and its objects from whatever deadheat reads.

``from deadheat.integrations import ranx`` stands in for ``import ranx``: what is not defined here
is the original's. `deadheat.evaluate` takes a `Run` and a `Qrels` of ranx as they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.evaluation import VIEWS, Result, check_views, evaluate_run
from deadheat.formats import QrelsLike, RunLike, read_qrels, read_run
from deadheat.formats.ids import text_id
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measure
from deadheat.packages import require_host
from deadheat.remarks import Remark, emit_warnings, texts
from deadheat.settings import EvalSettings

_LEVEL = re.compile(r"(.+)-l(\d{1,9})")
_PERSISTENCE = re.compile(r"rbp[.@](\d+)")


def _original() -> Any:
    return require_host("ranx", "ranx", "`deadheat.integrations.ranx`")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_original(), name)


def evaluate(
    qrels: Any,
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
    """Evaluate as the function of that name in ranx does, with a view of ties.

    Names, definitions and what is returned are the original's: every query of the judgements
    counts, one without a relevant document as 0. A score that is NaN is refused.

    Parameters
    ----------
    qrels, run
        A `Qrels` and a `Run` of ranx, or dicts of dicts.
    metrics
        Names of ranx: ``"ndcg@10"``, ``"map@100-l2"``, ``"rbp.95"``.
    return_mean, return_std
        Whether to give means over queries, and with them the standard deviation over queries;
        else an array with a value for each query, in the order of their ids.
    threads
        Not used: the counting needs none.
    save_results_in_run
        Whether to keep the values in `run`, where ranx keeps them: ``run.scores``,
        ``run.mean_scores`` and ``run.std_scores``, views other than the expectation under names
        such as ``"ndcg@10_range"``.
    make_comparable
        Whether to add empty lists to `run` for queries that it misses, and to take out queries
        that are not judged, as the original does.
    view
        What to give: ``"expected"``, ``"best"``, ``"worst"``, ``"range"``, ``"std"``, ``"bias"``,
        or ``"oblivious"``, which of a `Run` is what the original gives.

    Examples
    --------
    >>> evaluate({"q": {"d1": 1}}, {"q": {"d1": 0.5, "d2": 0.5}}, "mrr")
    0.75
    """
    check_views([view])
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    measures = {name: _measure(name) for name in names}
    host = _original()
    if isinstance(run, host.Run):
        if make_comparable and isinstance(qrels, host.Qrels):
            run = run.make_comparable(qrels)
        if not run.sorted:
            run.sort()
    judged, listed = _lists(qrels, "qrels"), _lists(run, "run")
    if judged.keys() != listed.keys():
        raise InputError(
            "qrels and run are not of the same queries: pass make_comparable=True to count those "
            "that the run misses as 0 and to leave out those that are not judged"
        )
    order = sorted(judged)
    values, remarks = _values(judged, listed, measures, order, view)
    emit_warnings(texts(remarks, "warning"))
    if save_results_in_run and isinstance(run, host.Run):
        for name in names:
            kept = name if view == "expected" else f"{name}_{view}"
            _save(run, kept, order, values[name], view)
            if return_mean and return_std:
                run.std_scores[kept] = np.std(values[name])
    returned: dict[str, Any] = values
    if return_mean:
        returned = {name: _mean(values[name], view) for name in names}
    if return_mean and return_std:
        returned = {n: {"mean": returned[n], "std": np.std(values[n])} for n in names}
    return returned[names[0]] if len(names) == 1 else returned


def save(run: Any, result: Result, views: Sequence[str] = VIEWS) -> None:
    """Keep a result of deadheat in a `Run` of ranx: in its ``scores`` and ``mean_scores``.

    The names are those of `deadheat.Result.flat`.
    """
    check_views(views)
    for measure, of_measure in result.views.items():
        for view in views:
            values = getattr(of_measure, view)
            name = repr(measure) if view == "expected" else f"{measure!r}_{view}"
            if values is not None:
                _save(run, name, result.query_names, values, view)


def to_run(run: RunLike, name: str | None = None) -> Any:
    """Make a `Run` of ranx of whatever `deadheat.evaluate` takes for one."""
    read = read_run(run)
    return _original().Run.from_dict(read.to_dict(), name)


def to_qrels(qrels: QrelsLike, name: str | None = None) -> Any:
    """Make `Qrels` of ranx of whatever `deadheat.evaluate` takes for judgements."""
    read = read_qrels(qrels)
    if (read.grades != np.floor(read.grades)).any():
        raise InputError(
            f"{read.source}: ranx takes whole grades only, and cuts fractions off: scale them first"
        )
    made = _original().Qrels.from_dict(
        {q: {d: int(grade) for d, grade in docs.items()} for q, docs in read.to_dict().items()}
    )
    made.name = name
    return made


def _measure(name: Any) -> tuple[Measure, int]:
    """Read a name of ranx: the measure, and the lowest relevant grade."""
    if not isinstance(name, str):
        raise InputError(f"metrics must be names of ranx such as 'ndcg@10', not {name!r:.60}")
    level = _LEVEL.fullmatch(name)
    plain = level[1] if level else name
    if persistence := _PERSISTENCE.fullmatch(plain):
        plain = f"rbp.{persistence[1]}"
    return parse_measure(plain), int(level[2]) if level else 1


def _lists(value: Any, what: str) -> dict[str, Mapping[Any, Any]]:
    """Lists by query, whose ids are text."""
    lists = value if isinstance(value, Mapping) else getattr(value, "to_dict", dict)()
    if not lists or not all(isinstance(docs, Mapping) for docs in lists.values()):
        raise InputError(
            f"{what} must be an object of ranx or {{query: {{document: number}}}}, not "
            f"{value!r:.60}"
        )
    named = {text_id(query, f"{what}, a query"): docs for query, docs in lists.items()}
    if len(named) < len(lists):
        raise InputError(f"{what}: two queries have the same id once it is written as text")
    return named


def _values(
    judged: Mapping[str, Mapping[Any, Any]],
    listed: Mapping[str, Mapping[Any, Any]],
    measures: Mapping[str, tuple[Measure, int]],
    order: Sequence[str],
    view: str,
) -> tuple[dict[str, NDArray[np.float64]], list[Remark]]:
    """Give the values of each measure in the order of queries, and what to know of them.

    Where nothing is judged or retrieved, the value is 0.
    """
    values = {name: np.zeros(len(order)) for name in measures}
    remarks: list[Remark] = []
    if not any(map(len, judged.values())) or not any(map(len, listed.values())):
        return values, remarks
    run, place = read_run(listed, copy=False), {query: i for i, query in enumerate(order)}
    for level in {level for _, level in measures.values()}:
        # To every measure, a document of a grade below the level was judged not relevant.
        grades = {q: {d: _from(level, g) for d, g in docs.items()} for q, docs in judged.items()}
        named = {name: measure for name, (measure, own) in measures.items() if own == level}
        distinct = list(dict.fromkeys(named.values()))
        result = evaluate_run(read_qrels(grades), run, distinct, EvalSettings(queries="all"))
        # Here a query of an empty list is 0 by definition.
        remarks += [remark for remark in result.remarks if "missing" not in remark.values]
        at = np.array([place[query] for query in result.query_names])
        for name, measure in named.items():
            of_queries = getattr(result.views[measure], view)
            if of_queries is None:
                raise InputError(f"the {view} of {name} is not computed: choose another view")
            values[name][at] = of_queries
    return values, remarks


def _from(level: int, grade: Any) -> Any:
    """Give a grade, 0 where it does not reach the level and is not below 0 anyway."""
    return 0 if 0 < grade < level else grade


def _save(
    run: Any, name: str, query_ids: Sequence[str], values: NDArray[np.float64], view: str
) -> None:
    run.mean_scores[name] = _mean(values, view)
    for query, value in zip(query_ids, values.tolist(), strict=True):
        run.scores[name][query] = value


def _mean(values: NDArray[np.float64], view: str) -> float:
    """Average over queries; of tie stds, the tie std of the mean."""
    if view == "std":
        return math.sqrt(float((values**2).sum())) / len(values)
    return float(values.mean())
