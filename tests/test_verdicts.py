"""Win probabilities under random tie-breaking, ranks, and verdicts on two systems."""

from __future__ import annotations

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from oracle import Doc, orders, value
from quiet import quiet

import deadheat as dh
from deadheat.comparison import VERDICTS, verdict
from deadheat.comparison.statistics import (
    Chances,
    Outcomes,
    bounds,
    duel,
    first_places,
    keeps_order,
    rank_intervals,
    ranks,
)
from deadheat.comparison.tie_orders import random_ranks, sample_sums
from deadheat.evaluation import Result, Views
from deadheat.measures.parse import parse_measure

few_queries = pytest.mark.filterwarnings("ignore:with .* no corrected p-value")


# The example of the paper, computed from the aggregates in its Table 1.

MIRACL_QUERIES = 717


def outcomes_with_largest_variance(expected: float, width: float) -> SimpleNamespace:
    """Return outcomes with the largest variance that a mean range allows.

    The variance of a query is at most a quarter of its squared range, and a range is at most 1.
    """
    n = MIRACL_QUERIES
    return SimpleNamespace(
        expected=expected,
        worst=expected - width,
        best=expected + width,
        variance=width / 4 / n,
        third=math.inf,
        down=1 / n,
        up=1 / n,
        two_valued=False,
        distribution=None,
    )


def verdict_on_published(a: tuple[float, ...], b: tuple[float, ...], p_value: float | None) -> str:
    """Return the verdict on (oblivious, expected, range) of two models, in percent."""
    (obl_a, e_a, range_a), (obl_b, e_b, range_b) = (np.array(x) / 100 for x in (a, b))
    odds = duel(
        outcomes_with_largest_variance(e_a, range_a), outcomes_with_largest_variance(e_b, range_b)
    )
    return verdict(e_a - e_b, obl_a - obl_b, odds.a_wins, odds.b_wins, p_value, error=odds.error)


QWEN = {"bf16": (75.04, 68.38, 25.59), "hps": (73.59, 73.35, 1.13)}
BGE = {"bf16": (75.59, 74.54, 3.90), "hps": (74.63, 74.57, 0.16)}
GTE = {"bf16": (74.48, 74.22, 0.97), "hps": (74.39, 74.34, 0.14)}


@pytest.mark.parametrize("p_value", [None, 0.001, 0.5])
def test_bf16_qwen_against_gte_is_a_decision_error(p_value):
    assert verdict_on_published(QWEN["bf16"], GTE["bf16"], p_value) == "decision error"
    assert verdict_on_published(GTE["bf16"], QWEN["bf16"], p_value) == "decision error"


def test_hps_qwen_against_gte_depends_only_on_queries():
    assert verdict_on_published(QWEN["hps"], GTE["hps"], 0.001) == "B is better"
    assert verdict_on_published(GTE["hps"], QWEN["hps"], 0.001) == "A is better"
    assert verdict_on_published(QWEN["hps"], GTE["hps"], 0.3) == "not significant"
    assert verdict_on_published(QWEN["hps"], GTE["hps"], None) == "not testable"


def test_bge_against_gte_is_undecided():
    """The BF16 models differ by 0.32 points; the published range allows a tie std of 0.4 points."""
    assert verdict_on_published(BGE["bf16"], GTE["bf16"], 0.001) == "undecided: ties"
    # They differ by 0.23 points, with a std of at most 0.1: too little to prove 95 %.
    assert verdict_on_published(BGE["hps"], GTE["hps"], 0.001) == "undecided: ties"


