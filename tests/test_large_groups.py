"""Large tie groups, and groups far down a list, compared with rationals and full sums."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deadheat as dh
from deadheat.measures import DCG, MEASURES, RBP
from deadheat.measures.linear import prefix_sums

pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")

SIZE = 10**5


def groups_of(above: list[int], size: list[int], grades: list[list[float]]) -> dh.ties.TieGroups:
    """Return the tie groups of one query from their ranks, sizes and grades."""
    group = np.repeat(np.arange(len(size)), [len(g) for g in grades])
    grade = np.concatenate([sorted(g, reverse=True) for g in grades]).astype(np.float64)
    n = len(grade)
    return dh.ties.TieGroups(
        query=np.zeros(len(size), np.int64),
        above=np.array(above),
        size=np.array(size),
        group=group,
        grade=grade,
        rank=np.array(above)[group] + 1 + np.concatenate([np.arange(len(g)) for g in grades]),
        retrieved=np.array([above[-1] + size[-1]]),
        ideal_query=np.zeros(n, np.int64),
        ideal_grade=np.sort(grade)[::-1],
        zeros=np.zeros(1, np.int64),
    )


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
@pytest.mark.parametrize("grades", [[1], [2, 1, 1]], ids=len)
def test_large_group_uses_little_memory(measure, grades):
    groups = groups_of([3], [SIZE], [grades])
    tracemalloc.start()
    try:
        views = dh.evaluation.evaluate_groups(groups, [measure])[repr(measure)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40_000_000
    slack = 1e-12 * views.best
    assert 0 <= views.worst <= views.expected + slack <= views.best + 2 * slack
    assert views.std is None or views.std >= 0


def test_one_relevant_document_in_a_large_group():
    """All ranks are equally likely: E = (H(c + g) − H(c)) / g."""
    groups = groups_of([1000], [SIZE], [[1]])
    views = {
        m: dh.evaluation.evaluate_groups(groups, [m])[m] for m in ("MRR", "ERR", "Success", "nDCG")
    }
    harmonic = np.log(1 + SIZE / 1000) - 0.5 / 1000 + 0.5 / (SIZE + 1000) + 1 / 12 / 1000**2
    assert views["MRR"].expected == pytest.approx(harmonic / SIZE, rel=1e-12)
    assert views["ERR"].expected == pytest.approx(harmonic / SIZE / 2, rel=1e-12)
    assert views["Success"].expected == 1
    # The mean discount is near 1 / log2 of the middle rank.
    assert 1 / np.log2(SIZE) < views["nDCG"].expected < 1 / np.log2(SIZE / 4)


@pytest.mark.parametrize("above", [0, 10**6])
@pytest.mark.parametrize(("size", "cutoff"), [(10_000, 10_000), (10_000, 2_000), (40, 30)])
@pytest.mark.parametrize("max_grade", [4, 10, 20, 30, 100, 500])
def test_err_of_one_document_with_a_low_grade(above, size, cutoff, max_grade):
    """All ranks are equally likely for every stopping probability."""
    name = f"ERR(max_grade={max_grade})@{above + cutoff}"
    views = dh.evaluation.evaluate_groups(groups_of([above], [size], [[1]]), [name])[name]
    truth = math.fsum(1 / (above + 1 + t) for t in range(cutoff)) / size * 0.5**max_grade
    assert views.expected == pytest.approx(truth, rel=1e-13, abs=0)


@pytest.mark.parametrize("places", [1, 7, 12, 60])
@pytest.mark.parametrize("other", [0, 3, 50])
def test_err_of_low_grades_against_rationals(places, other):
    grades = [30, 25, 10, 10, 2, 2, 1, 1, 1]
    size = len(grades) + other
    places = min(places, size)
    passing = [Fraction(1)] + [Fraction(0)] * len(grades)  # elementary symmetric polynomials
    for grade in grades:
        kept = 1 - Fraction(2**grade - 1, 2**30)
        passing = [1, *(p + kept * e for p, e in zip(passing[1:], passing, strict=False))]
    # Include the other documents, at which the reader never stops.
    passed = [
        sum(e * math.comb(other, t - n) for n, e in enumerate(passing) if n <= t)
        / math.comb(size, t)
        for t in range(places + 1)
    ]
    truth = float(sum((passed[t] - passed[t + 1]) / (4 + t) for t in range(places)))
    name = f"ERR(max_grade=30)@{3 + places}"
    views = dh.evaluation.evaluate_groups(groups_of([3], [size], [grades]), [name])[name]
    assert views.expected == pytest.approx(truth, rel=1e-14)


@pytest.mark.parametrize(
    ("above", "size", "relevant"),
    [(0, 300_000, 1), (7, 400_000, 2), (1000, 500_000, 30), (3, 900_000, 800), (10**9, 5_000, 3)],
)
def test_mrr_of_a_large_group_equals_the_sum_over_ranks(above, size, relevant):
    t = np.arange(size - relevant + 1)
    # Steps of the log-probability of no relevant document so far.
    steps = np.log1p(-relevant / (size - t[:-1]))
    passing = np.exp([0.0, *np.cumsum(steps)])
    stopping = passing * relevant / (size - t) / (above + t + 1)
    groups = groups_of([above], [size], [[1] * relevant])
    views = dh.evaluation.evaluate_groups(groups, ["MRR"])["MRR"]
    assert views.expected == pytest.approx(stopping.sum(), rel=1e-12)
    chance = stopping * (above + t + 1)
    distance = 1 / (above + t + 1) - stopping.sum()
    assert views.std == pytest.approx(np.sqrt((chance * distance**2).sum()), rel=1e-9)


@pytest.mark.parametrize("above", [0, 1 << 20, 3 << 20])
@pytest.mark.parametrize("measure", [DCG, RBP(p=0.999)], ids=repr)
def test_far_sums_match_exact_sums(above, measure):
    for places in (1, 50, 70_000, 2_000_000):
        weight = measure.weight(np.arange(above + 1, above + places + 1, dtype=np.float64))
        mean = math.fsum(weight) / places
        deviation = math.fsum((weight - mean) ** 2)
        total, spread = measure.far_sums(above, places)
        assert total / places == pytest.approx(mean, rel=1e-12)
        assert spread == pytest.approx(deviation, rel=1e-6, abs=1e-20)


@given(values=st.lists(st.floats(0, 1), max_size=5_000))
@settings(max_examples=20)
def test_prefix_sums_match_fsum(values):
    sums = prefix_sums(np.array(values))
    for end in {0, len(values) // 2, len(values) - 1} & set(range(len(values))):
        assert sums[end] == pytest.approx(math.fsum(values[: end + 1]), rel=1e-14)


def exact_moments(c: int, g: int, places: int, weight) -> tuple[Fraction, Fraction]:
    """Return mean and variance of a document's weight over all ranks of its group."""
    weights = [weight(c + 1 + t) if t < places else Fraction(0) for t in range(g)]
    mean = sum(weights) / g
    return mean, sum((w - mean) ** 2 for w in weights) / g


