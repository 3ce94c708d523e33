"""RBP: rank-biased precision (Moffat and Zobel, 2008)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.measures.base import Example
from deadheat.measures.linear import CountingMeasure, LinearMeasure
from deadheat.measures.parameters import parameter
from deadheat.ties import Floats, Ints, TieGroups

_SMALLEST_LOG = -700
"""Powers with a smaller logarithm are 0; near the smallest float64."""


@dataclass(frozen=True, repr=False)
class RankBiased(LinearMeasure):
    """Base of the measures with the rank weights of RBP, (1 − p) · p^(rank − 1)."""

    p: float = parameter(
        0.8, above=0, below=1, about="the probability to continue to the next document"
    )

    def weight(self, rank: Floats) -> Floats:
        """Return the weight of each rank."""
        weight = np.zeros(rank.shape)
        # Negligible powers stay 0, because computing them is slow.
        np.power(self.p, rank - 1.0, out=weight, where=rank * np.log(self.p) > _SMALLEST_LOG)
        weight *= 1 - self.p
        return weight

    def at_stake(self, groups: TieGroups, above: Ints) -> Floats:
        """Return, per query, the weight of all ranks after `above`, times the largest gain."""
        reached = super().at_stake(groups, above) > 0
        largest = groups.max_grade if self.can_exceed_one else 1.0
        return np.where(reached, largest * np.power(self.p, above.astype(np.float64)), 0)


@dataclass(frozen=True, repr=False)
class RBPMeasure(CountingMeasure, RankBiased):
    """RBP: the expected gain per document of a reader who continues with probability p.

    Documents that are unjudged or not relevant have no gain. With a cutoff, the ranks beyond it
    add nothing; the weights of the other ranks do not change.
    """

    name = "RBP"
    formula = "RBP@k = (1 − p) · Σ gain · p^(rank − 1), over relevant documents at ranks 1 … k"
    example = Example(
        "RBP(p=0.5, gain='scaled')",
        ranked=(1, 0, 2),
        working="0.5 · (1/2 · 0.5^0 + 2/2 · 0.5^2)",
        value=0.375,
    )

    gain: str = parameter(
        "binary",
        choices={
            "binary": "1 for every relevant grade",
            "scaled": "the grade divided by the highest grade of the judgements, as on the "
            "leaderboards of TREC-COVID (there with p=0.5)",
            "linear": "the grade itself, as in ranx; RBP can then exceed 1",
        },
        about="the gain of a relevant document",
    )

    @property
    def can_exceed_one(self) -> bool:  # type: ignore[override]
        """Whether the gain of a document can exceed 1."""
        return self.gain == "linear"

    def gains(self, groups: TieGroups) -> Floats:
        """Return the gain of each document."""
        relevant = super().gains(groups)
        if self.gain == "binary":
            return relevant
        unit = groups.max_grade if self.gain == "scaled" else 1.0
        return np.asarray(relevant * groups.grade / (unit or 1.0))


RBP = RBPMeasure()