@pytest.mark.parametrize(
    ("difference", "oblivious", "a_wins", "b_wins", "p_value", "expected"),
    [
        (0.1, 0.1, 1.0, 0.0, 0.01, "A is better"),
        (-0.1, -0.1, 0.0, 1.0, 0.01, "B is better"),
        (0.1, 0.1, 0.95, 0.05, 0.05, "A is better"),  # both limits are inclusive
        (0.1, 0.1, 0.94, 0.06, 0.01, "undecided: ties"),
        (0.1, -0.1, 0.94, 0.06, 0.01, "undecided: ties"),  # ties come before decision errors
        (0.1, -0.1, 0.96, 0.04, 0.01, "decision error"),
        (0.1, -0.1, 1.0, 0.0, 0.99, "decision error"),  # and these before the test over queries
        (0.1, 0.0, 1.0, 0.0, 0.01, "A is better"),  # equal oblivious values are no error
        (0.1, 0.1, 1.0, 0.0, 0.06, "not significant"),
        (0.1, 0.1, 1.0, 0.0, None, "not testable"),
        (0.1, 0.1, 0.94, 0.06, None, "undecided: ties"),  # ties do not need a p-value
        (0.1, -0.1, 1.0, 0.0, None, "decision error"),  # nor do decision errors
        (0.0, 0.0, 0.0, 0.0, None, "not testable"),
        (0.0, 0.0, 0.0, 0.0, 1.0, "not significant"),  # no variance and no difference
        (0.0, 0.0, 0.5, 0.5, 1.0, "undecided: ties"),
        (1e-15, -0.1, 0.0, 0.0, 1.0, "not significant"),  # below rounding error
        (-0.1, -0.1, 0.96, 0.04, 0.01, "undecided: ties"),  # A wins often, but loses by more
    ],
)
def test_verdict(difference, oblivious, a_wins, b_wins, p_value, expected):
    assert verdict(difference, oblivious, a_wins, b_wins, p_value, 0.05) == expected
    assert expected in VERDICTS
    same = verdict(difference, oblivious, a_wins, b_wins, p_value, 0.05, identical=True)
    assert same == "identical"
    assert same in VERDICTS


def test_verdict_is_undecided_if_the_probability_error_crosses_the_threshold():
    assert verdict(0.1, 0.1, 0.97, 0.03, 0.01, error=0.01) == "A is better"
    assert verdict(0.1, 0.1, 0.97, 0.03, 0.01, error=0.03) == "undecided: ties"
    assert verdict(0.1, -0.1, 0.97, 0.03, 0.01, error=0.03) == "undecided: ties"
    assert keeps_order(0, Chances(0.01, 0.01, "sampled", 0.01), 0.05)
    assert not keeps_order(0, Chances(0.01, 0.01, "sampled", 0.02), 0.05)


# Probabilities under random tie-breaking.


def cases(max_queries: int = 2, max_documents: int = 4, systems: int = 2):
    """Draw queries of few documents: a relevance label and a score per system for each."""
    scores = [st.integers(0, 2)] * systems
    query = st.lists(st.tuples(st.integers(0, 1), *scores), min_size=1, max_size=max_documents)
    queries = st.lists(query, min_size=1, max_size=max_queries)
    return queries.filter(lambda case: all(any(d[0] for d in docs) for docs in case))


def to_arrays(case, system: int) -> tuple[list[list[int]], list[list[int]]]:
    return [[d[0] for d in docs] for docs in case], [[d[1 + system] for d in docs] for docs in case]


def all_means(case, system: int, name: str, **parameters) -> list[float]:
    """Return the mean for each combination of tie orders; all are equally likely."""
    each = [
        [value(name, order, [], **parameters) for order in orders(docs)]
        for docs in [[Doc(d[1 + system], d[0]) for d in docs] for docs in case]
    ]
    return [math.fsum(values) / len(case) for values in itertools.product(*each)]


MEASURES = {
    "MRR@2": ("MRR", {"cutoff": 2}),
    "nDCG@3": ("nDCG", {"cutoff": 3}),
    "MAP": ("MAP", {}),
    "Success@1": ("Success", {"cutoff": 1}),
}


