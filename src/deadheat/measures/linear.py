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
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deadheat.measures.base import BinaryMeasure, Measure, at_columns, family, ratio, some_row
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

    weighs_ranks: ClassVar[bool] = False
    """Whether some ranks weigh more than others."""

    @abstractmethod
    def gains(self, groups: TieGroups) -> Floats:
        """Per document: its gain."""

    @abstractmethod
    def divisor(self, groups: TieGroups) -> NDArray[Any]:
        """Per query: ``Z``."""

    @property
    def numerator(self) -> Any:
        """What names all but the divisor: measures that give the same differ in that alone."""
        return self

    def weight(self, rank: Ints) -> NDArray[Any]:
        """Weight ``w`` of a rank; 1 unless a measure says otherwise."""
        return np.ones(rank.shape)

    def weight_sums(self, rank: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
        """Sums ``W`` of the weights and ``W2`` of their squares, from rank 1 to `rank`."""
        return rank.astype(np.float64), rank.astype(np.float64)

    def tables(self, deepest: int) -> RankTables | None:
        """Look up what ranks weigh, down to the cutoff or the `deepest`; None if that is far."""
        if not self.weighs_ranks:
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

        def compute() -> Floats:
            index, s1, _ = self._weights(groups)
            scale, total, _ = self.gain_sums(groups)
            mean = (scale * total)[index] / groups.size[index]
            return groups.sum_queries(mean * s1, groups.query[index])

        return ratio(groups.memo(("expected", self.numerator), compute), self.divisor(groups))

    def variance(self, groups: TieGroups) -> Floats:
        """Per query: the variance over all orders of tied documents."""

        def compute() -> tuple[Ints, Floats, Floats]:
            index, s1, s2 = self._weights(groups)
            scale, total, squares = (sums[index] for sums in self.gain_sums(groups))
            g = groups.size[index]
            population = (squares - total * total / g) / g
            spread = (g * s2 - s1 * s1) / np.maximum(g - 1, 1)
            return groups.query[index], scale, np.maximum(population * spread, 0)

        query, scale, parts = groups.memo(("variance", self.numerator), compute)
        relative = ratio(scale, self.divisor(groups)[query])
        return groups.sum_queries(parts * relative * relative, query)

    def at(self, groups: TieGroups, rank: Ints) -> Floats:
        """Per query: the value when the documents of interest stand at these ranks."""

        def compute() -> Floats:
            gains, query = self.gains(groups), groups.document_query
            reached = self.reached(groups, rank, query)
            if reached is None:
                return groups.sum_queries(gains * self.weight(rank), query)
            near = some_row(reached)
            weights = at_columns(reached, near) * self.weight(at_columns(rank, near))
            return groups.sum_queries(at_columns(gains, near) * weights, at_columns(query, near))

        return ratio(groups.memo_at(("at", self.numerator), rank, compute), self.divisor(groups))

    def _weights(self, groups: TieGroups) -> tuple[Ints, NDArray[Any], NDArray[Any]]:
        """Groups of which a place counts, and the sums ``S1`` and ``S2`` of their weights."""

        def compute() -> tuple[Ints, NDArray[Any], NDArray[Any]]:
            within = self.within(groups)
            index = within.nonzero()[0]
            above = groups.above[index]
            upper, lower = self.weight_sums(above + within[index]), self.weight_sums(above)
            return index, upper[0] - lower[0], upper[1] - lower[1]

        return groups.memo(("weights", self.numerator), compute)

    def gain_sums(self, groups: TieGroups) -> tuple[Floats, Floats, Floats]:
        """Per group: a scale of its gains, and the sums of the gains, and of their squares, in it.

        The scale is the power of two next to the largest gain, which is that of the first
        document: the square of a small or large gain is then still a number, and scaling rounds
        nothing.
        """

        def compute() -> tuple[Floats, Floats, Floats]:
            gains = self.gains(groups)
            exponent = np.frexp(gains[groups.first_document])[1]
            scaled = np.ldexp(gains, -exponent[groups.group])
            sums = groups.sum_groups(scaled), groups.sum_groups(scaled * scaled)
            return np.ldexp(1.0, exponent), *sums

        return groups.memo(("gain_sums", family(self)), compute)


@lru_cache(maxsize=16)
def _tables(measure: LinearMeasure, length: int) -> RankTables:
    rank = np.arange(length)
    sums, squares = measure.weight_sums(rank)
    weights = measure.weight(np.maximum(rank, 1))
    return RankTables(weights, sums.astype(np.longdouble), squares.astype(np.longdouble))


@dataclass(frozen=True, repr=False)
class CountingMeasure(BinaryMeasure, LinearMeasure):
    """Base of the linear measures that count relevant documents.

    One that weighs them, or whose last rank is not its cutoff, names a `numerator` of its own.
    """

    @property
    def numerator(self) -> Any:
        """Hits, up to the same cutoff."""
        return "Hits", self.rel, self.cutoff

    def gains(self, groups: TieGroups) -> Floats:
        """Per document: 1 if it is relevant."""
        return groups.is_relevant(self.rel).astype(np.float64)

    def gain_sums(self, groups: TieGroups) -> tuple[Floats, Floats, Floats]:
        """Per group: 1 and, twice, the relevant documents in it, whose gains are their squares."""
        relevant = groups.relevant(self.rel)
        return np.ones(len(relevant)), relevant, relevant
