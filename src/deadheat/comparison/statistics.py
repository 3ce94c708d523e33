"""What ties leave of an order: chances under random tie-breaking, ranks, the verdict.

Two kinds of chance meet in a verdict and are never added up. Under *random tie-breaking* the
queries are fixed and the orders of tied documents vary: that is computed here. Under *sampling
of queries* the expectations are fixed and the queries vary: `comparison.significance`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deadheat.evaluation.result import Floats, Views

TOLERANCE = 1e-12
"""Means of a measure that are this close differ by rounding only."""
FEW = 16
"""Up to so many values that ties can move, all of their outcomes are enumerated."""
ROUGH = 10
"""Below so many values that ties can move, a normal approximation is rough."""
METHODS = {
    "certain": "the [worst, best] intervals decide",
    "exact": "all outcomes enumerated; a draw is no win",
    "normal": "normal approximation from exact moments; a draw counts half",
    "rough": "normal approximation, but ties move fewer than 10 values: can be off by 0.3",
    "bound": "normal approximation from an upper bound of the tie std: too close to 0.5",
}
"""How the probability that one system beats the other was obtained."""
VERDICTS = {
    "A is better": "A has the higher expectation, and neither ties nor queries leave it open",
    "B is better": "B has the higher expectation, and neither ties nor queries leave it open",
    "undecided: ties": "the order of the systems depends on how ties are broken",
    "decision error": "the oblivious numbers order the systems against the expectations",
    "undecided: queries": "other queries could have ordered the systems differently",
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
    identical: bool = False,
) -> str:
    """Give one of `VERDICTS` on A against B.

    Systems that have the same values in every query are *identical*. Of others, four questions
    are asked in this order, and the first that says no gives the verdict.

    1. Do the ties leave the systems in the order of their expectations? If random
       tie-breaking gives that order with a probability below ``1 − alpha``, no order can be
       called wrong: *undecided: ties*.
    2. Do the oblivious numbers agree with that order? If they say the opposite, what a
       tie-oblivious tool prints for these very queries misleads, however many more queries
       might be needed to generalise: *decision error*.
    3. Do the queries suffice? If the systems are not told apart over queries at the level
       ``alpha``: *undecided: queries*. If no test could have told any systems apart, as with
       one query or with fewer resamples than the number of pairs asks for: *not testable*.
    4. Otherwise the system with the higher expectation *is better*.

    Parameters
    ----------
    difference, oblivious_difference
        Mean of A minus mean of B, of the expectations and of the oblivious values.
    a_wins, b_wins
        Probability that A beats B, and B beats A, under random tie-breaking.
    p_value
        Of a test over queries, corrected for the pairs compared; None if there is no test that
        could reach `alpha`.
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
    if {1: a_wins, -1: b_wins, 0: 1 - a_wins - b_wins}[order] < 1 - alpha:
        return "undecided: ties"
    if order * sign(oblivious_difference) < 0:
        return "decision error"
    if p_value is None:
        return "not testable"
    if order == 0 or p_value > alpha:
        return "undecided: queries"
    return "A is better" if order > 0 else "B is better"


def sign(difference: float) -> int:
    """1, 0 or −1; 0 also where only rounding makes a difference."""
    return 0 if abs(difference) <= TOLERANCE else 1 if difference > 0 else -1


class Chances(NamedTuple):
    """Who wins under random tie-breaking, A's ties broken independently of B's."""

    a_wins: float
    b_wins: float
    method: str
    """One of `METHODS`."""


