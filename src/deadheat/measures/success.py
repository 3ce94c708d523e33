"""Success: is there a relevant document above the cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deadheat.measures.base import BinaryMeasure, Example, first_groups, found_above, spread
from deadheat.measures.mrr import passing_chances, places_that_count
from deadheat.ties.groups import Floats, Ints, TieGroups


@dataclass(frozen=True, repr=False)
class SuccessMeasure(BinaryMeasure):
    """Success@k: 1 if a relevant document is among the first k, else 0.

    Also known as hit rate or accuracy@k. Without a cutoff: is any relevant document
    retrieved at all.
    """

    name = "Success"
    formula = "Success@k = min(1, Hits@k)"
    example = Example("Success@3", ranked=(0, 1, 1, 0), working="min(1, 2)", value=1)
    aliases = ("hit_rate", "acc")

    def at_stake(self, groups: TieGroups, above: Ints) -> Floats:
        """Per query: 1, or 0 where a relevant document stands above."""
        reached = (above < self.depth(groups)) & ~found_above(groups, above, self.rel)
        return reached.astype(np.float64)

    def in_one_pass(self, one: Any, groups: TieGroups) -> Floats:
        """Per query, in five rows: all views, by a compiled pass."""
        views: Floats = one.success(self.lowest_relevant, self.depth(groups))
        return views

    def expected(self, groups: TieGroups) -> Floats:
        """Per query: the probability of a hit."""
        return groups.memo(("expected", self), lambda: self._expected(groups))

    def _expected(self, groups: TieGroups) -> Floats:
        first = first_groups(groups, self.rel)
        within, relevant = self.within(groups)[first], groups.relevant(self.rel)[first]
        miss = np.ones(len(first))
        # T places without any of r documents, or r places without any of T: the same chance.
        many, few = np.maximum(within, relevant), np.minimum(within, relevant).astype(np.int64)
        size = groups.size[first]
        length = places_that_count(size, many, few)
        for rows, passing, _, places in passing_chances(size, many, length):
            miss[rows] = passing[np.arange(len(rows)), places]
        return spread(groups, 1 - miss, groups.query[first])

    def variance(self, groups: TieGroups) -> Floats:
        """Per query: p·(1 − p) for a chance of success p."""
        p = self.expected(groups)
        return p * (1 - p)

    def at(self, groups: TieGroups, rank: Ints) -> Floats:
        """Per query: 1 if a relevant document stands above the cutoff."""
        query, first = self.first_ranks(groups, rank)
        return spread(groups, first > 0, query)


Success = SuccessMeasure()