@pytest.mark.parametrize("c", [0, 1, 63, 64, 1_000, 10**6, 10**9])
@pytest.mark.parametrize("g", [2, 3, 63, 65, 300])
def test_std_of_one_document_far_down_a_list(c, g):
    """Compare mean and std of one relevant document among g with rationals."""
    groups = groups_of([c], [g], [[1]])
    measures = ("MRR", "MAP", "nDCG", "Recall", f"MRR@{c + g - 1}", f"MAP@{c + g - 1}")
    measures += (f"Recall@{c + g - 1}", f"nDCG@{c + g - 1}")
    result = dh.evaluation.evaluate_groups(groups, measures)
    for measure in measures:
        name, _, cutoff = measure.partition("@")
        weight = {
            "nDCG": lambda x: Fraction(float(DCG.weight(np.array([x], np.float64))[0])),
            "Recall": lambda x: Fraction(1),
        }.get(name, lambda x: Fraction(1, x))
        mean, variance = exact_moments(c, g, g - 1 if cutoff else g, weight)
        assert result[measure].expected == pytest.approx(float(mean), rel=1e-12)
        # Discounts are rounded, so a std far below the mean consists of rounding errors only.
        slack = 1e-15 * float(mean) if name == "nDCG" else 0
        std = math.sqrt(variance)
        assert result[measure].std == pytest.approx(std, rel=1e-6, abs=slack), measure
