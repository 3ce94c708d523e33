"""Causes of ties that are not rounding: plateaus, saturation, constant tails, fused ranks.

Each statement is true of all scores, or of the share of scores that it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deadheat._internal.remarks import counted
from deadheat.diagnosis.number_grid import Values, usual_steps
from deadheat.ties import GroupSizes

MANY = 10
"""A tie group of this many documents or more is large."""
STEPS = 10
"""A score is isolated if no other score of its list is within this many steps of the grid."""
FUSION_K = 60
"""The usual constant k of reciprocal rank fusion."""
_SAMPLE = 200
"""Number of distinct scores that are tested for fused ranks."""
_RANKS = 2_000
"""Largest rank that is searched for in fused scores."""


@dataclass(frozen=True)
class Cause:
    """A cause of equal scores other than rounding."""

    name: str
    """``"plateaus"``, ``"saturation"``, ``"constant tails"`` or ``"fused ranks"``."""
    statement: str
    documents: int
    """Number of documents that it concerns."""


def find_causes(sizes: GroupSizes, lengths: Values, values: Values, step: Values) -> list[Cause]:
    """Return the causes of a run's ties other than rounding.

    Parameters
    ----------
    sizes
        The run's tie groups.
    lengths
        Per query: the number of documents in its list.
    values, step
        The run's distinct finite scores, and the distance of neighbours on their number grid.
    """
    if not len(values):
        return []
    found = list(_large_groups(sizes, values, step))
    if np.isfinite(sizes.score).all():
        found += _fused_ranks(int(lengths.max()), sizes, values, step)
    return found


def _large_groups(sizes: GroupSizes, values: Values, step: Values) -> Iterator[Cause]:
    """Yield large isolated groups: rounding would also put documents on neighbouring steps."""
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
        f"{isolated}, so this grid did not tie them; the inputs of the scores did (for example "
        "coarser logits)"
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


def _fused_ranks(longest: int, sizes: GroupSizes, values: Values, step: Values) -> Iterator[Cause]:
    """Yield a cause if more scores than by chance are sums of one to three 1 / (60 + rank)."""
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
        """Return which numbers are one term, a sum of up to two, and a sum of up to three."""
        one = _distance(terms[::-1], numbers) <= slack
        two = one | (_distance(pairs, numbers) <= slack)
        three = two.copy()
        for term in terms:
            three |= _distance(pairs, numbers - term) <= slack
        return [one, two, three]

    # Numbers next to the scores, where sums are as dense, show how often a sum is met by chance.
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
            f"{share:.0%} of {len(scores):,} tested scores are {word} of whole numbers above "
            f"{FUSION_K}, as in reciprocal rank fusion, which adds up 1 / ({FUSION_K} + rank): "
            "documents with the same ranks in another order tie",
            int(sizes.size.sum()),
        )


def _distance(ascending: Values, numbers: Values) -> Values:
    """Return the distance of each number to the nearest of the sorted numbers."""
    above = np.clip(np.searchsorted(ascending, numbers), 1, len(ascending) - 1)
    return np.asarray(np.abs(ascending[[above - 1, above]] - numbers).min(axis=0))
