"""MRR: the reciprocal rank of the first relevant document, averaged over queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from deadheat.measures.base import BinaryMeasure, Example, RankWeights
from deadheat.measures.kernel import relevant_groups, run_kernel
from deadheat.ties import Floats, Ints, TieGroups


@dataclass(frozen=True, repr=False)
class FirstRelevantMeasure(BinaryMeasure):
    """Base of the measures of the rank of the first relevant document."""

    is_reciprocal: ClassVar[bool]
    """Whether the value is 1 / rank; otherwise it is 1."""

    def at_stake(self, groups: TieGroups, above: Ints) -> Floats:
        """Return, per query, the value at the next rank, or 0 if a relevant document is above."""
        value = 1 / (above + 1) if self.is_reciprocal else 1.0
        relevant = relevant_groups(groups, self.lowest_relevant).relevant
        holds = (relevant > 0) & (groups.above < above[groups.query])
        found = np.bincount(groups.query[holds], minlength=groups.n_queries) > 0
        return np.where((above < self.depth(groups)) & ~found, value, 0.0)

    def rank_weights(self, groups: TieGroups) -> RankWeights | None:
        """Return the value of the first relevant document as a sum of rank weights."""
        relevant, n = self.count_relevant(groups)
        first = (relevant & (n == 1)).astype(np.float64)
        weight = np.reciprocal if self.is_reciprocal else np.ones_like
        return RankWeights(relevant, first, weight, ascending=True)

    def views(self, groups: TieGroups) -> Floats:
        """Return five rows per query: expected, best, worst, oblivious, variance."""
        relevant = relevant_groups(groups, self.lowest_relevant)
        own = self.depth(groups), self.is_reciprocal
        return run_kernel(first_relevant_views, groups.n_queries, *relevant, *own)


@dataclass(frozen=True, repr=False)
class MRRMeasure(FirstRelevantMeasure):
    """MRR@k: 1 / rank of the first relevant document, or 0 if that rank is beyond k.

    This is the reciprocal rank of a query; MRR is its mean over queries. A query whose relevant
    documents were not retrieved scores 0.
    """

    name = "MRR"
    formula = "MRR@k = 1 / (rank of the first relevant document), or 0 if that rank is beyond k"
    example = Example("MRR@10", ranked=(0, 0, 0, 1, 1), working="1/4", value=0.25)
    aliases = ("rr", "recip_rank", "reciprocal_rank")
    is_reciprocal = True


def value_at(rank: int, limit: int, reciprocal: bool) -> float:
    """Return 1 / rank or 1; beyond the limit 0."""
    if rank > limit:
        return 0.0
    return 1.0 / rank if reciprocal else 1.0


def reciprocal_rank_moments(c: int, g: int, r: int, places: int) -> tuple[float, float]:
    """Return the mean and variance of 1 / rank of the first relevant document of a group.

    Its rank is ``x = c + 1 + t`` with probability ``p_t = π_t · r/(g − t)``, where
    ``π_0 = 1`` and ``π_{t+1} = π_t · (g − r − t)/(g − t)``. The variance is computed from the
    differences to the value at the middle place, so that it does not lose digits at large ranks.
    """
    middle = min((g - r) // (r + 1), places - 1)
    centre = 1.0 / (c + 1 + middle)
    passing = 1.0
    within = mean = first = second = 0.0
    for t in range(min(places, g - r + 1)):
        left = 1.0 / (g - t)
        value = 1.0 / (c + 1 + t)
        p = passing * r * left
        distance = (middle - t) * value * centre
        within += p
        mean += p * value
        first += p * distance
        second += p * distance * distance
        passing *= (g - t - r) * left
        if passing < 1e-18:  # the rest cannot change a digit: all earlier ranks are higher
            break
    # With probability 1 − within the rank is beyond the cutoff, and the value is 0.
    outside = passing if places < g - r + 1 else 0.0
    variance = second - first * first / within + outside * mean * (mean / within)
    return mean, max(variance, 0.0)


def miss_probability(g: int, r: int, places: int) -> float:
    """Return the probability that none of `r` documents of a group of `g` is in the first `places`.

    ``Π (g − t − r)/(g − t)`` over ``t < places``, or the same with r and places exchanged.
    """
    many = max(r, places)
    miss = 1.0
    for t in range(min(r, places)):
        miss *= max(g - t - many, 0.0) / (g - t)
        if miss < 1e-18:
            break
    return miss


def first_relevant_views(
    in_queries: Ints,
    above: Ints,
    size: Ints,
    relevant: Ints,
    ranks: Ints,
    depth: Ints,
    reciprocal: bool,
    out: Floats,
) -> None:
    """Compute the views of MRR or Success from the first group with a relevant document."""
    document = 0
    for q in range(len(depth)):
        limit = depth[q]
        found = False
        for k in range(in_queries[q], in_queries[q + 1]):
            c = above[k]
            g = size[k]
            r = relevant[k]
            if r > 0 and not found:
                found = True
                mean = best = value_at(c + 1, limit, reciprocal)
                worst = value_at(c + g - r + 1, limit, reciprocal)
                variance = 0.0
                places = min(limit - c, g)
                if not reciprocal:
                    miss = miss_probability(g, r, max(places, 0))
                    mean = 1.0 - miss
                    variance = (1.0 - miss) * miss
                elif r < g and places > 0:
                    mean, variance = reciprocal_rank_moments(c, g, r, places)
                out[0, q] = mean
                out[1, q] = best
                out[2, q] = worst
                out[3, q] = value_at(ranks[document], limit, reciprocal)
                out[4, q] = variance
            document += r


MRR = MRRMeasure()
