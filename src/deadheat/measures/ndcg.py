"""nDCG: DCG divided by the DCG of the ideal ranking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.measures.base import Example
from deadheat.measures.dcg import DCGMeasure
from deadheat.measures.kernel import find_offsets, run_kernel
from deadheat.measures.linear import ideal_sums
from deadheat.ties import Floats, TieGroups


@dataclass(frozen=True, repr=False)
class NDCGMeasure(DCGMeasure):
    """nDCG@k: DCG@k divided by the DCG@k of the best possible ranking.

    The best possible ranking includes every judged document, retrieved or not. A query without
    a relevant document scores 0.
    """

    name = "nDCG"
    formula = "nDCG@k = DCG@k / ideal DCG@k"
    example = Example(
        "nDCG@3",
        ranked=(3, 0, 2),
        unretrieved=(1,),
        working="(3/1 + 0/1.585 + 2/2) / (3/1 + 2/1.585 + 1/2)",
        value=0.84,
    )
    aliases = ("ndcg_cut",)
    can_exceed_one = False

    def divisor(self, groups: TieGroups) -> Floats:
        """Return, per query, the DCG of the ideal ranking."""
        in_queries = find_offsets(groups.ideal_query, groups.n_queries)
        gains = self.gain_of(groups.ideal_grade)
        cutoff = self.cutoff or len(gains)
        arguments = in_queries, gains, cutoff, self.tables(groups).weight, self
        return np.asarray(run_kernel(ideal_sums, groups.n_queries, *arguments)[0])


nDCG = NDCGMeasure()  # noqa: N816 - the usual spelling
