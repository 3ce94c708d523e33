"""MAP: average precision, averaged over queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.measures.base import BinaryMeasure, Example, ratio
from deadheat.measures.parameters import parameter
from deadheat.ties.groups import Floats, Ints, TieGroups

# Long doubles: the second moment takes differences of sums that grow with the rank.
_SMALL = np.arange(1, 65, dtype=np.longdouble)
_H = np.concatenate(([0], np.cumsum(1 / _SMALL)))
_H2 = np.concatenate(([0], np.cumsum(1 / _SMALL**2)))


def harmonic_sums(c: Ints, n: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sum 1/rank and 1/rank² over the `n` ranks that follow rank `c`.

    Ranks up to 64 come from a table, the others from the asymptotic series of the harmonic
    numbers, in which whole logarithms cancel before they can do harm.
    """
    top = c + n
    low, high = np.minimum(c, 64), np.minimum(top, 64)
    a, b = np.maximum(c, 64).astype(np.longdouble), np.maximum(top, 64).astype(np.longdouble)
    x, y = 1 / a, 1 / b

    def rest(v: NDArray[Any]) -> Any:
        v2 = v * v
        return v / 2 - v2 * (1 / 12 - v2 * (1 / 120 - v2 / 252))

    def rest2(v: NDArray[Any]) -> Any:
        v2 = v * v
        return -v2 / 2 + v * v2 * (1 / 6 - v2 * (1 / 30 - v2 / 42))

    sums = _H[high] - _H[low] + np.log1p((b - a) * x) + rest(y) - rest(x)
    squares = _H2[high] - _H2[low] + (b - a) * x * y + rest2(x) - rest2(y)
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
        counted = self.counted(groups, rank)
        query, rank = groups.document_query[counted], rank[counted]
        order = np.lexsort((rank, query))
        query, rank = query[order], rank[order]
        nth = np.arange(1, len(query) + 1) - np.searchsorted(query, query)
        return ratio(groups.sum_queries(nth / rank, query), self._divisor(groups))

    def _divisor(self, groups: TieGroups) -> Floats:
        n = groups.n_relevant(self.rel)
        return np.minimum(n, self.depth(groups)) if self.divisor == "min" else n

    def _moments(self, groups: TieGroups) -> tuple[Ints, NDArray[Any], NDArray[Any]]:
        """Groups that count, and the first two moments of what each adds to N·AP."""
        return groups.memo(("moments", self(divisor="N")), lambda: self._compute_moments(groups))

    def _compute_moments(self, groups: TieGroups) -> tuple[Ints, NDArray[Any], NDArray[Any]]:
        within = self.within(groups)
        index = np.flatnonzero((within > 0) & (groups.relevant(self.rel) > 0))
        above, places = groups.above[index], within[index]
        b, b2 = harmonic_sums(above, places)
        c, t = above.astype(np.longdouble), places.astype(np.longdouble)
        g = groups.size[index].astype(np.longdouble)
        r = groups.relevant(self.rel)[index]
        ahead = groups.relevant_above(self.rel)[index] + 1

        # p_m: the chance that m given places of the group all hold relevant documents.
        p = [np.ones(len(index), np.longdouble)]
        for m in range(4):
            p.append(p[-1] * np.maximum(r - m, 0) / np.maximum(g - m, 1))
        _, p1, p2, p3, p4 = p

        # Sums over places i (and pairs i < j of places) of the group, counted from 0, where
        # x = c + 1 + i is the rank: s1 = Σ i/x, s2 = Σ i/x², s3 = Σ i(i−1)/x²,
        # h = Σ 1/(x_i·x_j), u = Σ i/(x_i·x_j), w = Σ i(j−2)/(x_i·x_j).
        s1 = t - (c + 1) * b
        s2 = b - (c + 1) * b2
        s3 = t - (2 * c + 3) * b + (c + 1) * (c + 2) * b2
        h = (b * b - b2) / 2
        u = s1 - (c + 1) * h
        v = t * (t - 1) / 2 - (c + 1) * ((t + c) * b - t)
        w = v - (c + 3) * u

        first = ahead * p1 * b + p2 * s1
        second = (
            ahead**2 * (p1 * b2 + 2 * p2 * h)
            + 2 * ahead * ((p2 - p3) * (s2 + h) + p3 * b * s1)
            + (p2 * s2 + p3 * s3 + 4 * p3 * u + 2 * p4 * w)
        )
        return index, first, second


MAP = MAPMeasure()