@few_queries
@pytest.mark.filterwarnings("ignore:there is only one query", "ignore:a and b have the same values")
@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=60)
@given(case=cases())
def test_tie_columns_of_compare_against_enumeration(measure, case):
    name, parameters = MEASURES[measure]
    results = {
        system: dh.evaluate_arrays(*to_arrays(case, i), [measure]) for i, system in enumerate("ab")
    }
    row = dh.compare(results, resamples=9).pairs.row(0, named=True)
    a, b = (np.array(all_means(case, i, name, **parameters)) for i in (0, 1))
    differences = (a[:, None] - b).ravel()
    assert row["difference"] == pytest.approx(differences.mean(), abs=1e-12)
    assert row["std"] == pytest.approx(differences.std(), abs=1e-7)
    assert row["lowest"] == pytest.approx(differences.min(), abs=1e-12)
    assert row["highest"] == pytest.approx(differences.max(), abs=1e-12)
    assert row["overlap"] == (a.min() <= b.max() + 1e-12 and b.min() <= a.max() + 1e-12)
    a_wins, b_wins = (differences > 1e-12).mean(), (differences < -1e-12).mean()
    check_probabilities(row, a_wins, b_wins)
    assert row["probability_method"] in ("certain", "exact", "sampled", "bound")
    assert row["probability_error"] <= 0.01


def check_probabilities(row: dict, a_wins: float, b_wins: float) -> None:
    """Check a row of a comparison against the true probabilities."""
    error = row["probability_error"] + 1e-9
    assert (row["a_wins"], row["b_wins"]) == pytest.approx((a_wins, b_wins), abs=error)
    order = (row["difference"] > 1e-12) - (row["difference"] < -1e-12)
    keeps = {1: a_wins, -1: b_wins, 0: 1 - a_wins - b_wins}[order]
    if row["verdict"] not in ("undecided: ties", "identical"):
        assert keeps >= 0.95 - 1e-9
    elif row["probability_error"] <= 0.01 and row["verdict"] != "identical":
        assert keeps < 0.95 + (4 if order == 0 else 2) * error


@few_queries
@pytest.mark.filterwarnings("ignore:there is only one query", "ignore:a and b have the same values")
@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=25)
@given(case=cases(max_queries=5, max_documents=3))
def test_verdicts_of_live_and_stored_results_against_enumeration(measure, case):
    """Stored results have no tie groups: their error is larger, but includes the true value."""
    name, parameters = MEASURES[measure]
    results = {
        system: dh.evaluate_arrays(*to_arrays(case, i), [measure]) for i, system in enumerate("ab")
    }
    stored = {system: Result.from_dict(result.to_dict()) for system, result in results.items()}
    a, b = (np.sort(all_means(case, i, name, **parameters)) for i in (0, 1))
    a_wins = np.searchsorted(b, a - 1e-12, "left").mean() / len(b)
    b_wins = 1 - np.searchsorted(b, a + 1e-12, "right").mean() / len(b)
    row = dh.compare(results, resamples=9).pairs.row(0, named=True)
    check_probabilities(row, a_wins, b_wins)
    assert row["probability_error"] <= 0.01
    check_probabilities(dh.compare(stored, resamples=9).pairs.row(0, named=True), a_wins, b_wins)


@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=40)
@given(case=cases(max_queries=2, max_documents=3, systems=3))
def test_first_places_against_enumeration(measure, case):
    name, parameters = MEASURES[measure]
    parsed = parse_measure(measure)
    results = [dh.evaluate_arrays(*to_arrays(case, i), [measure]) for i in range(3)]
    means = [np.array(all_means(case, i, name, **parameters)) for i in range(3)]
    grid = np.meshgrid(*means)
    truth = [
        np.all([grid[i] > grid[j] + 1e-12 for j in range(3) if j != i], axis=0).mean()
        for i in range(3)
    ]
    found, method, error = first_places([Outcomes(result, parsed) for result in results])
    assert found == pytest.approx(truth, abs=error + 1e-9)
    assert method in ("exact", "sampled") and error <= 0.01
    stored = [Result.from_dict(result.to_dict()) for result in results]
    found, method, error = first_places([Outcomes(result, parsed) for result in stored])
    assert found == pytest.approx(truth, abs=error + 1e-9)
    assert method in ("exact", "bound")


