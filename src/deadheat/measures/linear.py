"""Linear measures: the sum of gains weighted by rank, divided by a constant.

``M = (1/Z) Σ w(rank) · gain``, with ``w = 0`` beyond the cutoff. Consider a group of ``g``
documents below ``c`` others, with ``T`` places that count. Its expected contribution is its mean
gain times the sum ``S`` of the weights of these places. The variance is that of sampling without
replacement: the population variance of its gains times ``(g·Σw² − S²) / (g − 1)``. With
``D = Σ(w − S/T)²`` that factor is ``(g·D + T·(g − T)·(S/T)²) / (g − 1)``, without cancellation.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from deadheat.measures.base import BinaryMeasure, Measure, RankWeights
from deadheat.measures.kernel import group_arrays, is_compiled, run_kernel
from deadheat.ties import Floats, Ints, TieGroups

_SHORTEST, _LONGEST = 1 << 10, 1 << 20
"""Smallest and largest number of ranks in a table of weights."""
_BLOCK = 1 << 10


class WeightTables(NamedTuple):
    """Weights of the ranks from 0 on (rank 0 has weight 0), and prefix sums of weights and squares.

    Empty if every rank has weight 1.
    """

    weight: Floats | list[float]
    sums: Floats | list[float]
    squares: Floats | list[float]


_NO_TABLES = WeightTables(*[np.empty(0)] * 3)


@dataclass(frozen=True, repr=False)
class LinearMeasure(Measure):
    """Base of the linear measures; subclasses define gains, and optionally divisor and weights."""

    @abstractmethod
    def gains(self, groups: TieGroups) -> Floats:
        """Return the gain of each document."""

    def divisor(self, groups: TieGroups) -> Floats | Ints:
        """Return ``Z`` per query. Default: 1. A query whose ``Z`` is 0 scores 0."""
        return np.ones(groups.n_queries)

    def weight(self, rank: Floats) -> Floats:
        """Return the weight ``w`` of each rank. Default: 1."""
        return np.ones(rank.shape)

    def far_sums(self, above: int, places: int) -> tuple[float, float]:
        """Return ``S`` and ``D`` of the ranks after `above`, beyond the tables, from blocks."""
        end = above + places
        starts = range(above, end, _LONGEST)
        blocks = [(start + 1, min(start + _LONGEST, end) + 1) for start in starts]
        total = deviation = 0.0
        for first, stop in blocks:
            total += float(self.weight(np.arange(first, stop, dtype=np.float64)).sum())
        for first, stop in blocks:
            distance = self.weight(np.arange(first, stop, dtype=np.float64)) - total / places
            deviation += float(np.square(distance).sum())
        return total, deviation

    def views(self, groups: TieGroups) -> Floats:
        """Return five rows per query: expected, best, worst, oblivious, variance."""
        divisor = self.divisor(groups).astype(np.float64, copy=False)
        own = self.gains(groups), self.depth(groups), divisor, *self.tables(groups), self
        return run_kernel(linear_views, groups.n_queries, *group_arrays(groups), *own)

    def rank_weights(self, groups: TieGroups) -> RankWeights | None:
        """Return gains divided by the divisor as coefficients, and the weight of ranks."""
        if type(self).views is not LinearMeasure.views:
            return None
        gains = self.gains(groups)
        divisor = self.divisor(groups)[groups.document_query].astype(np.float64)
        coefficient = np.divide(gains, divisor, out=np.zeros(len(gains)), where=divisor > 0)
        return RankWeights(coefficient != 0, coefficient, self.weight, ascending=False)

    def tables(self, groups: TieGroups) -> WeightTables:
        """Return the weights of all ranks that can count, at most up to `_LONGEST`."""
        if type(self).weight is LinearMeasure.weight:
            return _NO_TABLES
        last = self.cutoff or groups.deepest
        if last >= _SHORTEST:
            last = min(last, groups.deepest)
        length = min(max(_SHORTEST, 1 << last.bit_length()), _LONGEST)
        return _weight_tables(self, length)


@lru_cache(maxsize=32)
def _weight_tables(measure: LinearMeasure, length: int) -> WeightTables:
    """Build the tables of a measure; lists if the kernel is interpreted."""
    weight = np.zeros(length)
    weight[1:] = measure.weight(np.arange(1, length, dtype=np.float64))
    arrays = weight, prefix_sums(weight), prefix_sums(weight * weight)
    if is_compiled(linear_views):
        return WeightTables(*arrays)
    return WeightTables(*(array.tolist() for array in arrays))


def prefix_sums(values: Floats) -> Floats:
    """Return prefix sums, computed in blocks so that rounding errors do not accumulate.

    >>> prefix_sums(np.array([0.0, 1.0, 0.5])).tolist()
    [0.0, 1.0, 1.5]
    """
    blocks = np.zeros(-(-len(values) // _BLOCK) * _BLOCK)
    blocks[: len(values)] = values
    sums = blocks.reshape(-1, _BLOCK).cumsum(axis=1)
    before = list(accumulate(sums[:-1, -1].tolist(), initial=0.0))
    return np.asarray((sums + np.array(before)[:, None]).reshape(-1)[: len(values)])


def weight_of(rank: int, weight: Floats, measure: LinearMeasure) -> float:
    """Return the weight of a rank."""
    if len(weight) == 0:
        return 1.0
    return weight[rank] if rank < len(weight) else measure.far_sums(rank - 1, 1)[0]


def weight_sums(
    c: int, places: int, weight: Floats, sums: Floats, squares: Floats, measure: LinearMeasure
) -> tuple[float, float]:
    """Return ``S`` and ``D`` of the `places` ranks after `c`."""
    if len(weight) == 0:
        return float(places), 0.0
    if c + places >= len(weight):
        return measure.far_sums(c, places)
    # At large ranks the weights of a short group are nearly equal: differences of sums lose digits.
    if places <= 64 or 8 * places < c:
        total = 0.0
        for j in range(c + 1, c + places + 1):
            total += weight[j]
        mean = total / places
        deviation = 0.0
        for j in range(c + 1, c + places + 1):
            deviation += (weight[j] - mean) * (weight[j] - mean)
        return total, deviation
    total = sums[c + places] - sums[c]
    return total, max(squares[c + places] - squares[c] - total * total / places, 0.0)


def ideal_sums(
    in_queries: Ints, gain: Floats, cutoff: int, weight: Floats, measure: LinearMeasure, out: Floats
) -> None:
    """Add up the weighted gains of each query, from rank 1 to the cutoff, into ``out[0]``."""
    for q in range(len(in_queries) - 1):
        first = in_queries[q]
        total = 0.0
        for i in range(first, min(in_queries[q + 1], first + cutoff)):
            total += gain[i] * weight_of(i - first + 1, weight, measure)
        out[0, q] = total


def linear_views(
    in_queries: Ints,
    in_groups: Ints,
    above: Ints,
    size: Ints,
    rank: Ints,
    gain: Floats,
    depth: Ints,
    divisor: Floats,
    weight: Floats,
    sums: Floats,
    squares: Floats,
    measure: LinearMeasure,
    out: Floats,
) -> None:
    """Compute the views of a linear measure; gains are sorted from high to low inside a group."""
    for q in range(len(depth)):
        if not divisor[q] > 0:
            continue
        expected = best = worst = rule = variance = 0.0
        tied = False
        limit = depth[q]
        for k in range(in_queries[q], in_queries[q + 1]):
            c = above[k]
            g = size[k]
            first = in_groups[k]
            last = in_groups[k + 1]
            total = 0.0
            for i in range(first, last):
                total += gain[i] / divisor[q]
                if c + 1 + (i - first) <= limit:
                    best += gain[i] * weight_of(c + 1 + (i - first), weight, measure)
                if c + g - (i - first) <= limit:
                    worst += gain[i] * weight_of(c + g - (i - first), weight, measure)
                if rank[i] <= limit:
                    rule += gain[i] * weight_of(rank[i], weight, measure)
            if g == 1:
                if c + 1 <= limit:
                    expected += total * weight_of(c + 1, weight, measure)
                continue
            tied = True
            places = min(limit - c, g)
            if places <= 0:
                continue
            weights, deviation = weight_sums(c, places, weight, sums, squares, measure)
            mean = total / g
            expected += mean * weights
            # The deviation of the gains; documents that are not listed have gain 0.
            spread = (g - (last - first)) * mean * mean
            for i in range(first, last):
                share = gain[i] / divisor[q] - mean
                spread += share * share
            factor = g * deviation + (g - places) * weights * (weights / places)
            variance += spread / g * factor / (g - 1)
        best /= divisor[q]
        worst /= divisor[q]
        out[0, q] = expected if tied else best
        out[1, q] = max(best, worst)
        out[2, q] = min(best, worst)
        out[3, q] = rule / divisor[q]
        out[4, q] = variance


@dataclass(frozen=True, repr=False)
class CountingMeasure(BinaryMeasure, LinearMeasure):
    """Base of the linear measures that count relevant documents."""

    def gains(self, groups: TieGroups) -> Floats:
        """Return, per document, 1 if it is relevant, else 0."""
        return (groups.grade >= self.lowest_relevant).astype(np.float64)
