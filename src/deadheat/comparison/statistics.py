"""Compute win probabilities under random tie-breaking, ranks, and verdicts.

A verdict uses two kinds of probability and never adds them up. Under *random tie-breaking* the
queries are fixed and the orders of tied documents vary (this module). Under *sampling of
queries* the expected values are fixed and the queries vary (`comparison.significance`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deadheat.comparison.tie_orders import sample_sums
from deadheat.evaluation import VIEWS, Floats, Result, Summary, Views
from deadheat.measures import Measure

TOLERANCE = 1e-12
"""Means of a measure that differ by at most this are equal: the difference is rounding."""
MANY = 1 << 16
"""Up to this many different values, the distribution of a mean is computed exactly."""
CLOSE = 0.05
"""With many systems, a probability is not sampled if its error is at most this and no verdict
depends on it."""
BUDGET = 1 << 22
"""Number of documents to place when drawing tie orders of a system in a measure."""
CONFIDENCE = 0.999
"""Confidence level of the error of a sampled probability."""
METHODS = {
    "certain": "every way to break ties gives the same order",
    "exact": "computed from all outcomes; a draw is no win",
    "sampled": "from random tie orders; the error holds with 99.9 % confidence; a draw is no win",
    "bound": "middle of the interval that mean, variance and range of each query allow",
}
"""How the probability that one system beats the other was obtained."""
VERDICTS = {
    "A is better": "A has the higher expected value; neither ties nor other queries reverse that",
    "B is better": "B has the higher expected value; neither ties nor other queries reverse that",
    "undecided: ties": "the order of the systems depends on how ties are broken",
    "decision error": "the oblivious values order the systems against their expected values",
    "not significant": "other queries could have ordered the systems differently",
    "not testable": "too few queries or resamples for any difference to be significant",
    "identical": "the same expected, best and worst value in every query",
}


def verdict(
    difference: float,
    oblivious_difference: float,
    a_wins: float,
    b_wins: float,
    p_value: float | None,
    alpha: float = 0.05,
    *,
    error: float = 0.0,
    identical: bool = False,
) -> str:
    """Return one of `VERDICTS` on A against B.

    Systems that have the same values in every query are *identical*. For other systems, the first
    of these questions that is answered with "no" gives the verdict.

    1. Does random tie-breaking keep the order of the expected values? If the probability of that
       order, minus its error, is below ``1 − alpha``: *undecided: ties*.
    2. Do the oblivious values have that order? If they have the opposite order, a tool that
       ignores ties reports the wrong order on these queries: *decision error*.
    3. Are there enough queries? If the systems do not differ significantly over queries at the
       level ``alpha``: *not significant*. If no difference could be significant, because there is
       one query or there are too few resamples for the number of pairs: *not testable*.
    4. Otherwise the system with the higher expected value *is better*.

    Parameters
    ----------
    difference, oblivious_difference
        Mean of A minus mean of B: of the expected values, and of the oblivious values.
    a_wins, b_wins
        Probability that A beats B, and B beats A, under random tie-breaking.
    p_value
        P-value of a test over queries, corrected for the number of pairs. None if no test can
        reach `alpha`.
    error
        Largest distance of `a_wins` and `b_wins` from the true probabilities.
    identical
        Whether A and B have the same expected, best and worst value in every query.

    Examples
    --------
    >>> verdict(-0.0584, +0.0056, a_wins=0.0, b_wins=1.0, p_value=0.001)
    'decision error'
    >>> verdict(-0.0099, -0.0080, a_wins=0.0, b_wins=1.0, p_value=0.001)
    'B is better'
    """
    if identical:
        return "identical"
    order = sign(difference)
    if not keeps_order(order, Chances(a_wins, b_wins, "", error), alpha):
        return "undecided: ties"
    if order * sign(oblivious_difference) < 0:
        return "decision error"
    if p_value is None:
        return "not testable"
    if order == 0 or p_value > alpha:
        return "not significant"
    return "A is better" if order > 0 else "B is better"


def sign(difference: Any) -> Any:
    """Return 1, 0 or −1 for a number or an array; a difference within rounding error is 0."""
    return 1 * (difference > TOLERANCE) - 1 * (difference < -TOLERANCE)


class Chances(NamedTuple):
    """Win probabilities under random tie-breaking; ties of A and B are broken independently."""

    a_wins: float
    b_wins: float
    method: str
    """One of `METHODS`."""
    error: float = 0.0
    """Largest distance of either probability from the true one."""


def keeps_order(order: int, odds: Chances, alpha: float) -> bool:
    """Return whether random tie-breaking gives this order with probability 1 − alpha or more.

    The error of the probability is subtracted first.

    Parameters
    ----------
    order
        1 if A has the higher expected value, −1 if B has, 0 if they are equal.
    """
    kept = {1: odds.a_wins, -1: odds.b_wins, 0: 1 - odds.a_wins - odds.b_wins}[order]
    error = odds.error if order else 2 * odds.error
    return kept - error >= 1 - alpha - TOLERANCE


class Distribution(NamedTuple):
    """Distribution of a mean under random tie-breaking."""

    values: Floats
    """Possible values, ascending."""
    below: Floats
    """Probability to lie below each value, and, as last entry, below or at the last value."""
    draws: int | None
    """Number of random tie orders that were sampled; None if the distribution is exact."""

    @classmethod
    def of(cls, values: Floats, weights: Floats, draws: int | None = None) -> Distribution:
        """Return the distribution of weighted values; values within rounding error are merged."""
        order = np.argsort(values, kind="stable")
        values = values[order]
        first = np.flatnonzero(np.diff(values, prepend=-np.inf) > TOLERANCE)
        weights = np.add.reduceat(weights[order], first)
        return cls(values[first], np.concatenate([[0.0], np.cumsum(weights)]), draws)

    @property
    def weights(self) -> Floats:
        """Return the probability of each value."""
        return np.diff(self.below)

    def below_each(self, values: Floats) -> Floats:
        """Return the probability to lie below each value by more than the rounding error."""
        return self.below[np.searchsorted(self.values, values - TOLERANCE, "left")]

    def above_each(self, values: Floats) -> Floats:
        """Return the probability to lie above each value by more than the rounding error."""
        not_above = self.below[np.searchsorted(self.values, values + TOLERANCE, "right")]
        return np.asarray(self.below[-1] - not_above)


class Outcomes:
    """The distribution of the mean of one system under random tie-breaking.

    The views hold mean and variance of each query. They determine the distribution of a query
    with only two possible values, as when two documents tie. A query has two possible values if
    and only if its variance is ``(best − E)(E − worst)``, the largest possible variance
    (Bhatia–Davis); the best value then has probability ``(E − worst) / (best − worst)``.
    """

    def __init__(self, result: Result, measure: Measure) -> None:
        self._result, self._measure = result, measure
        views = result.views[measure]
        n = len(views.expected)
        self._moved = moved = views.range > TOLERANCE
        expected, best, worst = (x[moved] / n for x in (views.expected, views.best, views.worst))
        self._parts = expected, best, worst
        """Values of the queries that ties can move, divided by the number of all queries."""
        largest = (best - expected) * (expected - worst)
        variance = largest if views.variance is None else views.variance[moved] / n**2
        is_known = views.variance is not None or not moved.any()
        third = float((variance * np.maximum(best - expected, expected - worst)).sum())
        self.expected = float(views.expected.mean())
        self.worst = float(views.worst.mean())
        self.best = float(views.best.mean())
        self.variance = float(variance.sum())
        """Variance of the mean; if the measure has no variance, the largest possible one."""
        self.third = third if is_known else math.inf
        """Upper bound of the sum over queries of third absolute central moments; infinite if the
        variance is not known."""
        self.down = float((expected - worst).max(initial=0))
        """Largest distance by which one query can move the mean below its expected value."""
        self.up = float((best - expected).max(initial=0))
        """Largest distance by which one query can move the mean above its expected value."""
        is_largest = largest - variance <= 1e-9 * (best - worst) ** 2
        self.two_valued = is_known and bool(is_largest.all())
        """Whether each query has only two possible values, its best and its worst."""

    @cached_property
    def distribution(self) -> Distribution | None:
        """Distribution of the mean; None if it is unknown.

        Queries with two values have an exact distribution, unless it has too many different sums.
        Otherwise tie orders are drawn, if the result has kept its tie groups.
        """
        views, moved, n = self._result.views[self._measure], self._moved, len(self._moved)
        fixed = float(views.expected[~moved].sum()) / n
        if self.two_valued:
            expected, best, worst = self._parts
            width = best - worst
            probability = np.clip((expected - worst) / width, 0, 1)
            exact = _add_two_valued(fixed + float(worst.sum()), width, probability)
            if exact is not None:
                return exact
        if self._result.groups is None:
            return None
        groups = self._result.groups.take(np.flatnonzero(moved))
        rng = np.random.default_rng(_seed(self._measure, views))
        sums = sample_sums(groups, self._measure, BUDGET, rng)
        if sums is None:
            return None
        return Distribution.of(fixed + sums / n, np.full(len(sums), 1 / len(sums)), len(sums))


def _seed(measure: Measure, views: Views) -> int:
    """Return a seed that depends on the measure and the rounded views, not on their last bits."""
    digest = hashlib.blake2b(repr(measure).encode(), digest_size=16)
    for values in (views.expected, views.best, views.worst):
        digest.update(np.round(values, 9).tobytes())
    return int.from_bytes(digest.digest(), "little")


def _add_two_valued(start: float, width: Floats, probability: Floats) -> Distribution | None:
    """Add independent values that are 0 or `width`; return None if the sum takes too many values.

    Values with the same width are counted first: their sum takes few values.
    """
    found = Distribution.of(np.array([start]), np.ones(1))
    widths = np.round(width / TOLERANCE)
    for each in np.unique(widths):
        same = np.flatnonzero(widths == each)
        if len(found.values) * (len(same) + 1) > 4 * MANY:
            return None
        times = np.ones(1)
        for p in probability[same]:
            times = np.convolve(times, [1 - p, p])
        values = found.values[:, None] + width[same[0]] * np.arange(len(times))
        found = Distribution.of(values.ravel(), np.outer(found.weights, times).ravel())
    return found if len(found.values) <= MANY else None


def duel(a: Outcomes, b: Outcomes, alpha: float = 0.05, *, close: float = 0.01) -> Chances:
    """Return the probabilities that A and B win under random tie-breaking.

    The method is one of `METHODS`. Close bounds are preferred to sampling. If tie orders cannot
    be drawn, the bounds may be wide.

    Parameters
    ----------
    alpha
        A verdict depends on whether a system wins with a probability of at least ``1 − alpha``.
    close
        Largest accepted error of bounds that settle the verdict. Bounds that do not settle it may
        have an error of 0.01.
    """
    low, high = sign(a.worst - b.best), sign(a.best - b.worst)
    if low > 0 or high < 0 or low == high == 0:
        return Chances(float(low > 0), float(high < 0), "certain")
    least, most = bounds(a, b)
    bounded = Chances((least + most) / 2, 1 - (least + most) / 2, "bound", (most - least) / 2)
    settled = abs(max(bounded.a_wins, bounded.b_wins) - (1 - alpha)) > bounded.error
    enough = close if settled else 0.01
    if bounded.error <= enough and not (a.two_valued and b.two_valued):
        return bounded
    if a.distribution is None or b.distribution is None:
        return bounded
    return min(_count(a.distribution, b.distribution), bounded, key=lambda odds: odds.error)


def _count(a: Distribution, b: Distribution) -> Chances:
    """Compute win probabilities from two distributions."""
    if len(a.values) > len(b.values):
        swapped = _count(b, a)
        return swapped._replace(a_wins=swapped.b_wins, b_wins=swapped.a_wins)
    a_wins = float(a.weights @ b.below_each(a.values))
    b_wins = float(a.weights @ b.above_each(a.values))
    return Chances(a_wins, b_wins, *_precision([a, b], [a_wins, b_wins]))


def _precision(used: Sequence[Distribution], found: Sequence[float]) -> tuple[str, float]:
    """Return the method by which probabilities were obtained, and their largest error.

    The share of combinations of draws that have a property is a U-statistic. Hoeffding's and
    Bernstein's inequalities hold for it as for a mean of n draws, where n is the size of the
    smallest sample (Hoeffding 1963, section 5). Bernstein's is solved for the unknown probability:
    ``|p − q| ≤ √(2q(1−q)c) + c/3`` and ``q(1−q) ≤ p(1−p) + |p − q|`` give
    ``|p − q| ≤ √(2p(1−p)c) + 3c``.
    """
    draws = [each.draws for each in used if each.draws is not None]
    if not draws:
        return "exact", 0.0
    c = math.log(2 / (1 - CONFIDENCE)) / min(draws)
    errors = [min(math.sqrt(c / 2), math.sqrt(max(0, 2 * p * (1 - p) * c)) + 3 * c) for p in found]
    return "sampled", max(errors)


def bounds(a: Outcomes, b: Outcomes) -> tuple[float, float]:
    """Return bounds of the probability that A beats B, from moments and ranges of the queries.

    Tie orders of different queries are independent, so the difference of the means is a sum of
    independent values. The inequalities of Bennett and Cantelli bound the probability that it has
    the opposite sign of its expected value. If the variance is known, the error of the normal
    approximation is at most ``0.56 Σ E|X − E|³ / σ³`` (Berry–Esseen, with the constant of
    Shevtsova 2010).
    """
    mean, variance = a.expected - b.expected, a.variance + b.variance
    least = 1 - _tail(mean - TOLERANCE, variance, max(a.down, b.up))
    most = _tail(-mean - TOLERANCE, variance, max(a.up, b.down))
    if variance > 0:
        error = 0.56 * (a.third + b.third) / variance**1.5
        normal = math.erfc(-mean / math.sqrt(2 * variance)) / 2
        least, most = max(least, normal - error), min(most, normal + error)
    return least, most


def _tail(gap: float, variance: float, step: float) -> float:
    """Bound the probability that a sum of independent values is `gap` or more off its mean.

    Parameters
    ----------
    variance
        Variance of the sum; its square root is accurate to 1e−7.
    step
        Largest distance of a single value from its mean in this direction.
    """
    if gap <= 0:
        return 1.0
    variance = (math.sqrt(variance) + 1e-7) ** 2
    step = max(step, TOLERANCE)
    u = step * gap / variance
    bennett = math.exp(-variance / step**2 * ((1 + u) * math.log1p(u) - u))
    return min(bennett, variance / (variance + gap**2))


def first_places(systems: Sequence[Outcomes]) -> tuple[list[float], str, float]:
    """Return the probability of each system to be the only first, the method, and the error.

    ``P(i first) = Σ_x P(X_i = x) Π_{j ≠ i} P(X_j < x)``. If tie orders cannot be drawn, the pairs
    give bounds: at most the least ``P(i beats j)``, at least ``1 − Σ_j P(i does not beat j)``.
    """
    if len(systems) == 2:
        odds = duel(systems[0], systems[1])
        return [odds.a_wins, odds.b_wins], odds.method, odds.error
    known = [each.distribution for each in systems if each.distribution is not None]
    if len(known) == len(systems):
        found = []
        for i, own in enumerate(known):
            others = [other.below_each(own.values) for j, other in enumerate(known) if j != i]
            found.append(float(own.weights @ np.prod(others, axis=0)))
        return found, *_precision(known, found)
    ends = []
    for i, one in enumerate(systems):
        pairs = [duel(one, other) for j, other in enumerate(systems) if j != i]
        most = min(odds.a_wins + odds.error for odds in pairs)
        least = max(0.0, 1 - sum(1 - odds.a_wins + odds.error for odds in pairs))
        ends.append((min(least, most), min(most, 1.0)))
    middles = [(least + most) / 2 for least, most in ends]
    return middles, "bound", max((most - least) / 2 for least, most in ends)


def ranks(values: Floats) -> NDArray[np.int64]:
    """Return the rank of every value, 1 for the highest; equal values share the better rank."""
    return np.asarray(1 + (values > values[:, None] + TOLERANCE).sum(axis=1))


def rank_columns(summaries: Sequence[Summary]) -> dict[str, NDArray[Any]]:
    """Return `VIEWS` and ranks of systems in one measure; a view that a measure lacks is NaN."""
    views = {view: np.array([getattr(s, view) for s in summaries], np.float64) for view in VIEWS}
    best_rank, worst_rank = rank_intervals(views["worst"], views["best"])
    rank = ranks(views["expected"])
    return {**views, "rank": rank, "best_rank": best_rank, "worst_rank": worst_rank}


def rank_intervals(worst: Floats, best: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the best and the worst rank that tie-breaking can give to every system.

    >>> rank_intervals(np.array([0.5, 0.3, 0.1]), np.array([0.6, 0.55, 0.2]))
    (array([1, 1, 3]), array([2, 2, 3]))
    """
    above = best > worst[:, None] + TOLERANCE
    np.fill_diagonal(above, False)
    surely_above = worst > best[:, None] + TOLERANCE
    return 1 + surely_above.sum(axis=1), 1 + above.sum(axis=1)
