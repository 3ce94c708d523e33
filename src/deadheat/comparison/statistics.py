"""The statistics of a comparison: chances under ties, tests over queries, ranks, the verdict.

Two kinds of chance meet here and are never added up. Under *random tie-breaking* the queries
are fixed and the orders of tied documents vary. Under *sampling of queries* the expectations
are fixed and the queries vary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

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
}
_BLOCK = 1 << 20


def verdict(
    difference: float,
    oblivious_difference: float,
    a_wins: float,
    b_wins: float,
    p_value: float | None,
    alpha: float = 0.05,
) -> str:
    """Give one of `VERDICTS` on A against B.

    Four questions are asked in this order, and the first that says no gives the verdict.

    1. Do the ties leave the systems in the order of their expectations? If random
       tie-breaking gives that order with a probability below ``1 − alpha``, no order can be
       called wrong: *undecided: ties*.
    2. Do the oblivious numbers agree with that order? If they say the opposite, what a
       tie-oblivious tool prints for these very queries misleads, however many more queries
       might be needed to generalise: *decision error*.
    3. Do the queries suffice? If the systems are not told apart over queries at the level
       ``alpha``, or cannot be because there is but one query: *undecided: queries*.
    4. Otherwise the system with the higher expectation *is better*.

    Parameters
    ----------
    difference, oblivious_difference
        Mean of A minus mean of B, of the expectations and of the oblivious values.
    a_wins, b_wins
        Probability that A beats B, and B beats A, under random tie-breaking.
    p_value
        Of a test over queries, corrected for the comparisons made; None if there is none.

    Examples
    --------
    >>> verdict(-0.0584, +0.0056, a_wins=0.0, b_wins=1.0, p_value=0.001)
    'decision error'
    >>> verdict(-0.0099, -0.0080, a_wins=0.0, b_wins=1.0, p_value=0.001)
    'B is better'
    """
    order = sign(difference)
    if {1: a_wins, -1: b_wins, 0: 1 - a_wins - b_wins}[order] < 1 - alpha:
        return "undecided: ties"
    if order * sign(oblivious_difference) < 0:
        return "decision error"
    if order == 0 or p_value is None or p_value > alpha:
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


def chances(a: Views, b: Views) -> Chances:
    """Probabilities that the mean of A is above that of B, and below it.

    Only two moments of each value are known. They are enough to be exact where every value
    that ties can move takes just two values, as it does when two documents tie: then and only
    then the variance is ``(best − E)(E − worst)``, the largest it can be (Bhatia–Davis), and
    the best comes with probability ``(E − worst) / (best − worst)``.
    """
    low, high = sign(a.worst.mean() - b.best.mean()), sign(a.best.mean() - b.worst.mean())
    if low > 0 or high < 0 or low == high == 0:
        return Chances(float(low > 0), float(high < 0), "certain")
    values = np.vstack([_moving(a), -_moving(b)])
    expected, variance, best, worst = values.T
    variance = np.abs(variance)
    width = np.abs(best - worst)
    largest = (best - expected) * (expected - worst)
    known = a.variance is not None and b.variance is not None
    if known and len(values) <= FEW and (largest - variance <= 1e-6 * width**2).all():
        n = len(a.expected)
        still = (a.expected - b.expected).sum() - expected.sum()
        sums, weights = np.array([still / n]), np.ones(1)
        for x, y, p in zip(best / n, worst / n, (expected - worst) / (best - worst), strict=True):
            sums = np.concatenate([sums + x, sums + y])
            weights = np.concatenate([weights * p, weights * (1 - p)])
        a_wins, b_wins = (float(weights[side * sums > TOLERANCE].sum()) for side in (1, -1))
        return Chances(a_wins, b_wins, "exact")
    difference = float((a.expected - b.expected).mean())
    std = math.sqrt(float(variance.sum())) / len(a.expected)
    method = "bound" if not known else "rough" if len(values) < ROUGH else "normal"
    return normal_chances(difference, std, method)


def normal_chances(difference: float, std: float, method: str = "normal") -> Chances:
    """Chances from the mean of the difference and its tie std."""
    z = difference / max(std, TOLERANCE)
    return Chances(math.erfc(-z / math.sqrt(2)) / 2, math.erfc(z / math.sqrt(2)) / 2, method)


def _moving(views: Views) -> Floats:
    """Expectation, variance, best and worst of the queries whose value ties can move.

    Where no variance is known it is the largest possible.
    """
    e, best, worst = views.expected, views.best, views.worst
    variance = (best - e) * (e - worst) if views.variance is None else views.variance
    return np.column_stack([e, variance, best, worst])[best - worst > TOLERANCE]


def sign_flip_p_values(differences: Floats, resamples: int, seed: int) -> Floats:
    """Two-sided p-values of the paired randomisation test, for every column.

    If the systems are exchangeable, every difference of a query is as likely as its negative.
    The p-value is the share of sign flips with a mean at least as far from 0 as the one
    observed: of all ``2^n`` flips where they are no more than `resamples`, otherwise of random
    ones and the observed one.
    """
    n = len(differences)
    slack = TOLERANCE * np.abs(differences).sum(axis=0)
    observed = np.abs(differences.sum(axis=0)) - slack
    every = 2**n <= resamples
    rng = np.random.default_rng(seed)
    extreme = np.zeros(differences.shape[1])
    for start, stop in _blocks(2**n if every else resamples, n):
        if every:
            flips = np.arange(start, stop)[:, None] >> np.arange(n) & 1
        else:
            flips = rng.integers(0, 2, (stop - start, n), dtype=np.int8)
        extreme += (np.abs((1.0 - 2.0 * flips) @ differences) >= observed).sum(axis=0)
    return extreme / 2**n if every else (extreme + 1) / (resamples + 1)


def bootstrap_intervals(
    differences: Floats, alpha: float, resamples: int, seed: int
) -> NDArray[Any]:
    """Percentile bootstrap intervals of the mean over queries: ``[low, high]`` per column."""
    n = len(differences)
    rng = np.random.default_rng(seed)
    means = []
    for start, stop in _blocks(resamples, n):
        drawn = rng.integers(0, n, (stop - start, n)) + n * np.arange(stop - start)[:, None]
        times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
        means.append(times @ differences / n)
    return np.quantile(np.concatenate(means), [alpha / 2, 1 - alpha / 2], axis=0)


def _blocks(total: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, _BLOCK // width)
    return ((start, min(start + step, total)) for start in range(0, total, step))


def holm(p_values: Floats) -> Floats:
    """Correct p-values for their number (Holm 1979).

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1)
    return corrected


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
