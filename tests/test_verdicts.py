"""Chances under ties, ranks, and the verdict on two systems, the paper's decision error first."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Doc, orders, value

import deadheat as dh
from deadheat.comparison import VERDICTS, verdict
from deadheat.comparison.statistics import chances, normal_chances, rank_intervals, ranks
from deadheat.evaluation import Views

few_queries = pytest.mark.filterwarnings("ignore:with .* no corrected p-value")


# The paper's own example, from the aggregates of its Table 1 alone.

MIRACL_QUERIES = 717


def std_at_most(width: float) -> float:
    """The largest tie std that a mean over queries with this mean range can have.

    The variance of a query is at most a quarter of its squared range, and a range is at most 1.
    """
    return math.sqrt(width / 4 / MIRACL_QUERIES)


def published(a: tuple[float, ...], b: tuple[float, ...], p_value: float | None) -> str:
    """Verdict on (oblivious, expected, range) of two models, in percent."""
    (obl_a, e_a, range_a), (obl_b, e_b, range_b) = (np.array(x) / 100 for x in (a, b))
    odds = normal_chances(e_a - e_b, math.hypot(std_at_most(range_a), std_at_most(range_b)))
    return verdict(e_a - e_b, obl_a - obl_b, odds.a_wins, odds.b_wins, p_value)


QWEN = {"bf16": (75.04, 68.38, 25.59), "hps": (73.59, 73.35, 1.13)}
BGE = {"bf16": (75.59, 74.54, 3.90), "hps": (74.63, 74.57, 0.16)}
GTE = {"bf16": (74.48, 74.22, 0.97), "hps": (74.39, 74.34, 0.14)}


@pytest.mark.parametrize("p_value", [None, 0.001, 0.5])
def test_qwen_against_gte_in_bf16_is_a_decision_error(p_value):
    assert published(QWEN["bf16"], GTE["bf16"], p_value) == "decision error"
    assert published(GTE["bf16"], QWEN["bf16"], p_value) == "decision error"


def test_with_hps_qwen_against_gte_depends_on_queries_only():
    assert published(QWEN["hps"], GTE["hps"], 0.001) == "B is better"
    assert published(GTE["hps"], QWEN["hps"], 0.001) == "A is better"
    assert published(QWEN["hps"], GTE["hps"], 0.3) == "undecided: queries"
    assert published(QWEN["hps"], GTE["hps"], None) == "not testable"


def test_bge_against_gte_in_bf16_could_go_either_way():
    """0.32 points apart, and the published range allows a tie std of 0.4 points."""
    assert published(BGE["bf16"], GTE["bf16"], 0.001) == "undecided: ties"
    assert published(BGE["hps"], GTE["hps"], 0.001) == "A is better"


@pytest.mark.parametrize(
    ("difference", "oblivious", "a_wins", "b_wins", "p_value", "expected"),
    [
        (0.1, 0.1, 1.0, 0.0, 0.01, "A is better"),
        (-0.1, -0.1, 0.0, 1.0, 0.01, "B is better"),
        (0.1, 0.1, 0.95, 0.05, 0.05, "A is better"),  # both limits belong to a decision
        (0.1, 0.1, 0.94, 0.06, 0.01, "undecided: ties"),
        (0.1, -0.1, 0.94, 0.06, 0.01, "undecided: ties"),  # ties come before decision errors
        (0.1, -0.1, 0.96, 0.04, 0.01, "decision error"),
        (0.1, -0.1, 1.0, 0.0, 0.99, "decision error"),  # which come before queries
        (0.1, 0.0, 1.0, 0.0, 0.01, "A is better"),  # equal oblivious numbers say nothing wrong
        (0.1, 0.1, 1.0, 0.0, 0.06, "undecided: queries"),
        (0.1, 0.1, 1.0, 0.0, None, "not testable"),
        (0.1, 0.1, 0.94, 0.06, None, "undecided: ties"),  # ties need no test over queries
        (0.1, -0.1, 1.0, 0.0, None, "decision error"),  # nor do decision errors
        (0.0, 0.0, 0.0, 0.0, None, "not testable"),
        (0.0, 0.0, 0.0, 0.0, 1.0, "undecided: queries"),  # nothing varies, nothing differs
        (0.0, 0.0, 0.5, 0.5, 1.0, "undecided: ties"),
        (1e-15, -0.1, 0.0, 0.0, 1.0, "undecided: queries"),  # a difference by rounding is none
        (-0.1, -0.1, 0.96, 0.04, 0.01, "undecided: ties"),  # A wins often, by less than it loses
    ],
)
def test_verdict(difference, oblivious, a_wins, b_wins, p_value, expected):
    assert verdict(difference, oblivious, a_wins, b_wins, p_value, 0.05) == expected
    assert expected in VERDICTS
    same = verdict(difference, oblivious, a_wins, b_wins, p_value, 0.05, identical=True)
    assert same == "identical"
    assert same in VERDICTS


# Chances under random tie-breaking.


def cases(max_queries: int = 2):
    """Queries with two score lists each over the same few judged documents."""
    query = st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4
    )
    queries = st.lists(query, min_size=1, max_size=max_queries)
    return queries.filter(lambda case: all(any(d[0] for d in docs) for docs in case))


def arrays(case, system: int) -> tuple[list[list[int]], list[list[int]]]:
    return [[d[1 + system] for d in docs] for docs in case], [[d[0] for d in docs] for docs in case]


def all_means(case, system: int, name: str, **parameters) -> list[float]:
    """The mean under every combination of orders; each is equally likely."""
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
@pytest.mark.filterwarnings("ignore:there is one query", "ignore:a and b have the same values")
@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=60)
@given(case=cases())
def test_the_tie_part_against_enumeration(measure, case):
    name, parameters = MEASURES[measure]
    results = {
        system: dh.evaluate_arrays(*arrays(case, i), [measure]) for i, system in enumerate("ab")
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
    if row["probability_method"] in ("certain", "exact"):
        assert (row["a_wins"], row["b_wins"]) == pytest.approx((a_wins, b_wins), abs=1e-9)
    else:
        assert row["probability_method"] == "rough"
        assert row["a_wins"] + row["b_wins"] == pytest.approx(1)


def system_views(rng, queries: int, levels: int, measure: str, samples: int):
    """Views of two systems, and sampled means of both: an order of the input breaks ties."""
    relevance = (rng.random((queries, 12)) < 0.25).astype(int)
    relevance[:, 0] = 1
    out = []
    for _ in range(2):
        scores = np.floor(levels * (0.4 * relevance + rng.random(relevance.shape)))
        (views,) = dh.evaluate_arrays(scores, relevance, [measure]).views.values()
        order = rng.permuted(np.tile(np.arange(12), (samples * queries, 1)), axis=1)
        query = np.tile(np.arange(queries), samples)[:, None]
        (shuffled,) = dh.evaluate_arrays(
            scores[query, order], relevance[query, order], [measure]
        ).views.values()
        out.append((views, shuffled.oblivious.reshape(samples, queries).mean(axis=1)))
    return out


@pytest.mark.parametrize("measure", ["nDCG@10", "MRR@10", "MAP", "Precision@5"])
@pytest.mark.parametrize(("queries", "approximation"), [(4, "rough"), (30, "normal")])
def test_probabilities_against_sampled_orderings(measure, queries, approximation):
    """Sampling alone is off by 0.016 (standard error); approximations are by what they say."""
    rng = np.random.default_rng(queries)
    seen = set()
    for levels in (2, 3, 5, 30):
        (a, means_a), (b, means_b) = system_views(rng, queries, levels, measure, 1000)
        got = chances(a, b)
        wins, draws = (means_a > means_b + 1e-12).mean(), (abs(means_a - means_b) <= 1e-12).mean()
        wanted = wins if got.method in ("certain", "exact") else wins + draws / 2
        limit = {"certain": 0, "rough": 0.3}.get(got.method, 0.06)
        assert got.a_wins == pytest.approx(wanted, abs=limit)
        seen.add(got.method)
        bound = chances(dataclasses.replace(a, variance=None), b)
        if got.method in ("rough", "normal"):  # without a variance, nearer to 1/2
            assert bound.method == "bound"
            assert 0 <= (bound.a_wins - 0.5) / (got.a_wins - 0.5) <= 1
    assert approximation in seen


def test_two_valued_queries_are_enumerated_up_to_the_limit():
    """n queries tie a relevant document with another; the other system is right every time."""
    for n, method in ((16, "exact"), (17, "normal")):
        tied = dh.evaluate_arrays([[1, 1]] * n, [[0, 1]] * n, ["MRR"])
        sure = dh.evaluate_arrays([[0, 1]] * n, [[0, 1]] * n, ["MRR"])
        (a,), (b,) = sure.views.values(), tied.views.values()
        assert chances(a, b).method == method
        if method == "exact":
            assert chances(a, b) == (1 - 0.5**n, 0.0, "exact")
            assert chances(b, a) == (0.0, 1 - 0.5**n, "exact")


def test_when_nothing_varies_nobody_wins_a_draw():
    same = Views(*[np.array([0.5, 0.25])] * 4, variance=np.zeros(2))
    assert chances(same, same) == (0, 0, "certain")


def test_a_tie_std_that_rounding_took_away_does_no_harm():
    odds = normal_chances(0.0, 0.0)
    assert (odds.a_wins, odds.b_wins) == (0.5, 0.5)


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