def win_probabilities(a: Views, b: Views) -> Chances:
    """Return the probabilities of two systems from their views only."""
    measure = parse_measure("MRR")
    return duel(*(Outcomes(Result([], {measure: views}), measure) for views in (a, b)))


def sample_systems(rng, queries: int, levels: int, measure: str, samples: int):
    """Return the results of two systems, and means of both over random input orders."""
    relevance = (rng.random((queries, 12)) < 0.25).astype(int)
    relevance[:, 0] = 1
    out = []
    for _ in range(2):
        scores = np.floor(levels * (0.4 * relevance + rng.random(relevance.shape)))
        result = dh.evaluate_arrays(relevance, scores, [measure])
        order = rng.permuted(np.tile(np.arange(12), (samples * queries, 1)), axis=1)
        query = np.tile(np.arange(queries), samples)[:, None]
        (shuffled,) = dh.evaluate_arrays(
            relevance[query, order], scores[query, order], [measure]
        ).views.values()
        out.append((result, shuffled.oblivious.reshape(samples, queries).mean(axis=1)))
    return out


@pytest.mark.parametrize("measure", ["nDCG@10", "MRR@10", "MAP", "Precision@5"])
@pytest.mark.parametrize("queries", [4, 30])
def test_probabilities_against_sampled_orderings(measure, queries):
    """The standard error of 1,000 sampled orderings is 0.016."""
    rng = np.random.default_rng(queries)
    parsed = parse_measure(measure)
    for levels in (2, 3, 5, 30):
        (a, means_a), (b, means_b) = sample_systems(rng, queries, levels, measure, 1000)
        got = duel(Outcomes(a, parsed), Outcomes(b, parsed))
        wins = np.searchsorted(np.sort(means_b), means_a - 1e-12, "left").mean() / 1000
        assert got.a_wins == pytest.approx(wins, abs=got.error + 0.05)
        assert got.error <= 0.05
        low, high = bounds(Outcomes(a, parsed), Outcomes(b, parsed))
        assert low - 0.05 <= wins <= high + 0.05
        from_views = win_probabilities(
            *(dataclasses.replace(x.views[parsed], variance=None) for x in (a, b))
        )
        assert from_views.method in ("certain", "bound")
        assert from_views.a_wins == pytest.approx(
            got.a_wins, abs=from_views.error + got.error + 1e-9
        )


def test_normal_approximation_is_not_used_for_skewed_means():
    """Compare a constant scorer of 100 documents with a relevant document at rank 10.

    MRR of the constant scorer is skewed: its mean over 12 queries is 0.052, and it beats 0.1
    with probability 0.122, but with 0.05 by a normal approximation.
    """
    n = 12
    qrels = {f"q{i}": {"relevant": 1} for i in range(n)}
    documents = ["relevant", *(f"d{i}" for i in range(99))]
    constant = dict.fromkeys(qrels, dict.fromkeys(documents, 1.0))
    tenth = {f"d{i}": 100.0 - i for i in range(9)} | {"relevant": 1.0}
    runs = {"constant": constant, "tenth": dict.fromkeys(qrels, tenth)}
    row = quiet(dh.compare)(qrels, runs, ["MRR"]).pairs.row(0, named=True)
    drawn = np.random.default_rng(1).integers(1, 101, (200_000, n))
    wins = ((1 / drawn).mean(axis=1) > 0.1 + 1e-12).mean()
    assert wins == pytest.approx(0.122, abs=0.005)
    assert row["a_wins"] == pytest.approx(wins, abs=0.01)
    assert row["verdict"] == "undecided: ties"
    assert (row["probability_method"], row["probability_error"] < 0.02) == ("sampled", True)


