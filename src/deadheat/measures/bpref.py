"""bpref: binary preference (Buckley and Voorhees, 2004)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deadheat.measures.base import BinaryMeasure, Example, rank_order, ratio
from deadheat.ties.groups import Floats, Ints, TieGroups


@dataclass(frozen=True, repr=False)
class BprefMeasure(BinaryMeasure):
    """bpref: how few documents judged not relevant stand above those judged relevant.

    Unjudged documents do not matter, nor do those of a grade below 0, which is no judgement
    here, as in trec_eval; grades from 0 to below ``rel`` are judged not relevant. A relevant
    document that was not retrieved adds 0, and a query without a relevant document scores 0.
    There is no cutoff.
    """

    name = "bpref"
    formula = (
        "bpref = 1/N · Σ (1 − min(a, m) / m), over relevant documents, with a = documents above "
        "that were judged not relevant, m = min(N, all documents judged not relevant)"
    )
    example = Example(
        "bpref",
        ranked=(1, 0, None, 1, 0, 1),
        unretrieved=(1, 0),
        working="1/4 · ((1 − 0/3) + (1 − 1/3) + (1 − 2/3))",
        value=0.5,
    )
    needs_judged = True
    whole_list = True

    def most(self, groups: TieGroups) -> Floats:
        """Per query: ``m``, how many documents judged not relevant count at most."""
        return np.minimum(groups.n_relevant(self.rel), groups.n_nonrelevant(self.rel))

    def in_one_pass(self, one: Any, groups: TieGroups) -> Floats:
        """Per query, in five rows: all views, by a compiled pass."""
        known, most = groups.n_relevant(self.rel), self.most(groups)
        views: Floats = one.preference(self.lowest_relevant, known, most)
        return views

    def expected(self, groups: TieGroups) -> Floats:
        """Per query: the mean over all orders of tied documents."""
        mean, _ = self._moments(groups)
        return ratio(groups.sum_queries(mean), groups.n_relevant(self.rel))

    def variance(self, groups: TieGroups) -> Floats:
        """Per query: the variance over all orders of tied documents."""
        _, variance = self._moments(groups)
        n = groups.n_relevant(self.rel)
        return ratio(groups.sum_queries(variance), n * n)

    def at(self, groups: TieGroups, rank: Ints) -> Floats:
        """Per query: the value when the documents of interest stand at these ranks."""
        if rank.ndim > 1:
            return np.array([self.at(groups, row) for row in rank])
        order = rank_order(groups.document_query, rank)
        query = groups.document_query[order]
        nonrelevant = groups.is_nonrelevant(self.rel)[order].astype(np.float64)
        first = np.searchsorted(query, np.arange(groups.n_queries))
        seen = np.concatenate(([0.0], np.cumsum(nonrelevant)))
        above = seen[:-1] - seen[first[query]]
        most = self.most(groups)[query]
        parts = 1 - ratio(np.minimum(above, most), most)
        counted = groups.is_relevant(self.rel) & self.reached(groups, rank, groups.document_query)
        return ratio(groups.sum_queries(parts * counted[order], query), groups.n_relevant(self.rel))

    def _moments(self, groups: TieGroups) -> tuple[Floats, Floats]:
        """Per group: mean and variance of what its relevant documents add.

        Of the group's n documents judged not relevant, any number j from 0 to n is as likely as
        any other to stand before a given relevant one. That one then adds
        ``f_j = 1 − (A + j) / m``, or 0 from ``A + j = m`` on, where A stand above the group: the
        terms above 0 are ``b/m, (b − 1)/m, …`` with ``b = m − A``. Two relevant documents of a
        group are as likely to have any unordered pair of numbers before them as any other, so
        their covariance is the variance V of the ``f_j`` divided by n + 2, and all r of them have
        the variance ``r·V·(n + r + 1) / (n + 2)``.
        """

        def compute() -> tuple[Floats, Floats]:
            n, r = groups.sum_groups(groups.is_nonrelevant(self.rel)), groups.relevant(self.rel)
            m = self.most(groups)[groups.query]
            b = np.maximum(m - groups.sum_above(n), 0)
            terms = np.minimum(b, n + 1)
            # Sums of m·f_j and of its square are whole numbers.
            sums = terms * b - terms * (terms - 1) / 2
            squares = terms * b * (b - terms + 1) + (terms - 1) * terms * (2 * terms - 1) / 6
            each = np.where(m > 0, ratio(sums, (n + 1) * m), 1)  # m = 0: nothing can stand above
            spread = ratio(np.maximum((n + 1) * squares - sums * sums, 0), ((n + 1) * m) ** 2)
            return r * each, r * spread * (n + r + 1) / (n + 2)

        return groups.memo(("bpref", self.rel), compute)


bpref = BprefMeasure()
