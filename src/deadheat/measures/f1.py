"""F1: the harmonic mean of precision and recall."""

from __future__ import annotations

from dataclasses import dataclass

from deadheat.measures.base import Example
from deadheat.measures.linear import CountingMeasure
from deadheat.ties import Floats, TieGroups


@dataclass(frozen=True, repr=False)
class F1Measure(CountingMeasure):
    """F1@k: the harmonic mean of Precision@k and Recall@k.

    As in Precision, a list shorter than k does not change k. N includes relevant documents that
    were not retrieved. Without a cutoff, k is the number of documents retrieved.
    """

    name = "F1"
    formula = "F1@k = 2 · Hits@k / (k + N)"
    example = Example(
        "F1@3", ranked=(1, 0, 1, 1), unretrieved=(1, 1), working="2 · 2 / (3 + 5)", value=0.5
    )
    aliases = ("f", "set_f")

    def divisor(self, groups: TieGroups) -> Floats:
        """Return, per query, (k + N) / 2."""
        return (self.depth(groups) + self.n_relevant(groups)) / 2


F1 = F1Measure()
