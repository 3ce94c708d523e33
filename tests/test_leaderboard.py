"""Leaderboards: runs found, published numbers met, the rule behind them, what ties do to ranks."""

from __future__ import annotations

import csv
import gzip
import html
import importlib.util
import io
import itertools
import json
import lzma
import math
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings, strategies as st
from quiet import quiet

import deadheat as dh
from deadheat import cli
from deadheat.comparison.leaderboard import read_manifest, read_published
from deadheat.comparison.leaderboard.rules import variants
from deadheat.comparison.leaderboard.sources import find_runs
from deadheat.evaluation import folders
from deadheat.formats.folders import RunFolder
from deadheat.report.findings import describe_leaderboard
from deadheat.report.page.leaderboard import render_leaderboards
from deadheat.settings import EvalSettings

QUERIES, DOCUMENTS = 6, 8
NAMES = ("alpha", "beta", "gamma", "delta")
TEAMS = {"alpha": "red", "beta": "red", "gamma": "blue", "delta": "blue"}


@pytest.fixture(scope="module")
def judgements() -> dict[str, dict[str, int]]:
    rng = np.random.default_rng(1)
    return {f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in range(6)} for q in range(QUERIES)}


@pytest.fixture(scope="module")
def runs() -> dict[str, dict[str, dict[str, float]]]:
    """Scores that tie as given, and scores that tie only in float32."""
    made = {}
    for number, name in enumerate(NAMES):
        rng = np.random.default_rng(number + 10)
        made[name] = {
            f"q{q}": {
                # Every second score differs from its neighbour by less than float32 can tell.
                f"d{d}": 1.0
                + int(rng.integers(0, 4)) / 4
                + (1e-12 * (5 * d % 8) if number % 2 else 0.0)
                for d in rng.permutation(DOCUMENTS).tolist()
            }
            for q in range(QUERIES)
        }
    return made


def published_by(judgements, runs, measures, **options) -> str:
    """Write a board as a tool with this rule would have printed it."""
    lines = [",".join(["tag", "team", *measures])]
    for name, run in runs.items():
        result = quiet(dh.evaluate)(judgements, run, list(measures.values()), **options)
        values = [f"{result[measure].oblivious:.4f}" for measure in measures.values()]
        lines.append(",".join([name, TEAMS[name], *values]))
    return "\n".join(lines) + "\n"


def write_runs(folder: Path, runs) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    for name, run in runs.items():
        rows = [
            f"{query} Q0 {doc} {rank} {score!r} {name}\n"
            for query, docs in run.items()
            for rank, (doc, score) in enumerate(docs.items(), 1)
        ]
        (folder / f"{name}.run").write_text("".join(rows))
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch, judgements, runs) -> Path:
    """A round: judgements, a folder of runs, the published board."""
    monkeypatch.chdir(tmp_path)
    write_runs(tmp_path / "runs", runs)
    lines = [f"{q} 0 {d} {g}\n" for q, docs in judgements.items() for d, g in docs.items()]
    (tmp_path / "qrels").write_text("".join(lines))
    columns = {"ndcg@5": "nDCG@5", "map": "MAP"}
    text = published_by(judgements, runs, columns, tie_break="pytrec_eval")
    (tmp_path / "board.csv").write_text(text)
    return tmp_path


def run(*words: object, status: int = 0):
    found = CliRunner().invoke(cli.main, ["leaderboard", *map(str, words)])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    assert "Traceback" not in found.output
    assert found.exit_code == status, found.output
    return found


# ---- Values and ranks ----


def test_rows_hold_every_view_as_evaluate_gives_it(judgements, runs):
    board = quiet(dh.leaderboard)(judgements, runs, ["nDCG@5", "MAP"], tie_break="id_asc")
    for row in board.rows.iter_rows(named=True):
        result = quiet(dh.evaluate)(
            judgements, runs[row["run"]], row["measure"], tie_break="id_asc"
        )
        summary = result[row["measure"]]
        for view in ("expected", "std", "worst", "best", "range", "oblivious", "bias"):
            assert row[view] == getattr(summary, view)


def test_rank_intervals_are_what_enumerating_the_extremes_gives(judgements, runs):
    rows = quiet(dh.leaderboard)(judgements, runs, ["nDCG@5"]).rows
    ends = {row["run"]: (row["worst"], row["best"]) for row in rows.iter_rows(named=True)}
    places = {name: set() for name in ends}
    for values in itertools.product(*ends.values()):
        for name, value in zip(ends, values, strict=True):
            places[name].add(1 + sum(other > value + 1e-12 for other in values))
    for row in rows.iter_rows(named=True):
        assert (row["best_rank"], row["worst_rank"]) == (
            min(places[row["run"]]),
            max(places[row["run"]]),
        )


def test_the_number_of_workers_changes_nothing(judgements, runs):
    one, three = (
        quiet(dh.leaderboard)(judgements, runs, ["nDCG@5", "MAP"], workers=workers)
        for workers in (1, 3)
    )
    assert one.to_json() == three.to_json()


def test_summary_counts_agree_with_the_comparison_of_all_pairs(judgements, runs):
    board = quiet(dh.leaderboard)(judgements, runs, ["nDCG@5"], tie_break="id_desc")
    pairs = quiet(dh.compare)(judgements, runs, ["nDCG@5"], tie_break="id_desc").pairs
    summary = board.summary.row(0, named=True)
    assert summary["pairs"] == len(pairs)
    assert summary["reversed"] == pairs["reversed"].sum()
    assert summary["undecided"] == (pairs["verdict"] == "undecided: ties").sum()
    assert summary["decision_errors"] == (pairs["verdict"] == "decision error").sum()
    ranges = board.rows["range"]
    assert summary["range_above_0.01"] == (ranges > 0.01).sum()


def test_kendalls_tau_is_that_of_scipy(judgements, runs):
    stats = pytest.importorskip("scipy.stats")
    board = quiet(dh.leaderboard)(judgements, runs, ["MAP"], tie_break="id_desc")
    expected = stats.kendalltau(board.rows["oblivious"], board.rows["best"]).statistic
    assert board.summary["tau_official_best"][0] == pytest.approx(expected)
    expected = stats.kendalltau(board.rows["oblivious"], board.rows["worst"]).statistic
    assert board.summary["tau_official_worst"][0] == pytest.approx(expected)


# ---- Winners ----


def test_a_coin_flip_is_named_with_its_probability():
    qrels = {"q1": {"d1": 1}}
    flip = {"q1": {"d1": 1.0, "d2": 1.0}}
    sure = {"q1": {"d2": 2.0, "d1": 1.0}}
    board = quiet(dh.leaderboard)(qrels, {"flip": flip, "sure": sure}, ["MRR"])
    (winner,) = board.winners
    assert winner.contested
    assert (winner.official, winner.expected) == (["flip"], "flip")
    assert (winner.probability, winner.method) == (0.5, "exact")
    assert "Contested winners" in str(board)
    assert "P below 0.95, 1 of 1" in str(board)


