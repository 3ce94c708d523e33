"""Random orders of tied documents, and the values that a measure has under them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.measures import Measure
from deadheat.measures.kernel import VIEWS
from deadheat.ties.groups import Floats, Ints, TieGroups

DRAWS = 40_000
"""Tie orders drawn of each system at most: a probability is then off by less than 0.01."""
FEWEST_DRAWS = 1_000
"""Tie orders drawn of each system at least."""
QUICK, THOROUGH = 1 << 19, 1 << 21
"""About how many documents are placed for one system in one measure: at first, and at most."""
_ROW = 16
"""What the evaluation of one order costs apart from its documents, in documents placed."""
_DRAWN, _EVALUATED = 1 << 20, 1 << 16
"""Ranks drawn, and evaluated, at a time; the second fit into a processor's cache."""
_FEW = 64
"""Of so few documents the most orders are drawn at once."""


def n_draws(drawn: TieGroups | int, work: int) -> int:
    """Return how many tie orders to draw of these groups, or of so many values.

    It is 0 where not even `FEWEST_DRAWS` can be drawn with `THOROUGH` work.
    """
    if isinstance(drawn, TieGroups):
        documents = np.bincount(drawn.group, minlength=len(drawn.size))
        several = documents > 1
        each = len(drawn.group) + int(_cost(drawn.size, documents)[several].sum())
    else:
        each = drawn
    if each <= _FEW:
        return DRAWS
    each += _ROW
    if each * FEWEST_DRAWS > THOROUGH:
        return 0
    return min(DRAWS, max(FEWEST_DRAWS, work // max(1, each)))


def sample_sums(
    groups: TieGroups, measure: Measure, draws: int, rng: np.random.Generator
) -> Floats:
    """Return the sum of a measure over queries under each of `draws` random tie orders."""
    length = max(1, len(groups.group))
    sums = []
    repeated: dict[int, TieGroups] = {}
    for ranks in _in_blocks(draws, max(1, _DRAWN // length)):
        drawn = random_ranks(groups, len(ranks), rng)
        for some in _in_blocks(len(ranks), max(1, _EVALUATED // length)):
            if len(some) not in repeated:
                repeated[len(some)] = _repeat(groups, len(some))
            orders = replace(repeated[len(some)], rank=drawn[some.start : some.stop].reshape(-1))
            values = measure.views(orders)[VIEWS.index("oblivious")]
            sums.append(values.reshape(len(some), groups.n_queries).sum(axis=1))
    return np.concatenate(sums)


def _in_blocks(n: int, length: int) -> Iterator[range]:
    return (range(start, min(start + length, n)) for start in range(0, n, length))


def reachable(groups: TieGroups, measure: Measure) -> TieGroups:
    """Return the groups without those that lie past the cutoff of a measure."""
    kept = groups.above < measure.depth(groups)[groups.query]
    if kept.all():
        return groups
    documents = kept[groups.group]
    return replace(
        groups,
        query=groups.query[kept],
        above=groups.above[kept],
        size=groups.size[kept],
        group=(np.cumsum(kept) - 1)[groups.group[documents]],
        grade=groups.grade[documents],
        rank=groups.rank[documents],
    )


def _repeat(groups: TieGroups, times: int) -> TieGroups:
    """Return the groups of all queries several times, each time as further queries."""
    n = np.arange(times)[:, None]

    def numbered(index: Ints, length: int) -> Ints:
        return np.asarray((index + length * n).reshape(-1))

    def tiled(values: NDArray[Any]) -> NDArray[Any]:
        return np.tile(values, times)

    return TieGroups(
        query=numbered(groups.query, groups.n_queries),
        above=tiled(groups.above),
        size=tiled(groups.size),
        group=numbered(groups.group, len(groups.size)),
        grade=tiled(groups.grade),
        rank=tiled(groups.rank),
        retrieved=tiled(groups.retrieved),
        ideal_query=numbered(groups.ideal_query, groups.n_queries),
        ideal_grade=tiled(groups.ideal_grade),
        zeros=None if groups.zeros is None else tiled(groups.zeros),
        top_grade=groups.max_grade,
    )


def random_ranks(groups: TieGroups, draws: int, rng: np.random.Generator) -> Ints:
    """Return ranks of the documents of interest: a row for each random order of tied documents."""
    documents = np.bincount(groups.group, minlength=len(groups.size))
    ranks = np.tile(groups.above[groups.group] + 1, (draws, 1))
    alone = np.flatnonzero((documents == 1) & (groups.size > 1))
    drawn = rng.random((draws, len(alone))) * groups.size[alone]
    ranks[:, groups.first_document[alone]] += drawn.astype(np.int64)
    for group in np.flatnonzero(documents > 1).tolist():
        first, n = int(groups.first_document[group]), int(documents[group])
        # Equal documents may come in the order of their ranks, which spares measures the sorting.
        alike = groups.grade[first] == groups.grade[first + n - 1]
        places = _random_places(int(groups.size[group]), n, draws, rng, ascending=bool(alike))
        ranks[:, first : first + n] += places
    return ranks


def _random_places(
    size: int, n: int, draws: int, rng: np.random.Generator, *, ascending: bool
) -> Ints:
    """Return `n` different places of a group, ascending or in random order, a row for each draw."""
    if n * n > 16 * size:
        every = np.broadcast_to(np.arange(size), (draws, size))
        shuffled: Ints = rng.permuted(every, axis=1)[:, :n]
        return np.sort(shuffled, axis=1) if ascending else shuffled
    places: Ints = np.empty((n, draws), np.int64)
    taken = np.empty_like(places)
    for i in range(n):
        place = rng.integers(0, size - i, draws)  # counts the places that are still free
        for earlier in taken[:i]:
            place += place >= earlier
        places[i] = place
        for j in range(i):  # keeps the places taken ascending
            lower = np.minimum(taken[j], place)
            place = np.maximum(taken[j], place)
            taken[j] = lower
        taken[i] = place
    drawn = taken if ascending else places
    return np.asarray(drawn.T)


def _cost(size: Ints, documents: Ints) -> Ints:
    """Estimate what `_random_places` costs, in documents placed."""
    squared = documents * documents
    return np.where(squared > 16 * size, size, squared // 16)
