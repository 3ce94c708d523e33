"""The interface of ``trm``, the package of the paper's authors (tie-aware-retrieval-metrics).

``from deadheat.integrations import trm`` replaces ``import trm``, and needs no other package. The
values are the same, except for these differences:

- Precision@k and F1@k of a list shorter than k divide by k in every view;
- a cutoff named twice counts once, and one metric may be given as a text;
- labels with grades above 1 count as relevant, once each;
- scores are never negated, so that those of whole-number types keep their order;
- a score that is NaN is refused, and so is an evaluation without lists;
- the time of every measure is proportional to the number of documents, for any ties.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from deadheat._internal.numbers import exact_floats
from deadheat.errors import InputError
from deadheat.evaluation import evaluate_scores
from deadheat.integrations.base import ALL_QUERIES
from deadheat.measures import parse_measure

SUPPORTED_METRICS = ["recall", "precision", "f1", "hits", "ndcg", "mrr", "map"]
DEFAULT_METRICS = ("ndcg", "mrr", "map", "recall")
DEFAULT_K_LIST = [1, 3, 5, 10, 20, 50, 100]
_VIEWS = ("expected", "best", "worst", "oblivious", "std")
"""The view of each field of a `TieAwareResult`."""


@dataclass
class TieAwareResult:
    """The views of one measure at one cutoff, of one query or averaged."""

    expected: float
    maximum: float
    minimum: float
    oblivious: float
    std: float = 0.0
    """Tie std, which the original does not have."""

    @property
    def range(self) -> float:
        """Maximum − minimum."""
        return self.maximum - self.minimum

    @property
    def bias(self) -> float:
        """Oblivious − expected."""
        return self.oblivious - self.expected


@dataclass
class EvaluationOutput:
    """Views by metric and cutoff: averaged, and of every query."""

    metrics: dict[str, dict[int, TieAwareResult]] = field(default_factory=dict)
    per_query: dict[str, dict[int, list[TieAwareResult]]] = field(default_factory=dict)
    k_list: list[int] = field(default_factory=list)

    def to_dict(self) -> dict[str, float]:
        """Return averages as a flat dict with names such as ``ndcg@10_expected``."""
        views = ("expected", "oblivious", "maximum", "minimum", "range", "bias", "std")
        return {
            f"{name}@{k}_{view}": getattr(result, view)
            for name, by_cutoff in self.metrics.items()
            for k, result in by_cutoff.items()
            for view in views
        }


def evaluate(
    scores: Sequence[ArrayLike],
    is_relevant: Sequence[ArrayLike],
    metrics: str | Iterable[str] | None = None,
    k_list: Iterable[int] | None = None,
) -> EvaluationOutput:
    """Evaluate lists of scores with lists of labels, like ``trm.evaluate``.

    Parameters
    ----------
    scores, is_relevant
        A list of scores and a list of labels for each query, as for `deadheat.evaluate_arrays`. A
        query without a relevant document counts as 0.
    metrics
        Names such as those in `SUPPORTED_METRICS`. Default: nDCG, MRR, MAP and recall.
    k_list
        Cutoffs. Default: `DEFAULT_K_LIST`.

    Examples
    --------
    >>> output = evaluate([[0.9, 0.5, 0.5]], [[0, 1, 0]], metrics=["mrr"], k_list=[2])
    >>> output.metrics["mrr"][2].expected, output.metrics["mrr"][2].range
    (0.25, 0.5)
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics or DEFAULT_METRICS)
    cutoffs = list(dict.fromkeys(DEFAULT_K_LIST if k_list is None else k_list))
    asked = {(name, k): parse_measure(f"{name}@{k}") for name in names for k in cutoffs}
    labels = [exact_floats(row) > 0 for row in is_relevant]
    result = evaluate_scores(labels, list(scores), list(asked.values()), ALL_QUERIES)
    output = EvaluationOutput({n: {} for n in names}, {n: {} for n in names}, cutoffs)
    for (name, k), measure in asked.items():
        means = [getattr(result[measure], view) for view in _VIEWS]
        columns = [getattr(result.views[measure], view).tolist() for view in _VIEWS]
        output.metrics[name][k] = TieAwareResult(*means)
        output.per_query[name][k] = list(map(TieAwareResult, *columns))
    return output


def build_tie_groups(scores: ArrayLike, is_relevant: ArrayLike) -> list[tuple[int, int]]:
    """Return the size of each tie group and its relevant documents, from the highest score down.

    >>> build_tie_groups([0.9, 0.5, 0.5], [0, 1, 0])
    [(1, 0), (2, 1)]
    """
    values, labels = exact_floats(scores), exact_floats(is_relevant)
    if values.ndim != 1 or values.shape != labels.shape or np.isnan(values).any():
        raise InputError(
            f"scores {list(values.shape)} and is_relevant {list(labels.shape)} must be two rows of "
            "the same length, and no score may be NaN"
        )
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    relevant = np.bincount(group, labels > 0, len(sizes)).astype(int)
    return list(zip(sizes[::-1].tolist(), relevant[::-1].tolist(), strict=True))
