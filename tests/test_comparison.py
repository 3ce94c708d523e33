"""`compare`: results, errors and warnings."""

from __future__ import annotations

import csv
import dataclasses
import inspect
import io
import itertools
import json
import math
import re

import numpy as np
import polars as pl
import pytest
from made_up_runs import make_runs

import deadheat as dh
from deadheat.comparison import METHODS, VERDICTS
from deadheat.comparison.significance import holm
from deadheat.demo import recordings
from deadheat.provenance import Provenance
from deadheat.settings import EvalSettings
from deadheat.tables import render


def values(comparison: dh.Comparison, *columns: str) -> np.ndarray:
    return comparison.pairs.select(columns).to_numpy().astype(float)


@pytest.mark.parametrize("queries", [10, 30])
def test_swapping_a_and_b_mirrors_the_results(queries):
    qrels, runs = make_runs(queries, 2)
    forward = dh.compare(qrels, runs, ["nDCG@5", "MRR", "ERR"])
    backward = dh.compare(qrels, dict(reversed(runs.items())), ["nDCG@5", "MRR", "ERR"])
    symmetric = ("std", "overlap", "reversed", "p_value", "p_corrected")
    assert values(forward, *symmetric) == pytest.approx(values(backward, *symmetric), nan_ok=True)
    for column, mirrored in (
        ("difference", "difference"),
        ("lowest", "highest"),
        ("interval_low", "interval_high"),
        ("oblivious_difference", "oblivious_difference"),
    ):
        assert values(forward, column) == pytest.approx(-values(backward, mirrored))
    assert values(forward, "a_wins") == pytest.approx(values(backward, "b_wins"))
    swapped = {"A is better": "B is better", "B is better": "A is better"}
    mirrored_verdicts = [swapped.get(verdict, verdict) for verdict in forward.pairs["verdict"]]
    assert mirrored_verdicts == backward.pairs["verdict"].to_list()


def test_only_the_correction_depends_on_other_pairs():
    qrels, runs = make_runs()
    alone = dh.compare(qrels, {name: runs[name] for name in ("s0", "s2")}, ["MRR"])
    among = dh.compare(qrels, runs, ["nDCG@5", "MRR"])
    pair = among.pairs.filter(a="s0", b="s2", measure="MRR")
    rounded, expected = (
        pairs.select(pl.exclude("p_corrected", "verdict")).select(pl.selectors.float().round(12))
        for pairs in (pair, alone.pairs)
    )
    assert rounded.equals(expected)
    for measure in ("nDCG@5", "MRR"):  # the correction counts the pairs of one measure
        pairs = among.pairs.filter(measure=measure)
        assert pairs["p_corrected"].to_list() == holm(pairs["p_value"].to_numpy()).tolist()
    assert alone.pairs["p_corrected"].item() == pair["p_value"].item() < pair["p_corrected"].item()


def test_query_order_and_monotone_score_changes_do_not_matter():
    qrels, runs = make_runs(queries=10)
    changed = {
        name: {q: {d: math.exp(s) for d, s in docs.items()} for q, docs in reversed(run.items())}
        for name, run in runs.items()
    }
    before = dh.compare(qrels, runs, ["nDCG@5"])
    after = dh.compare(dict(reversed(qrels.items())), changed, ["nDCG@5"])
    for column in ("difference", "std", "lowest", "a_wins", "p_value", "oblivious_difference"):
        assert values(before, column) == pytest.approx(values(after, column))
    assert before.ranking["rank"].to_list() == after.ranking["rank"].to_list()


def test_runs_and_results_give_the_same_comparison():
    qrels, runs = make_runs()
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
    qrels, runs = make_runs()
    comparison = dh.compare(qrels, runs, ["MRR", "ERR"], seed=7)
    documented = re.findall("``([a-z_]+)``", inspect.getsource(dh.comparison.Comparison))
    assert set(comparison.pairs.columns) <= set(documented)
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
    assert comparison.provenance["s0"].settings.tie_break == "input"


