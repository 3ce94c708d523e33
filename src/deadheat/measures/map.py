"""MAP: average precision, averaged over queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.measures.base import BinaryMeasure, Example, rank_order, ratio
from deadheat.measures.parameters import parameter
from deadheat.ties.groups import Floats, Ints, TieGroups, firsts

# Long doubles: the second moment takes differences of sums that grow with the rank.
_SMALL = np.arange(1, 65, dtype=np.longdouble)
_H = np.concatenate(([0], np.cumsum(1 / _SMALL)))
_H2 = np.concatenate(([0], np.cumsum(1 / _SMALL**2)))
_LESS = np.arange(4)[:, None]
"""What is taken off the numbers of documents, one place after another."""
_FEW = 8
"""Up to so many places of a group are summed one by one."""


@dataclass(frozen=True)
class PlaceSums:
    """Sums over the places ``i = 0 … T−1`` of a group that count, of ranks ``x_i = c + 1 + i``."""

    b: NDArray[Any]
    """Σ 1/x"""
    b2: NDArray[Any]
    """Σ 1/x²"""
    s1: NDArray[Any]
    """Σ i/x"""
    s2: NDArray[Any]
    """Σ i/x²"""
    s3: NDArray[Any]
    """Σ i(i−1)/x²"""
    h: NDArray[Any]
    """Σ 1/(x_i·x_j), over i < j"""
    u: NDArray[Any]
    """Σ i/(x_i·x_j), over i < j"""
    w: NDArray[Any]
    """Σ i(j−2)/(x_i·x_j), over i < j"""


def few_place_sums(c: Ints, t: Ints) -> PlaceSums:
    """Add up place by place; no term is negative, so that no digit is lost."""
    b, b2, s1, s2, s3, h, u, w = np.zeros((8, len(c)))
    for j in range(int(t.max(initial=0))):
        x = (j < t) / (c + (j + 1.0))  # 0 where the place does not count
        h += b * x
        u += s1 * x
        w += (j - 2) * s1 * x  # s1 is 0 where j − 2 is negative
        b += x
        s1 += j * x
        b2 += x * x
        s2 += j * x * x
        s3 += j * (j - 1) * x * x
    return PlaceSums(b, b2, s1, s2, s3, h, u, w)


def many_place_sums(c: Ints, t: Ints) -> PlaceSums:
    """Give the sums in closed form, from those of 1/rank and 1/rank²."""
    b, b2 = harmonic_sums(c, t)
    c, t = c.astype(np.longdouble), t.astype(np.longdouble)
    s1 = t - (c + 1) * b
    h = (b * b - b2) / 2
    u = s1 - (c + 1) * h
    v = t * (t - 1) / 2 - (c + 1) * ((t + c) * b - t)
    return PlaceSums(
        b=b,
        b2=b2,
        s1=s1,
        s2=b - (c + 1) * b2,
        s3=t - (2 * c + 3) * b + (c + 1) * (c + 2) * b2,
        h=h,
        u=u,
        w=v - (c + 3) * u,
    )


def group_moments(c: Ints, g: Ints, t: Ints, r: Floats, ahead: Floats) -> tuple[Floats, Floats]:
    """First two moments of what a group of `g` documents, `r` of them relevant, adds to N·AP.

    Parameters
    ----------
    c, t
        Candidates above the group, and how many of its places count.
    ahead
        One more than the relevant documents above the group.
    """
    first = ahead / (c + 1.0)  # of a document that stands alone
    second = first * first
    for tied, sums_of in (
        ((g > 1) & (t <= _FEW), few_place_sums),
        (t > _FEW, many_place_sums),
    ):
        index = np.flatnonzero(tied)
        if len(index):
            sums = sums_of(c[index], t[index])
            first[index], second[index] = _tied_moments(sums, g[index], r[index], ahead[index])
    return first, second


def _tied_moments(
    s: PlaceSums, g: Ints, r: Floats, ahead: Floats
) -> tuple[NDArray[Any], NDArray[Any]]:
    # p_m: the chance that m given places of the group all hold relevant documents.
    chances = np.maximum(r - _LESS, 0).astype(s.b.dtype) / np.maximum(g - _LESS, 1)
    p1, p2, p3, p4 = chances.cumprod(axis=0)
    first = ahead * p1 * s.b + p2 * s.s1
    second = (
        ahead**2 * (p1 * s.b2 + 2 * p2 * s.h)
        + 2 * ahead * ((p2 - p3) * (s.s2 + s.h) + p3 * s.b * s.s1)
        + (p2 * s.s2 + p3 * s.s3 + 4 * p3 * s.u + 2 * p4 * s.w)
    )
    return first, second


def harmonic_sums(c: Ints, n: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sum 1/rank and 1/rank² over the `n` ranks that follow rank `c`.

    Ranks up to 64 come from a table, the others from the asymptotic series of the harmonic
    numbers, in which whole logarithms cancel before they can do harm.
    """
    top = c + n
    low, high = np.minimum(c, 64), np.minimum(top, 64)
    a, b = ends = np.maximum((c, top), 64).astype(np.longdouble)
    x, y = v = 1 / ends
    v2 = v * v
    rest_a, rest_b = v / 2 - v2 * (1 / 12 - v2 * (1 / 120 - v2 / 252))
    rest2_a, rest2_b = -v2 / 2 + v * v2 * (1 / 6 - v2 * (1 / 30 - v2 / 42))
    sums = _H[high] - _H[low] + np.log1p((b - a) * x) + rest_b - rest_a
    squares = _H2[high] - _H2[low] + (b - a) * x * y + rest2_a - rest2_b
    return sums, squares


