"""DCG: discounted cumulative gain (Järvelin and Kekäläinen, 2002)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.measures.base import Example, exp_gain
from deadheat.measures.linear import LinearMeasure
from deadheat.measures.parameters import parameter
from deadheat.ties import Floats, TieGroups


@dataclass(frozen=True, repr=False)
class DCGMeasure(LinearMeasure):
    """DCG@k: the sum of the gains of the first k documents, each divided by log2(rank + 1).

    Unjudged documents and grades of 0 and below have no gain.
    """

    name = "DCG"
    formula = "DCG@k = Σ gain / log2(rank + 1), over ranks 1 … k"
    example = Example("DCG@3", ranked=(3, 0, 2), working="3/1 + 0/1.585 + 2/2", value=4)
    aliases = ("dcg_cut",)
    can_exceed_one = True

    gain: str = parameter(
        "linear",
        choices={"linear": "the grade itself, as in trec_eval", "exp": "2^grade − 1"},
        about="the gain of a grade",
    )

    def gain_of(self, grade: Floats) -> Floats:
        """Return the gain of each grade."""
        positive = np.maximum(grade, 0)
        return positive if self.gain == "linear" else exp_gain(self, positive)

    def gains(self, groups: TieGroups) -> Floats:
        """Return the gain of each document."""
        return self.gain_of(groups.grade)

    def weight(self, rank: Floats) -> Floats:
        """Return the discount of each rank."""
        return np.asarray(1 / np.log2(rank + 1))


DCG = DCGMeasure()
