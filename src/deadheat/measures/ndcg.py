"""nDCG: DCG divided by the DCG of the ideal ranking."""

from __future__ import annotations

from dataclasses import dataclass

from deadheat.measures.base import Example
from deadheat.measures.dcg import DCGMeasure
from deadheat.measures.passes import one_pass
from deadheat.ties.groups import Floats, TieGroups


@dataclass(frozen=True, repr=False)
class NDCGMeasure(DCGMeasure):
    """nDCG@k: DCG@k divided by the DCG@k of the best possible ranking.

    The best possible ranking holds every judged document, retrieved or not. A query without
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

    def divisor(self, groups: TieGroups) -> Floats:
        """Per query: the DCG of the ideal ranking."""

        def compute() -> Floats:
            gains, one = self.gain_of(groups.ideal_grade), one_pass(groups)
            if one is not None and (tables := self.tables(one.deepest)) is not None:
                sums: Floats = one.ideal(gains, tables.weights, self.cutoff or len(gains))
                return sums
            rank = groups.ideal_rank
            parts = gains * self.weight(rank)
            if self.cutoff is not None:
                parts = parts * (rank <= self.cutoff)
            return groups.sum_queries(parts, groups.ideal_query)

        return groups.memo(("ideal", self), compute)


nDCG = NDCGMeasure()  # noqa: N816 - written as its readers write it
