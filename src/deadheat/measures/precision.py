"""Precision: the share of the first k ranks that have a relevant document."""

from __future__ import annotations

from dataclasses import dataclass

from deadheat.measures.base import Example
from deadheat.measures.linear import CountingMeasure
from deadheat.ties import Ints, TieGroups


@dataclass(frozen=True, repr=False)
class PrecisionMeasure(CountingMeasure):
    """Precision@k: relevant documents among the first k, divided by k.

    The divisor is k also for a list shorter than k, in every view. Without a cutoff, it is the
    number of documents retrieved.
    """

    name = "Precision"
    formula = "Precision@k = Hits@k / k"
    example = Example("Precision@10", ranked=(1, 0, 1, 0, 0), working="2/10", value=0.2)
    aliases = ("p", "prec", "set_p")

    def divisor(self, groups: TieGroups) -> Ints:
        """Return k per query."""
        return self.depth(groups)


Precision = PrecisionMeasure()