def test_baseline_is_always_b():
    qrels, runs = make_runs()
    comparison = dh.compare(qrels, runs, ["MRR"], baseline="s1")
    assert comparison.pairs.select("a", "b").rows() == [("s0", "s1"), ("s2", "s1")]
    assert comparison.settings.baseline == "s1"


def test_tied_and_untied_systems_in_a_measure_without_variance():
    qrels = {f"q{i}": {"right": 1, "other": 2} for i in range(8)}
    docs = ["wrong", "right", "other"]
    tied = dict.fromkeys(qrels, dict.fromkeys(docs, 1.0))
    scores = dict(zip(docs, (2.0, 3.0, 1.0), strict=True))
    untied = dict.fromkeys(qrels, scores)
    row = dh.compare(qrels, {"tied": tied, "untied": untied}, ["ERR"]).pairs.row(0, named=True)
    assert row["overlap"] and row["probability_method"] == "sampled"
    assert row["a_wins"] + row["b_wins"] <= 1


def test_decision_error():
    """The relevant document is first in the input, and one system ties all documents."""
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
    """Ties change nDCG@10 by up to 0.08, less than the difference of 0.23 between the systems."""
    folder = shared / "trec-covid"
    runs = sorted(folder.glob("round3-*.run.gz"))
    comparison = dh.compare(folder / "round3.qrels.gz", runs, ["nDCG@10", "ERR@10"])
    ndcg, err = comparison.pairs.iter_rows(named=True)
    assert ndcg["a"] == "round3-Emory_IRLab_rnd3_r1"
    assert ndcg["difference"] == pytest.approx(0.2336, abs=1e-4)
    assert ndcg["std"] == pytest.approx(0.0056, abs=1e-4)
    assert (ndcg["a_wins"], ndcg["overlap"]) == (1, False)
    assert ndcg["verdict"] == "A is better"
    assert err["p_corrected"] == err["p_value"] == pytest.approx(0.053, abs=0.01)  # one pair
    assert err["verdict"] == "not significant"
    assert comparison.ranking["best_rank"].to_list() == [1, 2, 1, 2]


def test_text_and_export_formats():
    qrels, runs = make_runs()
    comparison = dh.compare(qrels, {"a|b": runs["s1"], "[c]": runs["s2"]}, ["nDCG@5", "ERR"])
    text = str(comparison)
    assert "Ranking · 30 queries" in text and "[−0." in text
    assert "[c]" in text and "randomisation test of each pair" in text
    assert "±0.0" in text and "–" in text  # a sampled probability; ERR has no tie std
    assert "| a\\|b | [c] | nDCG@5 |" in comparison.to_markdown(percent=True)
    assert next(csv.DictReader(io.StringIO(comparison.to_csv())))["a"] == "a|b"
    assert comparison.to_csv(ranking=True).startswith("measure,system,rank,best_rank")
    data = json.loads(comparison.to_json())
    assert data == comparison.to_dict()
    assert data["pairs"][0]["difference"] == comparison.pairs["difference"][0]
    assert ">[c]</td>" in comparison._repr_html_()
    assert comparison.__rich__().renderables


# Many systems.


@pytest.fixture(scope="module")
def many() -> dict[str, dh.Result]:
    """21 systems: the first is much better than the others, the last is a copy of another one."""
    rng = np.random.default_rng(2)
    relevance = (rng.random((40, 20)) < 0.2).astype(int)
    relevance[:, 0] = 1
    results = {}
    for i in range(20):
        strength = 3.0 if i == 0 else 0.8 + 0.01 * i
        scores = np.round(strength * relevance + rng.normal(0, 0.7, relevance.shape), i % 3)
        results[f"s{i:02d}"] = dh.evaluate_arrays(relevance, scores, ["nDCG@5", "MRR"])
    return {**results, "s20": results["s10"]}


