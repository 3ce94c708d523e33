"""What ties do to a whole board: runs moved, pairs reversed, winners contested."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.comparison.statistics import (
    METHODS,
    TOLERANCE,
    Outcomes,
    duel,
    rank_intervals,
    ranks,
    sign,
)
from deadheat.errors import MissingPackageError
from deadheat.evaluation import Result
from deadheat.evaluation.result import Floats
from deadheat.measures import Measure
from deadheat.packages import require

MOVED = (0.0, 0.001, 0.01)
"""Ranges from which on a run counts as moved by its ties."""
ORDERS = ("official", "expected", "best", "worst")
"""The orders of a board that Kendall's τ compares."""
FIRST_METHODS = {
    **METHODS,
    "several": "independent normal approximations of the means, integrated",
}
"""How the probability to come first was obtained."""
_QUANTILES = np.array([NormalDist().inv_cdf((i + 0.5) / 2000) for i in range(2000)])


@dataclass(frozen=True)
class Standing:
    """All runs of a board in one measure."""

    measure: Measure
    names: list[str]
    results: Sequence[Result]
    official: Floats
    """The published values, NaN where there is none; the oblivious ones without a board."""

    def of(self, view: str) -> Floats:
        """Means of a view, NaN where there is none."""
        values = [getattr(result[self.measure], view) for result in self.results]
        return np.array(values, np.float64)

    @cached_property
    def expected(self) -> Floats:
        """Expected values."""
        return self.of("expected")

    @cached_property
    def worst(self) -> Floats:
        """Values with ties broken against each run."""
        return self.of("worst")

    @cached_property
    def best(self) -> Floats:
        """Values with ties broken in favour of each run."""
        return self.of("best")

    @cached_property
    def outcomes(self) -> list[Outcomes]:
        """What random tie-breaking can make of the value of each run."""
        return [Outcomes.of(result.views[self.measure]) for result in self.results]

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """Ranks in expectation."""
        return ranks(self.expected)

    @cached_property
    def rank_interval(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Best and worst ranks that ties allow."""
        return rank_intervals(self.worst, self.best)

    def part(self, rows: Sequence[int]) -> Standing:
        """Some of the runs."""
        kept = list(rows)
        names, results = [self.names[i] for i in kept], [self.results[i] for i in kept]
        return Standing(self.measure, names, results, self.official[kept])


def summarised(standing: Standing, alpha: float) -> dict[str, Any]:
    """Count what ties do to the runs and pairs of a board, and compare its orders.

    ``reversed``: pairs whose official order is not that of their expectations. ``overlapping``:
    pairs that some way to break their ties reverses. ``undecided``: pairs that random
    tie-breaking leaves in the order of their expectations with a probability below
    ``1 − alpha``. ``decision_errors``: reversed pairs that are not undecided.
    """
    width = standing.best - standing.worst
    facts: dict[str, Any] = {"measure": repr(standing.measure), "runs": len(standing.names)}
    facts |= {
        f"range_above_{limit:g}": int((width > max(limit, TOLERANCE)).sum()) for limit in MOVED
    }
    against = overlapping = undecided = errors = 0
    pairs = list(combinations(range(len(standing.names)), 2))
    for i, j in pairs:
        order = sign(standing.expected[i] - standing.expected[j])
        reversed_ = order * _official_sign(standing.official[i], standing.official[j]) < 0
        odds = duel(standing.outcomes[i], standing.outcomes[j])
        kept = {1: odds.a_wins, -1: odds.b_wins, 0: 1 - odds.a_wins - odds.b_wins}[order]
        against += reversed_
        overlapping += odds.method != "certain"
        undecided += kept < 1 - alpha
        errors += reversed_ and kept >= 1 - alpha
    facts |= {"pairs": len(pairs), "reversed": against, "overlapping": overlapping}
    facts |= {"undecided": undecided, "decision_errors": errors}
    return facts | _agreement(standing)


def _official_sign(a: float, b: float) -> int:
    return 0 if math.isnan(a) or math.isnan(b) else sign(a - b)


def _agreement(standing: Standing) -> dict[str, float | None]:
    """Kendall's τ-b between every two orders of the board; None where an order is missing."""
    values = {view: standing.of(view) for view in ORDERS[1:]} | {"official": standing.official}
    told = ~np.isnan(standing.official)
    taus: dict[str, float | None] = {}
    for one, other in combinations(ORDERS, 2):
        taus[f"tau_{one}_{other}"] = _tau(values[one][told], values[other][told])
    return taus


def _tau(one: Floats, other: Floats) -> float | None:
    if len(one) < 2 or not np.ptp(one) or not np.ptp(other) or not has_scipy():
        return None  # there is no order
    return float(require("scipy.stats", "Kendall's τ").kendalltau(one, other).statistic)


def has_scipy() -> bool:
    """Whether Kendall's τ can be computed."""
    try:
        require("scipy.stats", "Kendall's τ")
    except MissingPackageError:
        return False
    return True


@dataclass(frozen=True)
class Winner:
    """Who comes first in a measure, on the whole board or inside a group of it."""

    measure: str
    group: str | None
    """None: the whole board."""
    runs: int
    official: list[str]
    """First by the published values, or by the oblivious ones without a board; several share
    the place where they are equal."""
    expected: str
    """First in expectation."""
    probability: float
    """That the expected winner comes first under random tie-breaking."""
    method: str
    """One of `FIRST_METHODS`."""
    contenders: dict[str, float]
    """Everybody whom some way to break ties puts first, with the probability of that."""

    @property
    def contested(self) -> bool:
        """Whether ties decide who comes first."""
        return self.method != "certain"


def winner_of(standing: Standing, group: str | None = None) -> Winner:
    """Find who comes first, and how sure that is."""
    first = np.flatnonzero(standing.rank_interval[0] == 1).tolist()
    leader = int(np.argmax(standing.expected))
    odds, method = _first_place(standing, first)
    told = np.nan_to_num(standing.official, nan=-np.inf)
    official = np.flatnonzero((told >= told.max() - TOLERANCE) & np.isfinite(told)).tolist()
    return Winner(
        repr(standing.measure),
        group,
        len(standing.names),
        [standing.names[i] for i in official],
        standing.names[leader],
        odds[first.index(leader)],
        method,
        {standing.names[i]: p for i, p in zip(first, odds, strict=True)},
    )


def _first_place(standing: Standing, first: list[int]) -> tuple[list[float], str]:
    """Probability of each of these runs to come first, and how it was obtained."""
    width = (standing.best - standing.worst)[first]
    if len(first) == 1 or width.max() <= TOLERANCE:  # runs of equal value share the place
        return [1.0 / len(first)] * len(first), "certain"
    if len(first) == 2:
        odds = duel(*(standing.outcomes[i] for i in first))
        return [odds.a_wins, odds.b_wins], odds.method
    stds = np.sqrt([standing.outcomes[i].variance for i in first])
    return first_of_normals(standing.expected[first], stds), "several"


def first_of_normals(means: Floats, stds: Floats) -> list[float]:
    """Probability that each of several independent normal values is the largest.

    ``P(i first) = ∫ Π_{j ≠ i} Φ((x − μ_j) / σ_j) dP_i(x)``, over 2,000 quantiles of i. Values
    without spread are steps, and equal ones share the place.

    >>> [round(p, 3) for p in first_of_normals(np.array([1.0, 1.0, 0.0]), np.ones(3))]
    [0.443, 0.443, 0.113]
    """
    erf = np.vectorize(math.erf)
    shares = []
    for i, (mean, std) in enumerate(zip(means, stds, strict=True)):
        x = mean + std * _QUANTILES
        below = np.ones_like(x)
        for j, (other, spread) in enumerate(zip(means, stds, strict=True)):
            if j == i:
                continue
            if spread > TOLERANCE:
                below = below * (1 + erf((x - other) / (spread * math.sqrt(2)))) / 2
            else:
                below = below * np.where(np.abs(x - other) <= TOLERANCE, 0.5, x > other)
        shares.append(float(below.mean()))
    total = sum(shares) or 1.0
    return [share / total for share in shares]
