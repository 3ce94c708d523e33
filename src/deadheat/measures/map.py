"""MAP: average precision, averaged over queries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deadheat.measures.base import BinaryMeasure, Example, RankWeights
from deadheat.measures.kernel import relevant_groups, run_kernel
from deadheat.measures.parameters import parameter
from deadheat.ties import Floats, Ints, TieGroups


@dataclass(frozen=True, repr=False)
class MAPMeasure(BinaryMeasure):
    """MAP@k: the mean of the precision at the rank of every relevant document among the first k.

    This is the average precision of a query; MAP is its mean over queries. The precision of a
    relevant document that was not retrieved, or whose rank is beyond k, is 0.
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
            "N": "the number of relevant documents, retrieved or not, as in trec_eval",
            "min": "min(N, k), as in some evaluators of embedding models",
            "found": "the number of relevant documents at ranks 1 … k, as in the scorer of "
            "SemEval's community question answering; best and worst are the largest and smallest "
            "quotient",
        },
        about="the divisor of the sum",
    )

    def rank_weights(self, groups: TieGroups) -> RankWeights | None:
        """Return AP as the sum of n / rank of the n-th relevant document; None for "found"."""
        if self.divisor == "found":
            return None
        divisor = self.n_relevant(groups)
        if self.divisor == "min":
            divisor = np.minimum(divisor, self.depth(groups))
        relevant, n = self.count_relevant(groups)
        coefficient = np.where(relevant, n / divisor[groups.document_query], 0.0)
        return RankWeights(relevant, coefficient, np.reciprocal, ascending=True)

    def views(self, groups: TieGroups) -> Floats:
        """Return five rows per query: expected, best, worst, oblivious, variance."""
        relevant = relevant_groups(groups, self.lowest_relevant)
        n, depth = self.n_relevant(groups), self.depth(groups)
        choices = {"N": n, "min": np.minimum(n, depth), "found": np.full(len(n), -1.0)}
        divisor = choices[self.divisor]
        return run_kernel(average_precision_views, len(n), *relevant, depth, divisor)


def harmonic_sums(c: int, n: int) -> tuple[float, float]:
    """Return the sums of 1/rank and 1/rank² over the `n` ranks after rank `c`.

    The first ranks are added up one by one. From 64 on, the asymptotic series of the harmonic
    numbers is exact to float64, and whole logarithms cancel in it.
    """
    sums = squares = 0.0
    a = c
    while a < 64 and a < c + n:
        a += 1
        sums += 1.0 / a
        squares += 1.0 / a / a
    if a < c + n:
        x = 1.0 / a
        y = 1.0 / (c + n)
        steps = (c + n - a) * x
        sums += math.log1p(steps) + harmonic_rest(y) - harmonic_rest(x)
        squares += steps * y + square_rest(x) - square_rest(y)
    return sums, squares


def harmonic_rest(v: float) -> float:
    """Return the rest of the series of harmonic numbers after log(rank) + γ, for 1/rank = v."""
    return v / 2 - v * v * (1 / 12.0 - v * v * (1 / 120.0 - v * v / 252.0))


def square_rest(v: float) -> float:
    """Return the rest of the series of the sums of 1/rank², for 1/rank = v."""
    return -v * v / 2 + v * v * v * (1 / 6.0 - v * v * (1 / 30.0 - v * v / 42.0))


Moments = tuple[float, float, float, float]
Sums = tuple[float, float, float, float, float, float, float, float, float]


def reciprocal_sums(c: int, places: int, whole: bool) -> Sums:
    """Return sums over the places ``i = 0 … T−1`` of a group of ``v_i = 1/(c + 1 + i) − centre``.

    In this order: b = Σ v, b2 = Σ v², s1 = Σ i·v, s2 = Σ i·v², s3 = Σ i(i−1)·v²; over i < j:
    h = Σ v_i·v_j, u = Σ i·v_i·v_j, w = Σ i(j−2)·v_i·v_j; and the centre.

    At large ranks the reciprocals of the ranks of a group are nearly equal, and their differences
    would lose digits. So short groups are added up place by place. If the `whole` group counts,
    the value at its middle (the centre) is subtracted first. Otherwise the centre is 0.
    """
    b = b2 = s1 = s2 = s3 = h = u = w = centre = 0.0
    if places <= 64 or 8 * places < c:
        middle = places // 2
        if whole:
            centre = 1.0 / (c + 1 + middle)
        for j in range(places):
            v = 1.0 / (c + 1 + j)
            if whole:
                v *= (middle - j) * centre
            h += b * v
            u += s1 * v
            w += (j - 2) * s1 * v
            b += v
            s1 += j * v
            b2 += v * v
            s2 += j * v * v
            s3 += j * (j - 1.0) * v * v
        return b, b2, s1, s2, s3, h, u, w, centre
    b, b2 = harmonic_sums(c, places)
    t = places + 0.0
    one = c + 1.0
    s1 = t - one * b
    s2 = b - one * b2
    s3 = t - (2 * one + 1) * b + one * (one + 1) * b2
    h = (b * b - b2) / 2
    u = s1 - one * h
    w = t * (t - 1) / 2 - one * ((t + c) * b - t) - (one + 2) * u
    return b, b2, s1, s2, s3, h, u, w, centre