def test_without_ties_no_winner_is_contested():
    qrels = {"q1": {"d1": 1}}
    best, worse = {"q1": {"d1": 2.0, "d2": 1.0}}, {"q1": {"d2": 2.0, "d1": 1.0}}
    board = quiet(dh.leaderboard)(qrels, {"best": best, "worse": worse}, ["MRR"])
    assert [(w.expected, w.probability, w.contested) for w in board.winners] == [
        ("best", 1.0, False)
    ]
    assert "No winner is contested" in str(board)


def test_who_comes_first_of_three_is_exact_where_outcomes_can_be_enumerated():
    """Each run ties one relevant document with another: 1 or 1/2, three times."""
    qrels = {"q1": {"d1": 1}}
    tied = {"q1": {"d1": 1.0, "d2": 1.0}}
    first = {"q1": {"d1": 2.0, "d2": 1.0}}
    board = quiet(dh.leaderboard)(qrels, {"a": tied, "b": tied, "c": tied}, ["MRR"])
    (winner,) = board.winners
    assert winner.contenders == pytest.approx({"a": 0.125, "b": 0.125, "c": 0.125})
    assert (winner.method, winner.error) == ("exact", 0)
    board = quiet(dh.leaderboard)(qrels, {"a": first, "b": tied, "c": tied}, ["MRR"])
    assert board.winners[0].contenders == pytest.approx({"a": 0.25, "b": 0, "c": 0})


def test_equal_values_without_ties_share_the_first_place():
    first = {"q1": {"d1": 2.0, "d2": 1.0}}
    board = quiet(dh.leaderboard)({"q1": {"d1": 1}}, {"a": first, "b": first}, ["MRR"])
    assert board.winners[0].contenders == {"a": 0.5, "b": 0.5}


def test_winners_are_found_inside_groups(folder, runs):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv", group="team")
    groups = {w.group: w for w in board.winners if w.measure == "nDCG@5"}
    assert set(groups) == {None, "red", "blue"}
    for team in ("red", "blue"):
        own = [name for name in runs if TEAMS[name] == team]
        rows = board.ranking("nDCG@5").filter(team=team).sort("expected", descending=True)
        assert groups[team].expected == rows["run"][0]
        assert groups[team].expected in own


# ---- The rule behind published numbers ----


