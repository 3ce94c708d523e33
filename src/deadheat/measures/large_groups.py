"""Approximate sums over the places of large tie groups by sums over some of the places.

Above a hundred thousand places, or steps, MRR and ERR do not add up every place of a group. They
use a quadrature whose relative error is below 1e−12 (the tests compare it with the full sums), so
that the cost of a measure does not grow with the size of a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from deadheat.ties import Floats, Ints

FEW = 1024
"""Up to this many places are added up one by one."""
_NODES = 24
_BLOCK = 1 << 20
# Coefficients of the odd derivatives in the midpoint sum minus the integral (Euler–Maclaurin).
_MIDPOINT = (-1 / 24, 7 / 5760, -31 / 967680, 127 / 154828800, -73 / 3503554560)


def first_relevant_moments(
    above: int, size: int, relevant: int, places: int
) -> tuple[float, float]:
    """Return the mean and variance of 1/rank of the first relevant document of a large group.

    The same sums as in `reciprocal_rank_moments`, over sampled places.
    """
    scale = size / relevant
    count = min(places, size - relevant + 1)
    t, weight = sampled_places(int(min(count, np.ceil(42 * scale) + 1)), above, scale)
    middle = min((size - relevant) // (relevant + 1), places - 1)
    value = 1 / (above + t + 1.0)
    distance = (middle - t) * value / (above + middle + 1.0)
    p = weight * np.exp(log_passing(t, size, relevant)) * relevant / (size - t)
    within, mean, first = p.sum(), (p * value).sum(), (p * distance).sum()
    outside = np.exp(log_passing(np.array([places]), size, relevant))[0]
    spread = (p * distance * distance).sum() - first * first / within
    return float(mean), float(max(spread + outside * mean * (mean / within), 0.0))


def stopping_mean(above: int, size: int, places: int, stopping: Sequence[float]) -> float:
    """Return the mean of 1/rank at which a reader stops in a large group, 0 if never.

    Let ``q_n`` be the probability to stop at the relevant document that follows ``n`` others, and
    ``h_n(t)`` the probability that ``n`` of the ``r`` relevant ones are among the first ``t``
    (hypergeometric). The reader stops at place ``t`` (from 0) with the probability
    ``Σ_n q_n · h_n(t) · (r − n)/(g − t)``.

    Parameters
    ----------
    above, size, places
        Numbers of documents above the group and in it, and of its places that count.
    stopping
        Per relevant document: the probability that the reader stops there.
    """
    r = len(stopping)
    if not r:
        return 0.0
    rho = np.array(stopping, np.float64)
    scale = size / rho.sum()
    t, weight = sampled_places(int(min(places, np.ceil(42 * scale) + 1)), above, scale)
    q = _stops_at(rho)
    left = q * (r - np.arange(len(q)))
    mean = 0.0
    step = max(1, _BLOCK // len(q))
    for i in range(0, len(t), step):
        place = t[i : i + step]
        stops = (_relevant_among(place, size, r, len(q)) * left).sum(axis=1) / (size - place)
        mean += float((weight[i : i + step] * stops / (above + place + 1.0)).sum())
    return mean


def sampled_places(count: int, above: int, scale: float) -> tuple[Ints, Floats]:
    """Return some of the places ``0 … count − 1`` of a group, and a weight for each.

    ``Σ weight · f(t)`` over these places equals ``Σ f(t)`` over all places, to about the precision
    of float64, if `f` is smooth: it changes little while the rank ``above + 1 + t`` doubles, and
    while ``t`` changes by `scale`. The number of places grows with the logarithm of `count`.

    >>> t, weight = sampled_places(10**8, 0, scale=np.inf)
    >>> len(t), round(float((weight / (t + 1)).sum()), 10)  # the harmonic number of 10**8
    (1432, 18.9978964139)
    """
    places = [np.arange(min(count, FEW))]
    weights = [np.ones(len(places[0]))]
    start = len(places[0])
    while start < count:
        length = int(min(max(FEW, min(above + start, 8 * scale)), count - start))
        nodes, weight = _block(length)
        places.append(start + nodes)
        weights.append(weight)
        start += length
    return np.concatenate(places), np.concatenate(weights)


@cache
def _block(length: int) -> tuple[Ints, Floats]:
    """Return nodes among ``0 … length − 1``, and weights whose sum is exact for polynomials."""
    if length < FEW:
        return np.arange(length), np.ones(length)
    from numpy.polynomial.chebyshev import chebvander  # rarely needed, and slow to import

    angle = (np.arange(_NODES) + 0.5) * np.pi / _NODES
    nodes = np.floor((1 - np.cos(angle)) / 2 * length).astype(np.int64)
    k = np.arange(_NODES, dtype=np.float64)
    step = 2 / length
    # Sums of the Chebyshev polynomials over the block, which is −1 … 1; those of odd degree are 0.
    with np.errstate(divide="ignore"):
        sums = np.where(k % 2 == 0, 2 / (1 - k * k), 0.0)
    derivative = np.ones(_NODES)
    for order in range(2 * len(_MIDPOINT) - 1):
        derivative = derivative * (k * k - order * order) / (2 * order + 1)  # at 1, of this order
        if order % 2 == 0:
            term = _MIDPOINT[order // 2] * step ** (order + 2) * 2 * derivative
            sums += np.where(k % 2 == 0, term, 0.0)
    at_nodes = chebvander(2 * (nodes + 0.5) / length - 1, _NODES - 1)
    return nodes, np.linalg.solve(at_nodes.T, sums / step)


def log_passing(t: Ints, size: int, relevant: int) -> Floats:
    """Return the log probability that the first `t` documents of a group have no relevant one.

    The probability is the product of ``(g − t − j) / (g − j)`` over ``j < r``; it is 0 if
    ``t > g − r``.

    >>> np.exp(log_passing(np.array([0, 1, 8, 9]), size=10, relevant=2)).round(4).tolist()
    [1.0, 0.8, 0.0222, 0.0]
    """
    total = np.zeros(len(t))
    step = max(1, _BLOCK // len(t))
    with np.errstate(divide="ignore"):
        for j in range(0, relevant, step):
            left = size - np.arange(j, min(j + step, relevant), dtype=np.float64)
            total += np.log1p(-np.minimum(t[:, None] / left, 1)).sum(axis=1)
    return total


def _stops_at(stopping: Floats) -> Floats:
    """Return the probabilities to stop at the first, second … relevant document in random order.

    Negligible ones are left out: the probability not to stop at ``n`` of them is at most
    ``(1 − mean)^n``. The others are computed by adding one document at a time, at a random place
    among those `seen` before: at place ``n``, later or earlier. No term is negative.
    """
    r, mean = len(stopping), stopping.mean()
    count = r if mean == 0 else min(r, int(np.ceil(37 / mean)) + 1)
    if (stopping == stopping[0]).all():
        return np.asarray(stopping[0] * np.power(1 - stopping[0], np.arange(count)))
    n = np.arange(count)
    passing, stops = (n == 0).astype(np.float64), np.zeros(count)
    for seen, rho in enumerate(stopping):
        kept = n[1:] * (1 - rho)
        added = rho * passing
        added[1:] += kept * stops[:-1]
        stops = (added + np.maximum(seen - n, 0) * stops) / (seen + 1)
        added = kept * passing[:-1]
        passing[1:] = (np.maximum(seen + 1 - n[1:], 0) * passing[1:] + added) / (seen + 1)
    return stops


def _relevant_among(t: Ints, size: int, relevant: int, count: int) -> Floats:
    """Return the probability of 0 … ``count − 1`` relevant documents before `t`, a row per `t`."""
    other = size - relevant
    least = np.maximum(t - other, 0)[:, None]  # where the others do not suffice
    i = np.arange(relevant)
    no_others = np.concatenate(([0], np.cumsum(np.log((relevant - i) / (size - i)))))
    begin = np.where(
        t <= other, log_passing(t, size, relevant), no_others[np.minimum(size - t, relevant)]
    )
    n = np.arange(count - 1)
    left = np.maximum(t[:, None] - n, 0) * (relevant - n)
    with np.errstate(divide="ignore"):
        ratio = np.log(left / ((n + 1) * np.maximum(other - t[:, None] + n + 1, 1)))
    logs = np.concatenate((begin[:, None], np.where(n < least, 0, ratio)), axis=1).cumsum(axis=1)
    return np.where(np.arange(count) < least, 0, np.exp(logs))
