"""Shared parts of integrations: loading a host, per-query values, averages, names of views."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.packages import require_host
from deadheat._internal.remarks import texts
from deadheat.errors import InputError
from deadheat.evaluation import Result, Summary, Views, evaluate_run
from deadheat.formats import read_qrels, read_run, text_id
from deadheat.measures import Measure
from deadheat.settings import EvalSettings

Measures: TypeAlias = str | Measure | Iterable[object]
"""Measures as `deadheat.evaluate` takes them."""
Lists: TypeAlias = Mapping[Hashable, Mapping[Hashable, object]]
"""Grades or scores, as given: ``{query: {document: number}}``."""
ByQuery: TypeAlias = Mapping[str, Mapping[Any, Any]]
"""The same with query ids as text."""

ALL_QUERIES = EvalSettings(queries="all")
"""Settings of most hosts: a query without a relevant document counts as 0."""
SPREADS = ("std", "range", "bias")
"""Views that are 0 for a value that does not depend on the order of documents."""
TIE_VIEWS = {"best": "best", "worst": "worst", "range": "range", "tie_std": "std", "bias": "bias"}
"""Suffixes of the keys added to a host's own value, and the view of each."""


def load_host(module: str) -> Any:
    """Import a module of a host, in a version that the extra of that name supports."""
    host = module.partition(".")[0]
    return require_host(module, host.replace("_", "-"), f"`deadheat.integrations.{host}`")


def load_attribute(host: str, name: str) -> Any:
    """Return an attribute of a host, for a module that replaces it."""
    if name.startswith("__"):
        raise AttributeError(f"module 'deadheat.integrations.{host}' has no attribute {name!r}")
    return getattr(load_host(host), name)


def read_lists(lists: object, name: str, kinds: str = "") -> ByQuery:
    """Return lists by query, with query ids as text; refuse objects other than dicts of dicts.

    `name` is the name of the lists in errors; `kinds` are other types that the caller accepts.
    """
    if not isinstance(lists, Mapping) or not all(isinstance(d, Mapping) for d in lists.values()):
        expected = f"{kinds}{{query: {{document: number}}}}"
        raise InputError(f"{name} must be {expected}, not {lists!r:.60}")
    by_query = {text_id(query, f"{name}, a query"): docs for query, docs in lists.items()}
    if len(by_query) < len(lists):
        raise InputError(f"{name}: two queries have the same id once it is written as text")
    return by_query


def evaluate_lists(
    judged: ByQuery,
    listed: ByQuery,
    measures: Mapping[str, Measure],
    view: str,
    settings: EvalSettings = ALL_QUERIES,
) -> tuple[dict[str, dict[str, float]], Result | None]:
    """Evaluate measures under a host's names: ``{name: {query: value}}``, and the result.

    Every query of `judged` has a value. If nothing is judged or retrieved, all values are 0, and
    the result is None.
    """
    values = {name: dict.fromkeys(judged, 0.0) for name in measures}
    if not (measures and any(judged.values()) and any(listed.values())):
        return values, None
    run = read_run(listed, copy=False)
    result = evaluate_run(read_qrels(judged), run, list(measures.values()), settings)
    for name, measure in measures.items():
        column = query_values(result.views[measure], view, name).tolist()
        values[name].update(zip(result.query_names, column, strict=True))
    return values, result


def no_score(place: str) -> InputError:
    """Return the error for a retrieved document without a score."""
    return InputError(f"{place} has no score, so ties are unknown; use a retriever with scores")


def query_values(views: Views, view: str, metric: str) -> NDArray[np.float64]:
    """Return the value of each query; raise InputError if the view is not computed."""
    values: NDArray[np.float64] | None = getattr(views, view)
    if values is None:
        raise InputError(f"the {view} of {metric} is not computed: choose another view")
    return values


def average(
    values: NDArray[np.float64], view: str, weights: NDArray[np.float64] | None = None
) -> float:
    """Return the average over queries; for tie stds, the tie std of the average."""
    weights = np.ones(len(values)) if weights is None else weights
    total = np.linalg.norm(values * weights) if view == "std" else (values * weights).sum()
    return float(total / weights.sum())


def view_name(metric: str, view: str) -> str:
    """Return the name of a view of a metric; the expected value has the name of the metric."""
    return metric if view == "expected" else f"{metric}_{view}"


def tie_views(metric: str, summary: Summary, reported: float | None = None) -> dict[str, float]:
    """Return the views to report with a host's value, by names such as ``map_tie_std``.

    The bias is that of `reported`, the host's value, if it is given.
    """
    views = {f"{metric}_{key}": getattr(summary, view) for key, view in TIE_VIEWS.items()}
    if reported is not None:
        views[f"{metric}_bias"] = reported - summary.expected
    return views


def warnings_without(result: Result, expected: str) -> list[str]:
    """Return the warnings of a result, except those with the key `expected`."""
    return texts((r for r in result.remarks if expected not in r.values), "warning")