def test_many_systems_use_the_tukey_test(many):
    comparison = dh.compare(many, resamples=999)
    assert comparison.settings.test == "Tukey"
    assert len(comparison.pairs) == 2 * 210
    clear = comparison.pairs.filter(a="s00", measure="nDCG@5")
    assert set(clear["verdict"]) == {"A is better"}
    assert (clear["p_corrected"] < 0.05).all()
    assert (comparison.pairs["p_corrected"] >= comparison.pairs["p_value"]).all()
    assert comparison.pairs.filter(a="s10", b="s20")["verdict"].to_list() == ["identical"] * 2
    assert "not testable" not in comparison.pairs["verdict"]
    assert any("Tukey HSD" in text for text in comparison.notes)


def test_many_systems_with_a_baseline_use_the_holm_correction(many):
    comparison = dh.compare(many, baseline="s01")
    assert comparison.settings.test == "Holm"
    pairs = comparison.pairs.filter(measure="MRR")
    assert pairs["p_corrected"].to_list() == holm(pairs["p_value"].to_numpy()).tolist()
    assert pairs.row(0, named=True)["verdict"] == "A is better"
    assert len(comparison.parts()) == 2  # ranking and all pairs


def test_too_few_resamples_for_all_pairs_are_warned_about(many):
    """With 99 resamples and 20 pairs, no corrected p-value can be below 0.05."""
    with pytest.warns(dh.DeadheatWarning, match=r"20 pairs .* below 0\.2\b.* 399 resamples"):
        comparison = dh.compare(many, baseline="s01", resamples=99)
    assert "not testable" in comparison.pairs["verdict"]
    assert "not significant" not in comparison.pairs["verdict"]
    enough = dh.compare(many, baseline="s01", resamples=399)
    assert "not testable" not in enough.pairs["verdict"]


def test_many_systems_show_only_contested_pairs(many):
    comparison = dh.compare(many, resamples=999)
    ranking, verdicts, contested = comparison.parts()
    assert [table.title for table in (ranking, verdicts, contested)] == [
        "Ranking · 40 queries",
        "Verdicts on all pairs",
        "Contested: A against B",
    ]
    assert verdicts.frame.group_by("measure").agg(pl.col("pairs").sum())["pairs"].to_list() == [
        210,
        210,
    ]
    rank = {
        (row["measure"], row["system"]): i
        for i, row in enumerate(comparison.ranking.iter_rows(named=True))
    }
    contested_pairs = {(row["a"], row["b"], row["measure"]) for row in contested.frame.to_dicts()}
    for row in comparison.pairs.iter_rows(named=True):
        a, b, measure = row["a"], row["b"], row["measure"]
        are_neighbours = abs(rank[measure, a] - rank[measure, b]) == 1
        is_contested = row["verdict"] == "decision error" or (
            are_neighbours and (row["verdict"] == "undecided: ties" or row["reversed"])
        )
        assert ((a, b, measure) in contested_pairs) == is_contested
    assert {"undecided: ties", "decision error"} == set(contested.frame["verdict"])
    assert contested.frame.columns == comparison.pairs.columns
    text = str(comparison)
    assert text.index("Ranking") < text.index("Verdicts") < text.index("Contested")
    narrow = render(comparison.parts(), "table", width=80)
    assert max(map(len, narrow.splitlines())) <= 80
    assert "decision error" in narrow and "query interval" not in narrow.split("p (Tukey)")[0]
    assert "randomised Tukey" in narrow  # a narrow terminal shows the notes, too
    all_pairs = comparison.parts(all_pairs=True)
    assert all_pairs[1].frame.equals(comparison.pairs)
    assert len(comparison.to_csv().splitlines()) == 1 + 420
    assert len(comparison.to_csv(ranking=True).splitlines()) == 1 + 42


