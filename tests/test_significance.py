"""Significance tests over queries, compared with enumeration, direct implementations and scipy."""

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


def pair_with_zeros(differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values and pairs with these differences: each column is paired with one of zeros."""
    n, columns = differences.shape
    pairs = np.column_stack([np.arange(columns), np.full(columns, columns)])
    return np.column_stack([differences, np.zeros(n)]), pairs


def noisy_values(queries: int, systems: int, seed: int, better: float = 0.0) -> np.ndarray:
    """Return values of systems on queries of different difficulty; add `better` to the first."""
    rng = np.random.default_rng(seed)
    values = rng.random((queries, 1)) + rng.normal(0, 0.2, (queries, systems))
    values[:, 0] += better
    return values


def test_holm_against_hand_computed_values():
    """0.01·4, 0.02·3, 0.03·2 (raised to 0.06) and 0.5·1, in the order of the input."""
    assert holm(np.array([0.03, 0.5, 0.01, 0.02])) == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm(np.array([0.9, 0.8])) == pytest.approx([1, 1])


# Sign flips.


def test_sign_flip_p_values_against_enumeration():
    rng = np.random.default_rng(3)
    differences = np.round(rng.normal(0.2, 0.5, (9, 3)), 1)  # rounding creates ties in |mean|
    p_values = sign_flip_p_values(*pair_with_zeros(differences), 9999, 0)
    for column, p in zip(differences.T, p_values, strict=True):
        flips = [abs(np.dot(signs, column)) for signs in itertools.product((1, -1), repeat=9)]
        extreme = sum(flip >= abs(column.sum()) - 1e-9 for flip in flips)
        assert p == extreme / 2**9
        from_scipy = stats.permutation_test((column,), np.mean, permutation_type="samples")
        assert p == pytest.approx(from_scipy.pvalue)


def test_random_sign_flips_approximate_all_sign_flips():
    values, pairs = noisy_values(13, 3, seed=4), all_pairs(3)
    exact = sign_flip_p_values(values, pairs, 2**13, 0)
    random = sign_flip_p_values(values, pairs, 2**13 - 1, 0)
    assert random == pytest.approx(exact, abs=0.02)
    assert (random != exact).any()


def test_sign_flip_p_values_of_no_and_of_constant_difference():
    values, pairs = pair_with_zeros(np.column_stack([np.zeros(40), np.ones(40)]))
    assert sign_flip_p_values(values, pairs, 999, 0) == pytest.approx([1, 1 / 1000])


def test_sign_flip_p_value_of_a_small_difference_between_large_values():
    """The systems differ in one query, so all flips have the observed |mean|."""
    values = np.random.default_rng(1).random((40, 1)) * np.ones(2)
    values[7, 0] += 1e-7
    assert sign_flip_p_values(values, np.array([[0, 1]]), 999, 0) == [1]


# Tukey's test.


def test_tukey_against_enumeration():
    """Three systems and four queries have 6^4 permutations of values within queries."""
    values, pairs = noisy_values(4, 3, seed=8, better=0.5), all_pairs(3)
    permuted = itertools.product(*(list(itertools.permutations(row)) for row in values))
    ranges = np.array([np.ptp(np.sum(rows, axis=0)) for rows in permuted])
    p_values = tukey_p_values(values, pairs, 40_000, 0)
    for (a, b), p in zip(pairs, p_values, strict=True):
        exact = (ranges >= abs(values[:, a].sum() - values[:, b].sum()) - 1e-9).mean()
        assert p == pytest.approx(exact, abs=0.01)


def test_tukey_against_a_direct_implementation():
    values, pairs = noisy_values(25, 6, seed=9, better=0.1), all_pairs(6)
    rng = np.random.default_rng(123)
    ranges = []
    for _ in range(4000):
        means = np.mean([rng.permutation(row) for row in values], axis=0)
        ranges.append(means.max() - means.min())
    observed = [abs(values[:, a].mean() - values[:, b].mean()) for a, b in pairs]
    direct = [(1 + sum(r >= o for r in ranges)) / 4001 for o in observed]
    p_values = tukey_p_values(values, pairs, 9999, 0)
    assert p_values == pytest.approx(direct, abs=0.035)  # four standard errors of the direct one
    assert 0.001 < min(direct) < 0.2 < max(direct)


def test_tukey_of_two_systems_equals_sign_flip_test():
    """Both also equal scipy's permutation test of the two values of each query."""
    values, pairs = noisy_values(12, 2, seed=10, better=0.12), all_pairs(2)
    exact = sign_flip_p_values(values, pairs, 2**12, 0)
    from_scipy = stats.permutation_test(
        tuple(values.T), lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=2**12
    )
    assert exact == pytest.approx(from_scipy.pvalue)
    assert tukey_p_values(values, pairs, 40_000, 0) == pytest.approx(exact, abs=0.01)


def test_tukey_family_wise_error_rate():
    """At a level of 0.1, 10% of families of equal systems have a significant pair.

    The standard error of this share is 0.021.
    """
    smallest = [
        tukey_p_values(noisy_values(15, 8, s), all_pairs(8), 199, s).min() for s in range(200)
    ]
    assert np.mean(np.array(smallest) <= 0.1) == pytest.approx(0.1, abs=0.065)


def test_tukey_p_values_of_many_systems():
    """With Holm's correction, 9,999 resamples and 7,875 pairs allow no p-value below 0.79."""
    values = noisy_values(50, 126, seed=11, better=0.5)
    p_values = tukey_p_values(values, all_pairs(126), 999, 0)
    assert p_values[:125] == pytest.approx(1 / 1000)  # all pairs with the better one
    assert p_values[125:].min() > 0.05


def test_normal_approximation_of_permuted_ranges_for_many_queries(monkeypatch):
    values = noisy_values(significance.MANY_QUERIES, 6, seed=12) ** 4  # skewed as measures are
    limit = permuted_ranges(values, 4000, 1)
    spread = np.sqrt(values.var(axis=1, ddof=1).sum())
    theory = stats.studentized_range.ppf([0.5, 0.95, 0.99], 6, np.inf) * spread
    assert np.quantile(limit, [0.5, 0.95, 0.99]) == pytest.approx(theory, rel=0.03)
    approximate = tukey_p_values(values, all_pairs(6), 999, 0)
    monkeypatch.setattr(significance, "MANY_QUERIES", 10**6)
    assert stats.ks_2samp(permuted_ranges(values, 4000, 0), limit).pvalue > 0.01
    assert approximate == pytest.approx(tukey_p_values(values, all_pairs(6), 999, 0), abs=0.06)


def test_results_do_not_depend_on_block_size(monkeypatch):
    values, pairs = noisy_values(20, 7, seed=13, better=0.2), all_pairs(7)

    def compute_all() -> list[np.ndarray]:
        return [
            sign_flip_p_values(values[:9], pairs, 999, 0),  # all 512 of them
            permuted_ranges(values, 99, 0),
            student_intervals(values, pairs, 0.1),
        ]

    whole = compute_all()
    monkeypatch.setattr(significance, "_BLOCK", 250)
    for one, other in zip(whole, compute_all(), strict=True):
        assert one == pytest.approx(other, abs=1e-12)


# Intervals.


@pytest.mark.parametrize("df", [1, 2, 3, 4, 9, 10, 49, 50, 6979])
def test_t_quantile_against_scipy(df):
    levels = [0.6, 0.9, 0.975, 0.9995]
    quantiles = [t_quantile(p, df) for p in levels]
    assert quantiles == pytest.approx(stats.t.ppf(levels, df).tolist(), rel=1e-7)


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
def test_student_intervals_cover_the_mean_for_few_queries(shape, queries):
    """The standard error is 0.002; a percentile bootstrap covers 0.88 for 10 normal differences."""
    draw, coverage = SHAPES[shape]
    differences = draw(np.random.default_rng(queries), (queries, 10_000))
    low, high = student_intervals(*pair_with_zeros(differences), 0.05)
    assert ((low <= 0) & (high >= 0)).mean() >= coverage