def test_any_number_of_equal_two_valued_queries_is_exact():
    """One system ties the relevant document with another in n queries; the other ranks it first."""
    for n in (1, 16, 17, 1000):
        tied = dh.evaluate_arrays([[0, 1]] * n, [[1, 1]] * n, ["MRR"])
        sure = dh.evaluate_arrays([[0, 1]] * n, [[0, 1]] * n, ["MRR"])
        (a,), (b,) = sure.views.values(), tied.views.values()
        assert win_probabilities(a, b) == (pytest.approx(1 - 0.5**n, abs=1e-12), 0.0, "exact", 0.0)
        assert win_probabilities(b, a) == (0.0, pytest.approx(1 - 0.5**n, abs=1e-12), "exact", 0.0)


def test_different_two_valued_queries_are_exact():
    """A ties two documents in 30 queries; B ranks the relevant one first in 20 of them."""
    scores = [[0, 1]] * 20 + [[1, 0]] * 10
    tied = dh.evaluate_arrays([[0, 1]] * 30, [[1, 1]] * 30, ["Success@1"])
    fixed = dh.evaluate_arrays([[0, 1]] * 30, scores, ["Success@1"])
    (a,), (b,) = tied.views.values(), fixed.views.values()
    truth = sum(math.comb(30, i) for i in range(21, 31)) / 2**30
    assert win_probabilities(a, b).a_wins == pytest.approx(truth, abs=1e-12)


def test_two_valued_queries_with_too_many_sums_are_bounded():
    """40 different steps have 2^40 sums, and views have no tie groups to sample from."""
    steps = np.sqrt(np.arange(2, 42)) / 10
    half = Views(steps / 2, steps, np.zeros(40), steps, steps**2 / 4)
    fixed = Views(*[np.full(40, (steps / 2).mean() + 0.03)] * 4, variance=np.zeros(40))
    odds = win_probabilities(half, fixed)
    draws = np.random.default_rng(3).integers(0, 2, (200_000, 40)) @ steps / 40
    assert odds.method == "bound"
    assert odds.a_wins == pytest.approx((draws > fixed.expected[0]).mean(), abs=odds.error + 0.01)


def test_two_valued_queries_with_too_many_sums_are_sampled():
    """In each of 40 queries the relevant document ties with the next, each time at another rank."""
    ranks = np.arange(40)
    labels = (np.arange(41) == ranks[:, None]).astype(int)
    scores = -np.maximum(np.arange(41), ranks[:, None] + 1.0) - (np.arange(41) > ranks[:, None] + 1)
    scores = np.where(np.arange(41) < ranks[:, None], 1.0 - np.arange(41), scores)
    measure = parse_measure("nDCG")
    tied = dh.evaluate_arrays(labels, scores, [measure])
    outcomes = Outcomes(tied, measure)
    assert outcomes.two_valued and outcomes.distribution.draws is not None
    mean = outcomes.distribution.weights @ outcomes.distribution.values
    assert mean == pytest.approx(outcomes.expected, abs=0.01)


