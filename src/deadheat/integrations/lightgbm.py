"""LightGBM: tie-aware measures for its ``feval`` and ``eval_metric``.

The first trees give few distinct scores, and LightGBM's own metrics leave tied documents in the
order of the data. `feval` is for `lightgbm.train` and `lightgbm.cv`, `eval_metric` for
`LGBMRanker.fit`; both can be used for early stopping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deadheat.errors import InputError
from deadheat.evaluation import check_views, evaluate_scores
from deadheat.integrations.base import (
    ALL_QUERIES,
    SPREADS,
    Measures,
    average,
    load_host,
    query_values,
)
from deadheat.measures import MAP, Measure, nDCG, parse_measures

Evaluated = list[tuple[str, float, bool]]
"""Return type of LightGBM's metric functions: name, value, whether higher is better."""
_DEFINITIONS = {"ndcg": nDCG(gain="exp"), "map": MAP(divisor="min")}
"""LightGBM's measures of these names: gains of 2^label − 1, and AP over min(N, k) documents."""


def feval(
    measures: Measures,
    views: Sequence[str] = ("expected",),
    *,
    empty: float | None = 1.0,
) -> Callable[[ArrayLike, Any], Evaluated]:
    """Return an ``feval`` function for `lightgbm.train` and `lightgbm.cv`.

    Parameters
    ----------
    measures
        As for `deadheat.evaluate`. The names ``"ndcg@10"`` and ``"map@10"`` have LightGBM's
        definitions; measures that are not texts, such as ``dh.nDCG @ 10``, have deadheat's.
    views
        Views to return, the one for early stopping first. Each has a name such as
        ``"ndcg@10_expected"``, and is reported next to LightGBM's own metrics. The bias is an
        error, because neither a higher nor a lower bias is better.
    empty
        Value of a query without a relevant document. None drops the query. Default: 1, as in
        LightGBM.

    Examples
    --------
    >>> evaluated = feval("ndcg@10", ["expected", "range"])
    """
    evaluate = eval_metric(measures, views, empty=empty)

    def tie_aware(preds: ArrayLike, eval_data: Any) -> Evaluated:
        group, weight = eval_data.get_group(), eval_data.get_weight()
        return evaluate(eval_data.get_label(), preds, weight, group)

    return tie_aware


def eval_metric(
    measures: Measures,
    views: Sequence[str] = ("expected",),
    *,
    empty: float | None = 1.0,
) -> Callable[[ArrayLike, ArrayLike, ArrayLike | None, Sequence[int] | None], Evaluated]:
    """Return an ``eval_metric`` for `LGBMRanker.fit`; the arguments are those of `feval`."""
    load_host("lightgbm")
    named = _name_measures(measures)
    check_views(views)
    if "bias" in views:
        raise InputError("the view 'bias' cannot be used: its best value is 0; leave it out")
    if empty is not None and not isinstance(empty, (int, float)):
        raise InputError(f"empty must be a number or None, not {empty!r:.60}")

    def tie_aware(
        y_true: ArrayLike, y_pred: ArrayLike, weight: ArrayLike | None, group: Sequence[int] | None
    ) -> Evaluated:
        if group is None:
            raise InputError("the data has no queries; set `group` in the Dataset or in `fit`")
        if np.ndim(y_pred) != 1:
            raise InputError(f"one score for each document is needed, not {np.shape(y_pred)}")
        n = len(group)
        query = np.repeat(np.arange(n), group)
        result = evaluate_scores(y_true, y_pred, list(named.values()), ALL_QUERIES, query=query)
        relevant = np.bincount(query, np.asarray(y_true) > 0, n) > 0
        # LightGBM gives a query the mean weight of its documents.
        weights = np.bincount(query, weight, n) / np.asarray(group)
        if empty is None:
            weights *= relevant
        if not weights.sum() > 0:
            raise InputError("no query with a relevant document has a weight; check the weights")
        found = []
        for name, measure in named.items():
            for view in views:
                values = query_values(result.views[measure], view, repr(measure))
                fixed = 0.0 if view in SPREADS else empty or 0.0
                mean = average(np.where(relevant, values, fixed), view, weights)
                found.append((f"{name}_{view}", mean, view not in SPREADS))
        return found

    return tie_aware


def _name_measures(measures: Measures) -> dict[str, Measure]:
    """Return the measures by the names they are reported under."""
    named: dict[str, Measure] = {}
    one = isinstance(measures, (str, Measure)) or not isinstance(measures, Iterable)
    for given in [measures] if one else measures:  # type: ignore[union-attr]
        for measure in parse_measures(given):  # type: ignore[arg-type]
            family = repr(measure).lower().partition("@")[0]
            if isinstance(given, str) and family in _DEFINITIONS:
                named[repr(measure).lower()] = _DEFINITIONS[family](cutoff=measure.cutoff)
            else:
                named[repr(measure)] = measure
    return named
