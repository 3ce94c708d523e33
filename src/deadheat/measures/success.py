"""Success: whether a relevant document is above the cutoff."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.measures.base import BinaryMeasure, Example, RankWeights
from deadheat.measures.kernel import relevant_groups, run_kernel
from deadheat.ties import Floats, Ints, TieGroups


@dataclass(frozen=True, repr=False)
class SuccessMeasure(BinaryMeasure):
    """Success@k: 1 if a relevant document is among the first k, else 0.

    Also known as hit rate or accuracy@k. Without a cutoff, it is 1 if any relevant document was
    retrieved.
    """

    name = "Success"
    formula = "Success@k = min(1, Hits@k)"
    example = Example("Success@3", ranked=(0, 1, 1, 0), working="min(1, 2)", value=1)
    aliases = ("hit_rate", "acc")

    def at_stake(self, groups: TieGroups, above: Ints) -> Floats:
        """Return, per query, 1, or 0 if a relevant document ranks above."""
        return self.is_undecided(groups, above).astype(np.float64)

    def rank_weights(self, groups: TieGroups) -> RankWeights | None:
        """Return 1 for the first relevant document as a sum of rank weights."""
        relevant, n = self.count_relevant(groups)
        first = (relevant & (n == 1)).astype(np.float64)
        return RankWeights(relevant, first, np.ones_like, ascending=True)

    def views(self, groups: TieGroups) -> Floats:
        """Return five rows per query: expected, best, worst, oblivious, variance."""
        relevant = relevant_groups(groups, self.lowest_relevant)
        return run_kernel(success_views, groups.n_queries, *relevant, self.depth(groups))


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


def success_views(
    in_queries: Ints, above: Ints, size: Ints, relevant: Ints, ranks: Ints, depth: Ints, out: Floats
) -> None:
    """Compute the views of Success; only the first group with a relevant document matters."""
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
                miss = miss_probability(g, r, max(min(limit - c, g), 0))
                out[0, q] = 1.0 - miss
                out[1, q] = 1.0 if c + 1 <= limit else 0.0
                out[2, q] = 1.0 if c + g - r + 1 <= limit else 0.0
                out[3, q] = 1.0 if ranks[document] <= limit else 0.0
                out[4, q] = (1.0 - miss) * miss
            document += r


Success = SuccessMeasure()
