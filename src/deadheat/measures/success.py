"""Success: whether a relevant document is above the cutoff."""

from __future__ import annotations

from dataclasses import dataclass

from deadheat.measures.base import Example
from deadheat.measures.mrr import FirstRelevantMeasure


@dataclass(frozen=True, repr=False)
class SuccessMeasure(FirstRelevantMeasure):
    """Success@k: 1 if a relevant document is among the first k, else 0.

    Also known as hit rate or accuracy@k. Without a cutoff, it is 1 if any relevant document was
    retrieved.
    """

    name = "Success"
    formula = "Success@k = min(1, Hits@k)"
    example = Example("Success@3", ranked=(0, 1, 1, 0), working="min(1, 2)", value=1)
    aliases = ("hit_rate", "acc")
    is_reciprocal = False


Success = SuccessMeasure()
