"""Tie groups of any size: what a measure costs does not grow with the places of a group."""

from __future__ import annotations

import math
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deadheat as dh
from deadheat.measures import MEASURES, dcg, err, mrr
from deadheat.measures.places import log_passing, sampled_places

pytestmark = [
    pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning"),
    pytest.mark.usefixtures("backend"),
]

SIZE = 10**8


def groups_of(above: list[int], size: list[int], grades: list[list[float]]) -> dh.TieGroups:
    """Tie groups of one query, from what stands in them."""
    group = np.repeat(np.arange(len(size)), [len(g) for g in grades])
    grade = np.concatenate([sorted(g, reverse=True) for g in grades]).astype(np.float64)
    n = len(grade)
    return dh.TieGroups(
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
@pytest.mark.parametrize("grades", [[1], [2, 1, 1], [1] * 50], ids=len)
def test_a_group_of_a_hundred_million_needs_little_memory(measure, grades):
    groups = groups_of([3], [SIZE], [grades])
    tracemalloc.start()
    try:
        views = dh.evaluate_groups(groups, [measure])[repr(measure)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150_000_000
    slack = 1e-12 * views.best
    assert 0 <= views.worst <= views.expected + slack <= views.best + 2 * slack
    assert views.std is None or views.std >= 0


def test_one_document_among_a_hundred_million():
    """Every place is as likely as any other: E = (H(c + g) − H(c)) / g."""
    groups = groups_of([1000], [SIZE], [[1]])
    views = {m: dh.evaluate_groups(groups, [m])[m] for m in ("MRR", "ERR", "Success", "nDCG")}
    harmonic = np.log(1 + SIZE / 1000) - 0.5 / 1000 + 0.5 / (SIZE + 1000) + 1 / 12 / 1000**2
    assert views["MRR"].expected == pytest.approx(harmonic / SIZE, rel=1e-12)
    assert views["ERR"].expected == pytest.approx(harmonic / SIZE / 2, rel=1e-12)
    assert views["Success"].expected == 1
    # The mean of the discount over 10⁸ ranks lies between its ends, near 1 / log2 of the middle.
    assert 1 / np.log2(SIZE) < views["nDCG"].expected < 1 / np.log2(SIZE / 4)


def test_err_of_thousands_of_relevant_documents_takes_a_moment():
    rng = np.random.default_rng(1)
    groups = groups_of([0], [10**6], [rng.choice([1, 2, 3], 3000).tolist()])
    begin = time.perf_counter()
    value = dh.evaluate_groups(groups, ["ERR(max_grade=10)"])["ERR(max_grade=10)"]
    assert time.perf_counter() - begin < 20  # it took 40 s on an idle machine, now a fraction
    assert value.worst < value.expected < value.best


@settings(max_examples=150)
@given(
    above=st.integers(0, 5),
    sizes=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), min_size=1, max_size=3),
    cutoff=st.one_of(st.none(), st.integers(1, 20)),
    data=st.data(),
)
def test_large_groups_are_treated_as_small_ones_are(monkeypatch, above, sizes, cutoff, data):
    """With every group taken for a large one nothing changes."""
    size = [g for g, _ in sizes]
    grades = [
        data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=max(1, min(g, r))))
        for g, r in sizes
    ]
    begins = (above + np.cumsum([0, *size[:-1]])).tolist()
    groups = [groups_of(begins, size, grades) for _ in range(2)]
    measures = [m(cutoff=cutoff) for m in (dh.MRR, dh.ERR, dh.Success)]
    measures.append(dh.MRR(rel=2, cutoff=cutoff))
    truth = dh.evaluate_groups(groups[0], measures)
    with monkeypatch.context() as patch:
        patch.setattr(mrr, "_LONG", 0)
        patch.setattr(err, "_LONG", 0)
        found = dh.evaluate_groups(groups[1], measures)
    for measure in measures:
        a, b = found[measure], truth[measure]
        assert a.expected == pytest.approx(b.expected, rel=1e-12)
        assert a.std is None or a.std == pytest.approx(b.std, abs=1e-7)