def test_the_rule_of_a_published_board_is_found(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert [(rule.met, rule.of) for rule in board.rules] == [(4, 4), (4, 4)]
    assert {rule.setting for rule in board.rules} == {
        EvalSettings("id_desc", score_dtype="float32")
    }
    assert board.rows["reproduced"].all()
    text = "ndcg@5: 4 of 4 met with nDCG@5, float32 scores, ties by descending document ids"
    assert text in str(board)


@pytest.mark.parametrize("rows", [1, 10, 1_000], ids="{} rows fit".format)
@pytest.mark.parametrize("heading", ["RBP(gain='scaled')", "bpref", "nDCG@5"])
def test_runs_in_many_files_are_read_in_parts(
    tmp_path, monkeypatch, judgements, runs, heading, rows
):
    """The board, the rule that was found and the cut lists are those of runs in memory."""
    measure = dh.measures.parse_measure(heading)
    qrels = {**judgements, "q6": {"d1": 1}, "q7": {"d0": 0, "d2": 0}}  # missing, and none relevant
    rows_of = {  # lists that end inside tie groups
        name: [("unjudged", "d9", 1.0)]
        + [(q, d, score) for q, docs in own.items() for d, score in list(docs.items())[:5]]
        for name, own in runs.items()
    }
    for name, listed in rows_of.items():
        (tmp_path / name).mkdir()
        for part in range(3):
            frame = pl.DataFrame(listed[part::3], ["query_id", "doc_id", "score"], orient="row")
            frame.write_parquet(tmp_path / name / f"{part}.parquet")
    in_memory = {
        name: pl.DataFrame(
            [row for part in range(3) for row in listed[part::3]],
            ["query_id", "doc_id", "score"],
            orient="row",
        )
        for name, listed in rows_of.items()
    }
    board = published_by(qrels, in_memory, {heading: measure}, tie_break="pytrec_eval")
    (tmp_path / "board.csv").write_text(board)
    monkeypatch.setattr(folders, "PART_ROWS", rows)
    if rows < 100:
        monkeypatch.setattr(RunFolder, "whole", None)  # would be an error
    options = {"published": tmp_path / "board.csv", "columns": {heading: repr(measure)}}
    found = quiet(dh.leaderboard)(qrels, {name: tmp_path / name for name in runs}, **options)
    expected = quiet(dh.leaderboard)(qrels, in_memory, **options)
    assert found.rows.equals(expected.rows) and found.summary.equals(expected.summary)
    assert found.rules == expected.rules and found.rules[0].met == 4
    assert {e.grid for e in found.entries.values()} == {e.grid for e in expected.entries.values()}
    assert (found.rows["cut_lists"] > 0).all()


@pytest.mark.parametrize("rule", ["id_asc", "id_desc", "input"])
def test_every_tie_rule_is_told_from_the_others(folder, judgements, runs, rule):
    text = published_by(judgements, runs, {"ndcg@5": "nDCG@5", "map": "MAP"}, tie_break=rule)
    Path("board.csv").write_text(text)
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert {found.setting.tie_break for found in board.rules} == {rule}
    assert all(found.met == found.of for found in board.rules)


@pytest.mark.parametrize(
    ("heading", "variant"),
    [
        ("ndcg@5", "nDCG(gain='exp')@5"),
        ("map", "MAP(rel=2)"),
        ("rbp_p5", "RBP(p=0.5, gain='scaled')"),
        ("rbp", "RBP(p=0.9)"),
        ("map@3", "MAP(divisor='min')@3"),
    ],
)
def test_the_variant_of_a_measure_is_found(folder, judgements, runs, heading, variant):
    text = published_by(judgements, runs, {heading: variant}, tie_break="id_desc")
    Path("board.csv").write_text(text)
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    (found,) = board.rules
    assert (repr(found.measure), found.met) == (repr(dh.measures.parse_measure(variant)), 4)
    assert board.ranking(heading)["measure"][0] == repr(found.measure)


def test_columns_that_need_different_rules_are_told(folder, judgements, runs):
    descending = published_by(judgements, runs, {"ndcg@5": "nDCG@5"}, tie_break="id_desc")
    ascending = published_by(judgements, runs, {"map": "MAP"}, tie_break="id_asc")
    pairs = zip(descending.splitlines(), ascending.splitlines(), strict=True)
    both = [f"{one},{other.split(',')[-1]}" for one, other in pairs]
    Path("board.csv").write_text("\n".join(both) + "\n")
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert [rule.setting.tie_break for rule in board.rules] == ["id_desc", "id_asc"]
    assert board.rows["reproduced"].all()
    said = "no rule fits all columns, so the board describes 2 different rankings; ndcg@5: "
    assert any(note.startswith(said) for note in board.notes)
    assert "MAP: oblivious: ties by ascending document ids" in board.notes


def test_numbers_that_no_rule_gives_are_told(folder):
    lines = Path("board.csv").read_text().splitlines()
    name, team, _, ap = lines[1].split(",")
    lines[1] = f"{name},{team},0.1234,{ap}"
    Path("board.csv").write_text("\n".join(lines))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert [(rule.met, rule.of) for rule in board.rules] == [(3, 4), (4, 4)]
    (said,) = [said for said in board.warnings if said.startswith("ndcg@5: ")]
    assert "1 of 4 published numbers" in said and said.endswith(f": {name}")
    assert board.ranking().filter(run=name)["reproduced"].to_list() == [False]


def write_unknown_board(judgements, runs) -> None:
    """Publish an "nDCG@5" that no variant gives, beside a MAP that one does."""
    lines = ["tag,team,ndcg@5,map"]
    for name, own in runs.items():
        result = quiet(dh.evaluate)(judgements, own, ["nDCG@5", "Recall@3", "MAP"])
        mixed = 0.37 * result["nDCG@5"].oblivious + 0.61 * result["Recall@3"].oblivious
        lines.append(f"{name},{TEAMS[name]},{mixed:.6f},{result['MAP'].oblivious:.4f}")
    Path("board.csv").write_text("\n".join(lines) + "\n")


def test_nothing_is_attributed_to_ties_where_the_definition_is_unknown(folder, judgements, runs):
    """The order of such numbers differs from the expected one for reasons of its own."""
    write_unknown_board(judgements, runs)
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv", group="team")
    unknown, known = board.summary.to_dicts()
    assert (unknown["official"], unknown["published"], unknown["met"]) == (None, 4, 0)
    assert (known["official"], known["published"], known["met"]) == ("published", 4, 4)
    for name in ("reversed", "decision_errors", "tau_official_expected", "tau_official_best"):
        assert unknown[name] is None and known[name] is not None
    assert {error.measure for error in board.decision_errors} <= {"MAP"}
    assert all(w.official == [] for w in board.winners if w.measure == "nDCG@5")
    assert all(w.official for w in board.winners if w.measure == "MAP")
    assert not board.rules[0].known and board.rules[1].known
    assert board.rules[0].setting == board.rules[1].setting
    (said,) = [w for w in board.warnings if w.startswith("ndcg@5: 4 of 4 published numbers")]
    assert "definition is unknown" in said


def test_an_unknown_definition_is_shown_everywhere(folder, judgements, runs):
    write_unknown_board(judgements, runs)
    base = ("qrels", "runs", "--published", "board.csv", "--group", "team")
    text = run(*base).stdout
    row = next(line for line in text.splitlines() if line.startswith("│ nDCG@5"))
    assert [cell.strip() for cell in row.split("│")].count("–") >= 3  # reversed, errors, τ
    assert "definition unknown" in text
    assert "The definition of the published nDCG@5 is unknown: 0 of 4" in text.splitlines()[-1]
    run(*base, "-o", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "The definition of the published nDCG@5 is unknown: 0 of 4" in page
    assert "is published above" not in page.replace("in MAP (", "")
    data = json.loads(run(*base, "--format", "json").stdout)
    assert data["summary"][0]["reversed"] is None
    assert data["rules"][0]["known"] is False


def test_a_run_whose_number_is_not_met_takes_no_part_in_published_order(folder, judgements, runs):
    """One wrong number among many: the others are compared, and the first place is not named."""
    before = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    text, name = Path("board.csv").read_text(), before.ranking()["run"][-1]
    wrong = [
        re.sub(r"(?<=,)0\.\d+(?=,)", "0.9999", line) if line.startswith(f"{name},") else line
        for line in text.splitlines()
    ]
    Path("board.csv").write_text("\n".join(wrong))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    others = {other: own for other, own in runs.items() if other != name}
    alone = quiet(dh.leaderboard)(judgements, others, ["nDCG@5"], tie_break="pytrec_eval")
    for count in ("reversed", "decision_errors"):
        assert board.summary[count][0] == alone.summary[count][0]
    assert board.summary["official"][0] == "published"
    assert board.ranking()["published_rank"][0] == 1 and board.ranking()["run"][0] == name
    assert board.winners[0].official == []


def test_a_given_rule_that_meets_few_numbers_explains_no_published_order(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv", tie_break="id_asc")
    for row in board.summary.to_dicts():
        is_known = 2 * row["met"] > row["published"]
        assert (row["reversed"] is not None) == is_known
    assert None in board.summary["reversed"].to_list()


def error_runs(n: int) -> tuple[dict, dict]:
    """Judgements, and pairs of runs that input order puts in the wrong order."""
    qrels = {f"q{i}": {"d0": 1} for i in range(40)}
    runs: dict[str, dict] = {}
    for k in range(n):
        docs = [f"d{i}" for i in range(12)]
        runs[f"tied{k}"] = {q: dict.fromkeys(docs, 1.0) for q in qrels}  # the relevant one first
        second = ["d1", *docs[:1], *docs[2:]]
        runs[f"sure{k}"] = {q: {d: -float(i) for i, d in enumerate(second)} for q in qrels}
    return qrels, runs


def test_each_decision_error_is_named():
    qrels, runs = error_runs(1)
    published = {"tied0": {"MRR": 1.0}, "sure0": {"MRR": "0.5"}}
    board = quiet(dh.leaderboard)(qrels, runs, published=published)
    (error,) = board.decision_errors
    assert (error.above, error.below, error.rank) == ("tied0", "sure0", 1)
    mean = sum(1 / i for i in range(1, 13)) / 12
    assert error.official == (1.0, 0.5) and error.expected == pytest.approx((mean, 0.5))
    said = "tied0 is published above sure0 in MRR (1.0000 > 0.5000), but its mean over all tie "
    said += f"orders is lower ({mean:.4f} < 0.5000)"
    assert str(error) == said
    assert said in str(board) and said in describe_leaderboard(board)
    page = html.unescape(render_leaderboards([board]))
    assert page.count(said) >= 2  # the finding, and the list
    assert board.to_dict()["decision_errors"][0]["text"] == said
    computed = quiet(dh.leaderboard)(qrels, runs, ["MRR"])
    assert "tied0 is above sure0 in MRR (oblivious 1.0000 > 0.5000)" in str(computed)


def test_many_decision_errors_are_counted_and_all_in_the_data():
    qrels, runs = error_runs(3)
    board = quiet(dh.leaderboard)(qrels, runs, ["MRR", "Recall@5"])
    errors = board.decision_errors
    assert len(errors) == board.summary["decision_errors"].sum() > 6
    assert len(board.to_dict()["decision_errors"]) == len(errors)
    ranks = [error.rank for error in errors]
    assert ranks == sorted(ranks)
    assert f"{len(errors) - 5} more" in str(board)
    assert f"{len(errors) - 1} more decision errors" in describe_leaderboard(board)


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_the_decision_errors_of_semeval_2016_are_named(shared):
    folder = shared / "semeval2016"
    board = dh.leaderboard(
        folder / "task3b.qrels", folder / "task3b", published=folder / "task3b-published.csv"
    )
    assert [(rule.met, rule.of) for rule in board.rules] == [(28, 28), (28, 28)]
    assert (
        "UniMelb-primary is published above overfitting-primary in MAP (0.7020 > 0.6968), but its "
        "mean over all tie orders is lower (0.6533 < 0.6968)"
    ) in map(str, board.decision_errors)
    assert str(board.decision_errors[0]) in describe_leaderboard(board)


def test_a_rule_that_the_numbers_do_not_determine_is_not_named_as_found(folder, judgements):
    """Without ties every order and precision gives the same numbers."""
    runs = {
        name: {q: {f"d{(d * 3 + i) % 8}": float(d) for d in range(8)} for q in judgements}
        for i, name in enumerate(NAMES)
    }
    write_runs(folder / "runs", runs)
    Path("board.csv").write_text(published_by(judgements, runs, {"ndcg@5": "nDCG@5"}))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    (rule,) = board.rules
    assert rule.known and rule.setting == EvalSettings() and len(rule.candidates) > 2
    assert rule.undetermined == ["score_dtype", "tie_break"]
    assert f"({len(rule.candidates)} settings agree)" in str(rule)
    assert "descending" not in str(rule)
    assert rule.to_dict()["undetermined"] == rule.undetermined


def test_what_all_equally_good_settings_share_is_determined(folder, judgements, runs):
    """Scores that tie as given tie in float32, too: only the tie order is determined."""
    tied = {name: own for i, (name, own) in enumerate(runs.items()) if i % 2 == 0}
    for name in runs.keys() - tied:
        Path(f"runs/{name}.run").unlink()
    text = published_by(judgements, tied, {"ndcg@5": "nDCG@5", "map": "MAP"}, tie_break="id_asc")
    Path("board.csv").write_text(text)
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    for rule in board.rules:
        assert rule.undetermined == ["score_dtype"]
        assert "ascending document ids; score precision not determined" in str(rule)


def test_which_queries_count_is_not_in_question_where_all_choices_are_the_same(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert {s.queries for rule in board.rules for s in rule.candidates} == {"judged"}


def test_a_rule_that_is_given_is_not_searched_for(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv", tie_break="id_asc")
    assert board.rules == []
    assert set(board.settings.values()) == {EvalSettings("id_asc")}
    assert not board.rows["reproduced"].all()


def test_variants_try_p_only_where_the_heading_leaves_it_open():
    assert {m.p for m in variants(dh.RBP, [1.0])} == {0.5, 0.8, 0.9, 0.95}
    assert {m.p for m in variants(dh.RBP(p=0.5), [1.0])} == {0.5}


# ---- Published files ----


def board_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "board.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("0.7843", 0.7843, 1e-4),
        ("0.78", 0.78, 1e-2),
        ("78.4", 0.784, 1e-3),
        ("78.43%", 0.7843, 1e-4),
    ],
)
def test_numbers_keep_their_own_digits(tmp_path, text, value, unit):
    board = read_published(board_file(tmp_path, f"tag,ndcg@10\na,{text}\n"))
    assert board.columns[0].numbers.row(0) == pytest.approx((value, unit, 1))


def test_published_values_above_1_are_percentages_only_of_measures_bounded_by_1(tmp_path):
    headings = ["RBP(gain='linear')", "RBP", "DCG@5", "Hits@5", "nDCG@5"]
    text = "tag;" + ";".join(headings) + "\na" + ";1.25" * len(headings) + "\n"
    board = read_published(board_file(tmp_path, text.replace(";", ",")))
    values = [column.numbers["published"][0] for column in board.columns]
    assert values == pytest.approx([1.25, 0.0125, 1.25, 1.25, 0.0125])


@pytest.mark.parametrize("number", ["1e999999", "1" * 100_000, "0." + "1" * 100_000, "-1e400"])
def test_a_published_number_out_of_range_is_refused_with_its_place(tmp_path, number):
    with pytest.raises(dh.InputError, match=r"board\.csv: entry 1 \(a\) .* column 'map'") as caught:
        read_published(board_file(tmp_path, f"tag,map\na,{number}\n"))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "board",
    [
        {"a": {"MAP": 10**60}},
        {"a": {"MAP": [1]}},
        {"a": {"MAP": object()}},
        {"a": 3},
        pl.DataFrame({"run": ["a"], "MAP": [[0.5]]}),
    ],
    ids=["too large", "list", "object", "no mapping", "column of lists"],
)
def test_a_published_board_of_other_things_is_refused(board):
    with pytest.raises(dh.InputError, match="the published board: "):
        read_published(board)


def test_numbers_of_different_digits_are_each_held_to_their_own(folder, judgements, runs):
    lines = Path("board.csv").read_text().splitlines()
    name, team, ndcg, ap = lines[1].split(",")
    lines[1] = f"{name},{team},{float(ndcg):.2f},{ap}"
    Path("board.csv").write_text("\n".join(lines))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert board.rules[0].met == 4


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("tag,ndgc@10\na,0.5\n", r"column 'ndgc@10' .*not a measure.*nDCG.*--column ndgc@10="),
        ("tag,team\na,x\n", "no heading is a measure.*'tag', 'team'"),
        ("tag,map\na,0.5\na,0.6\n", "entry 2 .*name 'a' .*'tag'"),
        ("tag,map\na,0.5\nb,0.6\nc,good\n", r"entry 3 \(c\) .*'good' .*column 'map'"),
        ("tag,map\n,0.5\n", "entry 1 .*name '' .*'tag'"),
        ("tag,map\n", r"\.csv: there is no run"),
    ],
)
def test_a_bad_board_is_refused_with_a_reason(tmp_path, text, facts):
    with pytest.raises(dh.InputError, match=facts):
        read_published(board_file(tmp_path, text))


