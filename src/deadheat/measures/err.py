"""ERR: expected reciprocal rank (Chapelle et al., 2009)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.errors import InputError
from deadheat.measures.base import Example, Measure, exp_gain
from deadheat.measures.kernel import group_arrays, run_kernel, sort_by_rule
from deadheat.measures.parameters import parameter
from deadheat.ties import Floats, Ints, TieGroups


@dataclass(frozen=True, repr=False)
class ERRMeasure(Measure):
    """ERR@k: the expected value of 1 / rank of the document at which a reader stops.

    A reader stops at a document with a probability that grows with its grade, and never at a
    document that is unjudged or of grade 0. The tie std of ERR is not computed.
    """

    name = "ERR"
    formula = (
        "ERR@k = Σ ρ / rank · Π (1 − ρ of an earlier rank), over ranks 1 … k, "
        "with ρ = (2^grade − 1) / 2^max_grade"
    )
    example = Example(
        "ERR(max_grade=2)",
        ranked=(1, 0, 2),
        working="1/4 / 1 + 0 + 3/4 / 3 · (1 − 1/4)",
        value=0.4375,
    )
    aliases = ("expected_reciprocal_rank",)
    has_variance = False

    max_grade: float | None = parameter(
        None,
        above=0,
        at_most=500,
        about="the highest grade of the scale, 4 in gdeval.pl and ir_measures; default: the "
        "highest grade of the judgements",
    )

    def stopping(self, groups: TieGroups) -> Floats:
        """Return, per document, the probability that the reader stops there."""
        top = groups.max_grade if self.max_grade is None else self.max_grade
        if groups.max_grade > top:
            raise InputError(
                f"max_grade of ERR is {top}, but the judgements have the grade {groups.max_grade}"
            )
        scale = exp_gain(self, np.array([top], np.float64)) + 1
        return exp_gain(self, np.maximum(groups.grade, 0)) / scale

    def views(self, groups: TieGroups) -> Floats:
        """Return five rows per query: expected, best, worst, oblivious, and 0 for the variance."""
        arrays, depth = group_arrays(groups), self.depth(groups)
        longest = np.minimum(depth[groups.query] - groups.above, groups.size).max(initial=0)
        own = sort_by_rule(groups), self.stopping(groups), depth, np.empty(longest + 1)
        return run_kernel(expected_reciprocal_rank_views, len(depth), *arrays, *own)


def expected_reciprocal_rank_views(
    in_queries: Ints,
    in_groups: Ints,
    above: Ints,
    size: Ints,
    rank: Ints,
    order: Ints,
    stopping: Floats,
    depth: Ints,
    stopped: Floats,
    out: Floats,
) -> None:
    """Compute the views of ERR, without the variance.

    ``Q_t``, the probability to stop at one of ``t`` documents of a group, is the mean of
    ``1 − Π (1 − ρ)`` over its subsets of size t. Adding a document to a group of n gives
    ``Q_t ← ((n + 1 − t)·Q_t + t·(ρ + (1 − ρ)·Q_{t−1})) / (n + 1)``. The sum over the places,
    ``Σ_{t<T} (Q_{t+1} − Q_t)/(c + t + 1)``, is computed as
    ``Q_T/(c + T) + Σ_{0<t<T} Q_t/((c + t)(c + t + 1))``. No term is negative, so that small
    probabilities keep all digits.

    Parameters
    ----------
    order
        The documents of each query in the order of the tie rule.
    stopping
        Per document: ``ρ``, sorted from high to low inside a group.
    stopped
        Buffer for ``Q_t``.
    """
    for q in range(len(depth)):
        limit = depth[q]
        expected = best = worst = rule = 0.0
        reached = 1.0
        tied = False
        for k in range(in_queries[q], in_queries[q + 1]):
            c = above[k]
            g = size[k]
            first = in_groups[k]
            last = in_groups[k + 1]
            n = last - first
            tied = tied or g > 1
            passed = before = reached
            for i in range(first, last):
                if c + 1 + i - first <= limit:
                    best += passed * stopping[i] / (c + 1 + i - first)
                passed *= 1.0 - stopping[i]
            for j in range(n):
                i = last - 1 - j
                if c + g - n + 1 + j <= limit:
                    worst += before * stopping[i] / (c + g - n + 1 + j)
                before *= 1.0 - stopping[i]
            places = min(limit - c, g)
            if places > 0:
                # First the documents that never stop the reader.
                for t in range(places + 1):
                    stopped[t] = 0.0
                for i in range(first, last):
                    seen = g - n + (i - first) + 1
                    rho = stopping[i]
                    most = min(places, seen)  # no subset is larger
                    for j in range(most):
                        t = most - j
                        added = t * (rho + (1.0 - rho) * stopped[t - 1])
                        stopped[t] = ((seen - t) * stopped[t] + added) / seen
                value = stopped[places] / (c + places)
                for t in range(1, places):
                    value += stopped[t] / ((c + t + 0.0) * (c + t + 1))
                expected += reached * value
            reached = passed
        reached = 1.0
        for j in range(in_groups[in_queries[q]], in_groups[in_queries[q + 1]]):
            i = order[j]
            if rank[i] <= limit:
                rule += reached * stopping[i] / rank[i]
                reached *= 1.0 - stopping[i]
        out[0, q] = expected if tied else best
        out[1, q] = best
        out[2, q] = worst
        out[3, q] = rule


ERR = ERRMeasure()
