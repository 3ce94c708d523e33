"""bpref: binary preference (Buckley and Voorhees, 2004)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deadheat.errors import InputError
from deadheat.measures.base import BinaryMeasure, Example
from deadheat.measures.kernel import group_arrays, run_kernel, sort_by_rule
from deadheat.ties import Floats, Ints, TieGroups


@dataclass(frozen=True, repr=False)
class BprefMeasure(BinaryMeasure):
    """bpref: how few documents judged not relevant rank above those judged relevant.

    Unjudged documents are ignored, and so are grades below 0, as in trec_eval. Grades from 0 to
    below ``rel`` are judged not relevant. A relevant document that was not retrieved adds 0. A
    query without a relevant document scores 0. There is no cutoff.
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

    def views(self, groups: TieGroups) -> Floats:
        """Return five rows per query: expected, best, worst, oblivious, variance."""
        in_queries, in_groups, _, _, rank = group_arrays(groups)
        arrays = in_queries, in_groups, groups.grade, rank, sort_by_rule(groups), groups.retrieved
        known = self.n_relevant(groups)
        if groups.zeros is None:
            raise InputError(
                "bpref needs judged documents of grade 0, which these tie groups do not have"
            )
        positive = np.bincount(groups.ideal_query, minlength=groups.n_queries)
        most = np.minimum(known, groups.zeros + positive - known)
        own = self.lowest_relevant, known, most
        return run_kernel(preference_views, groups.n_queries, *arrays, *own)


def preference(a: float, m: float) -> float:
    """Return the contribution of a relevant document below `a` judged non-relevant ones."""
    return 1.0 - min(a, m) / m if m > 0 else 1.0


def preference_moments(r: int, n: int, a: int, m: float) -> tuple[float, float]:
    """Return the mean and variance of the contribution of the relevant documents of a group.

    Parameters
    ----------
    r, n
        Numbers of documents of the group that were judged relevant, and not relevant.
    a
        Number of documents above the group that were judged not relevant.
    m
        The largest number of these that counts.

    Notes
    -----
    The number j of the n documents that rank above a given relevant one is uniform on 0 … n. That
    document then adds ``f_j = 1 − (a + j) / m``, or 0 from ``a + j = m`` on: the terms above 0 are
    ``b/m, (b − 1)/m, …`` with ``b = m − a``. For two relevant documents of a group, the unordered
    pair of these numbers is uniform, too. So their covariance is the variance V of the ``f_j``
    divided by n + 2, and the variance of all r of them is ``r·V·(n + r + 1) / (n + 2)``.
    """
    if not m > 0:  # nothing can rank above
        return float(r), 0.0
    b = max(m - a, 0.0)
    terms = min(b, n + 1.0)
    # Sums of m·f_j and of its square, which are whole numbers.
    sums = terms * b - terms * (terms - 1) / 2
    squares = terms * b * (b - terms + 1) + (terms - 1) * terms * (2 * terms - 1) / 6
    scale = (n + 1.0) * m
    variance = max((n + 1.0) * squares - sums * sums, 0.0) / (scale * scale)
    return r * sums / scale, r * variance * (n + r + 1.0) / (n + 2.0)


def preference_views(
    in_queries: Ints,
    in_groups: Ints,
    grade: Floats,
    rank: Ints,
    order: Ints,
    retrieved: Ints,
    rel: float,
    divisor: Floats,
    most: Floats,
    out: Floats,
) -> None:
    """Compute the views of bpref; `order` has the documents of each query by the tie rule."""
    for q in range(len(divisor)):
        z = divisor[q]
        m = most[q]
        if not z > 0:
            continue
        expected = best = worst = rule = variance = 0.0
        above = 0
        for k in range(in_queries[q], in_queries[q + 1]):
            r = n = 0
            for i in range(in_groups[k], in_groups[k + 1]):
                if grade[i] >= rel:
                    r += 1
                elif grade[i] >= 0:
                    n += 1
            mean, spread = preference_moments(r, n, above, m)
            expected += mean
            variance += spread
            best += r * preference(above, m)
            worst += r * preference(above + n, m)
            above += n
        above = 0
        for j in range(in_groups[in_queries[q]], in_groups[in_queries[q + 1]]):
            i = order[j]
            if rank[i] > retrieved[q]:  # a rank beyond the list
                break
            if grade[i] >= rel:
                rule += preference(above, m)
            elif grade[i] >= 0:
                above += 1
        out[0, q] = expected / z
        out[1, q] = best / z
        out[2, q] = worst / z
        out[3, q] = rule / z
        out[4, q] = variance / (z * z)


bpref = BprefMeasure()