def test_a_column_can_be_named_or_left_out(tmp_path):
    path = board_file(tmp_path, "rank,tag,quality,speed\n1,a,0.5,12\n")
    board = read_published(path, {"quality": "nDCG@10", "speed": None})
    assert [(c.name, c.measure) for c in board.columns] == [("quality", dh.nDCG @ 10)]
    with pytest.raises(dh.InputError, match=r"no column 'other'.* 'rank', 'tag'"):
        read_published(path, {"other": "MAP"})


def test_missing_numbers_stay_missing(folder):
    lines = Path("board.csv").read_text().splitlines()
    name, team, _, ap = lines[1].split(",")
    lines[1] = f"{name},{team},-,{ap}"
    Path("board.csv").write_text("\n".join(lines))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    row = board.ranking().filter(run=name).row(0, named=True)
    assert (row["published"], row["reproduced"], row["published_rank"]) == (None, None, None)
    assert board.rules[0].of == 3
    assert board.ranking()["run"][-1] == name  # those without a number come last


def test_a_board_without_a_number_of_any_run_asks_for_measures(folder):
    Path("board.csv").write_text("tag,map\nalpha,-\nbeta,\nghost,0.5\n")
    said = run("qrels", "runs", "--published", "board.csv", status=2).stderr
    assert "board.csv: " in said and "published number" in said and "(-m)" in said
    assert "alpha" in run("qrels", "runs", "--published", "board.csv", "-m", "MAP").stdout


