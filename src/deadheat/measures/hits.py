"""Hits: the number of relevant documents above the cutoff."""

from __future__ import annotations

from dataclasses import dataclass

from deadheat.measures.base import Example
from deadheat.measures.linear import CountingMeasure


@dataclass(frozen=True, repr=False)
class HitsMeasure(CountingMeasure):
    """Hits@k: the number of relevant documents among the first k.

    This is a count, not a share. Success is the 0/1 version, which some tools call hit rate.
    Without a cutoff, it is the number of relevant documents retrieved.
    """

    name = "Hits"
    formula = "Hits@k = number of relevant documents at ranks 1 … k"
    example = Example("Hits@3", ranked=(1, 0, 1, 1), working="1 + 0 + 1", value=2)
    aliases = ("num_rel_ret", "hit")
    can_exceed_one = True


Hits = HitsMeasure()