@pytest.mark.parametrize(
    ("above", "size", "relevant"),
    [(0, 300_000, 1), (7, 400_000, 2), (1000, 500_000, 30), (3, 900_000, 800)],
)
def test_mrr_of_a_long_group_against_the_sum_over_its_places(above, size, relevant):
    t = np.arange(size - relevant + 1)
    passing = np.exp(log_passing(t, size, relevant))
    assert passing[1000] == pytest.approx(np.prod(1 - relevant / (size - np.arange(1000.0))))
    stopping = passing * relevant / (size - t) / (above + t + 1)
    groups = groups_of([above], [size], [[1] * relevant])
    views = dh.evaluate_groups(groups, ["MRR"])["MRR"]
    assert views.expected == pytest.approx(stopping.sum(), rel=1e-12)
    second = (stopping / (above + t + 1)).sum()
    assert views.std == pytest.approx(np.sqrt(second - stopping.sum() ** 2), rel=1e-9)


@settings(max_examples=60)
@given(
    size=st.one_of(st.integers(200, 3_000), st.just(10**6), st.just(10**9)),
    share=st.floats(0, 1),
    data=st.data(),
)
def test_the_chance_to_pass_against_whole_numbers(size, share, data):
    """Σ log (g − t − j)/(g − j) over j < r, each term as exact as a fraction is."""
    relevant = max(1, min(int(share * size), size - 1, 1_500))
    most = size - relevant
    t = data.draw(st.lists(st.integers(0, min(most, 60 * size // relevant)), min_size=1))
    truth = [
        sum(
            math.log1p(-Fraction(place, size - j)) if place else 0.0
            for j in range(relevant)
        )
        for place in t
    ]  # fmt: skip
    found = log_passing(np.array(t), size, relevant)
    np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-13)
    assert log_passing(np.array([most + 1]), size, relevant)[0] == -np.inf


def test_err_of_a_long_group_against_its_definition(monkeypatch):
    rng = np.random.default_rng(0)
    for above, size, count in ((0, 5_000, 40), (5, 20_000, 100), (2, 3_000, 2_990)):
        grades = rng.choice([1, 2, 3], count).tolist()
        values = []
        for long in (0, 1 << 60):
            monkeypatch.setattr(err, "_LONG", long)
            groups = groups_of([above], [size], [grades])
            measures = ("ERR(max_grade=9)", "ERR(max_grade=9)@1500", "ERR")
            result = dh.evaluate_groups(groups, measures)
            values += [result[measure].expected for measure in measures]
        assert values[:3] == pytest.approx(values[3:], rel=1e-10)


def test_discounts_beyond_the_table_continue_it():
    last = 3 * dcg._LONGEST_TABLE
    ranks = np.array([1, dcg._LONGEST_TABLE, dcg._LONGEST_TABLE + 1, 2 * dcg._LONGEST_TABLE, last])
    weight = np.log(np.longdouble(2)) / np.log(np.arange(2, last + 2).astype(np.longdouble))
    for found, weights in zip(dcg.discount_sums(ranks), (weight, weight**2), strict=True):
        truth = np.cumsum(weights)[ranks - 1]
        assert np.max(np.abs(found / truth - 1)) < 1e-15


def test_sampled_places_add_up():
    for count, above, scale in ((5_000, 0, np.inf), (10**6, 0, 3e4), (10**6, 50, 2e5)):
        t, weight = sampled_places(count, above, scale)
        every = np.arange(count)

        def f(t, above=above, scale=scale):
            return np.exp(-t / scale) / (above + t + 1)

        assert (weight * f(t)).sum() == pytest.approx(f(every).sum(), rel=1e-13)
        assert len(t) < 2_000
        assert weight.sum() == pytest.approx(count)


def test_threads_share_the_table_of_discounts(monkeypatch):
    """Cold, and with lists of growing length: each thread looks at one table only."""
    lists = [np.linspace(1, 0, n)[None] for n in (50, 700, 5_000, 20_000, 90_000, 300)]
    labels = [np.arange(scores.shape[1])[None] % 7 == 3 for scores in lists]

    def values(i: int) -> float:
        return dh.evaluate_arrays(lists[i], labels[i], "nDCG")["nDCG"].expected

    truth = [values(i) for i in range(6)]
    for _ in range(15):
        monkeypatch.setattr(dcg, "_table", np.zeros((2, 1), np.longdouble))
        with ThreadPoolExecutor(6) as threads:
            assert list(threads.map(values, range(6))) == truth
