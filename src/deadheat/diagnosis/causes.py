"""Causes of ties that are not rounding: plateaus, saturation, constant tails, points, fused ranks.

Each statement holds as it stands, or for the share of the scores that it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deadheat._internal.remarks import counted
from deadheat.diagnosis.number_grid import Values, usual_steps
from deadheat.ties import GroupSizes

MANY = 10
"""From so many documents on a tie group is large."""
STEPS = 10
"""A score is alone if no other of its list is within so many steps of the number grid."""
FUSION_K = 60
"""The constant of reciprocal rank fusion that everybody uses."""
_SAMPLE = 200
"""So many distinct scores are looked at for fused ranks."""
_RANKS = 2_000
"""Ranks beyond this are not looked for in fused scores."""


@dataclass(frozen=True)
class Cause:
    """Why documents share scores, besides the rounding of their numbers."""

    name: str
    """``"plateaus"``, ``"saturation"``, ``"constant tails"``, ``"points"`` or ``"fused ranks"``."""
    statement: str
    documents: int
    """Documents that it concerns."""


def find_causes(sizes: GroupSizes, lengths: Values, values: Values, step: Values) -> list[Cause]:
    """Name what else than rounding ties the documents of a run.

    Parameters
    ----------
    sizes
        The run's tie groups.
    lengths
        Per query: documents of its list.
    values, step
        The run's distinct finite scores, and how far neighbours on their number grid are.
    """
    if not len(values):
        return []
    found = list(_large_groups(sizes, values, step))
    if np.isfinite(sizes.score).all():
        found += _points(sizes, values)
        found += _fused_ranks(int(lengths.max()), sizes, values, step)
    return found


def _large_groups(sizes: GroupSizes, values: Values, step: Values) -> Iterator[Cause]:
    """Large groups that stand alone: rounding would have put documents on the steps beside them."""
    with np.errstate(invalid="ignore"):  # inf − inf
        gap = np.diff(sizes.score.astype(np.float64))
    gap[sizes.query[1:] != sizes.query[:-1]] = np.inf
    nearest = np.minimum(np.append(np.inf, gap), np.append(gap, np.inf))
    step = usual_steps(values, step)
    own = step[np.clip(np.searchsorted(values, sizes.score), 0, len(values) - 1)]
    alone = (sizes.size >= MANY) & (nearest > STEPS * own)
    last = np.diff(sizes.query, prepend=-1) > 0
    ends = np.isin(sizes.score, (0, 1)) & bool(values[0] >= 0 and values[-1] <= 1)
    isolated = f"no other score of the list is within {STEPS} steps of the number grid"
    not_the_grid = (
        f"{isolated}, so it was not this grid that tied them, but what the scores were made of "
        "(coarser logits, say)"
    )
    for name, groups, text in (
        ("plateaus", alone & ~last & ~ends, not_the_grid),
        ("saturation", alone & ~last & ends, "at 0 or 1, where scores saturate"),
        ("constant tails", alone & last, f"they end their lists, and {isolated}"),
    ):
        if groups.any():
            size = sizes.size[groups]
            yield Cause(
                name,
                f"{counted(len(size), 'tie group')} of {MANY} documents or more, up to "
                f"{size.max():,} ({size.sum() / sizes.size.sum():.1%} of all documents): {text}",
                int(size.sum()),
            )


def _points(sizes: GroupSizes, values: Values) -> Iterator[Cause]:
    """Whole numbers, of which some are tied and some are neighbours."""
    whole = np.array_equal(np.floor(values), values)
    neighbours = len(values) == 1 or np.diff(values).min() == 1
    if whole and neighbours and (sizes.size > 1).any():
        yield Cause(
            "points",
            f"every score is a whole number from {values[0]:,.0f} to {values[-1]:,.0f}, as counts, "
            "votes, ranks and Borda points are",
            int(sizes.size.sum()),
        )


def _fused_ranks(longest: int, sizes: GroupSizes, values: Values, step: Values) -> Iterator[Cause]:
    """Sums of one to three terms 1 / (60 + rank), as far as they are no coincidence."""
    ranks = min(max(longest, 1_000), _RANKS)
    terms = 1.0 / (FUSION_K + np.arange(1, ranks + 1))
    if values[0] < terms[-1] or values[-1] > 1:
        return
    sample = np.linspace(0, len(values) - 1, min(_SAMPLE, len(values))).astype(np.int64)
    scores = values[sample].astype(np.float64)
    slack = np.maximum(step[sample], 8 * np.spacing(scores))
    first, second = np.triu_indices(ranks)
    pairs = np.sort(terms[first] + terms[second])

    def sums(numbers: Values) -> list[Values]:
        """Which numbers are a term, a sum of up to two, or of up to three."""
        one = _distance(terms[::-1], numbers) <= slack
        two = one | (_distance(pairs, numbers) <= slack)
        three = two.copy()
        for term in terms:
            three |= _distance(pairs, numbers - term) <= slack
        return [one, two, three]

    # Numbers beside the scores, where sums are as dense, show how often coincidence meets one.
    beside = scores * (1 + 1e-5 * (0.5 + np.modf(np.arange(len(scores)) * 0.618)[0]))
    shares = [
        (float(found.mean()), -most)
        for most, found, chance in zip((1, 2, 3), sums(scores), sums(beside), strict=True)
        if found.mean() >= 0.5 and chance.mean() <= 0.05
    ]
    if shares:
        share, fewest = max(shares)
        word = "reciprocals" if fewest == -1 else f"sums of up to {-fewest} reciprocals"
        yield Cause(
            "fused ranks",
            f"{share:.0%} of {len(scores):,} scores looked at are {word} of whole numbers above "
            f"{FUSION_K}, as reciprocal rank fusion adds up 1 / ({FUSION_K} + rank): documents "
            "whose ranks trade places tie",
            int(sizes.size.sum()),
        )


def _distance(ascending: Values, numbers: Values) -> Values:
    """Per number: how far the nearest of the sorted numbers is."""
    above = np.clip(np.searchsorted(ascending, numbers), 1, len(ascending) - 1)
    return np.asarray(np.abs(ascending[[above - 1, above]] - numbers).min(axis=0))
