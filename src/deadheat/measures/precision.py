"""Precision: the share of the first k places that hold a relevant document."""

from __future__ import annotations

from dataclasses import dataclass

from deadheat.measures.linear import CountingMeasure
from deadheat.ties.groups import Ints, TieGroups


@dataclass(frozen=True, repr=False)
class PrecisionMeasure(CountingMeasure):
    """Precision@k: relevant documents among the first k, divided by k.

    A list shorter than k is still divided by k, in every view. Without a cutoff: divided by
    the number of documents retrieved.
    """

    name = "Precision"
    aliases = ("p", "prec", "set_p")

    def divisor(self, groups: TieGroups) -> Ints:
        """Per query: k."""
        return self.depth(groups)


Precision = PrecisionMeasure()