@dataclass(frozen=True)
class Outcomes:
    """What random tie-breaking can make of the mean of one system."""

    expected: float
    worst: float
    best: float
    variance: float
    """Of the mean; the largest possible where the measure has none."""
    exact_variance: bool
    """Whether the variance is known."""
    still: float
    """The part of the mean that ties cannot move."""
    moving: Floats
    """Probability of the best, best and worst of the queries that ties can move, a row each,
    the values divided by the number of queries."""
    two_valued: bool
    """Whether each of these queries takes no other values than its best and its worst."""

    @classmethod
    def of(cls, views: Views) -> Outcomes:
        """Take the outcomes from the views of one measure.

        Only two moments of each value are known. They are enough to be exact where every value
        that ties can move takes just two values, as it does when two documents tie: then and
        only then the variance is ``(best − E)(E − worst)``, the largest it can be
        (Bhatia–Davis), and the best comes with probability ``(E − worst) / (best − worst)``.
        """
        n = len(views.expected)
        moved = views.best - views.worst > TOLERANCE
        expected, best, worst = (x[moved] for x in (views.expected, views.best, views.worst))
        largest = (best - expected) * (expected - worst)
        variance = largest if views.variance is None else views.variance[moved]
        width = best - worst
        two_valued = views.variance is not None and largest - variance <= 1e-6 * width**2
        return cls(
            expected=float(views.expected.mean()),
            worst=float(views.worst.mean()),
            best=float(views.best.mean()),
            variance=float(variance.sum()) / n**2,
            exact_variance=views.variance is not None,
            still=float(views.expected[~moved].sum()) / n,
            moving=np.column_stack([(expected - worst) / width, best / n, worst / n]),
            two_valued=bool(np.all(two_valued)),
        )

    @cached_property
    def distribution(self) -> tuple[Floats, Floats]:
        """Values the mean takes, ascending, and the probability to lie below each and beyond."""
        values, weights = np.array([self.still]), np.ones(1)
        for p, best, worst in self.moving:
            values = np.concatenate([values + best, values + worst])
            weights = np.concatenate([weights * p, weights * (1 - p)])
        order = np.argsort(values, kind="stable")
        return values[order], np.concatenate([[0.0], np.cumsum(weights[order])])


def chances(a: Views, b: Views) -> Chances:
    """Probabilities that the mean of A is above that of B, and below it."""
    return duel(Outcomes.of(a), Outcomes.of(b))


def duel(a: Outcomes, b: Outcomes) -> Chances:
    """Who wins of two systems: certain or exact where it can be, else by a normal approximation."""
    low, high = sign(a.worst - b.best), sign(a.best - b.worst)
    if low > 0 or high < 0 or low == high == 0:
        return Chances(float(low > 0), float(high < 0), "certain")
    moving = len(a.moving) + len(b.moving)
    if a.two_valued and b.two_valued and moving <= FEW:
        if len(a.moving) <= len(b.moving):
            return Chances(*_above_and_below(a, b), "exact")
        b_wins, a_wins = _above_and_below(b, a)
        return Chances(a_wins, b_wins, "exact")
    known = a.exact_variance and b.exact_variance
    method = "bound" if not known else "rough" if moving < ROUGH else "normal"
    return normal_chances(a.expected - b.expected, math.sqrt(a.variance + b.variance), method)


def _above_and_below(one: Outcomes, other: Outcomes) -> tuple[float, float]:
    """Probability that one ends above the other, and below; quickest where one takes few values."""
    values, below = one.distribution
    others, others_below = other.distribution
    weights = np.diff(below)
    above = others_below[np.searchsorted(others, values - TOLERANCE, "left")]
    not_above = others_below[np.searchsorted(others, values + TOLERANCE, "right")]
    return float(weights @ above), float(weights @ (others_below[-1] - not_above))


def normal_chances(difference: float, std: float, method: str = "normal") -> Chances:
    """Chances from the mean of the difference and its tie std."""
    z = difference / max(std, TOLERANCE)
    return Chances(math.erfc(-z / math.sqrt(2)) / 2, math.erfc(z / math.sqrt(2)) / 2, method)


def ranks(values: Floats) -> NDArray[np.int64]:
    """Rank of every value, 1 for the highest; equal values share the better rank."""
    return np.asarray(1 + (values > values[:, None] + TOLERANCE).sum(axis=1))


def rank_intervals(worst: Floats, best: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Best and worst rank that tie-breaking can give to every system.

    >>> rank_intervals(np.array([0.5, 0.3, 0.1]), np.array([0.6, 0.55, 0.2]))
    (array([1, 1, 3]), array([2, 2, 3]))
    """
    above = best > worst[:, None] + TOLERANCE
    np.fill_diagonal(above, False)
    surely_above = worst > best[:, None] + TOLERANCE
    return 1 + surely_above.sum(axis=1), 1 + above.sum(axis=1)
