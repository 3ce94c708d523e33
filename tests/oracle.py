"""An independent oracle: measures by their definitions, on one fixed order, and every order.

Plain Python on purpose: no closed form, no array, nothing of deadheat.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Doc:
    """A candidate; grade None means that nobody judged it."""

    score: float
    grade: float | None


def orders(docs: Sequence[Doc]) -> Iterator[list[Doc]]:
    """Every order of the documents that the scores allow."""
    ranked = sorted(docs, key=lambda d: -d.score)
    groups = [list(g) for _, g in itertools.groupby(ranked, key=lambda d: d.score)]
    for parts in itertools.product(*(itertools.permutations(g) for g in groups)):
        yield [doc for part in parts for doc in part]


def n_orders(docs: Sequence[Doc]) -> int:
    scores = [d.score for d in docs]
    return math.prod(math.factorial(scores.count(s)) for s in set(scores))


def input_order(docs: Sequence[Doc]) -> list[Doc]:
    return sorted(docs, key=lambda d: -d.score)  # Python's sort is stable


def value(name: str, order: Sequence[Doc], absent: Sequence[float], **parameters: object) -> float:
    """A measure on one order; `absent` are grades of judged documents not in the list."""
    k = parameters.get("cutoff")
    rel = parameters.get("rel")
    grades = [d.grade or 0 for d in order]
    top = grades if k is None else grades[:k]

    def relevant(grade: float) -> bool:
        return grade > 0 if rel is None else grade >= rel

    everything = [*grades, *absent]
    n = sum(map(relevant, everything))
    hits = sum(map(relevant, top))
    size = len(order) if k is None else k

    def gain(grade: float) -> float:
        return (
            max(grade, 0)
            if parameters.get("gain", "linear") == "linear"
            else 2 ** max(grade, 0) - 1
        )

    def dcg(ranked: Sequence[float]) -> float:
        return math.fsum(gain(g) / math.log2(i + 1) for i, g in enumerate(ranked, 1))

    if name == "Hits":
        return hits
    if name == "Precision":
        return hits / size if size else 0
    if name == "Recall":
        return hits / n if n else 0
    if name == "R_cap":
        return hits / min(n, size) if min(n, size) else 0
    if name == "F1":
        return 2 * hits / (size + n) if size + n else 0
    if name == "Success":
        return float(hits > 0)
    if name == "DCG":
        return dcg(top)
    if name == "nDCG":
        ideal = sorted(everything, key=gain, reverse=True)
        best = dcg(ideal if k is None else ideal[:k])
        return dcg(top) / best if best else 0
    if name == "MRR":
        return next((1 / i for i, g in enumerate(top, 1) if relevant(g)), 0)
    if name == "MAP":
        total = math.fsum(
            sum(map(relevant, top[:i])) / i for i, g in enumerate(top, 1) if relevant(g)
        )
        divisor = {"N": n, "min": min(n, size), "found": hits}[parameters.get("divisor", "N")]
        return total / divisor if divisor else 0
    if name == "R-Precision":
        reach = n if k is None else min(n, k)
        return sum(map(relevant, grades[:reach])) / n if n else 0
    if name == "RBP":
        p = parameters.get("p", 0.8)
        unit = {"binary": None, "linear": 1, "scaled": max([*everything, 0])}
        scale = unit[parameters.get("gain", "binary")]
        return math.fsum(
            (1 - p) * p ** (i - 1) * (1 if scale is None else g / scale)
            for i, g in enumerate(top, 1)
            if relevant(g)
        )
    if name == "RBP-residual":
        p = parameters.get("p", 0.8)
        known = {i for i, d in enumerate(order, 1) if d.grade is not None and d.grade >= 0}
        # Past the list, and past any rank where a weight of p = 0.8 matters, nothing is known.
        last = 1_000 if k is None else k
        return math.fsum((1 - p) * p ** (i - 1) for i in range(1, last + 1) if i not in known)
    if name == "bpref":
        # absent and order: both may hold documents judged not relevant
        judged = [d.grade for d in order if d.grade is not None and d.grade >= 0]
        m = min(n, sum(not relevant(g) for g in [*judged, *absent]))
        total = 0.0
        for i, g in enumerate(judged):
            above = sum(not relevant(x) for x in judged[:i])
            if relevant(g):
                total += 1 - min(above, m) / m if above else 1
        return total / n if n else 0
    if name == "ERR":
        ceiling = parameters.get("max_grade") or max([*everything, 0])
        total, reached = 0.0, 1.0
        for i, g in enumerate(top, 1):
            stop = (2 ** max(g, 0) - 1) / 2**ceiling
            total += reached * stop / i
            reached *= 1 - stop
        return total
    if name == "Judged":
        judged = [d.grade is not None for d in (order if k is None else order[:k])]
        return sum(judged) / len(judged) if judged else 0
    raise ValueError(name)


def views(
    name: str, docs: Sequence[Doc], absent: Sequence[float], **parameters: object
) -> dict[str, float]:
    """All views by enumeration."""
    values = [value(name, order, absent, **parameters) for order in orders(docs)]
    mean = fmean(values)
    return {
        "expected": mean,
        "variance": fmean((v - mean) ** 2 for v in values),
        "best": max(values),
        "worst": min(values),
        "oblivious": value(name, input_order(docs), absent, **parameters),
    }
