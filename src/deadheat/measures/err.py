"""ERR: expected reciprocal rank (Chapelle et al., 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deadheat.errors import InputError
from deadheat.measures.base import Example, Measure, exp_gain, rank_order
from deadheat.measures.parameters import parameter
from deadheat.measures.places import log_passing, sampled_places
from deadheat.ties.groups import Floats, Ints, TieGroups

_LONG = 1 << 18
_BLOCK = 1 << 20


@dataclass(frozen=True, repr=False)
class ERRMeasure(Measure):
    """ERR@k: the expected 1 / rank at which a reader who may stop at any document stops.

    A document stops the reader with a probability that grows with its grade; one that is
    unjudged or of grade 0 never does. The tie std of ERR is not computed.
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
        about="the top of the grading scale, 4 in gdeval.pl and ir_measures; unless given, the "
        "highest grade of the judgements",
    )

    def stopping(self, groups: TieGroups) -> Floats:
        """Per document: the probability that the reader stops there."""
        top = groups.max_grade if self.max_grade is None else self.max_grade
        if groups.max_grade > top:
            raise InputError(
                f"max_grade of ERR is {top}, but the judgements hold the grade {groups.max_grade}"
            )
        scale = exp_gain(self, np.array([top], np.float64)) + 1
        return exp_gain(self, np.maximum(groups.grade, 0)) / scale

    def in_one_pass(self, one: Any, groups: TieGroups) -> Floats | None:
        """Per query, in five rows: all views, by a compiled pass; None if a group is large."""
        views: Floats | None = one.expected_reciprocal_rank(
            self.stopping(groups), self.depth(groups), _LONG
        )
        return views

    def expected(self, groups: TieGroups) -> Floats:
        """Per query: the mean over all orders of tied documents.

        ``P_t``, the chance to pass ``t`` documents of a group, is the mean of
        ``Π (1 − ρ)`` over its subsets of size t. Adding a document to a group of n gives
        ``P_t ← ((n + 1 − t)·P_t + t·(1 − ρ)·P_{t−1}) / (n + 1)``. In a large group `_long_part`
        looks at some places only.
        """
        stopping = self.stopping(groups)
        within = self.within(groups)
        first = np.searchsorted(groups.group, np.arange(len(groups.size) + 1))
        total = np.zeros(groups.n_queries)
        reached = np.ones(groups.n_queries)
        for i, q in enumerate(groups.query):
            c, g, places = groups.above[i], groups.size[i], within[i]
            if places == 0:
                continue
            own = stopping[first[i] : first[i + 1]]
            if places * len(own) > _LONG:
                total[q] += reached[q] * _long_part(c, g, places, own[own > 0])
                reached[q] *= np.prod(1 - own)
                continue
            t = np.arange(places + 1)
            # Documents that never stop the reader come first; more than there are, none passes.
            passing = (t <= g - len(own)).astype(np.float64)
            for n, rho in enumerate(own, start=g - len(own)):
                added = t[1:] * (1 - rho) * passing[:-1]
                passing[1:] = ((n + 1 - t[1:]) * passing[1:] + added) / (n + 1)
            stops = passing[:-1] - passing[1:]
            total[q] += reached[q] * np.sum(stops / (c + t[1:]))
            reached[q] *= np.prod(1 - own)
        return total

    def variance(self, groups: TieGroups) -> None:
        """Not computed."""
        return

    def at(self, groups: TieGroups, rank: Ints) -> Floats:
        """Per query: the value when the documents of interest stand at these ranks."""
        if rank.ndim > 1:
            return np.array([self.at(groups, row) for row in rank])
        query = groups.document_query
        counted = self.reached(groups, rank, query)
        query, rank, rho = query[counted], rank[counted], self.stopping(groups)[counted]
        total = np.zeros(groups.n_queries)
        reached = np.ones(groups.n_queries)
        for i in rank_order(query, rank):
            total[query[i]] += reached[query[i]] * rho[i] / rank[i]
            reached[query[i]] *= 1 - rho[i]
        return total


def _long_part(above: int, size: int, places: int, stopping: Floats) -> float:
    """What a large group adds for a reader who comes to it.

    The reader stops at place ``t`` (from 0) if the relevant document there is the one after ``n``
    others, with the chance ``q_n`` to stop at that one. With ``h_n(t)``, the chance that ``n`` of
    the ``r`` relevant ones are among the first ``t`` (hypergeometric), the group adds
    ``Σ_t Σ_n q_n · h_n(t) · (r − n)/(g − t) / (c + t + 1)``.
    """
    r = len(stopping)
    if not r:
        return 0.0
    scale = size / stopping.sum()
    t, weight = sampled_places(int(min(places, np.ceil(37 * scale) + 1)), above, scale)
    q = _stops_at(stopping)
    part = 0.0
    step = max(1, _BLOCK // len(q))
    for i in range(0, len(t), step):
        place, n = t[i : i + step], np.arange(len(q))
        stops = (_relevant_among(place, size, r, len(q)) * q * (r - n)).sum(axis=1)
        part += float((weight[i : i + step] * stops / (size - place) / (above + place + 1)).sum())
    return part


def _stops_at(stopping: Floats) -> Floats:
    """Chances to stop at the first, second … relevant document in random order, while they count.

    The chance to pass ``n`` of them is at most ``(1 − mean)^n``.
    """
    r, mean = len(stopping), stopping.mean()
    count = r if mean == 0 else min(r, int(np.ceil(37 / mean)) + 1)
    if (stopping == stopping[0]).all():
        return np.asarray(stopping[0] * np.power(1 - stopping[0], np.arange(count)))
    n = np.arange(count + 1)
    passing = (n == 0).astype(np.float64)
    for seen, rho in enumerate(stopping):
        added = n[1:] * (1 - rho) * passing[:-1]
        passing[1:] = (np.maximum(seen + 1 - n[1:], 0) * passing[1:] + added) / (seen + 1)
    return np.asarray(passing[:-1] - passing[1:])


def _relevant_among(t: Ints, size: int, relevant: int, count: int) -> Floats:
    """Chance of 0, 1 … ``count − 1`` relevant documents among the first `t`, a row per `t`."""
    other = size - relevant
    least = np.maximum(t - other, 0)[:, None]  # where the others do not suffice
    i = np.arange(relevant)
    no_others = np.concatenate(([0], np.cumsum(np.log((relevant - i) / (size - i)))))
    begin = np.where(
        t <= other, log_passing(t, size, relevant), no_others[np.minimum(size - t, relevant)]
    )
    n = np.arange(count - 1)
    left = np.maximum(t[:, None] - n, 0) * (relevant - n)
    with np.errstate(divide="ignore"):
        ratio = np.log(left / ((n + 1) * np.maximum(other - t[:, None] + n + 1, 1)))
    logs = np.concatenate((begin[:, None], np.where(n < least, 0, ratio)), axis=1).cumsum(axis=1)
    return np.where(np.arange(count) < least, 0, np.exp(logs))


ERR = ERRMeasure()
