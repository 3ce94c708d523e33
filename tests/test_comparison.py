"""Comparing systems: the paper's decision error, chances under ties, tests over queries."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Doc, orders, value
from scipy import stats

import deadheat as dh
from deadheat.cli import main
from deadheat.comparison import COLUMNS, METHODS, VERDICTS, verdict
from deadheat.comparison.statistics import (
    bootstrap_intervals,
    chances,
    holm,
    normal_chances,
    rank_intervals,
    ranks,
    sign_flip_p_values,
)
from deadheat.evaluation import Views
from deadheat.provenance import Provenance

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
    assert published(QWEN["hps"], GTE["hps"], None) == "undecided: queries"


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
        (0.1, 0.1, 1.0, 0.0, None, "undecided: queries"),
        (0.0, 0.0, 0.0, 0.0, 1.0, "undecided: queries"),  # nothing varies, nothing differs
        (0.0, 0.0, 0.5, 0.5, 1.0, "undecided: ties"),
        (1e-15, -0.1, 0.0, 0.0, 1.0, "undecided: queries"),  # a difference by rounding is none
        (-0.1, -0.1, 0.96, 0.04, 0.01, "undecided: ties"),  # A wins often, by less than it loses
    ],
)
def test_verdict(difference, oblivious, a_wins, b_wins, p_value, expected):
    assert verdict(difference, oblivious, a_wins, b_wins, p_value, 0.05) == expected
    assert expected in VERDICTS


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


# Tests over queries.


def test_holm_by_hand():
    """0.01·4, 0.02·3, 0.03·2 (raised to 0.06), 0.5·1; the order given is kept."""
    assert holm(np.array([0.03, 0.5, 0.01, 0.02])) == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm(np.array([0.9, 0.8])) == pytest.approx([1, 1])


def test_p_values_against_all_sign_flips():
    rng = np.random.default_rng(3)
    differences = np.round(rng.normal(0.2, 0.5, (9, 3)), 1)  # rounding makes ties in |mean|
    for column, p in zip(differences.T, sign_flip_p_values(differences, 9999, 0), strict=True):
        flips = [abs(np.dot(signs, column)) for signs in itertools.product((1, -1), repeat=9)]
        extreme = sum(flip >= abs(column.sum()) - 1e-9 for flip in flips)
        assert p == extreme / 2**9
        peer = stats.permutation_test((column,), np.mean, permutation_type="samples")
        assert p == pytest.approx(peer.pvalue)


def test_random_sign_flips_come_close_to_all_of_them():
    differences = np.random.default_rng(4).normal(0.1, 0.3, (13, 2))
    every = sign_flip_p_values(differences, 2**13, 0)
    some = sign_flip_p_values(differences, 2**13 - 1, 0)
    assert some == pytest.approx(every, abs=0.02)
    assert (some != every).any()


def test_p_values_of_no_difference_and_of_the_clearest_difference():
    differences = np.column_stack([np.zeros(40), np.ones(40)])
    assert sign_flip_p_values(differences, 999, 0) == pytest.approx([1, 1 / 1000])


def test_bootstrap_against_scipy():
    differences = np.random.default_rng(5).exponential(size=(50, 2)) - 0.8
    low, high = bootstrap_intervals(differences, 0.1, 9999, 0)
    for i in (0, 1):
        peer = stats.bootstrap(
            (differences[:, i],), np.mean, confidence_level=0.9, method="percentile", rng=1
        ).confidence_interval
        assert (low[i], high[i]) == pytest.approx((peer.low, peer.high), abs=0.02)


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


# Whole comparisons.


def made_up(queries: int = 30, systems: int = 3, seed: int = 0):
    """Judgements and runs of systems that differ in noise and in how many scores they know."""
    rng = np.random.default_rng(seed)
    relevance = rng.random((queries, 15)) < 0.2
    relevance[:, 0] = True
    qrels, runs = {}, {f"s{i}": {} for i in range(systems)}
    for q in range(queries):
        docs = [f"d{d}" for d in rng.permutation(15)]
        grades = dict(zip(docs, relevance[q].astype(int).tolist(), strict=True))
        qrels[f"q{q}"] = grades
        for i in range(systems):
            noisy = relevance[q] + rng.normal(0, 0.5 + 0.3 * i, 15)
            scores = np.floor(noisy * (2 + 2 * i)).tolist()
            runs[f"s{i}"][f"q{q}"] = dict(zip(docs, scores, strict=True))
    return qrels, runs


def numbers(comparison: dh.Comparison, *columns: str) -> np.ndarray:
    return comparison.pairs.select(columns).to_numpy().astype(float)


@pytest.mark.parametrize("queries", [10, 30])
def test_b_against_a_mirrors_a_against_b(queries):
    qrels, runs = made_up(queries, 2)
    there = dh.compare(qrels, runs, ["nDCG@5", "MRR", "ERR"])
    back = dh.compare(qrels, dict(reversed(runs.items())), ["nDCG@5", "MRR", "ERR"])
    kept = ("std", "overlap", "reversed", "p_value", "p_holm")
    assert numbers(there, *kept) == pytest.approx(numbers(back, *kept), nan_ok=True)
    for one, other in (
        ("difference", "difference"),
        ("lowest", "highest"),
        ("interval_low", "interval_high"),
        ("oblivious_difference", "oblivious_difference"),
    ):
        assert numbers(there, one) == pytest.approx(-numbers(back, other))
    assert numbers(there, "a_wins") == pytest.approx(numbers(back, "b_wins"))
    swapped = {"A is better": "B is better", "B is better": "A is better"}
    assert [swapped.get(v, v) for v in there.pairs["verdict"]] == back.pairs["verdict"].to_list()


def test_a_pair_does_not_depend_on_the_other_pairs_but_for_the_correction():
    qrels, runs = made_up()
    alone = dh.compare(qrels, {name: runs[name] for name in ("s0", "s2")}, ["MRR"])
    among = dh.compare(qrels, runs, ["nDCG@5", "MRR"])
    pick = among.pairs.filter(a="s0", b="s2", measure="MRR")
    own = [c for c in COLUMNS if c not in ("p_holm", "verdict")]
    assert pick.select(own).equals(alone.pairs.select(own))
    assert among.pairs["p_holm"].to_list() == holm(among.pairs["p_value"].to_numpy()).tolist()
    assert pick["p_holm"].item() >= alone.pairs["p_holm"].item() == pick["p_value"].item()


def test_the_order_of_queries_and_any_growing_change_of_scores_do_not_matter():
    qrels, runs = made_up(queries=10)
    changed = {
        name: {q: {d: math.exp(s) for d, s in docs.items()} for q, docs in reversed(run.items())}
        for name, run in runs.items()
    }
    before = dh.compare(qrels, runs, ["nDCG@5"])
    after = dh.compare(dict(reversed(qrels.items())), changed, ["nDCG@5"])
    for column in ("difference", "std", "lowest", "a_wins", "p_value", "oblivious_difference"):
        assert numbers(before, column) == pytest.approx(numbers(after, column))
    assert before.ranking["rank"].to_list() == after.ranking["rank"].to_list()


def test_runs_and_results_give_the_same_comparison():
    qrels, runs = made_up()
    results = {name: dh.evaluate(qrels, run, ["MRR", "MAP"]) for name, run in runs.items()}
    from_runs = dh.compare(qrels, runs, ["MRR", "MAP"])
    assert from_runs.pairs.equals(dh.compare(results).pairs)
    assert dh.compare(results, measures="MAP").pairs["measure"].unique().to_list() == ["MAP"]
    renamed = [
        dataclasses.replace(
            result, provenance=dataclasses.replace(result.provenance, run=f"folder/{name}")
        )
        for name, result in results.items()
    ]
    assert from_runs.pairs.equals(dh.compare(renamed).pairs)


def test_pairs_and_ranking_frames():
    qrels, runs = made_up()
    comparison = dh.compare(qrels, runs, ["MRR", "ERR"], seed=7)
    assert comparison.pairs.columns == list(COLUMNS)
    assert comparison.pairs.select("a", "b").unique(maintain_order=True).rows() == [
        ("s0", "s1"),
        ("s0", "s2"),
        ("s1", "s2"),
    ]
    assert set(comparison.pairs["verdict"]) <= set(VERDICTS)
    assert set(comparison.pairs["probability_method"]) <= set(METHODS)
    assert comparison.pairs.filter(measure="ERR")["std"].to_list() == [None] * 3
    ranking = comparison.ranking.filter(measure="MRR")
    assert ranking["rank"].to_list() == [1, 2, 3]
    assert (ranking["best_rank"] <= ranking["rank"]).all()
    assert (ranking["rank"] <= ranking["worst_rank"]).all()
    assert ranking["expected"].is_sorted(descending=True)
    assert comparison.ranking.schema["std"] == pl.Float64
    assert comparison.settings.queries == 30
    assert comparison.provenance["s0"].tie_break == "input"


def test_a_baseline_is_always_b():
    qrels, runs = made_up()
    comparison = dh.compare(qrels, runs, ["MRR"], baseline="s1")
    assert comparison.pairs.select("a", "b").rows() == [("s0", "s1"), ("s2", "s1")]
    assert comparison.settings.baseline == "s1"


def test_a_decision_error_in_real_runs():
    """The relevant document comes first in the input, and one system ties everything."""
    qrels = {f"q{i}": {"right": 1} for i in range(20)}
    docs = ["right", "wrong1", "wrong2", "wrong3"]
    tied = dict.fromkeys(qrels, dict.fromkeys(docs, 1.0))
    first, second = (dict(zip(docs, s, strict=True)) for s in ((4, 3, 2, 1), (3, 4, 2, 1)))
    mixed = {q: first if i % 2 else second for i, q in enumerate(qrels)}
    comparison = dh.compare(qrels, {"tied": tied, "mixed": mixed}, ["MRR"])
    row = comparison.pairs.row(0, named=True)
    assert row["oblivious_difference"] == pytest.approx(0.25)
    assert row["difference"] == pytest.approx(25 / 48 - 0.75)
    assert row["reversed"] and row["overlap"]
    assert row["verdict"] == "decision error"


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_official_submissions_to_trec_covid(shared):
    """Ties cost nDCG@10 up to 0.08 here, and the two systems are 0.23 apart all the same."""
    folder = shared / "trec-covid"
    runs = sorted(folder.glob("round3-*.run.gz"))
    comparison = dh.compare(folder / "round3.qrels.gz", runs, ["nDCG@10", "ERR@10"])
    ndcg, err = comparison.pairs.iter_rows(named=True)
    assert ndcg["a"] == "round3-Emory_IRLab_rnd3_r1.run.gz"
    assert ndcg["difference"] == pytest.approx(0.2336, abs=1e-4)
    assert ndcg["std"] == pytest.approx(0.0056, abs=1e-4)
    assert (ndcg["a_wins"], ndcg["overlap"]) == (1, False)
    assert ndcg["verdict"] == "A is better"
    assert err["verdict"] == "undecided: queries"  # 0.053 after correction, 0.027 before
    assert comparison.ranking["best_rank"].to_list() == [1, 2, 1, 2]


def test_written_forms():
    qrels, runs = made_up()
    comparison = dh.compare(qrels, {"a|b": runs["s1"], "[c]": runs["s2"]}, ["nDCG@5", "ERR"])
    text = str(comparison)
    assert "Ranking · 30 queries" in text and "[−0." in text
    assert "[c]" in text and "randomisation test over queries" in text
    assert "≈" in text and "–" in text  # an approximate probability; ERR has no tie std
    assert "| a\\|b | [c] | nDCG@5 |" in comparison.to_markdown(percent=True)
    assert next(csv.DictReader(io.StringIO(comparison.to_csv())))["a"] == "a|b"
    assert comparison.to_csv(ranking=True).startswith("measure,system,rank,best_rank")
    data = json.loads(comparison.to_json())
    assert data == comparison.to_dict()
    assert data["pairs"][0]["difference"] == comparison.pairs["difference"][0]
    assert ">[c]</td>" in comparison._repr_html_()
    assert comparison.__rich__().renderables


# What is refused, and what is warned about.


@pytest.fixture
def three():
    qrels, runs = made_up()
    return {name: dh.evaluate(qrels, run, ["MRR", "MAP"]) for name, run in runs.items()}


def test_fewer_than_two_systems_are_refused(three):
    for results in ([], [three["s0"]], three["s0"], {"s0": three["s0"]}):
        with pytest.raises(dh.InputError, match=r"two systems or more, not [01]"):
            dh.compare(results)
    with pytest.raises(dh.InputError, match="two systems or more, not 1"):
        dh.compare({"q": {"d": 1}}, "one.run")


def test_what_is_not_a_result_is_refused(three):
    with pytest.raises(dh.InputError, match=r"not a dict; to compare runs, .*qrels, runs"):
        dh.compare([three["s0"], {"q": {"d": 1.0}}])


def test_systems_of_the_same_name_are_refused(three):
    with pytest.raises(dh.InputError, match="3 systems are called 'run'"):
        dh.compare(list(three.values()))


def test_an_unknown_or_ambiguous_baseline_is_refused(three):
    for baseline in ("s9", "run"):
        with pytest.raises(dh.InputError, match=f"'{baseline}' is not among .* 's0', 's1', 's2'"):
            dh.compare(three, baseline=baseline)


@pytest.mark.parametrize(
    ("option", "bad"),
    [
        *itertools.product(["alpha"], [0, 1.0, math.nan]),
        *itertools.product(["resamples"], [0, 99.5]),
        *itertools.product(["seed"], [-1, "x"]),
    ],
)
def test_bad_options_are_refused(three, option, bad):
    with pytest.raises(dh.InputError, match=f"{option} must be"):
        dh.compare(three, **{option: bad})


def test_options_of_evaluate_are_refused_for_results(three):
    with pytest.raises(dh.InputError, match="tie_break: these results have been evaluated"):
        dh.compare(three, tie_break="id_desc")


def test_different_judgements_are_refused(three):
    other = dataclasses.replace(three["s1"], provenance=Provenance("x", "other/qrels.txt"))
    with pytest.raises(dh.InputError, match=r"judgements qrels, x with other/qrels\.txt"):
        dh.compare({"s0": three["s0"], "x": other})


def test_measures_in_common_are_compared_with_a_warning(three):
    qrels, runs = made_up()
    other = dh.evaluate(qrels, runs["s1"], ["ERR", "MAP"])
    with pytest.warns(dh.DeadheatWarning, match="not every system was evaluated in MRR, ERR"):
        comparison = dh.compare({"s0": three["s0"], "s1": other})
    assert comparison.pairs["measure"].to_list() == ["MAP"]
    assert any("MRR, ERR" in text for text in comparison.warnings)
    with pytest.raises(dh.InputError, match="no measure in common"):
        dh.compare({"s0": three["s0"], "s1": other}, measures=["MRR"])


def test_different_queries_are_refused_unless_the_intersection_is_asked_for():
    qrels, runs = made_up(12, 2)
    fewer = {q: docs for q, docs in runs["s1"].items() if q not in ("q3", "q7")}
    both = {"s0": dh.evaluate(qrels, runs["s0"], ["MRR"])}
    both["s1"] = dh.evaluate(qrels, fewer, ["MRR"], queries="intersection")
    with pytest.raises(dh.InputError, match=r"s1 was not evaluated on query 'q3': .* the 10 quer"):
        dh.compare(both)
    with pytest.warns(dh.DeadheatWarning, match="on the 10 of 12 queries"):
        comparison = dh.compare(both, queries="intersection")
    assert comparison.settings.queries == 10
    with pytest.warns(dh.DeadheatWarning, match="on the 10 of 12 queries"):
        again = dh.compare(qrels, {**runs, "s1": fewer}, ["MRR"], queries="intersection")
    assert again.pairs.equals(comparison.pairs)
    only = {q: runs["s1"][q] for q in ("q3", "q7")}
    rest = {q: docs for q, docs in runs["s0"].items() if q not in only}
    apart = {"rest": rest, "only": only}
    with pytest.raises(dh.InputError, match="same queries only"):
        dh.compare(qrels, apart, ["MRR"], queries="intersection")


def test_different_tie_rules_are_warned_about(three):
    qrels, runs = made_up()
    other = dh.evaluate(qrels, runs["s1"], ["MRR", "MAP"], tie_break="id_desc")
    with pytest.warns(dh.DeadheatWarning, match="differ in tie_break, 'input' and 'id_desc'"):
        dh.compare({"s0": three["s0"], "s1": other})


def test_identical_runs_are_warned_about(three):
    with pytest.warns(dh.DeadheatWarning, match="s0 and copy have the same values"):
        comparison = dh.compare({"s0": three["s0"], "copy": three["s0"]})
    assert comparison.pairs["difference"].to_list() == [0, 0]
    assert comparison.pairs["p_value"].to_list() == [1, 1]
    assert set(comparison.pairs["verdict"]) == {"undecided: ties"}
    assert comparison.ranking["rank"].to_list() == [1, 1, 1, 1]


def test_one_query_says_nothing_about_others():
    qrels = {"q": {"d1": 1}}
    runs = {"a": {"q": {"d1": 2.0, "d2": 1.0}}, "b": {"q": {"d1": 1.0, "d2": 2.0}}}
    with pytest.warns(dh.DeadheatWarning, match="one query: nothing can be said about other"):
        comparison = dh.compare(qrels, runs, ["MRR"])
    row = comparison.pairs.row(0, named=True)
    assert (row["difference"], row["a_wins"], row["p_value"]) == (0.5, 1, None)
    assert row["interval_low"] is None and row["verdict"] == "undecided: queries"
    assert comparison.pairs.schema["p_value"] == pl.Float64
    assert " – " in str(comparison) and "randomisation" not in str(comparison)


@pytest.mark.parametrize(("queries", "resamples", "least"), [(5, 9999, 0.062), (30, 9, 0.1)])
def test_tests_that_cannot_decide_are_warned_about(queries, resamples, least):
    qrels, runs = made_up(queries, 2)
    with pytest.warns(dh.DeadheatWarning, match=f"no corrected p-value can be below {least}"):
        dh.compare(qrels, runs, ["MRR"], resamples=resamples)


# The command line.


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    qrels, runs = made_up()
    out = {}
    for name, data in {"qrels": qrels, **runs}.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(data))
        out[name] = str(path)
    return out


def run(*words: str):
    return CliRunner().invoke(main, ["compare", *words])


def test_cli_table(files):
    done = run(files["qrels"], files["s0"], files["s1"], "-m", "MRR", "-m", "MAP", "--percent")
    assert done.exit_code == 0, done.output
    assert "s0.json" in done.stdout and "p (Holm)" in done.stdout
    assert not done.stderr


def test_cli_gives_what_the_library_gives(files, tmp_path):
    target = tmp_path / "out.json"
    words = [files[name] for name in ("qrels", "s0", "s1", "s2")]
    words += ["-m", "MRR", "--baseline", files["s2"], "--alpha", "0.1", "--resamples", "999"]
    words += ["--seed", "5", "--tie-break", "id_desc", "--format", "json", "-o", str(target)]
    assert run(*words).exit_code == 0
    comparison = dh.compare(
        files["qrels"],
        [files["s0"], files["s1"], files["s2"]],
        ["MRR"],
        baseline="s2.json",
        alpha=0.1,
        resamples=999,
        seed=5,
        tie_break="id_desc",
    )
    written = json.loads(target.read_text())
    assert written["pairs"] == comparison.pairs.to_dicts()
    assert run(*words).exit_code == 2  # the file exists
    assert run(*words, "--force").exit_code == 0


@pytest.mark.parametrize("style", ["markdown", "latex", "csv", "json"])
def test_cli_formats(files, style):
    done = run(files["qrels"], files["s0"], files["s1"], "-m", "MRR", "--format", style)
    assert done.exit_code == 0 and "s1" in done.stdout.replace("\\", "")


def test_cli_refuses_and_warns(files, tmp_path):
    cases = {
        (files["s0"],): "two systems or more",
        (files["s0"], files["s0"]): "s0.json is given twice: leave one out",
        (files["s0"], files["s1"], "--baseline", "bm25"): "'bm25' is not among the systems",
        (files["s0"], files["s1"], "--alpha", "2"): "--alpha",
        (files["s0"], files["s1"], "--resamples", "0"): "--resamples",
        (files["s0"], str(tmp_path / "none.run")): "there is no such file",
    }
    for words, message in cases.items():
        done = run(files["qrels"], *words, "-m", "MRR")
        assert done.exit_code == 2 and message in done.stderr, done.stderr
    copy = tmp_path / "copy.json"
    copy.write_text(Path(files["s0"]).read_text())
    done = run(files["qrels"], files["s0"], str(copy), "-m", "MRR", "--strict")
    assert done.exit_code == 1 and "warning: s0.json and copy.json have the same" in done.stderr
