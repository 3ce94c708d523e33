"""MRR: the reciprocal rank of the first relevant document, averaged over queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.measures.base import (
    BinaryMeasure,
    Example,
    first_groups,
    found_above,
    ratio,
    spread,
)
from deadheat.measures.places import log_passing, sampled_places
from deadheat.ties.groups import Floats, Ints, TieGroups

_BLOCK = 1 << 20
_LONG = 1 << 13


def places_that_count(size: Ints, relevant: Floats, within: Ints) -> Ints:
    """Per group: the places at which the first relevant document may stand.

    The chance to pass ``t`` documents is at most ``(1−r/g)^t``: a long group is left where the
    rest is far below rounding error.
    """
    length = np.minimum(within, size - relevant + 1).astype(np.int64)
    long = (length > 37).nonzero()[0]
    if len(long):
        with np.errstate(divide="ignore"):
            enough = np.ceil(-37 / np.log1p(-relevant[long] / size[long]))  # exp(-37) < 2**-53
        length[long] = np.minimum(length[long], enough + 1)
    return length


def passing_chances(
    size: Ints, relevant: Floats, length: Ints
) -> Iterator[tuple[NDArray[Any], Floats, Floats, Ints]]:
    """Chances to pass the first documents of shuffled groups without meeting a relevant one.

    The chance to pass ``t`` documents is ``π_t = Π_{i<t} (g−r−i)/(g−i)``. Of each group the first
    `length` places count, as `places_that_count` gives them.

    Yields
    ------
    rows, chances, left, length
        Groups taken together in one block; in a row each their chances ``π_0, π_1, …``, and how
        many documents are left then, ``g − t``; and how many places of each count. Entries past
        ``length`` mean nothing.
    """
    some = length.nonzero()[0]
    order = some[np.argsort(length[some], kind="stable")]
    g = size.astype(np.float64)
    stop = len(order)
    while stop:
        # The longest first: a block is as wide as its longest group.
        width = int(length[order[stop - 1]])
        start = max(0, stop - max(1, _BLOCK // width))
        rows = order[start:stop]
        # In place: to find room for an array takes longer than to fill it.
        left = g[rows, None] - np.arange(width)
        np.maximum(left, 1, out=left)
        chances = np.ones((len(rows), width + 1))
        passed = chances[:, 1:]
        np.maximum(np.subtract(left, relevant[rows, None], out=passed), 0, out=passed)
        passed /= left
        np.cumprod(passed, axis=1, out=passed)
        yield rows, chances, left, length[rows]
        stop = start


@dataclass(frozen=True, repr=False)
class MRRMeasure(BinaryMeasure):
    """MRR@k: 1 / rank of the first relevant document, 0 if it stands past k.

    The reciprocal rank of a query; its mean over queries gives the measure its name. A
    query whose relevant documents were not retrieved scores 0.
    """

    name = "MRR"
    formula = "MRR@k = 1 / (rank of the first relevant document), or 0 if it is past k"
    example = Example("MRR@10", ranked=(0, 0, 0, 1, 1), working="1/4", value=0.25)
    aliases = ("rr", "recip_rank", "reciprocal_rank")

    def at_stake(self, groups: TieGroups, above: Ints) -> Floats:
        """Per query: 1 / the next rank, or 0 where a relevant document stands above."""
        reached = (above < self.depth(groups)) & ~found_above(groups, above, self.rel)
        return np.where(reached, 1 / (above + 1), 0.0)

    def in_one_pass(self, one: Any, groups: TieGroups) -> Floats:
        """Per query, in five rows: all views, by a compiled pass."""
        views: Floats
        views, long = one.reciprocal_rank(self.lowest_relevant, self.depth(groups), _LONG)
        for query, *group in long:
            first, second = _long_moments(*group)
            views[[0, -1], query] = first, max(second - first * first, 0)
        return views

    def expected(self, groups: TieGroups) -> Floats:
        """Per query: the mean over all orders of tied documents."""
        return self._moments(groups)[0]

    def variance(self, groups: TieGroups) -> Floats:
        """Per query: the variance over all orders of tied documents."""
        first, second = self._moments(groups)
        return np.maximum(second - first * first, 0)

    def at(self, groups: TieGroups, rank: Ints) -> Floats:
        """Per query: the value when the documents of interest stand at these ranks."""
        query, first = self.first_ranks(groups, rank)
        return spread(groups, ratio(np.ones(first.shape), first), query)

    def _moments(self, groups: TieGroups) -> tuple[Floats, Floats]:
        def compute() -> tuple[Floats, Floats]:
            first = first_groups(groups, self.rel)
            above, size = groups.above[first], groups.size[first]
            relevant, within = groups.relevant(self.rel)[first], self.within(groups)[first]
            moments = np.zeros((2, len(first)))
            length = places_that_count(size, relevant, within)
            for i in (length > _LONG).nonzero()[0].tolist():
                moments[:, i] = _long_moments(above[i], size[i], int(relevant[i]), int(length[i]))
                length[i] = 0
            for rows, passing, left, places in passing_chances(size, relevant, length):
                t = np.arange(left.shape[1])
                part = relevant[rows, None] / left
                part *= passing[:, :-1]  # the chance that the first relevant document is there
                part *= t < places[:, None]
                rank = above[rows, None] + 1.0 + t
                for moment in moments:
                    part /= rank
                    moment[rows] = part.sum(axis=1)
            query = groups.query[first]
            return spread(groups, moments[0], query), spread(groups, moments[1], query)

        return groups.memo(("moments", self), compute)


def _long_moments(above: int, size: int, relevant: int, length: int) -> tuple[float, float]:
    """First two moments of 1/rank in a group too long to look at each of its places."""
    t, weight = sampled_places(length, above, size / relevant)
    stopping = weight * np.exp(log_passing(t, size, relevant)) * relevant / (size - t)
    rank = above + t + 1.0
    return float((stopping / rank).sum()), float((stopping / rank / rank).sum())


MRR = MRRMeasure()