def test_random_ranks_are_uniform():
    """For few relevant documents of many and for most of few, which use different algorithms."""
    rng = np.random.default_rng(2)
    for size, relevant in ((4, 2), (3, 3), (40, 1), (24, 22)):
        labels = [[1] * relevant + [0] * (size - relevant)]
        groups = dh.evaluate_arrays(labels, [[1.0] * size], ["MAP"]).groups
        ranks = random_ranks(groups, 20_000, rng)
        assert ranks.shape == (20_000, relevant) and ranks.min() == 1 and ranks.max() == size
        assert all(len(set(row)) == relevant for row in ranks[:200].tolist())
        # Documents of equal grade are sorted by rank: only the set of ranks is random.
        share = np.bincount(ranks.ravel(), minlength=size + 1)[1:] / len(ranks)
        assert share == pytest.approx([relevant / size] * size, abs=0.015)
    graded = dh.evaluate_arrays([[2, 1, 0, 0]], [[1.0] * 4], ["MAP"]).groups
    ranks = random_ranks(graded, 20_000, rng)
    assert np.mean(ranks[:, 0] < ranks[:, 1]) == pytest.approx(0.5, abs=0.015)
    pairs = np.bincount(4 * (ranks[:, 0] - 1) + ranks[:, 1] - 1, minlength=16).reshape(4, 4)
    assert (pairs + np.eye(4) * 20_000 / 12) / 20_000 == pytest.approx(
        np.full((4, 4), 1 / 12), abs=0.01
    )


SAMPLED = (
    *("nDCG@5", "nDCG(gain='exp')", "DCG@3", "Precision@3", "Recall@3", "R-Precision", "F1@3"),
    *("RBP", "RBP(gain='scaled')@4", "RBP-residual", "Judged@3", "Hits@3", "R_cap@3"),
    *("MAP", "MAP(rel=2)", "MAP(divisor='min')@3", "MAP(divisor='found')@3", "bpref", "ERR@5"),
    *("MRR@3", "MRR(rel=2)", "Success@2"),
)


@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_sums_have_the_mean_and_variance_of_the_views(name):
    rng = np.random.default_rng(5)
    labels, scores = rng.integers(-1, 4, (8, 12)), rng.integers(0, 4, (8, 12))
    labels[:, 0] = 2
    measure = parse_measure(name)
    result = dh.evaluate_arrays(labels, scores, [measure])
    views = result.views[measure]
    sums = sample_sums(result.groups, measure, 1 << 21, rng)
    spread = 5 * sums.std() / math.sqrt(len(sums))
    assert len(sums) >= 10_000
    assert sums.mean() == pytest.approx(views.expected.sum(), abs=spread)
    assert views.worst.sum() - 1e-9 <= sums.min() <= sums.max() <= views.best.sum() + 1e-9
    if views.variance is not None:
        assert sums.var() == pytest.approx(views.variance.sum(), rel=0.06)


def test_take_equals_tie_groups_of_an_evaluation_of_these_queries():
    rng = np.random.default_rng(4)
    scores, labels = rng.integers(0, 3, (6, 8)), rng.integers(0, 3, (6, 8))
    chosen = np.array([4, 0, 5])
    whole = dh.evaluate_arrays(labels, scores, ["nDCG"]).groups
    alone = dh.evaluate_arrays(labels[chosen], scores[chosen], ["nDCG"]).groups
    part = whole.take(chosen)
    for name in ("query", "above", "size", "group", "grade", "rank", "retrieved", "ideal_grade"):
        assert getattr(part, name).tolist() == getattr(alone, name).tolist()
    assert part.max_grade == whole.max_grade


def test_systems_without_ties_and_difference_win_with_probability_0():
    same = Views(*[np.array([0.5, 0.25])] * 4, variance=np.zeros(2))
    assert win_probabilities(same, same) == (0, 0, "certain", 0)


# Ranks.


def test_ranks():
    assert ranks(np.array([0.5, 0.7, 0.5, 0.1])).tolist() == [2, 1, 2, 4]


def test_rank_intervals_against_enumeration():
    rng = np.random.default_rng(6)
    for _ in range(50):
        ends = np.sort(rng.integers(0, 6, (4, 2)) / 5.0, axis=1)
        best_rank, worst_rank = rank_intervals(ends[:, 0], ends[:, 1])
        possible = np.array([ranks(np.array(values)) for values in itertools.product(*ends)])
        assert best_rank.tolist() == possible.min(axis=0).tolist()
        assert worst_rank.tolist() == possible.max(axis=0).tolist()
