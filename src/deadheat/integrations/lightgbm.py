"""LightGBM: measures that see ties, for its ``feval`` and ``eval_metric``.

Trees give few distinct scores at first, and LightGBM's own metrics leave tied documents in the
order of the data. `feval` is for `lightgbm.train` and `lightgbm.cv`, `eval_metric` for
`LGBMRanker.fit`; both can decide when to stop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.evaluation import Views, check_views, evaluate_scores
from deadheat.measures import MAP, Measure, nDCG
from deadheat.measures.parse import parse_measures
from deadheat.packages import require_host
from deadheat.settings import EvalSettings

Evaluated = list[tuple[str, float, bool]]
"""Names, values, and whether a higher value is better: what LightGBM wants of a function."""
HIGHER_IS_BETTER = {
    "expected": True,
    "best": True,
    "worst": True,
    "oblivious": True,
    "range": False,
    "std": False,
}
"""The views that have a direction."""
_HERE = {"ndcg": nDCG(gain="exp"), "map": MAP(divisor="min")}
"""What LightGBM calls by these names: gains of 2^label − 1, and AP over min(N, k) documents."""


def feval(
    measures: str | Measure | Iterable[Any],
    views: Sequence[str] = ("expected",),
    *,
    empty: float | None = 1.0,
) -> Callable[[Any, Any], Evaluated]:
    """Make an ``feval`` of `lightgbm.train` and `lightgbm.cv`.

    Parameters
    ----------
    measures
        As for `deadheat.evaluate`; ``"ndcg@10"`` and ``"map@10"`` are what LightGBM means by them.
        Measures that are not names, such as ``dh.nDCG @ 10``, are taken as they are.
    views
        Which views to give, the one to stop by first: all but the bias, which has no direction.
        Each has a name such as ``"ndcg@10_expected"``, and stands beside LightGBM's own.
    empty
        What a query without a relevant document counts as, 1 as in LightGBM; None leaves it out.

    Examples
    --------
    >>> evaluated = feval("ndcg@10", ["expected", "range"])
    """
    _host()
    asked = _asked(measures)
    _check(views, empty)

    def tie_aware(preds: Any, eval_data: Any) -> Evaluated:
        group, weight = eval_data.get_group(), eval_data.get_weight()
        return _evaluated(asked, views, empty, eval_data.get_label(), preds, weight, group)

    return tie_aware


def eval_metric(
    measures: str | Measure | Iterable[Any],
    views: Sequence[str] = ("expected",),
    *,
    empty: float | None = 1.0,
) -> Callable[[Any, Any, Any, Any], Evaluated]:
    """Make an ``eval_metric`` of `LGBMRanker.fit`; the arguments are those of `feval`."""
    _host()
    asked = _asked(measures)
    _check(views, empty)

    def tie_aware(y_true: Any, y_pred: Any, weight: Any, group: Any) -> Evaluated:
        return _evaluated(asked, views, empty, y_true, y_pred, weight, group)

    return tie_aware


def _host() -> Any:
    return require_host("lightgbm", "lightgbm", "`deadheat.integrations.lightgbm`")


def _asked(measures: str | Measure | Iterable[Any]) -> dict[str, Measure]:
    """Give the measures by the names they are reported under."""
    asked: dict[str, Measure] = {}
    one = isinstance(measures, (str, Measure)) or not isinstance(measures, Iterable)
    for given in [measures] if one else measures:  # type: ignore[union-attr]
        for measure in parse_measures(given):
            name = measure.name.lower()
            plain = isinstance(given, str) and measure == type(measure)(cutoff=measure.cutoff)
            if plain and name in _HERE:
                asked[repr(measure).lower()] = _HERE[name](cutoff=measure.cutoff)
            else:
                asked[repr(measure)] = measure
    return asked


def _check(views: Sequence[str], empty: object) -> None:
    check_views(views)
    if "bias" in views:
        raise InputError("LightGBM asks whether higher is better, and of the bias neither is")
    if empty is not None and not isinstance(empty, (int, float)):
        raise InputError(f"empty must be a number or None, not {empty!r:.60}")


def _evaluated(
    measures: dict[str, Measure],
    views: Sequence[str],
    empty: float | None,
    labels: Any,
    scores: Any,
    weights: Any,
    sizes: Any,
) -> Evaluated:
    if sizes is None:
        raise InputError(
            "the data names no queries: give lightgbm.Dataset or LGBMRanker.fit its `group`"
        )
    if np.ndim(scores) != 1:
        raise InputError(f"one score for each document is needed, not an array {np.shape(scores)}")
    query = np.repeat(np.arange(len(sizes)), np.asarray(sizes, np.int64))
    distinct = list(dict.fromkeys(measures.values()))
    settings = EvalSettings(queries="all")
    result = evaluate_scores(labels, scores, distinct, settings, query=query)
    relevant = np.bincount(query, np.asarray(labels) > 0, len(sizes)) > 0
    weight = np.ones(len(sizes))
    if weights is not None:  # of a query the mean of its documents', as LightGBM has it
        weight = np.bincount(query, weights, len(sizes)) / np.asarray(sizes)
    if empty is None:
        weight[~relevant] = 0
    if not weight.sum() > 0:
        raise InputError("no query with a relevant document has a weight: nothing to evaluate")
    weight = weight / weight.sum()
    return [
        (
            f"{name}_{view}",
            _mean(_with_empty(result.views[measure], view, relevant, empty), weight, view),
            HIGHER_IS_BETTER[view],
        )
        for name, measure in measures.items()
        for view in views
    ]


def _with_empty(
    views: Views, view: str, relevant: NDArray[np.bool_], empty: float | None
) -> NDArray[np.float64]:
    """Values of a view, with what a query without a relevant document counts as."""
    values = getattr(views, view)
    if values is None:
        raise InputError(f"the {view} of this measure is not computed: choose another view")
    fixed = 0.0 if view in ("range", "std") else empty or 0.0
    return np.where(relevant, values, fixed)


def _mean(values: NDArray[np.float64], weight: NDArray[np.float64], view: str) -> float:
    """Average by weights that add up to 1; of tie stds, the tie std of the average."""
    if view == "std":
        return math.sqrt(float(((values * weight) ** 2).sum()))
    return float((values * weight).sum())