def test_runs_only_here_and_only_there_are_told(folder):
    lines = Path("board.csv").read_text().splitlines()
    absent, *rest = lines[1:]
    Path("board.csv").write_text("\n".join([lines[0], *rest, "ghost,red,0.1,0.1"]))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    name = absent.split(",")[0]
    assert f"1 run not in the board: {name}" in board.warnings
    assert "1 run of the board without a run file: ghost" in board.warnings
    assert board.ranking().filter(run=name)["published"].to_list() == [None]
    line = next(line for line in str(board).splitlines() if f" {name} " in line)
    assert " no " not in line and " yes " not in line


def test_a_run_is_found_in_the_board_by_its_tag(folder):
    Path("runs/alpha.run").rename("runs/submission-17.txt")
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    row = board.ranking().filter(run="submission-17").row(0, named=True)
    assert row["reproduced"] is True
    assert row["team"] == "red"


def test_a_dot_in_a_name_does_not_make_it_another_run(folder, runs):
    write_runs(folder / "runs", {"alpha.v2": runs["beta"]})
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert "1 run not in the board: alpha.v2" in board.warnings


def test_two_files_of_one_tag_are_refused(folder):
    Path("runs/copy.run").write_text(Path("runs/alpha.run").read_text())
    with pytest.raises(dh.InputError, match=r"copy and alpha .*'alpha' of board\.csv"):
        quiet(dh.leaderboard)("qrels", "runs", published="board.csv")


def test_boards_with_no_run_in_common_are_refused(folder):
    Path("board.csv").write_text("tag,map\nother,0.5\n")
    with pytest.raises(dh.InputError, match=r"no run is in board\.csv: .*'alpha'.*'other'"):
        quiet(dh.leaderboard)("qrels", "runs", published="board.csv")


def test_an_unknown_group_is_refused_with_the_known_ones(folder):
    with pytest.raises(dh.InputError, match=r"no column of words 'squad'.*: 'team'"):
        quiet(dh.leaderboard)("qrels", "runs", published="board.csv", group="squad")
    with pytest.raises(dh.InputError, match=r"no column of words 'team'.*: none"):
        quiet(dh.leaderboard)("qrels", "runs", ["MAP"], group="team")


# ---- Runs ----


def test_runs_are_files_folders_and_patterns(folder):
    assert find_runs(["runs/alpha.run", "runs/*.run", "runs"]).keys() == set(NAMES)


def test_judgements_are_not_accepted_as_runs():
    with pytest.raises(dh.InputError, match=r"not Judgements.*leaderboard\(qrels, runs\)"):
        dh.leaderboard({"a": {"d": 1.0}}, dh.read_qrels({"q": {"d": 1}}))


def test_a_path_with_brackets_that_exists_means_itself(folder):
    Path("runs/a[lph]a.run").write_text(Path("runs/alpha.run").read_text())
    assert list(find_runs(["runs/a[lph]a.run"])) == ["a[lph]a"]
    Path("runs/a[lph]a.run").unlink()
    with pytest.raises(dh.InputError, match=r"runs/x\[yz\]\.run: no file"):
        find_runs(["runs/x[yz].run"])


def test_a_name_that_is_not_utf_8_is_shown_as_far_as_it_is(folder):
    Path("runs/alpha.run").rename("runs/\udc80alpha.run")
    board = quiet(dh.leaderboard)("qrels", "runs", ["MAP"])
    assert "\\x80alpha" in board.entries
    with pytest.raises(dh.InputError, match="cannot be written as UTF-8"):
        quiet(dh.leaderboard)("qrels", {"\udc80": "runs/beta.run"}, ["MAP"])


def test_judgements_and_board_among_the_runs_are_not_runs(folder):
    for name in NAMES:
        Path(f"runs/{name}.run").rename(f"{name}.run")
    board = quiet(dh.leaderboard)("qrels", "*", ["MAP"], published="board.csv")
    assert set(board.entries) == set(NAMES)
    assert not board.failures


