"""Random orders of tied documents, and the values that a measure has under them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from deadheat.measures import KERNEL_VIEWS, Measure
from deadheat.ties import Floats, Ints, TieGroups

MOST_DRAWS, FEWEST_DRAWS = 40_000, 1_000
"""Fewest and most tie orders drawn per system; the most give an error below 0.01."""
_BLOCK = 1 << 13
"""How many tie orders are drawn at a time."""
_PLACED = 1 << 18
"""Approximate number of documents placed at a time if a measure's kernel evaluates them."""


def _n_draws(groups: TieGroups, budget: int) -> int:
    """Return the number of tie orders that can be drawn if `budget` documents can be placed.

    It is 0 if the budget is too small for `FEWEST_DRAWS` orders.
    """
    documents = np.bincount(groups.group, minlength=len(groups.size))
    cost = len(groups.group) + int(np.minimum(groups.size, documents**2 // 16).sum())
    affordable = budget // max(1, cost)
    return 0 if affordable < FEWEST_DRAWS else min(affordable, MOST_DRAWS)


def sample_sums(
    groups: TieGroups, measure: Measure, budget: int, rng: np.random.Generator
) -> Floats | None:
    """Return the sum of a measure over queries under each of many random tie orders.

    It is None if the budget of documents to place is too small.
    """
    groups = _select(groups, (groups.above < measure.depth(groups)[groups.query])[groups.group])
    weights = measure.rank_weights(groups)
    if weights is None:
        draws = _n_draws(groups, budget)
        return _sample_any(groups, measure, draws, rng) if draws else None
    used = _in_groups(groups, weights.coefficient != 0)
    moving = weights.counts & (used & (groups.size > 1))[groups.group]
    rank = groups.best_rank
    fixed = ~moving & (rank <= measure.depth(groups)[groups.document_query])
    total = weights.coefficient[fixed] @ weights.weight(rank[fixed].astype(np.float64))
    tied, coefficient = _select(groups, moving), weights.coefficient[moving]
    draws, depth = _n_draws(tied, budget), measure.depth(tied)
    sums = np.full(draws, total)
    for start in range(0, draws, _BLOCK):
        part = sums[start : start + _BLOCK]
        for group, documents in enumerate(_slices(tied)):
            n, size = documents.stop - documents.start, int(tied.size[group])
            places = random_places(size, n, len(part), rng, ascending=weights.ascending)
            ranks = tied.above[group] + 1 + places
            weighed = weights.weight(ranks.astype(np.float64))
            part += coefficient[documents] @ (weighed * (ranks <= depth[tied.query[group]]))
    return sums if draws else None


def _slices(groups: TieGroups) -> list[slice]:
    """Return the slice of documents of each group."""
    ends = np.append(groups.first_document, len(groups.group)).tolist()
    return [slice(*pair) for pair in pairwise(ends)]


def _sample_any(
    groups: TieGroups, measure: Measure, draws: int, rng: np.random.Generator
) -> Floats:
    """Return the sum of any measure over queries under random tie orders."""
    block = min(draws, max(1, _PLACED // len(groups.group)))
    repeated = TieGroups.concat([groups] * block)
    sums = []
    for _ in range(0, draws, block):
        orders = replace(repeated, rank=random_ranks(groups, block, rng).reshape(-1))
        values = measure.views(orders)[KERNEL_VIEWS.index("oblivious")]
        sums.append(values.reshape(block, groups.n_queries).sum(axis=1))
    return np.concatenate(sums)[:draws]


def _in_groups(groups: TieGroups, documents: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for each group whether it contains one of these documents."""
    return np.bincount(groups.group[documents], minlength=len(groups.size)) > 0


def _select(groups: TieGroups, documents: NDArray[np.bool_]) -> TieGroups:
    """Return the selected documents of interest, and the groups that contain them."""
    kept = _in_groups(groups, documents)
    return replace(
        groups,
        query=groups.query[kept],
        above=groups.above[kept],
        size=groups.size[kept],
        group=(np.cumsum(kept) - 1)[groups.group[documents]],
        grade=groups.grade[documents],
        rank=groups.rank[documents],
        top_grade=groups.max_grade,
    )


def random_ranks(groups: TieGroups, draws: int, rng: np.random.Generator) -> Ints:
    """Return ranks of the documents of interest, a row for each random order of tied documents."""
    ranks = np.tile(groups.above[groups.group] + 1, (draws, 1))
    for documents, size in zip(_slices(groups), groups.size.tolist(), strict=True):
        if size > 1:
            n = documents.stop - documents.start
            ranks[:, documents] += random_places(size, n, draws, rng).T
    return ranks


def random_places(
    size: int, n: int, draws: int, rng: np.random.Generator, *, ascending: bool = False
) -> NDArray[np.integer]:
    """Return `n` different places of a group, ascending or in random order, a column per draw."""
    kind = np.min_scalar_type(size)
    if n * n > 16 * size:
        every = np.broadcast_to(np.arange(size, dtype=kind), (draws, size))
        shuffled = rng.permuted(every, axis=1)[:, :n].T
        return np.sort(shuffled, axis=0) if ascending else shuffled
    places: NDArray[np.integer] = np.empty((n, draws), kind)
    taken = np.empty_like(places)
    for i in range(n):
        place = rng.integers(0, size - i, draws, kind)  # an index among the free places
        for earlier in taken[:i]:
            place += place >= earlier
        places[i] = place
        for j in range(i):  # keeps the places taken ascending
            lower = np.minimum(taken[j], place)
            place = np.maximum(taken[j], place)
            taken[j] = lower
        taken[i] = place
    return taken if ascending else places
