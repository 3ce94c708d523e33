"""DCG: discounted cumulative gain (Järvelin and Kekäläinen, 2002)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deadheat.measures.base import Example, exp_gain
from deadheat.measures.linear import DIRECT, LinearMeasure
from deadheat.measures.parameters import parameter
from deadheat.ties import Floats, TieGroups


def discount_integrals(rank: float) -> tuple[float, float]:
    """Return the sums of the discounts and of their squares up to a large rank, up to a constant.

    With ``y = rank + 1`` the discount is ``ln 2 / ln y``, whose integral is ``ln 2 · li(y)``; that
    of its square is ``ln² 2 · (li(y) − y / ln y)``. Half the last term and a twelfth of the slope
    convert an integral to a sum (Euler–Maclaurin). The remaining error is below ``rank^−3``.
    """
    y = rank + 1
    log, two = math.log(y), math.log(2)
    # li(y) is Ei(log y): its series has positive terms only; 200 are enough for 2**63.
    li, term = math.log(log), 1.0
    for n in range(1, 200):
        term *= log / n
        li += term / n
    weight = two / log
    sums = two * li + weight / 2 - weight / (12 * y * log)
    squares = two * two * (li - y / log) + weight**2 / 2 - weight**2 / (6 * y * log)
    return sums, squares


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

    def far_sums(self, above: int, places: int) -> tuple[float, float]:
        """Return ``S`` and ``D`` of the ranks after `above`; of many, by integrals."""
        if places <= max(DIRECT, above // 8):
            return super().far_sums(above, places)
        near = super().far_sums(above, DIRECT)
        begin, end = discount_integrals(above + DIRECT), discount_integrals(above + places)
        total = near[0] + (end[0] - begin[0])
        squares = near[1] + near[0] ** 2 / DIRECT + (end[1] - begin[1])
        return total, max(squares - total * total / places, 0.0)


DCG = DCGMeasure()
