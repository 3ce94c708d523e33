"""`compare` matches the permutation test and the t interval of SciPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import deadheat as dh

stats = pytest.importorskip("scipy.stats")


def make_systems(seed: int, queries: int) -> tuple[dict, dict[str, dict]]:
    """Return judgements and two runs with many ties; `a` has less noise than `b`."""
    rng = np.random.default_rng(seed)
    qrels, runs = {}, {"a": {}, "b": {}}
    for q in map(str, range(queries)):
        grades = rng.integers(0, 3, 12)
        grades[0] = 1
        qrels[q] = {f"d{i}": int(grade) for i, grade in enumerate(grades)}
        for name, noise in (("a", 0.8), ("b", 1.6)):
            scores = np.round(grades + noise * rng.normal(size=12))
            runs[name][q] = {f"d{i}": float(score) for i, score in enumerate(scores)}
    return qrels, runs


def compare(qrels: dict, runs: dict, **options) -> tuple[dict, np.ndarray]:
    """Return the row of the pair, and the difference per query, from separate evaluations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dh.DeadheatWarning)
        comparison = dh.compare(qrels, runs, ["nDCG@5"], **options)
        a, b = (dh.evaluate(qrels, run, ["nDCG@5"]) for run in runs.values())
    measure = next(iter(a.views))
    differences = a.views[measure].expected - b.views[measure].expected
    (row,) = comparison.pairs.to_dicts()
    sign = 1 if row["a"] == "a" else -1
    assert sign * row["difference"] == pytest.approx(differences.mean(), abs=1e-12)
    return row, sign * differences


@pytest.mark.parametrize("queries", [2, 5, 9, 12])
def test_exact_p_values_match_scipy(queries):
    for seed in range(5):
        row, differences = compare(*make_systems(seed, queries))
        expected = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=np.inf
        )
        assert row["p_value"] == pytest.approx(expected.pvalue, abs=1e-12)


def test_sampled_p_values_match_scipy():
    row, differences = compare(*make_systems(3, 30), resamples=9_999)
    expected = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1
    )
    assert row["p_value"] == pytest.approx(expected.pvalue, abs=0.02)


@pytest.mark.parametrize("queries", [10, 40])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_intervals_match_scipy(queries, alpha):
    row, differences = compare(*make_systems(queries, queries), alpha=alpha, resamples=99)
    expected = stats.ttest_1samp(differences, 0).confidence_interval(1 - alpha)
    assert (row["interval_low"], row["interval_high"]) == pytest.approx(
        (expected.low, expected.high)
    )
