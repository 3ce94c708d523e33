"""Judged: the share of the first k documents that are judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.measures.base import Example
from deadheat.measures.linear import LinearMeasure
from deadheat.ties import Floats, Ints, TieGroups


@dataclass(frozen=True, repr=False)
class JudgedMeasure(LinearMeasure):
    """Judged@k: the share of the first k documents that have a judgement, relevant or not.

    The divisor of a list shorter than k is its length. In arrays of labels, every document counts
    as judged.
    """

    name = "Judged"
    formula = "Judged@k = (judged documents at ranks 1 … k) / min(k, documents retrieved)"
    example = Example("Judged@4", ranked=(1, None, 0, 2, None), working="3/4", value=0.75)
    aliases = ("j",)
    needs_judged = True

    def gains(self, groups: TieGroups) -> Floats:
        """Return 1 per document, because every document of interest is judged."""
        return np.ones(len(groups.grade))

    def divisor(self, groups: TieGroups) -> Ints:
        """Return, per query, k or the length of the list, whichever is smaller."""
        return np.minimum(self.depth(groups), groups.retrieved)


Judged = JudgedMeasure()