@dataclass(frozen=True, repr=False)
class MAPMeasure(BinaryMeasure):
    """MAP@k: precision at the rank of every relevant document among the first k, averaged.

    The average precision of a query; its mean over queries gives the measure its name. The
    precision of a relevant document that was not retrieved, or stands past k, is 0.
    """

    name = "MAP"
    formula = "MAP@k = (1/N) · Σ Precision@rank, over relevant documents at ranks 1 … k"
    example = Example(
        "MAP", ranked=(1, 0, 0, 1), unretrieved=(1,), working="(1/1 + 2/4) / 3", value=0.5
    )
    aliases = ("ap", "map_cut", "average_precision")

    divisor: str = parameter(
        "N",
        choices={
            "N": "all relevant documents, retrieved or not, as in trec_eval",
            "min": "min(N, k) of them, as some evaluators of embedding models have it",
        },
        about="what the average is over",
    )

    def in_one_pass(self, one: Any, groups: TieGroups) -> Floats:
        """Per query, in five rows: all views, by a compiled pass."""
        divisor, depth = self._divisor(groups), self.depth(groups)
        views: Floats = one.average_precision(self.lowest_relevant, divisor, depth)
        return views

    def expected(self, groups: TieGroups) -> Floats:
        """Per query: the mean over all orders of tied documents."""
        index, first, _ = self._moments(groups)
        return ratio(groups.sum_queries(first, groups.query[index]), self._divisor(groups))

    def variance(self, groups: TieGroups) -> Floats:
        """Per query: the variance over all orders of tied documents."""
        index, first, second = self._moments(groups)
        parts = np.maximum(second - first * first, 0)
        # Where every document is relevant nothing can vary; leave no rounding error there.
        parts[groups.relevant(self.rel)[index] == groups.size[index]] = 0
        return ratio(
            groups.sum_queries(parts, groups.query[index]), np.square(self._divisor(groups))
        )

    def at(self, groups: TieGroups, rank: Ints) -> Floats:
        """Per query: the value when the documents of interest stand at these ranks."""
        index, query = groups.relevant_documents(self.rel)
        ranks = rank[..., index]
        ordered = np.take_along_axis(ranks, rank_order(query, ranks), -1)
        nth = np.arange(1, len(query) + 1) - firsts(query, groups.n_queries)[query]
        precision = nth / ordered * self.reached(groups, ordered, query)
        return ratio(groups.sum_queries(precision, query), self._divisor(groups))

    def _divisor(self, groups: TieGroups) -> Floats:
        n = groups.n_relevant(self.rel)
        return np.minimum(n, self.depth(groups)) if self.divisor == "min" else n

    def _moments(self, groups: TieGroups) -> tuple[Ints, Floats, Floats]:
        """Groups that count, and the first two moments of what each adds to N·AP."""

        def compute() -> tuple[Ints, Floats, Floats]:
            within, r = self.within(groups), groups.relevant(self.rel)
            index = (within * r).nonzero()[0]
            ahead = groups.relevant_above(self.rel)[index] + 1
            first, second = group_moments(
                groups.above[index], groups.size[index], within[index], r[index], ahead
            )
            return index, first, second

        return groups.memo(("moments", self), compute)


MAP = MAPMeasure()
