"""MRR: the reciprocal rank of the first relevant document, averaged over queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.measures.base import BinaryMeasure, Example, RankWeights
from deadheat.measures.kernel import relevant_groups, run_kernel
from deadheat.measures.large_groups import stopping_moments
from deadheat.ties import Floats, Ints, TieGroups

_MOST_PLACES = 1 << 17
"""Up to this many places of a group are added up one by one."""


@dataclass(frozen=True, repr=False)
class MRRMeasure(BinaryMeasure):
    """MRR@k: 1 / rank of the first relevant document, or 0 if that rank is beyond k.

    This is the reciprocal rank of a query; MRR is its mean over queries. A query whose relevant
    documents were not retrieved scores 0.
    """

    name = "MRR"
    formula = "MRR@k = 1 / (rank of the first relevant document), or 0 if that rank is beyond k"
    example = Example("MRR@10", ranked=(0, 0, 0, 1, 1), working="1/4", value=0.25)
    aliases = ("rr", "recip_rank", "reciprocal_rank")

    def at_stake(self, groups: TieGroups, above: Ints) -> Floats:
        """Return, per query, 1 / the next rank, or 0 if a relevant document ranks above."""
        return np.where(self.is_undecided(groups, above), 1 / (above + 1), 0.0)

    def rank_weights(self, groups: TieGroups) -> RankWeights | None:
        """Return 1 / rank of the first relevant document as a sum of rank weights."""
        relevant, n = self.count_relevant(groups)
        first = (relevant & (n == 1)).astype(np.float64)
        return RankWeights(relevant, first, np.reciprocal, ascending=True)

    def views(self, groups: TieGroups) -> Floats:
        """Return five rows per query: expected, best, worst, oblivious, variance."""
        relevant = relevant_groups(groups, self.lowest_relevant)
        depth = self.depth(groups)
        return run_kernel(reciprocal_rank_views, groups.n_queries, *relevant, depth)


def reciprocal(rank: int, limit: int) -> float:
    """Return 1 / rank, or 0 beyond the limit."""
    return 1.0 / rank if rank <= limit else 0.0


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


def reciprocal_rank_views(
    in_queries: Ints, above: Ints, size: Ints, relevant: Ints, ranks: Ints, depth: Ints, out: Floats
) -> None:
    """Compute the views of MRR; only the first group with a relevant document matters."""
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
                mean = best = reciprocal(c + 1, limit)
                worst = reciprocal(c + g - r + 1, limit)
                variance = 0.0
                places = min(limit - c, g)
                if r < g and places > 0:
                    if min(places, g - r + 1, 42 * (g // r)) > _MOST_PLACES:  # e^−42 < 1e−18
                        mean, variance = stopping_moments(c, g, places, [1.0] * r)
                    else:
                        mean, variance = reciprocal_rank_moments(c, g, r, places)
                out[0, q] = mean
                out[1, q] = best
                out[2, q] = worst
                out[3, q] = reciprocal(ranks[document], limit)
                out[4, q] = variance
            document += r


MRR = MRRMeasure()