def test_one_unreadable_run_does_not_stop_the_others(folder):
    whole = lzma.compress(Path("runs/beta.run").read_bytes())
    Path("runs/beta.run").write_bytes(whole[: len(whole) // 2])
    found = run("qrels", "runs", "--published", "board.csv", status=1)
    assert re.search(r"beta was not evaluated: runs/beta\.run: .*damaged", found.stderr)
    assert "alpha" in found.stdout and "Not evaluated:" in found.stdout
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert list(board.failures) == ["beta"]
    assert [(rule.met, rule.of) for rule in board.rules] == [(3, 3), (3, 3)]


def test_a_run_that_is_not_there_is_a_failure_like_any_other(folder):
    found = run("qrels", "runs/alpha.run", "runs/nobody.run", "-m", "MAP", status=1)
    assert re.search(r"nobody was not evaluated: runs/nobody\.run: .*no such", found.stderr)
    assert "1 run" in found.stdout


def test_a_board_of_one_run_has_no_pairs(folder):
    board = quiet(dh.leaderboard)("qrels", "runs/alpha.run", ["MAP"])
    assert board.summary["pairs"].to_list() == [0]
    assert board.rows.select("rank", "best_rank", "worst_rank").row(0) == (1, 1, 1)
    assert board.summary["tau_official_expected"].to_list() == [None]


def test_where_no_run_can_be_read_that_is_an_error(folder):
    for path in Path("runs").iterdir():
        path.write_text("nonsense")
    assert "no run could be evaluated" in run("qrels", "runs", status=2).stderr
    assert (
        "no run could be evaluated"
        in run("qrels", "runs", "--published", "board.csv", status=2).stderr
    )


# ---- Manifests ----


def test_a_manifest_names_several_boards(folder):
    Path("m.toml").write_text(
        '[[board]]\nname = "first"\nqrels = "qrels"\nruns = "runs"\npublished = "board.csv"\n'
        '[[board]]\nname = "second"\nqrels = "qrels"\nruns = ["runs/a*.run"]\nmeasures = ["MRR"]\n'
    )
    found = run("m.toml", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(found.stdout)))
    assert {row["board"] for row in rows} == {"first", "second"}
    assert {row["measure"] for row in rows if row["board"] == "second"} == {"MRR"}
    assert len(json.loads(run("m.toml", "--format", "json").stdout)) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "expected one or more tables [[board]]"),
        ("[[board]]\nqrels = 'q'", "board 1: 'runs' is missing"),
        ("[[board]]\nqrels = 'q'\nruns = 'r'\nqrel = 'q'", "board 1: 'qrel' is "),
        ("[[board]]\nqrels = 7", "board 1: 'qrels' is "),
        ("[[board]]\nqrels = 0x" + "f" * 5000, "board 1: 'qrels' is "),
        ("[[board]]\nqrels = 'q'\nruns = [7]", "board 1: 'runs' is "),
        ("[[board]]\nqrels = 'q'\nruns = ['-']", "standard input (-)"),
        ("[[board", "not valid TOML"),
        ("x = " + "[" * 5000, "not valid TOML"),
        ("x\0 = 1", "not valid TOML"),
        ('[[board]]\nqrels = "a\\u0000"\nruns = "r"', "board 1: "),
    ],
)
def test_a_bad_manifest_is_refused_with_a_reason(tmp_path, text, said):
    path = tmp_path / "m.toml"
    path.write_text(text)
    with pytest.raises(dh.InputError) as error:
        read_manifest(path)
    assert str(error.value).startswith(f"{path}: ") and said in str(error.value)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("name", ["r" * 5000, "r" * 5000 + "*", "a\0b"])
def test_names_that_no_file_can_have_are_refused(folder, name):
    with pytest.raises(dh.InputError):
        quiet(dh.leaderboard)("qrels", [name], ["MAP"])


WORDS = st.one_of(
    st.sampled_from(
        ["qrels", "runs", "runs/*", "board.csv", ".", "..", "/", "*", "**", "~", "-", ""]
    ),
    st.sampled_from(["MAP", "nDCG@5", "x" * 300, "a/../qrels", "runs/alpha.run/x", "[", "\0"]),
    st.text(st.characters(codec="utf-8"), max_size=8),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.fixed_dictionaries(
        {"qrels": st.one_of(st.just("qrels"), WORDS)},
        optional={
            "runs": st.one_of(WORDS, st.lists(WORDS, max_size=2)),
            "published": WORDS,
            "name": WORDS,
            "measures": st.lists(WORDS, max_size=2),
        },
    )
)
def test_any_manifest_makes_boards_or_is_refused_by_its_name(folder, board):
    """A basic string of TOML is written as one of JSON is."""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in board.items()]
    text = "[[board]]\n" + "".join(lines)
    Path("m.toml").write_text(text, encoding="utf-8")
    try:
        boards = dh.comparison.leaderboards("m.toml", workers=1)
    except dh.InputError as error:
        assert str(error).startswith("m.toml: ")
    else:
        json.dumps([board.to_dict() for board in boards], allow_nan=False)


@pytest.fixture
def outside(folder, tmp_path_factory) -> Path:
    """A file that is no run, outside of the folder of the manifest."""
    path = tmp_path_factory.mktemp("outside") / "secret.txt"
    path.write_text("hunter2 password\n")
    return path


def _outside_words(key: str, outside: Path) -> dict[str, str]:
    """Paths of a manifest that lead out of its folder, each in another way."""
    Path("link").symlink_to(outside)
    Path("linked").symlink_to(outside.parent)
    Path("with_link").mkdir()
    Path("with_link/a.run").symlink_to(outside)
    words = {
        "absolute": str(outside),
        "up": f"../{Path.cwd().name}/qrels",
        "link": "link",
        "through a linked folder": f"linked/{outside.name}",
    }
    if key == "runs":
        words |= {"folder": "with_link", "linked folder": "linked", "pattern": "*/secret*"}
        words["pattern up"] = "../outside*/*"
    return words


@pytest.mark.parametrize("key", ["qrels", "runs", "published"])
def test_a_manifest_names_only_files_in_its_folder(folder, outside, key):
    for way, path in _outside_words(key, outside).items():
        spec = {"qrels": "qrels", "runs": "runs", "published": "board.csv", key: path}
        text = "".join(f"{k} = {v!r}\n" for k, v in spec.items())
        Path("m.toml").write_text(f"[[board]]\n{text}")
        said = run("m.toml", "--format", "json", status=2)
        assert "m.toml: board 1: " in said.stderr, way
        assert "--allow-outside" in said.stderr and "hunter2" not in said.output, way
        with pytest.raises(dh.InputError, match=r"outside .*allow_outside=True"):
            dh.comparison.leaderboards("m.toml")


