"""`compare` on whole runs against the permutation test and the t interval of scipy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import deadheat as dh

stats = pytest.importorskip("scipy.stats")


def systems(seed: int, queries: int) -> tuple[dict, dict[str, dict]]:
    """Judgements, and two runs with many ties of which one is somewhat better."""
    random = np.random.default_rng(seed)
    qrels, runs = {}, {"a": {}, "b": {}}
    for q in map(str, range(queries)):
        grades = random.integers(0, 3, 12)
        grades[0] = 1
        qrels[q] = {f"d{i}": int(grade) for i, grade in enumerate(grades)}
        for name, noise in (("a", 0.8), ("b", 1.6)):
            scores = np.round(grades + noise * random.normal(size=12))
            runs[name][q] = {f"d{i}": float(score) for i, score in enumerate(scores)}
    return qrels, runs


def compared(qrels: dict, runs: dict, **options) -> tuple[dict, np.ndarray]:
    """The row of the pair, and its differences query by query from results of their own."""
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
def test_exact_p_values_are_scipys(queries):
    for seed in range(5):
        row, differences = compared(*systems(seed, queries))
        peer = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=np.inf
        )
        assert row["p_value"] == pytest.approx(peer.pvalue, abs=1e-12)


def test_sampled_p_values_are_scipys_but_for_chance():
    row, differences = compared(*systems(3, 30), resamples=9_999)
    peer = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1
    )
    assert row["p_value"] == pytest.approx(peer.pvalue, abs=0.02)


@pytest.mark.parametrize("queries", [10, 40])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_intervals_are_scipys(queries, alpha):
    row, differences = compared(*systems(queries, queries), alpha=alpha, resamples=99)
    peer = stats.ttest_1samp(differences, 0).confidence_interval(1 - alpha)
    assert (row["interval_low"], row["interval_high"]) == pytest.approx((peer.low, peer.high))
