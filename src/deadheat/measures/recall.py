"""Recall: the share of the relevant documents that rank above the cutoff."""

from __future__ import annotations

from dataclasses import dataclass

from deadheat.measures.base import Example
from deadheat.measures.linear import CountingMeasure
from deadheat.ties import Floats, TieGroups


@dataclass(frozen=True, repr=False)
class RecallMeasure(CountingMeasure):
    """Recall@k: relevant documents among the first k, divided by all relevant documents.

    Relevant documents that the run did not retrieve count in the divisor. A query without
    a relevant document scores 0.
    """

    name = "Recall"
    formula = "Recall@k = Hits@k / N"
    example = Example("Recall@3", ranked=(1, 0, 1, 1), unretrieved=(1,), working="2/4", value=0.5)
    aliases = ("r", "set_recall")

    def divisor(self, groups: TieGroups) -> Floats:
        """Return, per query, the number of relevant documents."""
        return self.n_relevant(groups)


Recall = RecallMeasure()
