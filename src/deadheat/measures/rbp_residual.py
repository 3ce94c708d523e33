"""RBP-residual: what RBP does not know (Moffat and Zobel, 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deadheat.measures.base import Example
from deadheat.measures.rbp import RankBiased
from deadheat.ties.groups import Floats, Ints, TieGroups


@dataclass(frozen=True, repr=False)
class RBPResidualMeasure(RankBiased):
    """RBP-residual: what unjudged documents, and ranks past the list, could add to RBP at most.

    The true RBP, of gain ``binary`` or ``scaled``, lies between RBP and RBP + RBP-residual. A
    grade below 0 is no judgement here, as in trec_eval. A large residual is no merit: ``best``
    is the largest value, as of every measure. Nothing is known of a query without documents, and
    its residual is 1.
    """

    name = "RBP-residual"
    formula = (
        "RBP-residual@k = (1 − p) · Σ p^(rank − 1), over ranks 1 … k (all ranks without k) that no "
        "judged document has"
    )
    example = Example(
        "RBP-residual(p=0.5)",
        ranked=(1, None, 0),
        working="1 − 0.5 · (0.5^0 + 0.5^2)",
        value=0.375,
    )
    needs_judged = True

    def gains(self, groups: TieGroups) -> Floats:
        """Per document: 1 if it is judged; its weight is known."""
        return (groups.grade >= 0).astype(np.float64)

    def everything(self) -> float:
        """Give the weight of all ranks that count."""
        return 1.0 if self.cutoff is None else float(1 - self.p**self.cutoff)

    def in_one_pass(self, one: Any, groups: TieGroups) -> Floats | None:
        """Per query, in five rows: all views, by a compiled pass; None if it looks too far."""
        views = super().in_one_pass(one, groups)
        if views is not None:
            unknown = np.maximum(self.everything() - views[:4], 0)
            views[:4] = unknown[[0, 2, 1, 3]]  # what is best for the known is worst for the rest
        return views

    def expected(self, groups: TieGroups) -> Floats:
        """Per query: the mean over all orders of tied documents."""
        return np.maximum(self.everything() - super().expected(groups), 0)

    def at(self, groups: TieGroups, rank: Ints) -> Floats:
        """Per query: the value when the documents of interest stand at these ranks."""
        return np.maximum(self.everything() - super().at(groups, rank), 0)


RBPResidual = RBPResidualMeasure()