def test_a_manifest_may_name_files_outside_where_that_is_allowed(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("rounds")
    (elsewhere / "runs").symlink_to(folder / "runs")
    text = f"[[board]]\nqrels = '{folder / 'qrels'}'\nruns = 'runs'\nmeasures = ['MAP']\n"
    (elsewhere / "m.toml").write_text(text)
    run(elsewhere / "m.toml", status=2)
    data = json.loads(run(elsewhere / "m.toml", "--allow-outside", "--format", "json").stdout)
    assert len(data["rows"]) == len(NAMES)
    (board,) = dh.comparison.leaderboards(elsewhere / "m.toml", allow_outside=True)
    assert set(board.entries) == set(NAMES)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.run", "SECRET"),
        ("x.run", "q Q0 d 1 SECRET t"),
        ("x.run", "q Q0 d 1 1.0 t\nq Q0 SECRET 1 1.0 t\nq Q0 SECRET 1 1.0 t"),
        ("x.run", "q0 Q0 SECRET 1 nan t"),
        ("x.run", "SECRET Q0 d 1 1.0 t\n"),
        ("x.run", b"q Q0 SECRET\xff 1 1.0 t"),
        ("x.csv", "SECRET,b\n1,2"),
        ("x.csv", "query_id,doc_id,score\nq,d,1,SECRET"),
        ("x.csv", "query_id,doc_id,score\nq,SECRET,SECRET"),
        ("x.csv", 'query_id,doc_id,score\nq,"SECRET"SECRET",1'),
        ("x.tsv", "query_id\tdoc_id\tscore\nq\tSECRET"),
        ("x.json", '{"SECRET": 1}'),
        ("x.json", '{"q0": {"SECRET": null}}'),
        ("x.json", '{"q0": {"SECRET": 1, "SECRET": 1}}'),
        ("x.json", '{"q0": SECRET}'),
        ("x.jsonl", '{"query_id": "q", "doc_id": "d", "score": 1}\nSECRET'),
        ("x.jsonl", '{"query_id": "q", "doc_id": ["SECRET"], "score": 1}'),
        ("x.jsonl", '{"SECRET": "q", "doc_id": "d", "score": 1}'),
    ],
)
def test_no_stored_failure_quotes_the_file(folder, name, text):
    """Neither the board, nor its JSON, nor its page, nor what the command prints."""
    data = text if isinstance(text, bytes) else text.encode()
    Path(f"runs/{name}").write_bytes(data)
    base = ("qrels", "runs", "-m", "MAP")
    found = run(*base, "--format", "json", status=1)
    run(*base, "-o", "page.html", status=1)
    page = Path("page.html").read_text(encoding="utf-8")
    assert "SECRET" not in found.output + page + run(*base, status=1).output
    failure = json.loads(found.stdout)["failures"]["x"]
    assert failure.startswith(f"runs/{name}") and len(failure) > len(f"runs/{name}: ")
    lines = data.count(b"\n") + 1
    for number in re.findall(r", line (\d+): ", failure):
        assert 1 <= int(number) <= lines


# ---- The command ----


def test_the_command_writes_every_style(folder):
    base = ("qrels", "runs", "--published", "board.csv", "--group", "team")
    text = run(*base).stdout
    assert "4 of 4 met with nDCG@5" in text
    assert len(list(csv.DictReader(io.StringIO(run(*base, "--format", "csv").stdout)))) == 8
    data = json.loads(run(*base, "--format", "json").stdout)
    assert len(data["rows"]) == 8 and data["failures"] == {}
    assert "| alpha |" in run(*base, "--format", "markdown").stdout
    assert r"\begin{tabular}" in run(*base, "--format", "latex").stdout


def test_sort_top_and_by_choose_what_is_shown(folder):
    words = ("qrels", "runs", "--published", "board.csv", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(run(*words, "--by", "map", "--sort", "worst").stdout)))
    assert {row["measure"] for row in rows} == {"MAP"}
    values = [float(row["worst"]) for row in rows]
    assert values == sorted(values, reverse=True)
    assert len(list(csv.DictReader(io.StringIO(run(*words, "--top", "2").stdout)))) == 2
    assert "cannot sort by 'wrost'" in run(*words, "--sort", "wrost", status=2).stderr
    assert "MRR was not evaluated" in run(*words, "--by", "MRR", status=2).stderr


def test_the_official_order_is_that_of_the_board(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    published = board.ranking()["published"].to_list()
    assert published == sorted(published, reverse=True)
    assert board.ranking()["published_rank"].to_list() == sorted(board.ranking()["published_rank"])


def test_strict_turns_warnings_into_a_status(folder):
    lines = Path("board.csv").read_text().splitlines()
    Path("board.csv").write_text("\n".join([*lines, "ghost,red,0.1,0.1"]))
    run("qrels", "runs", "--published", "board.csv")
    run("qrels", "runs", "--published", "board.csv", "--strict", status=1)


def test_columns_are_given_on_the_command_line(folder):
    text = Path("board.csv").read_text().replace("ndcg@5", "quality")
    Path("board.csv").write_text(text)
    words = ("qrels", "runs", "--published", "board.csv")
    assert "--column quality=nDCG@10" in run(*words, status=2).stderr
    assert "quality: 4 of 4 met with nDCG@5" in run(*words, "--column", "quality=nDCG@5").stdout
    assert "quality" not in run(*words, "--column", "quality=").stdout
    assert "--column quality: " in run(*words, "--column", "quality", status=2).stderr


def test_runs_can_be_given_other_names(folder):
    words = ("beta=runs/alpha.run", "runs/gamma.run", "runs/d*.run", "-m", "MAP", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(run("qrels", *words).stdout)))
    assert {row["run"] for row in rows} == {"beta", "gamma", "delta"}
    own = quiet(dh.evaluate)("qrels", "runs/alpha.run", "MAP")["MAP"].expected
    assert [float(row["expected"]) for row in rows if row["run"] == "beta"] == [own]


