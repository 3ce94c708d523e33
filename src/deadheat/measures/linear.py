"""Linear measures: a gain for each document, weighted by its rank, divided by a constant.

``M = (1/Z) Σ w(rank) · gain``, with ``w = 0`` past the cutoff. With the prefix sums ``W`` of
``w`` and ``W2`` of ``w²``, a group of ``g`` documents below ``c`` others, ``T`` of whose places
count, adds in expectation its mean gain times ``S1 = W[c+T] − W[c]``. Its variance is that of
drawing without replacement: the population variance of its gains times
``(g·S2 − S1²) / (g − 1)``, with ``S2 = W2[c+T] − W2[c]``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deadheat.measures.base import BinaryMeasure, Measure, family, ratio
from deadheat.ties.groups import Floats, Ints, TieGroups

_SHORTEST, _LONGEST = 1 << 10, 1 << 16
"""How many ranks a table of their weights holds: not fewer, and not more."""


class RankTables(NamedTuple):
    """Weights of the ranks from 0 on, and the sums of them and of their squares up to each."""

    weights: Floats | None
    """None if every rank weighs 1."""
    sums: NDArray[Any] | None = None
    squares: NDArray[Any] | None = None


@dataclass(frozen=True, repr=False)
class LinearMeasure(Measure):
    """Base of the linear measures; a measure says its gains, weights and divisor."""

    @abstractmethod
    def gains(self, groups: TieGroups) -> Floats:
        """Per document: its gain."""

    @abstractmethod
    def divisor(self, groups: TieGroups) -> NDArray[Any]:
        """Per query: ``Z``."""

    def weight(self, rank: Ints) -> NDArray[Any]:
        """Weight ``w`` of a rank; 1 unless a measure says otherwise."""
        return np.ones(rank.shape)

    def weight_sums(self, rank: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
        """Sums ``W`` of the weights and ``W2`` of their squares, from rank 1 to `rank`."""
        return rank.astype(np.float64), rank.astype(np.float64)

    def tables(self, deepest: int) -> RankTables | None:
        """Look up what ranks weigh, down to the cutoff or the `deepest`; None if that is far."""
        if type(self).weight is LinearMeasure.weight:
            return RankTables(None)
        last = deepest if self.cutoff is None else min(self.cutoff, deepest)
        if last >= _LONGEST:
            return None
        return _tables(family(self), max(_SHORTEST, 1 << last.bit_length()))

    def in_one_pass(self, one: Any, groups: TieGroups) -> Floats | None:
        """Per query, in five rows: all views, by a compiled pass; None if it looks too far."""
        if (tables := self.tables(one.deepest)) is None:
            return None
        divisor = self.divisor(groups).astype(np.float64, copy=False)
        views: Floats = one.linear(self.gains(groups), divisor, self.depth(groups), *tables)
        return views

    def expected(self, groups: TieGroups) -> Floats:
        """Per query: the mean over all orders of tied documents."""
        scale, total, _ = self.gain_sums(groups)
        s1, _ = self.weights_within(groups)
        parts = scale * total / groups.size * s1
        return ratio(groups.sum_queries(parts), self.divisor(groups))

    def variance(self, groups: TieGroups) -> Floats:
        """Per query: the variance over all orders of tied documents."""
        scale, total, squares = self.gain_sums(groups)
        s1, s2 = self.weights_within(groups)
        g = groups.size
        population = (squares - total * total / g) / g
        spread = (g * s2 - s1 * s1) / np.maximum(g - 1, 1)
        relative = ratio(scale, self.divisor(groups)[groups.query])
        return groups.sum_queries(np.maximum(population * spread, 0) * relative * relative)

    def at(self, groups: TieGroups, rank: Ints) -> Floats:
        """Per query: the value when the documents of interest stand at these ranks."""
        query = groups.document_query
        parts = self.gains(groups) * self.weight(rank) * self.reached(groups, rank, query)
        return ratio(groups.sum_queries(parts, query), self.divisor(groups))

    def weights_within(self, groups: TieGroups) -> tuple[NDArray[Any], NDArray[Any]]:
        """Per group: the sums ``S1`` and ``S2`` of the weights of its places that count."""
        within = self.within(groups)
        above = groups.above * (within > 0)  # nothing is looked up for a group past the cutoff
        upper, lower = self.weight_sums(above + within), self.weight_sums(above)
        return upper[0] - lower[0], upper[1] - lower[1]

    def gain_sums(self, groups: TieGroups) -> tuple[Floats, Floats, Floats]:
        """Per group: a scale of its gains, and the sums of the gains, and of their squares, in it.

        The scale is the power of two next to the largest gain, which is that of the first
        document: the square of a small or large gain is then still a number, and scaling rounds
        nothing.
        """
        gains = self.gains(groups)
        exponent = np.frexp(gains[groups.first_document])[1]
        scaled = np.ldexp(gains, -exponent[groups.group])
        return np.ldexp(1.0, exponent), groups.sum_groups(scaled), groups.sum_groups(scaled**2)


@lru_cache(maxsize=16)
def _tables(measure: LinearMeasure, length: int) -> RankTables:
    rank = np.arange(length)
    sums, squares = measure.weight_sums(rank)
    weights = measure.weight(np.maximum(rank, 1))
    return RankTables(weights, sums.astype(np.longdouble), squares.astype(np.longdouble))


@dataclass(frozen=True, repr=False)
class CountingMeasure(BinaryMeasure, LinearMeasure):
    """Base of the linear measures that count relevant documents."""

    def gains(self, groups: TieGroups) -> Floats:
        """Per document: 1 if it is relevant."""
        return groups.is_relevant(self.rel).astype(np.float64)
