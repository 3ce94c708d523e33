"""F1: the harmonic mean of precision and recall."""

from __future__ import annotations

from dataclasses import dataclass

from deadheat.measures.linear import CountingMeasure
from deadheat.ties.groups import Floats, TieGroups


@dataclass(frozen=True, repr=False)
class F1Measure(CountingMeasure):
    """F1@k: the harmonic mean of Precision@k and Recall@k, 2·hits / (k + N).

    As in Precision, k stays k in a shorter list, and N counts unretrieved relevant
    documents. Without a cutoff, k is the number of documents retrieved.
    """

    name = "F1"
    aliases = ("f", "set_f")

    def divisor(self, groups: TieGroups) -> Floats:
        """Per query: (k + N) / 2."""
        return (self.depth(groups) + groups.n_relevant(self.rel)) / 2


F1 = F1Measure()