def test_the_last_line_says_what_ties_leave_open(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    widest = board.rows.sort(board.rows["worst_rank"] - board.rows["best_rank"])[-1]
    last = run("qrels", "runs", "--published", "board.csv").stdout.splitlines()[-1]
    assert last.startswith("board.csv: Ties allow ")
    assert f"any rank from {widest['best_rank'][0]} to {widest['worst_rank'][0]} in" in last
    written = run("qrels", "runs", "--published", "board.csv", "-o", "board.html")
    assert written.stdout.splitlines() == [last]


# ---- A real round ----


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_published_numbers_of_trec_covid_are_met(shared):
    folder = shared / "trec-covid"
    tags = ["UPrrf38rrf3-r4", "covidex.r4.duot5.lr", "ILPS_UvA_big_diverse", "BITEM_BERT4"]
    board = dh.leaderboard(
        folder / "round4.qrels.gz",
        [folder / "round4" / "runs" / f"{tag}.xz" for tag in tags],
        published=folder / "round4" / "leaderboard.csv",
        columns={"bpref": None},
    )
    assert [(rule.column, rule.met, rule.of) for rule in board.rules] == [
        (column, 4, 4) for column in ("ndcg@20", "P@20", "rbp_p5", "map")
    ]
    assert repr(board.rules[2].measure) == "RBP(p=0.5, gain='scaled')"
    assert board.ranking()["published_rank"].to_list()[:2] == [1, 2]
    assert math.isclose(board.ranking()["published"][0], 0.7843)


# ---- The page ----


def test_an_html_file_is_a_page_with_every_run_and_measure(folder):
    base = ("qrels", "runs", "--published", "board.csv", "--group", "team", "--title", "Round 1")
    run(*base, "-o", "board.html")
    page = Path("board.html").read_text(encoding="utf-8")
    assert '<h2 id="board-0-title" class="unseen">Round 1</h2>' in page
    rankings = page.split('<div class="ranking">')[1:]
    assert len(rankings) == 2
    assert all(f'title="{name}"' in ranking for name in NAMES for ranking in rankings)
    assert "4 of 4 met with nDCG@5" in page
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
    assert "exists already" in run(*base, "-o", "board.html", status=2).stderr
    assert run(*base, "--format", "html").stdout == page


def test_hostile_names_are_text_on_the_page(judgements, runs):
    hostile = '<script>alert(1)</script>"><img src=x onerror=alert(2)>{{ 7 * 7 }}'
    named = {hostile if name == "alpha" else name: own for name, own in runs.items()}
    page = render_leaderboards([quiet(dh.leaderboard)(judgements, named, ["MAP"], name=hostile)])
    assert "<script>alert" not in page and "<img" not in page and "{{ 7 * 7 }}" in page
    assert page.count("<script>") == 1
    page.encode()


def test_marks_stand_where_their_values_are(judgements, runs):
    board = quiet(dh.leaderboard)(judgements, runs, ["MAP"])
    page = render_leaderboards([board])
    low, high = board.rows["worst"].min(), board.rows["best"].max()
    for row in board.rows.iter_rows(named=True):
        at = round(100 * (row["expected"] - low) / (high - low), 3)
        assert f'cx="{at}%"' in page


def test_equal_published_values_share_the_first_place_and_rank(folder):
    header, *rows = Path("board.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    same = [f"{name},{team},0e1,{ap}" for name, team, _, ap in cells]  # 0 ± 5: met by every value
    Path("board.csv").write_text("\n".join([header, *same]))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert sorted(board.winners[0].official) == sorted(NAMES)
    assert set(board.ranking()["published_rank"]) == {1}


def load_benchmark(name):
    """Import a script of benchmarks/."""
    path = Path(__file__).parents[1] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    script = importlib.util.module_from_spec(spec)
    sys.modules[name] = script  # dataclasses look there
    spec.loader.exec_module(script)
    return script


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_the_audit_is_written_from_a_folder_of_boards(
    folder, judgements, runs, monkeypatch, capsys
):
    pytest.importorskip("matplotlib")
    write_runs(folder / "trec-covid" / "round2" / "runs", runs)
    columns = {"NDCG@10": "nDCG@10", "RBP(p=.5)": "RBP(p=0.5, gain='scaled')"}
    text = published_by(judgements, runs, columns, tie_break="pytrec_eval")
    board = folder / "trec-covid" / "round2" / "leaderboard.csv"
    board.write_text(text.replace("team", "type"))
    (folder / "qrels").rename(folder / "trec-covid" / "round2.qrels")
    distribution = write_semeval_distribution(folder / "distribution")
    load_benchmark("fetch_boards").convert_semeval(distribution, folder / "semeval2016")
    (folder / "images").mkdir()
    monkeypatch.setattr("sys.argv", ["audit.py", str(folder), "--images", str(folder / "images")])
    load_benchmark("audit").main()
    page = capsys.readouterr().out
    assert "4 runs, 6 queries, 8 published numbers, of which 8 are met." in page
    assert "RBP(p=.5): 4 of 4 met with RBP(p=0.5, gain='scaled'), float32 scores" in page
    assert "| TREC-COVID, round 2 | 4 | 8 | 8 |" in page
    # In the order of the file the tied run seems perfect, and so does the search engine.
    assert "| SemEval-2016 Task 3, subtask B | 2 | 4 | 4 | 1 | 2 | 2 | 2 |" in page
    assert "tied-primary is published above sure-primary in MAP (1.0000 > 0.5000)" in page
    assert "alone has a MAP of 1.0000" in " ".join(page.split())
    assert "<!--" not in page
    for name in ("audit-round2.svg", "audit-task3b.svg"):
        assert f"(images/{name})" in page
        assert (folder / "images" / name).stat().st_size > 1000


def write_semeval_distribution(folder):
    """Write submissions, scores and gold labels as SemEval-2016 Task 3 published them.

    Of ten candidates the first is relevant. One system ties them all, the other ranks it second.
    """
    queries = [f"Q{n}" for n in range(30)]
    systems = {"tied": [1.0] * 10, "sure": [1.0, 2.0, *[0.0] * 8]}
    values = {"tied": (1.0, 100.0), "sure": (0.5, 50.0)}
    for name, scores in systems.items():
        path = folder / name / "subtask_B_primary.txt"
        path.parent.mkdir(parents=True)
        lines = [f"{q}\t{q}_R{i + 1}\t0\t{s}\ttrue" for q in queries for i, s in enumerate(scores)]
        path.write_text("\n".join(lines))
        map_, mrr = values[name]
        text = f"MAP   : {map_}\n\nALL SCORES:\t{map_:.4f}\t0.9\t{mrr:.4f}\t0.6\n"
        path.with_name(f"{path.name}.score").write_text(text)
    gold = folder / "_gold" / "SemEval2016-Task3-CQA-QL-test.xml.subtaskB.relevancy"
    gold.parent.mkdir()
    labels = [f"{q}\t{q}_R{i}\t0\t0\t{str(i == 1).lower()}" for q in queries for i in range(1, 11)]
    gold.write_text("\n".join(labels))
    return folder


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_the_distribution_of_semeval_2016_becomes_the_board(shared, tmp_path):
    """Submissions, written back as they were published, give the same runs and judgements."""
    stored = shared / "semeval2016"
    published = (stored / "task3b-published.csv").read_text().splitlines()
    for line in published[1:]:
        name, map_, mrr = line.split(",")
        team, _, which = name.rpartition("-")
        path = tmp_path / "from" / team / f"subtask_B_{which}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = read_rows(stored / "task3b" / f"{name}.run.gz")
        path.write_text("".join(f"{row[0]}\t{row[2]}\t0\t{row[4]}\ttrue\n" for row in rows))
        path.with_name(f"{path.name}.score").write_text(f"ALL SCORES:\t{map_}\t0.9\t{mrr}\t0.6\n")
    gold = tmp_path / "from" / "_gold" / "SemEval2016-Task3-CQA-QL-test.xml.subtaskB.relevancy"
    gold.parent.mkdir()
    rows = [row.split() for row in (stored / "task3b.qrels").read_text().splitlines()]
    labels = {"0": "false", "1": "true"}
    gold.write_text("".join(f"{row[0]}\t{row[2]}\t0\t0\t{labels[row[3]]}\n" for row in rows))
    load_benchmark("fetch_boards").convert_semeval(tmp_path / "from", tmp_path / "to")
    assert (tmp_path / "to" / "task3b.qrels").read_text() == (stored / "task3b.qrels").read_text()
    written = (tmp_path / "to" / "task3b-published.csv").read_text().splitlines()
    assert sorted(written) == sorted(published)
    for path in (tmp_path / "to" / "task3b").iterdir():
        rows = [row.split()[:5] for row in path.read_text().splitlines()]
        assert rows == read_rows(stored / "task3b" / f"{path.name}.gz")


def read_rows(path):
    """Return the fields of a compressed run, without its tag."""
    return [row.split()[:5] for row in gzip.decompress(path.read_bytes()).decode().splitlines()]
