"""Tests over queries: against enumeration, direct implementations and scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from deadheat.comparison import significance
from deadheat.comparison.significance import (
    holm,
    permuted_ranges,
    sign_flip_p_values,
    student_intervals,
    t_quantile,
    tukey_p_values,
)


def all_pairs(systems: int) -> np.ndarray:
    return np.array(list(itertools.combinations(range(systems), 2)))


def against_nothing(differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and pairs with these differences: each column against one of zeros."""
    n, columns = differences.shape
    pairs = np.column_stack([np.arange(columns), np.full(columns, columns)])
    return np.column_stack([differences, np.zeros(n)]), pairs


def noisy(queries: int, systems: int, seed: int, better: float = 0.0) -> np.ndarray:
    """Values of systems that share the queries' difficulty; one is better than all others."""
    rng = np.random.default_rng(seed)
    values = rng.random((queries, 1)) + rng.normal(0, 0.2, (queries, systems))
    values[:, 0] += better
    return values


def test_holm_by_hand():
    """0.01·4, 0.02·3, 0.03·2 (raised to 0.06), 0.5·1; the order given is kept."""
    assert holm(np.array([0.03, 0.5, 0.01, 0.02])) == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm(np.array([0.9, 0.8])) == pytest.approx([1, 1])


# Sign flips.


def test_p_values_against_all_sign_flips():
    rng = np.random.default_rng(3)
    differences = np.round(rng.normal(0.2, 0.5, (9, 3)), 1)  # rounding makes ties in |mean|
    p_values = sign_flip_p_values(*against_nothing(differences), 9999, 0)
    for column, p in zip(differences.T, p_values, strict=True):
        flips = [abs(np.dot(signs, column)) for signs in itertools.product((1, -1), repeat=9)]
        extreme = sum(flip >= abs(column.sum()) - 1e-9 for flip in flips)
        assert p == extreme / 2**9
        peer = stats.permutation_test((column,), np.mean, permutation_type="samples")
        assert p == pytest.approx(peer.pvalue)


def test_random_sign_flips_come_close_to_all_of_them():
    values, pairs = noisy(13, 3, seed=4), all_pairs(3)
    every = sign_flip_p_values(values, pairs, 2**13, 0)
    some = sign_flip_p_values(values, pairs, 2**13 - 1, 0)
    assert some == pytest.approx(every, abs=0.02)
    assert (some != every).any()


def test_p_values_of_no_difference_and_of_the_clearest_difference():
    values, pairs = against_nothing(np.column_stack([np.zeros(40), np.ones(40)]))
    assert sign_flip_p_values(values, pairs, 999, 0) == pytest.approx([1, 1 / 1000])


def test_a_small_difference_between_large_values_is_not_lost_to_rounding():
    """The systems differ in one query: every flip is as far from 0 as what was observed."""
    values = np.random.default_rng(1).random((40, 1)) * np.ones(2)
    values[7, 0] += 1e-7
    assert sign_flip_p_values(values, np.array([[0, 1]]), 999, 0) == [1]


# Tukey's test.


def test_tukey_against_every_order_of_every_query():
    """Three systems, four queries: 6^4 ways to deal the values out."""
    values, pairs = noisy(4, 3, seed=8, better=0.5), all_pairs(3)
    dealt = itertools.product(*(list(itertools.permutations(row)) for row in values))
    ranges = np.array([np.ptp(np.sum(rows, axis=0)) for rows in dealt])
    got = tukey_p_values(values, pairs, 40_000, 0)
    for (a, b), p in zip(pairs, got, strict=True):
        exact = (ranges >= abs(values[:, a].sum() - values[:, b].sum()) - 1e-9).mean()
        assert p == pytest.approx(exact, abs=0.01)


def test_tukey_against_a_direct_implementation():
    values, pairs = noisy(25, 6, seed=9, better=0.1), all_pairs(6)
    rng = np.random.default_rng(123)
    ranges = []
    for _ in range(4000):
        means = np.mean([rng.permutation(row) for row in values], axis=0)
        ranges.append(means.max() - means.min())
    observed = [abs(values[:, a].mean() - values[:, b].mean()) for a, b in pairs]
    direct = [(1 + sum(r >= o for r in ranges)) / 4001 for o in observed]
    got = tukey_p_values(values, pairs, 9999, 0)
    assert got == pytest.approx(direct, abs=0.035)  # four standard errors of the coarser one
    assert 0.001 < min(direct) < 0.2 < max(direct)