def test_note_if_no_pair_is_contested():
    """Five systems without ties, each better than the previous one."""
    scores = np.tile(np.arange(6.0, 0, -1), (8, 1))
    results = {
        f"s{i}": dh.evaluate_arrays([[int(d == 4 - i) for d in range(6)]] * 8, scores, ["MRR"])
        for i in range(5)
    }
    comparison = dh.compare(results)
    assert comparison.contested.is_empty()
    assert len(comparison.parts()) == 2
    assert "contested by ties" in str(comparison)


def test_different_tie_rules_of_many_systems_cause_one_warning(many):
    others = {
        name: dataclasses.replace(
            result,
            provenance=dataclasses.replace(result.provenance, settings=EvalSettings("id_desc")),
        )
        for name, result in list(many.items())[1:10]
    }
    with pytest.warns(dh.DeadheatWarning, match="s00 .*s01 .*8 more .*tie_break"):
        comparison = dh.compare({"s00": many["s00"], **others})
    assert len(comparison.warnings) == 1


# Errors and warnings.


@pytest.fixture
def three():
    qrels, runs = make_runs()
    return {name: dh.evaluate(qrels, run, ["MRR", "MAP"]) for name, run in runs.items()}


def test_fewer_than_two_systems_are_rejected(three):
    for results in ([], [three["s0"]], three["s0"], {"s0": three["s0"]}):
        with pytest.raises(dh.InputError, match=r"two systems .*not [01]"):
            dh.compare(results)
    with pytest.raises(dh.InputError, match=r"two systems .*not 1"):
        dh.compare({"q": {"d": 1}}, [{"q": {"d": 0.5}}])


def test_object_that_is_not_a_result_is_rejected(three):
    with pytest.raises(dh.InputError, match=r"not a dict\b.*compare\(qrels, runs, measures\)"):
        dh.compare([three["s0"], {"q": {"d": 1.0}}])


def test_systems_with_the_same_name_are_rejected(three):
    with pytest.raises(dh.InputError, match=r"\b3 systems .*'run'"):
        dh.compare(list(three.values()))


def test_unknown_or_ambiguous_baseline_is_rejected(three):
    for baseline in ("s9", "run"):
        with pytest.raises(dh.InputError, match=f"baseline '{baseline}' .* 's0', 's1', 's2'"):
            dh.compare(three, baseline=baseline)


@pytest.mark.parametrize(
    ("option", "bad"),
    [
        *itertools.product(["alpha"], [0, 1.0, math.nan]),
        *itertools.product(["resamples"], [0, 99.5]),
        *itertools.product(["seed"], [-1, "x"]),
    ],
)
def test_invalid_options_are_rejected(three, option, bad):
    with pytest.raises(dh.InputError, match=f"{option} must be"):
        dh.compare(three, **{option: bad})


def test_options_of_evaluate_are_rejected_for_results(three):
    with pytest.raises(dh.InputError, match=r"tie_break: .*evaluated already"):
        dh.compare(three, tie_break="id_desc")


def test_different_judgements_are_rejected(three):
    other = dataclasses.replace(three["s1"], provenance=Provenance("x", "other/qrels.txt"))
    with pytest.raises(dh.InputError, match=r"judgements qrels, x .*other/qrels\.txt"):
        dh.compare({"s0": three["s0"], "x": other})


def test_only_common_measures_are_compared_with_a_warning(three):
    qrels, runs = make_runs()
    other = dh.evaluate(qrels, runs["s1"], ["ERR", "MAP"])
    with pytest.warns(dh.DeadheatWarning, match=r"not every system .*MRR, ERR"):
        comparison = dh.compare({"s0": three["s0"], "s1": other})
    assert comparison.pairs["measure"].to_list() == ["MAP"]
    assert any("MRR, ERR" in text for text in comparison.warnings)
    with pytest.raises(dh.InputError, match="no measure in common"):
        dh.compare({"s0": three["s0"], "s1": other}, measures=["MRR"])


