"""DCG: discounted cumulative gain (Järvelin and Kekäläinen, 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.measures.base import Example, exp_gain
from deadheat.measures.linear import LinearMeasure
from deadheat.measures.parameters import parameter
from deadheat.ties.groups import Floats, Ints, TieGroups

_table: NDArray[Any] = np.zeros((2, 1), np.longdouble)


def discount(rank: NDArray[Any]) -> Floats:
    """Weight of a rank: 1 / log2(rank + 1)."""
    out: Floats = 1 / np.log2(rank + 1.0)
    return out


def discount_sums(rank: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sums of the discounts and of their squares, from rank 1 to `rank`.

    There is no closed form, so a table is kept between calls. Its entries are long doubles
    because a variance takes differences of differences of them. Threads may share it: it is
    replaced as a whole, and a call looks at one table only.
    """
    global _table
    table = _table
    needed = int(rank.max(initial=0)) + 1
    length = table.shape[1]
    if length < needed:
        w = np.concatenate(([0], discount(np.arange(1, max(needed, 2 * length)))))
        table = _table = np.cumsum((w, w * w), axis=1, dtype=np.longdouble)
    return table[0][rank], table[1][rank]


@dataclass(frozen=True, repr=False)
class DCGMeasure(LinearMeasure):
    """DCG@k: gains of the first k documents, each divided by log2(rank + 1).

    Grades of 0 and below gain nothing, nor do unjudged documents.
    """

    name = "DCG"
    formula = "DCG@k = Σ gain / log2(rank + 1), over ranks 1 … k"
    example = Example("DCG@3", ranked=(3, 0, 2), working="3/1 + 0/1.585 + 2/2", value=4)
    aliases = ("dcg_cut",)

    gain: str = parameter(
        "linear",
        choices={"linear": "the grade itself, as in trec_eval", "exp": "2^grade − 1"},
        about="what a grade gains",
    )

    def gain_of(self, grade: Floats) -> Floats:
        """Gain of a grade."""
        positive = np.maximum(grade, 0)
        return positive if self.gain == "linear" else exp_gain(self, positive)

    def gains(self, groups: TieGroups) -> Floats:
        """Per document: the gain of its grade."""
        return self.gain_of(groups.grade)

    def weight(self, rank: Ints) -> Floats:
        """Weight of a rank."""
        return discount(rank)

    def weight_sums(self, rank: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
        """Sums of the weights and of their squares."""
        return discount_sums(rank)

    def divisor(self, groups: TieGroups) -> Floats:
        """Per query: 1."""
        return np.ones(groups.n_queries)


DCG = DCGMeasure()
