"""RBP: rank-biased precision (Moffat and Zobel, 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.measures.base import Example
from deadheat.measures.linear import CountingMeasure
from deadheat.measures.parameters import parameter
from deadheat.ties.groups import Floats, Ints, TieGroups


@dataclass(frozen=True, repr=False)
class RBPMeasure(CountingMeasure):
    """RBP: what a reader finds who goes on to the next document with probability p.

    An unjudged document is not relevant. With a cutoff the weights of the ranks past it are
    dropped, not spread over the rest.
    """

    name = "RBP"
    formula = "RBP@k = (1 − p) · Σ p^(rank − 1), over relevant documents at ranks 1 … k"
    example = Example("RBP(p=0.5)", ranked=(1, 0, 1), working="0.5 · (0.5^0 + 0.5^2)", value=0.625)

    p: float = parameter(
        0.8, above=0, below=1, about="the probability to go on to the next document"
    )

    def weight(self, rank: Ints) -> Floats:
        """Weight of a rank."""
        weight: Floats = (1 - self.p) * np.power(self.p, rank - 1.0)
        return weight

    def weight_sums(self, rank: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
        """Sums of the geometric series and of its squares."""
        p = self.p
        decay = np.power(p, rank.astype(np.float64))
        return 1 - decay, (1 - p) / (1 + p) * (1 - decay * decay)

    def divisor(self, groups: TieGroups) -> Floats:
        """Per query: 1."""
        return np.ones(groups.n_queries)


RBP = RBPMeasure()
