"""Tests over queries: whether other queries could have ordered the systems differently.

Values are a matrix with a row per query and a column per system. A pair is two column indices.
Resampling works in blocks, so memory grows with the number of systems, not of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from deadheat.comparison.statistics import TOLERANCE
from deadheat.evaluation import Floats

Pairs = NDArray[np.int64]
"""Column indices of A and B, a row per pair."""
MANY_QUERIES = 500
"""From this many queries on, permuted means are drawn from a normal distribution."""
_BLOCK = 1 << 18
"""Numbers held in memory at a time."""


def sign_flip_p_values(values: Floats, pairs: Pairs, resamples: int, seed: int) -> Floats:
    """Return two-sided p-values of the paired randomisation test, one per pair.

    If two systems are exchangeable, the difference of a query is as likely as its negative.
    The p-value is the share of sign flips whose mean is at least as far from 0 as the observed
    mean. If there are at most `resamples` flips (``2^n``), all are used. Otherwise the share is
    that of `resamples` random flips and the observed one.
    """
    n = len(values)
    every = 2**n <= resamples
    observed = _distances(values, pairs)
    extreme = np.zeros(len(pairs))
    rng = np.random.default_rng(seed)
    for start, stop in _blocks(2**n if every else resamples, n):
        if every:
            flips = np.arange(start, stop)[:, None] >> np.arange(n) & 1
        else:
            flips = rng.integers(0, 2, (stop - start, n), dtype=np.int8)
        sums = values.T @ (1.0 - 2.0 * flips).T
        for some, differences in _differences(sums, pairs):
            extreme[some] += (np.abs(differences) >= observed[some, None]).sum(axis=1)
    return extreme / 2**n if every else (extreme + 1) / (resamples + 1)


def tukey_p_values(values: Floats, pairs: Pairs, resamples: int, seed: int) -> Floats:
    """Return family-wise p-values of the randomised Tukey HSD test, one per pair.

    If all systems are exchangeable, the values of a query could belong to the systems in any
    order. A resample permutes the values of each query. The p-value is the share of resamples,
    including the observed values, whose highest and lowest mean are at least as far apart as the
    means of the pair. Each pair is compared with the largest difference of a resample, so the
    p-values need no correction for the number of pairs.
    """
    ranges = np.sort(permuted_ranges(values, resamples, seed))
    extreme = resamples - np.searchsorted(ranges, _distances(values, pairs), "left")
    return np.asarray((extreme + 1) / (resamples + 1))


def permuted_ranges(values: Floats, resamples: int, seed: int) -> Floats:
    """Return highest minus lowest sum over queries when each query permutes its values.

    A sum over many queries is close to normal, so from `MANY_QUERIES` on it is drawn from a normal
    distribution. Let v be the variance of the systems' values within a query (divided by their
    number minus one), added over queries. The difference of two sums has the variance 2v, and so
    has the difference of two independent normal numbers of variance v.
    """
    n_queries, n_systems = values.shape
    std = np.sqrt(values.var(axis=1, ddof=1).sum())
    rng = np.random.default_rng(seed)
    ranges = []
    for start, stop in _blocks(resamples, values.size):
        if n_queries < MANY_QUERIES:
            every = np.broadcast_to(values, (stop - start, n_queries, n_systems))
            sums = rng.permuted(every, axis=2).sum(axis=1)
        else:
            sums = rng.normal(0, std, (stop - start, n_systems))
        ranges.append(np.ptp(sums, axis=1))
    return np.concatenate(ranges)


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


def student_intervals(values: Floats, pairs: Pairs, alpha: float) -> Floats:
    """Return Student's t intervals of the difference of means: rows `low` and `high`.

    There is one column per pair. The coverage is ``1 − alpha`` if the differences are normally
    distributed, for any number of queries, and approximately ``1 − alpha`` otherwise. Measured
    coverage: `docs/guides/comparing.md`, "The query interval".
    """
    n = len(values)
    reach = t_quantile(1 - alpha / 2, n - 1) / math.sqrt(n)
    intervals = np.empty((2, len(pairs)))
    for some, differences in _differences(values.T, pairs):
        middle = differences.mean(axis=1)
        half = reach * differences.std(axis=1, ddof=1)
        intervals[:, some] = middle - half, middle + half
    return intervals


def t_quantile(p: float, df: int) -> float:
    """Return the quantile of Student's t distribution with `df` degrees of freedom, for p > 1/2.

    >>> round(t_quantile(0.975, 9), 6), round(t_quantile(0.975, 10), 6)
    (2.262157, 2.228139)
    """
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _t_central(middle, df) < 2 * p - 1 else (low, middle)
    return math.sqrt(df) * math.tan(low)


def _t_central(angle: float, df: int) -> float:
    """Return P(``|t| ≤ √df tan(angle)``) (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    odd = df % 2
    index = np.arange(1, (df - odd) // 2)
    factors = (2 * index - 1 + odd) / (2 * index + odd) * math.cos(angle) ** 2
    terms = math.sin(angle) * (1 + np.cumprod(factors).sum())
    if not odd:
        return float(terms)
    return float(2 / math.pi * (angle + (math.cos(angle) * terms if df > 1 else 0.0)))


def _distances(values: Floats, pairs: Pairs) -> Floats:
    """Return the distance of each pair's sums, minus the largest rounding error of a resample."""
    sums = values.sum(axis=0)
    return np.asarray(np.abs(sums[pairs[:, 0]] - sums[pairs[:, 1]]) - TOLERANCE * len(values))


def _differences(resampled: Floats, pairs: Pairs) -> Iterator[tuple[slice, Floats]]:
    """Yield resampled A − B, a row per pair, in blocks of pairs."""
    for start, stop in _blocks(len(pairs), resampled.shape[1]):
        a, b = pairs[start:stop].T
        yield slice(start, stop), resampled[a] - resampled[b]


def _blocks(total: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, _BLOCK // width)
    return ((start, min(start + step, total)) for start in range(0, total, step))
