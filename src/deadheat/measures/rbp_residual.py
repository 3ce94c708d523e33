"""RBP-residual: the uncertainty of RBP, from unjudged ranks (Moffat and Zobel, 2008)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.measures.base import Example
from deadheat.measures.rbp import RankBiased
from deadheat.ties import Floats, TieGroups


@dataclass(frozen=True, repr=False)
class RBPResidualMeasure(RankBiased):
    """RBP-residual: the most that unjudged documents and ranks beyond the list could add to RBP.

    The true RBP, with the gain ``binary`` or ``scaled``, is between RBP and RBP + RBP-residual. A
    document with a grade below 0 counts as unjudged, as in trec_eval. A larger residual is not
    better, but ``best`` is still the largest value, as for every measure. The residual of a query
    without documents is 1.
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
        """Return, per document, 1 if it is judged, else 0."""
        return (groups.grade >= 0).astype(np.float64)

    def views(self, groups: TieGroups) -> Floats:
        """Return five rows per query: expected, best, worst, oblivious, variance."""
        views = super().views(groups)
        total = 1.0 if self.cutoff is None else float(1 - self.p**self.cutoff)
        unknown = np.maximum(total - views[:4], 0)
        # The best order of the judged part is the worst of the rest.
        views[:4] = unknown[[0, 2, 1, 3]]
        return views


RBPResidual = RBPResidualMeasure()
