"""R-Precision: precision at the number of relevant documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.measures.base import Example
from deadheat.measures.linear import CountingMeasure
from deadheat.ties import Floats, Ints, TieGroups


@dataclass(frozen=True, repr=False)
class RPrecisionMeasure(CountingMeasure):
    """R-Precision: relevant documents among the first N, divided by N.

    N is the number of relevant documents of the query, retrieved or not. With a cutoff, only the
    first min(k, N) ranks count; the divisor is still N.
    """

    name = "R-Precision"
    formula = "R-Precision = Hits@N / N, R-Precision@k = Hits@min(k, N) / N"
    example = Example(
        "R-Precision", ranked=(1, 0, 1, 0, 1), unretrieved=(1,), working="2/4", value=0.5
    )
    aliases = ("rprec", "r_precision", "rprecision")

    def depth(self, groups: TieGroups) -> Ints:
        """Return, per query, N or the cutoff, whichever is smaller."""
        n = self.n_relevant(groups).astype(np.int64)
        return n if self.cutoff is None else np.minimum(n, self.cutoff)

    def divisor(self, groups: TieGroups) -> Floats:
        """Return N per query."""
        return self.n_relevant(groups)


RPrecision = RPrecisionMeasure()