def moments(sums: Sums, g: int, r: int, ahead: int) -> tuple[float, float]:
    """Return mean and variance of the contribution to N·AP of `g` documents, `r` of them relevant.

    Parameters
    ----------
    sums
        `reciprocal_sums` of the places of the group that count.
    ahead
        Relevant documents above the group (``R``).
    """
    b, b2, s1, s2, s3, h, u, w, centre = sums
    # p_m: the probability that m given places of the group all have relevant documents.
    p1 = r / (g + 0.0)
    p2 = p1 * max(r - 1, 0) / max(g - 1, 1)
    p3 = p2 * max(r - 2, 0) / max(g - 2, 1)
    p4 = p3 * max(r - 3, 0) / max(g - 3, 1)
    a = ahead + 1.0
    first = a * p1 * b + p2 * s1
    second = (
        a * a * (p1 * b2 + 2 * p2 * h)
        + 2 * a * ((p2 - p3) * (s2 + h) + p3 * b * s1)
        + (p2 * s2 + p3 * s3 + 4 * p3 * u + 2 * p4 * w)
    )
    # A whole group adds the centre once for each of the precisions' numerators R+1 … R+r.
    mean = first + centre * r * (a + (r - 1) / 2.0)
    return mean, max(second - first * first, 0.0) if r < g else 0.0


def precision_sum(first: int, count: int, ahead: int, limit: int) -> float:
    """Return the sum of precisions of `count` relevant documents at the ranks from `first` on.

    `ahead` relevant documents rank above them. Ranks beyond the limit add nothing.
    """
    total = 0.0
    for j in range(min(count, limit - first + 1)):
        total += (ahead + 1 + j) / (first + j + 0.0)
    return total


def cut_group_views(c: int, g: int, r: int, limit: int, ahead: int, others: Moments) -> Moments:
    """Return expected, best, worst and variance if the cutoff cuts a group, for divisor "found".

    The number of documents found is random only through this group. Of its `r` relevant documents,
    ``h`` are among its first ``T`` places with hypergeometric probability. Given ``h``, they are
    distributed as in a whole group of ``T``. The best and the worst order need not be "relevant
    first" or "relevant last", because a relevant document at a low rank lowers the quotient. So
    each ``h`` is computed with its documents first, and last.

    Parameters
    ----------
    ahead
        Number of relevant documents above the group.
    others
        Expected, best, worst and variance of the sum of precisions of the groups above.
    """
    expected, best, worst, variance = others
    places = limit - c
    sums = reciprocal_sums(c, places, True)
    fewest = max(0, places - (g - r))
    most = min(r, places)
    highest = 0.0
    lowest = math.inf
    weights = first = second = 0.0
    p = 1.0  # the probability of h, times a constant
    for h in range(fewest, most + 1):
        n = ahead + h
        weights += p
        if n > 0:
            highest = max(highest, (best + precision_sum(c + 1, h, ahead, limit)) / n)
            lowest = min(lowest, (worst + precision_sum(limit - h + 1, h, ahead, limit)) / n)
            mean, spread = moments(sums, places, h, ahead)
            mean = (expected + mean) / n
            first += p * mean
            second += p * (mean * mean + (variance + spread) / (n * (n + 0.0)))
        else:
            lowest = 0.0
        p *= (r - h + 0.0) * (places - h) / ((h + 1.0) * (g - r - places + h + 1))
        if p > 1e200:
            p, weights, first, second = p / 1e200, weights / 1e200, first / 1e200, second / 1e200
    first /= weights
    return first, highest, lowest, max(second / weights - first * first, 0.0)


def average_precision_views(
    in_queries: Ints,
    above: Ints,
    size: Ints,
    relevant: Ints,
    ranks: Ints,
    depth: Ints,
    divisor: Floats,
    out: Floats,
) -> None:
    """Compute the views of MAP; a divisor below 0 means the number of relevant documents found."""
    document = 0
    for q in range(len(depth)):
        limit = depth[q]
        z = divisor[q]
        expected = best = worst = rule = variance = 0.0
        ahead = found = 0
        cut = -1
        for k in range(in_queries[q], in_queries[q + 1]):
            c = above[k]
            g = size[k]
            r = relevant[k]
            for i in range(r):
                if ranks[document + i] <= limit:
                    found += 1
                    rule += (found + 0.0) / ranks[document + i]
            document += r
            places = min(limit - c, g)
            if r == 0 or places <= 0:
                continue
            if z < 0 and places < g:
                cut = k
                continue
            best += precision_sum(c + 1, r, ahead, limit)
            worst += precision_sum(c + g - r + 1, r, ahead, limit)
            if g > 1:
                mean, spread = moments(reciprocal_sums(c, places, places == g), g, r, ahead)
                expected += mean
                variance += spread
            else:
                expected += (ahead + 1.0) / (c + 1)
            ahead += r
        if cut >= 0:
            out[0, q], out[1, q], out[2, q], out[4, q] = cut_group_views(
                above[cut],
                size[cut],
                relevant[cut],
                limit,
                ahead,
                (expected, best, worst, variance),
            )
        if z < 0:
            z = found
        if z > 0:
            out[3, q] = rule / z
            if cut < 0:
                out[0, q] = expected / z
                out[1, q] = best / z
                out[2, q] = worst / z
                out[4, q] = variance / (z * z)


MAP = MAPMeasure()
