"""R_cap: recall divided by the largest possible recall at the cutoff."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.measures.base import Example
from deadheat.measures.linear import CountingMeasure
from deadheat.ties import Floats, TieGroups


@dataclass(frozen=True, repr=False)
class RCapMeasure(CountingMeasure):
    """R_cap@k: relevant documents among the first k, divided by the largest possible number.

    This is capped recall in BEIR, and relative precision in trec_eval. Without a cutoff, k is the
    number of documents retrieved. A query without a relevant document scores 0.
    """

    name = "R_cap"
    formula = "R_cap@k = Hits@k / min(k, N)"
    example = Example("R_cap@2", ranked=(1, 0, 1), unretrieved=(1,), working="1/2", value=0.5)
    aliases = ("recall_cap", "relative_p")

    def divisor(self, groups: TieGroups) -> Floats:
        """Return, per query, the number of relevant documents or k, whichever is smaller."""
        return np.minimum(self.n_relevant(groups), self.depth(groups))


RCap = RCapMeasure()