def test_of_two_systems_tukeys_test_is_the_sign_flip_test():
    """Scipy's permutations of each query's two values are the third witness."""
    values, pairs = noisy(12, 2, seed=10, better=0.12), all_pairs(2)
    exact = sign_flip_p_values(values, pairs, 2**12, 0)
    peer = stats.permutation_test(
        tuple(values.T), lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=2**12
    )
    assert exact == pytest.approx(peer.pvalue)
    assert tukey_p_values(values, pairs, 40_000, 0) == pytest.approx(exact, abs=0.01)


def test_few_of_many_families_of_equal_systems_have_a_false_find():
    """At a level of 0.1, 0.1 of them; the standard error of the share is 0.021."""
    least = [tukey_p_values(noisy(15, 8, s), all_pairs(8), 199, s).min() for s in range(200)]
    assert np.mean(np.array(least) <= 0.1) == pytest.approx(0.1, abs=0.065)


def test_many_systems_leave_the_p_values_fine():
    """With Holm the least p-value of 9,999 resamples would be 0.79: 7,875 pairs at 0.0001."""
    values = noisy(50, 126, seed=11, better=0.5)
    p_values = tukey_p_values(values, all_pairs(126), 999, 0)
    assert p_values[:125] == pytest.approx(1 / 1000)  # all pairs with the better one
    assert p_values[125:].min() > 0.05


def test_permuted_means_of_many_queries_are_close_to_normal(monkeypatch):
    values = noisy(significance.MANY_QUERIES, 6, seed=12) ** 4  # skewed as measures are
    limit = permuted_ranges(values, 4000, 1)
    spread = np.sqrt(values.var(axis=1, ddof=1).sum())
    theory = stats.studentized_range.ppf([0.5, 0.95, 0.99], 6, np.inf) * spread
    assert np.quantile(limit, [0.5, 0.95, 0.99]) == pytest.approx(theory, rel=0.03)
    through = tukey_p_values(values, all_pairs(6), 999, 0)
    monkeypatch.setattr(significance, "MANY_QUERIES", 10**6)
    assert stats.ks_2samp(permuted_ranges(values, 4000, 0), limit).pvalue > 0.01
    assert through == pytest.approx(tukey_p_values(values, all_pairs(6), 999, 0), abs=0.06)


def test_blocks_change_nothing(monkeypatch):
    values, pairs = noisy(20, 7, seed=13, better=0.2), all_pairs(7)

    def everything() -> list[np.ndarray]:
        return [
            sign_flip_p_values(values[:9], pairs, 999, 0),  # all 512 of them
            permuted_ranges(values, 99, 0),
            student_intervals(values, pairs, 0.1),
        ]

    whole = everything()
    monkeypatch.setattr(significance, "_BLOCK", 250)
    for one, other in zip(whole, everything(), strict=True):
        assert one == pytest.approx(other, abs=1e-12)


# Intervals.


@pytest.mark.parametrize("df", [1, 2, 3, 4, 9, 10, 49, 50, 6979])
def test_quantiles_of_students_t_are_scipys(df):
    levels = [0.6, 0.9, 0.975, 0.9995]
    found = [t_quantile(p, df) for p in levels]
    assert found == pytest.approx(stats.t.ppf(levels, df).tolist(), rel=1e-7)


SHAPES = {
    "normal": (lambda rng, size: rng.normal(size=size), 0.94),
    "half of them 0": (lambda rng, size: rng.normal(size=size) * (rng.random(size) < 0.5), 0.94),
    "heavy tails": (lambda rng, size: rng.standard_t(3, size), 0.94),
    "reciprocal ranks": (
        lambda rng, size: 1 / rng.integers(1, 11, size) - 1 / rng.integers(1, 11, size),
        0.94,
    ),
    "skewed": (lambda rng, size: rng.exponential(size=size) - 1, 0.89),
}


@pytest.mark.parametrize("queries", [10, 30])
@pytest.mark.parametrize("shape", SHAPES)
def test_coverage_of_intervals_of_few_queries(shape, queries):
    """Standard error 0.002; percentile bootstrap covers 0.88 of 10 normal differences."""
    draw, least = SHAPES[shape]
    differences = draw(np.random.default_rng(queries), (queries, 10_000))
    low, high = student_intervals(*against_nothing(differences), 0.05)
    assert ((low <= 0) & (high >= 0)).mean() >= least
