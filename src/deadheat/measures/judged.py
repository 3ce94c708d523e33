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

    A list shorter than k is divided by its own length. Arrays of labels count as judged
    throughout.
    """

    name = "Judged"
    formula = "Judged@k = (judged documents at ranks 1 … k) / min(k, documents retrieved)"
    example = Example("Judged@4", ranked=(1, None, 0, 2, None), working="3/4", value=0.75)
    aliases = ("j",)
    needs_judged = True

    def gains(self, groups: TieGroups) -> Floats:
        """Per document: 1; every document of interest is judged."""
        return np.ones(len(groups.grade))

    def divisor(self, groups: TieGroups) -> Ints:
        """Per query: k, or the length of the list if that is smaller."""
        return np.minimum(self.depth(groups), groups.retrieved)


Judged = JudgedMeasure()