def test_different_queries_are_rejected_unless_queries_is_intersection():
    qrels, runs = make_runs(12, 2)
    fewer = {q: docs for q, docs in runs["s1"].items() if q not in ("q3", "q7")}
    both = {"s0": dh.evaluate(qrels, runs["s0"], ["MRR"])}
    both["s1"] = dh.evaluate(qrels, fewer, ["MRR"], queries="intersection")
    with pytest.raises(dh.InputError, match=r"s1 .* query 'q3'.*intersection.* 10 queries"):
        dh.compare(both)
    with pytest.warns(dh.DeadheatWarning, match="10 of 12 queries"):
        comparison = dh.compare(both, queries="intersection")
    assert comparison.settings.queries == 10
    with pytest.warns(dh.DeadheatWarning, match="10 of 12 queries"):
        again = dh.compare(qrels, {**runs, "s1": fewer}, ["MRR"], queries="intersection")
    assert again.pairs.equals(comparison.pairs)
    some = {q: runs["s1"][q] for q in ("q3", "q7")}
    rest = {q: docs for q, docs in runs["s0"].items() if q not in some}
    disjoint = {"rest": rest, "some": some}
    with pytest.raises(dh.InputError, match=r"not evaluated on query .*--queries intersection"):
        dh.compare(qrels, disjoint, ["MRR"], queries="intersection")


def test_different_tie_rules_are_warned_about(three):
    qrels, runs = make_runs()
    other = dh.evaluate(qrels, runs["s1"], ["MRR", "MAP"], tie_break="id_desc")
    with pytest.warns(dh.DeadheatWarning, match="tie_break.* 'input' .*'id_desc'"):
        dh.compare({"s0": three["s0"], "s1": other})


def test_identical_runs_have_the_verdict_identical(three):
    comparison = dh.compare({"s0": three["s0"], "copy": three["s0"]})
    assert comparison.pairs["difference"].to_list() == [0, 0]
    assert comparison.pairs["p_value"].to_list() == [1, 1]
    assert set(comparison.pairs["verdict"]) == {"identical"}
    assert comparison.ranking["rank"].to_list() == [1, 1, 1, 1]


def test_regimes_with_identical_rankings_cause_no_warning():
    results = recordings()["softmax"].results
    comparison = dh.compare({regime: results[regime] for regime in ("native", "hps")})
    assert set(comparison.pairs["verdict"]) == {"identical"}
    assert comparison.warnings == []


def test_single_query_is_not_testable():
    qrels = {"q": {"d1": 1}}
    runs = {"a": {"q": {"d1": 2.0, "d2": 1.0}}, "b": {"q": {"d1": 1.0, "d2": 2.0}}}
    with pytest.warns(dh.DeadheatWarning, match="only one query"):
        comparison = dh.compare(qrels, runs, ["MRR"])
    row = comparison.pairs.row(0, named=True)
    assert (row["difference"], row["a_wins"], row["p_value"]) == (0.5, 1, None)
    assert row["interval_low"] is None and row["verdict"] == "not testable"
    assert comparison.pairs.schema["p_value"] == pl.Float64
    assert " – " in str(comparison) and "randomisation" not in str(comparison)


@pytest.mark.parametrize(("queries", "resamples", "least"), [(5, 9999, 0.062), (30, 9, 0.1)])
def test_not_testable_pairs_are_warned_about(queries, resamples, least):
    """Two systems without ties; one ranks the relevant document first in every query."""
    scores = np.tile([2.0, 1.0], (queries, 1))
    right, wrong = ([[1, 0]] * queries, [[0, 1]] * queries)
    results = {
        "right": dh.evaluate_arrays(right, scores, ["MRR"]),
        "wrong": dh.evaluate_arrays(wrong, scores, ["MRR"]),
    }
    with pytest.warns(dh.DeadheatWarning, match=f"corrected p-value .*below {least}") as caught:
        comparison = dh.compare(results, resamples=resamples)
    assert comparison.pairs["verdict"].item() == "not testable"
    assert ("19 resamples" in str(caught[0].message)) == (resamples == 9)
    assert dh.compare(results, resamples=99, alpha=0.07).pairs["verdict"].item() == "A is better"
