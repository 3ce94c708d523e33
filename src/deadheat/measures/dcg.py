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
_FIRST = np.concatenate(([np.nan], 1 / np.log2(np.arange(1, 1025) + 1.0)))
_LONGEST_TABLE = 1 << 20


def discount(rank: NDArray[Any]) -> Floats:
    """Weight of a rank: 1 / log2(rank + 1); of the first ranks from a table."""
    try:
        return _FIRST.take(rank)
    except IndexError:  # a rank past the table
        out: Floats = 1 / np.log2(rank + 1.0)
        return out


def discount_sums(rank: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sums of the discounts and of their squares, from rank 1 to `rank`.

    Up to a rank of about a million they come from a table, which is kept between calls; beyond, an
    integral adds the rest. They are long doubles because a variance takes differences of
    differences of them.
    """
    try:
        return _table[0].take(rank), _table[1].take(rank)
    except IndexError:  # a rank past the table
        near = _from_table(np.minimum(rank, _LONGEST_TABLE))
    if rank.max(initial=0) <= _LONGEST_TABLE:
        return near
    far = np.maximum(rank, _LONGEST_TABLE)
    begin = _integrals(np.array([_LONGEST_TABLE]))
    end = _integrals(far)
    return near[0] + (end[0] - begin[0]), near[1] + (end[1] - begin[1])


def _from_table(rank: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
    """Look the sums up; threads may share the table, which is replaced as a whole."""
    global _table
    table = _table
    needed = int(rank.max(initial=0)) + 1
    length = table.shape[1]
    if length < needed:
        longer = min(max(needed, 2 * length), _LONGEST_TABLE + 1)
        w = np.concatenate(([0], discount(np.arange(1, longer))))
        table = _table = np.cumsum((w, w * w), axis=1, dtype=np.longdouble)
    return table[0][rank], table[1][rank]


def _integrals(rank: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sums of the discounts and of their squares up to large ranks, but for a constant.

    With ``y = rank + 1`` the discount is ``ln 2 / ln y``, whose integral is ``ln 2 · li(y)``; that
    of its square is ``ln² 2 · (li(y) − y / ln y)``. Half the last term and a twelfth of the slope
    turn an integral into a sum (Euler and Maclaurin); what is left is below ``rank^−3``.
    """
    y = rank.astype(np.longdouble) + 1
    log, two = np.log(y), np.log(np.longdouble(2))
    li = _exponential_integral(log)
    weight = two / log
    sums = two * li + weight / 2 - weight / (12 * y * log)
    squares = two * two * (li - y / log) + weight**2 / 2 - weight**2 / (6 * y * log)
    return sums, squares


def _exponential_integral(x: NDArray[Any]) -> NDArray[Any]:
    """Ei(x) but for Euler's constant, by its series, all of whose terms are positive."""
    total, term = np.log(x), np.ones_like(x)
    for n in range(1, 200):  # enough for x = 44, the logarithm of 2**63
        term = term * x / n
        total = total + term / n
    out: NDArray[Any] = total
    return out


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
