"""Leaderboards: reading runs, reproducing published numbers, and the effect of ties on ranks."""

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
    """Return two runs with ties and two runs with ties only in float32."""
    made = {}
    for number, name in enumerate(NAMES):
        rng = np.random.default_rng(number + 10)
        made[name] = {
            f"q{q}": {
                # In odd runs scores differ by less than the precision of float32.
                f"d{d}": 1.0
                + int(rng.integers(0, 4)) / 4
                + (1e-12 * (5 * d % 8) if number % 2 else 0.0)
                for d in rng.permutation(DOCUMENTS).tolist()
            }
            for q in range(QUERIES)
        }
    return made


def make_board(judgements, runs, measures, **options) -> str:
    """Return the CSV of a board as a tool with these evaluation options would report it."""
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
    """Create judgements, a folder of runs and a published board."""
    monkeypatch.chdir(tmp_path)
    write_runs(tmp_path / "runs", runs)
    lines = [f"{q} 0 {d} {g}\n" for q, docs in judgements.items() for d, g in docs.items()]
    (tmp_path / "qrels").write_text("".join(lines))
    columns = {"ndcg@5": "nDCG@5", "map": "MAP"}
    text = make_board(judgements, runs, columns, tie_break="pytrec_eval")
    (tmp_path / "board.csv").write_text(text)
    return tmp_path


def run_command(*arguments: object, status: int = 0):
    result = CliRunner().invoke(cli.main, ["leaderboard", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert result.exit_code == status, result.output
    return result


# ---- Values and ranks ----


def test_rows_equal_the_summaries_of_evaluate(judgements, runs):
    board = quiet(dh.leaderboard)(judgements, runs, ["nDCG@5", "MAP"], tie_break="id_asc")
    for row in board.rows.iter_rows(named=True):
        result = quiet(dh.evaluate)(
            judgements, runs[row["run"]], row["measure"], tie_break="id_asc"
        )
        summary = result[row["measure"]]
        for view in ("expected", "std", "worst", "best", "range", "oblivious", "bias"):
            assert row[view] == getattr(summary, view)


def test_rank_intervals_match_enumeration_of_extremes(judgements, runs):
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


def test_board_does_not_depend_on_the_number_of_workers(judgements, runs):
    one, three = (
        quiet(dh.leaderboard)(judgements, runs, ["nDCG@5", "MAP"], workers=workers)
        for workers in (1, 3)
    )
    assert one.to_json() == three.to_json()


def test_summary_counts_match_compare(judgements, runs):
    board = quiet(dh.leaderboard)(judgements, runs, ["nDCG@5"], tie_break="id_desc")
    pairs = quiet(dh.compare)(judgements, runs, ["nDCG@5"], tie_break="id_desc").pairs
    summary = board.summary.row(0, named=True)
    assert summary["pairs"] == len(pairs)
    assert summary["reversed"] == pairs["reversed"].sum()
    assert summary["undecided"] == (pairs["verdict"] == "undecided: ties").sum()
    assert summary["decision_errors"] == (pairs["verdict"] == "decision error").sum()
    ranges = board.rows["range"]
    assert summary["range_above_0.01"] == (ranges > 0.01).sum()


def test_kendall_tau_matches_scipy(judgements, runs):
    stats = pytest.importorskip("scipy.stats")
    board = quiet(dh.leaderboard)(judgements, runs, ["MAP"], tie_break="id_desc")
    expected = stats.kendalltau(board.rows["oblivious"], board.rows["best"]).statistic
    assert board.summary["tau_official_best"][0] == pytest.approx(expected)
    expected = stats.kendalltau(board.rows["oblivious"], board.rows["worst"]).statistic
    assert board.summary["tau_official_worst"][0] == pytest.approx(expected)


# ---- Winners ----


def test_contested_winner_has_its_probability():
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


def test_no_winner_is_contested_without_ties():
    qrels = {"q1": {"d1": 1}}
    best, worse = {"q1": {"d1": 2.0, "d2": 1.0}}, {"q1": {"d2": 2.0, "d1": 1.0}}
    board = quiet(dh.leaderboard)(qrels, {"best": best, "worse": worse}, ["MRR"])
    assert [(w.expected, w.probability, w.contested) for w in board.winners] == [
        ("best", 1.0, False)
    ]
    assert "No winner is contested" in str(board)


def test_winner_probabilities_of_three_runs_are_exact():
    """Each run ties its relevant document with another, so its MRR is 1 or 1/2."""
    qrels = {"q1": {"d1": 1}}
    tied = {"q1": {"d1": 1.0, "d2": 1.0}}
    first = {"q1": {"d1": 2.0, "d2": 1.0}}
    board = quiet(dh.leaderboard)(qrels, {"a": tied, "b": tied, "c": tied}, ["MRR"])
    (winner,) = board.winners
    assert winner.contenders == pytest.approx({"a": 0.125, "b": 0.125, "c": 0.125})
    assert (winner.method, winner.error) == ("exact", 0)
    board = quiet(dh.leaderboard)(qrels, {"a": first, "b": tied, "c": tied}, ["MRR"])
    assert board.winners[0].contenders == pytest.approx({"a": 0.25, "b": 0, "c": 0})


def test_equal_values_share_the_first_place():
    first = {"q1": {"d1": 2.0, "d2": 1.0}}
    board = quiet(dh.leaderboard)({"q1": {"d1": 1}}, {"a": first, "b": first}, ["MRR"])
    assert board.winners[0].contenders == {"a": 0.5, "b": 0.5}


def test_winners_within_groups(folder, runs):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv", group="team")
    groups = {w.group: w for w in board.winners if w.measure == "nDCG@5"}
    assert set(groups) == {None, "red", "blue"}
    for team in ("red", "blue"):
        own = [name for name in runs if TEAMS[name] == team]
        rows = board.ranking("nDCG@5").filter(team=team).sort("expected", descending=True)
        assert groups[team].expected == rows["run"][0]
        assert groups[team].expected in own


# ---- The rule of published numbers ----


def test_rule_of_a_published_board_is_identified(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert [(rule.met, rule.of) for rule in board.rules] == [(4, 4), (4, 4)]
    assert {rule.setting for rule in board.rules} == {
        EvalSettings("id_desc", score_dtype="float32")
    }
    assert board.rows["reproduced"].all()
    pattern = r"ndcg@5: 4 of 4 .*nDCG@5, float32 .*descending document ids"
    assert re.search(pattern, str(board))


@pytest.mark.parametrize("rows", [1, 10, 1_000], ids="{} rows per part".format)
@pytest.mark.parametrize("heading", ["RBP(gain='scaled')", "bpref", "nDCG@5"])
def test_runs_in_several_files_match_runs_in_memory(
    tmp_path, monkeypatch, judgements, runs, heading, rows
):
    """The board, the identified rule and the cut lists are equal."""
    measure = dh.measures.parse_measure(heading)
    # One query that the runs lack, and one without relevant documents.
    qrels = {**judgements, "q6": {"d1": 1}, "q7": {"d0": 0, "d2": 0}}
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
    board = make_board(qrels, in_memory, {heading: measure}, tie_break="pytrec_eval")
    (tmp_path / "board.csv").write_text(board)
    monkeypatch.setattr(folders, "PART_ROWS", rows)
    if rows < 100:
        monkeypatch.setattr(RunFolder, "whole", None)  # reading a whole run would fail
    options = {"published": tmp_path / "board.csv", "columns": {heading: repr(measure)}}
    actual = quiet(dh.leaderboard)(qrels, {name: tmp_path / name for name in runs}, **options)
    expected = quiet(dh.leaderboard)(qrels, in_memory, **options)
    assert actual.rows.equals(expected.rows) and actual.summary.equals(expected.summary)
    assert actual.rules == expected.rules and actual.rules[0].met == 4
    assert {e.grid for e in actual.entries.values()} == {e.grid for e in expected.entries.values()}
    assert (actual.rows["cut_lists"] > 0).all()


@pytest.mark.parametrize("rule", ["id_asc", "id_desc", "input"])
def test_every_tie_rule_is_identified(folder, judgements, runs, rule):
    text = make_board(judgements, runs, {"ndcg@5": "nDCG@5", "map": "MAP"}, tie_break=rule)
    Path("board.csv").write_text(text)
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert {identified.setting.tie_break for identified in board.rules} == {rule}
    assert all(identified.met == identified.of for identified in board.rules)


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
def test_variant_of_a_measure_is_identified(folder, judgements, runs, heading, variant):
    text = make_board(judgements, runs, {heading: variant}, tie_break="id_desc")
    Path("board.csv").write_text(text)
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    (rule,) = board.rules
    assert (repr(rule.measure), rule.met) == (repr(dh.measures.parse_measure(variant)), 4)
    assert board.ranking(heading)["measure"][0] == repr(rule.measure)


def test_columns_with_different_rules_give_a_note(folder, judgements, runs):
    descending = make_board(judgements, runs, {"ndcg@5": "nDCG@5"}, tie_break="id_desc")
    ascending = make_board(judgements, runs, {"map": "MAP"}, tie_break="id_asc")
    pairs = zip(descending.splitlines(), ascending.splitlines(), strict=True)
    both = [f"{one},{other.split(',')[-1]}" for one, other in pairs]
    Path("board.csv").write_text("\n".join(both) + "\n")
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert [rule.setting.tie_break for rule in board.rules] == ["id_desc", "id_asc"]
    assert board.rows["reproduced"].all()
    assert any("2 different rankings; ndcg@5: " in note for note in board.notes)
    assert any(re.fullmatch("MAP: .*ascending document ids", note) for note in board.notes)


def test_unreproduced_numbers_give_a_warning(folder):
    lines = Path("board.csv").read_text().splitlines()
    name, team, _, ap = lines[1].split(",")
    lines[1] = f"{name},{team},0.1234,{ap}"
    Path("board.csv").write_text("\n".join(lines))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert [(rule.met, rule.of) for rule in board.rules] == [(3, 4), (4, 4)]
    (warning,) = [warning for warning in board.warnings if warning.startswith("ndcg@5: ")]
    assert "1 of 4 published numbers" in warning and warning.endswith(f": {name}")
    assert board.ranking().filter(run=name)["reproduced"].to_list() == [False]


def write_unknown_board(judgements, runs) -> None:
    """Write a board whose "nDCG@5" matches no variant, and whose MAP matches one."""
    lines = ["tag,team,ndcg@5,map"]
    for name, own in runs.items():
        result = quiet(dh.evaluate)(judgements, own, ["nDCG@5", "Recall@3", "MAP"])
        mixed = 0.37 * result["nDCG@5"].oblivious + 0.61 * result["Recall@3"].oblivious
        lines.append(f"{name},{TEAMS[name]},{mixed:.6f},{result['MAP'].oblivious:.4f}")
    Path("board.csv").write_text("\n".join(lines) + "\n")


def test_unknown_definition_gives_no_tie_statistics(folder, judgements, runs):
    """Numbers of another definition may differ in order for reasons other than ties."""
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
    (warning,) = [w for w in board.warnings if w.startswith("ndcg@5: 4 of 4 published numbers")]
    assert "definition is unknown" in warning


def test_unknown_definition_is_shown_in_every_format(folder, judgements, runs):
    write_unknown_board(judgements, runs)
    base = ("qrels", "runs", "--published", "board.csv", "--group", "team")
    text = run_command(*base).stdout
    row = next(line for line in text.splitlines() if line.startswith("│ nDCG@5"))
    assert [cell.strip() for cell in row.split("│")].count("–") >= 3  # reversed, errors, τ
    assert "definition unknown" in text
    assert "nDCG@5 is unknown: 0 of 4" in text.splitlines()[-1]
    run_command(*base, "-o", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "nDCG@5 is unknown: 0 of 4" in page
    assert "is published above" not in page.replace("in MAP (", "")
    data = json.loads(run_command(*base, "--format", "json").stdout)
    assert data["summary"][0]["reversed"] is None
    assert data["rules"][0]["known"] is False


def test_unreproduced_run_is_excluded_from_the_published_order(folder, judgements, runs):
    """With one wrong number the other runs are compared, and no official winner is named."""
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


def test_given_rule_with_few_matches_gives_no_tie_statistics(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv", tie_break="id_asc")
    for row in board.summary.to_dicts():
        is_known = 2 * row["met"] > row["published"]
        assert (row["reversed"] is not None) == is_known
    assert None in board.summary["reversed"].to_list()


def make_decision_errors(n: int) -> tuple[dict, dict]:
    """Return judgements and n pairs of runs that are in the wrong order under input order."""
    qrels = {f"q{i}": {"d0": 1} for i in range(40)}
    runs: dict[str, dict] = {}
    for k in range(n):
        docs = [f"d{i}" for i in range(12)]
        # The relevant document d0 is first in the input.
        runs[f"tied{k}"] = {q: dict.fromkeys(docs, 1.0) for q in qrels}
        second = ["d1", *docs[:1], *docs[2:]]
        runs[f"sure{k}"] = {q: {d: -float(i) for i, d in enumerate(second)} for q in qrels}
    return qrels, runs


def test_decision_error_names_runs_and_values():
    qrels, runs = make_decision_errors(1)
    published = {"tied0": {"MRR": 1.0}, "sure0": {"MRR": "0.5"}}
    board = quiet(dh.leaderboard)(qrels, runs, published=published)
    (error,) = board.decision_errors
    assert (error.above, error.below, error.rank) == ("tied0", "sure0", 1)
    mean = sum(1 / i for i in range(1, 13)) / 12
    assert error.official == (1.0, 0.5) and error.expected == pytest.approx((mean, 0.5))
    message = str(error)
    pattern = r"tied0 .*published above sure0 in MRR \(1\.0000 > 0\.5000\)"
    assert re.fullmatch(rf"{pattern}.* \({mean:.4f} < 0\.5000\)", message)
    assert message in str(board) and message in describe_leaderboard(board)
    page = html.unescape(render_leaderboards([board]))
    assert page.count(message) >= 2  # in the findings and in the list
    assert board.to_dict()["decision_errors"][0]["text"] == message
    computed = quiet(dh.leaderboard)(qrels, runs, ["MRR"])
    pattern = r"tied0 .*above sure0 in MRR \(oblivious 1\.0000 > 0\.5000\)"
    assert re.search(pattern, str(computed))


def test_many_decision_errors_are_shortened_only_in_text():
    qrels, runs = make_decision_errors(3)
    board = quiet(dh.leaderboard)(qrels, runs, ["MRR", "Recall@5"])
    errors = board.decision_errors
    assert len(errors) == board.summary["decision_errors"].sum() > 6
    assert len(board.to_dict()["decision_errors"]) == len(errors)
    ranks = [error.rank for error in errors]
    assert ranks == sorted(ranks)
    assert f"{len(errors) - 5} more" in str(board)
    assert f"{len(errors) - 1} more decision errors" in describe_leaderboard(board)


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_decision_errors_of_semeval_2016(shared):
    folder = shared / "semeval2016"
    board = dh.leaderboard(
        folder / "task3b.qrels", folder / "task3b", published=folder / "task3b-published.csv"
    )
    assert [(rule.met, rule.of) for rule in board.rules] == [(28, 28), (28, 28)]
    pattern = (
        r"UniMelb-primary .*published above overfitting-primary in MAP "
        r"\(0\.7020 > 0\.6968\).* \(0\.6533 < 0\.6968\)"
    )
    assert any(re.fullmatch(pattern, str(error)) for error in board.decision_errors)
    assert str(board.decision_errors[0]) in describe_leaderboard(board)


def test_undetermined_rule_is_reported_as_undetermined(folder, judgements):
    """Without ties every tie rule and score precision gives the same numbers."""
    runs = {
        name: {q: {f"d{(d * 3 + i) % 8}": float(d) for d in range(8)} for q in judgements}
        for i, name in enumerate(NAMES)
    }
    write_runs(folder / "runs", runs)
    Path("board.csv").write_text(make_board(judgements, runs, {"ndcg@5": "nDCG@5"}))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    (rule,) = board.rules
    assert rule.known and rule.setting == EvalSettings() and len(rule.candidates) > 2
    assert rule.undetermined == ["score_dtype", "tie_break"]
    assert f"({len(rule.candidates)} settings agree)" in str(rule)
    assert "descending" not in str(rule)
    assert rule.to_dict()["undetermined"] == rule.undetermined


def test_settings_shared_by_all_candidates_are_determined(folder, judgements, runs):
    """All ties are exact, so the numbers determine the tie rule but not the precision."""
    tied = {name: own for i, (name, own) in enumerate(runs.items()) if i % 2 == 0}
    for name in runs.keys() - tied:
        Path(f"runs/{name}.run").unlink()
    text = make_board(judgements, tied, {"ndcg@5": "nDCG@5", "map": "MAP"}, tie_break="id_asc")
    Path("board.csv").write_text(text)
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    for rule in board.rules:
        assert rule.undetermined == ["score_dtype"]
        assert re.search("ascending document ids; .*precision not determined", str(rule))


def test_equivalent_query_selections_are_not_candidates(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert {s.queries for rule in board.rules for s in rule.candidates} == {"judged"}


def test_given_rule_is_used_without_a_search(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv", tie_break="id_asc")
    assert board.rules == []
    assert set(board.settings.values()) == {EvalSettings("id_asc")}
    assert not board.rows["reproduced"].all()


def test_variants_vary_p_only_if_the_heading_omits_it():
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
def test_published_numbers_keep_their_precision(tmp_path, text, value, unit):
    board = read_published(board_file(tmp_path, f"tag,ndcg@10\na,{text}\n"))
    assert board.columns[0].numbers.row(0) == pytest.approx((value, unit, 1))


def test_values_above_1_are_percentages_of_bounded_measures(tmp_path):
    headings = ["RBP(gain='linear')", "RBP", "DCG@5", "Hits@5", "nDCG@5"]
    text = "tag;" + ";".join(headings) + "\na" + ";1.25" * len(headings) + "\n"
    board = read_published(board_file(tmp_path, text.replace(";", ",")))
    values = [column.numbers["published"][0] for column in board.columns]
    assert values == pytest.approx([1.25, 0.0125, 1.25, 1.25, 0.0125])


@pytest.mark.parametrize("number", ["1e999999", "1" * 100_000, "0." + "1" * 100_000, "-1e400"])
def test_out_of_range_number_error_names_its_location(tmp_path, number):
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
def test_published_board_of_invalid_type_is_rejected(board):
    with pytest.raises(dh.InputError, match="the published board: "):
        read_published(board)


def test_numbers_are_compared_at_their_own_precision(folder, judgements, runs):
    lines = Path("board.csv").read_text().splitlines()
    name, team, ndcg, ap = lines[1].split(",")
    lines[1] = f"{name},{team},{float(ndcg):.2f},{ap}"
    Path("board.csv").write_text("\n".join(lines))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert board.rules[0].met == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tag,ndgc@10\na,0.5\n", r"column 'ndgc@10' .*not a measure.*nDCG.*--column ndgc@10="),
        ("tag,team\na,x\n", "no heading is a measure.*'tag', 'team'"),
        ("tag,map\na,0.5\na,0.6\n", "entry 2 .*name 'a' .*'tag'"),
        ("tag,map\na,0.5\nb,0.6\nc,good\n", r"entry 3 \(c\) .*'good' .*column 'map'"),
        ("tag,map\n,0.5\n", "entry 1 .*name '' .*'tag'"),
        ("tag,map\n", r"\.csv: there is no run"),
    ],
)
def test_invalid_board_is_rejected_with_a_reason(tmp_path, text, message):
    with pytest.raises(dh.InputError, match=message):
        read_published(board_file(tmp_path, text))


def test_columns_can_be_mapped_or_skipped(tmp_path):
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
    assert board.ranking()["run"][-1] == name  # runs without a number come last


def test_board_without_numbers_of_the_runs_requires_measures(folder):
    Path("board.csv").write_text("tag,map\nalpha,-\nbeta,\nghost,0.5\n")
    message = run_command("qrels", "runs", "--published", "board.csv", status=2).stderr
    assert "board.csv: " in message and "published number" in message and "(-m)" in message
    assert "alpha" in run_command("qrels", "runs", "--published", "board.csv", "-m", "MAP").stdout


def test_unmatched_runs_give_warnings(folder):
    lines = Path("board.csv").read_text().splitlines()
    absent, *rest = lines[1:]
    Path("board.csv").write_text("\n".join([lines[0], *rest, "ghost,red,0.1,0.1"]))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    name = absent.split(",")[0]
    assert f"1 run not in the board: {name}" in board.warnings
    assert any(re.fullmatch("1 run .*without a run file: ghost", w) for w in board.warnings)
    assert board.ranking().filter(run=name)["published"].to_list() == [None]
    line = next(line for line in str(board).splitlines() if f" {name} " in line)
    assert " no " not in line and " yes " not in line


def test_run_is_matched_to_the_board_by_its_tag(folder):
    Path("runs/alpha.run").rename("runs/submission-17.txt")
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    row = board.ranking().filter(run="submission-17").row(0, named=True)
    assert row["reproduced"] is True
    assert row["team"] == "red"


def test_run_name_with_a_dot_is_matched_as_a_whole(folder, runs):
    write_runs(folder / "runs", {"alpha.v2": runs["beta"]})
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert "1 run not in the board: alpha.v2" in board.warnings


def test_two_files_with_one_tag_are_rejected(folder):
    Path("runs/copy.run").write_text(Path("runs/alpha.run").read_text())
    with pytest.raises(dh.InputError, match=r"copy and alpha .*'alpha' of board\.csv"):
        quiet(dh.leaderboard)("qrels", "runs", published="board.csv")


def test_board_without_common_runs_is_rejected(folder):
    Path("board.csv").write_text("tag,map\nother,0.5\n")
    with pytest.raises(dh.InputError, match=r"no run is in board\.csv: .*'alpha'.*'other'"):
        quiet(dh.leaderboard)("qrels", "runs", published="board.csv")


def test_unknown_group_error_lists_the_known_groups(folder):
    with pytest.raises(dh.InputError, match=r"no column of words 'squad'.*: 'team'"):
        quiet(dh.leaderboard)("qrels", "runs", published="board.csv", group="squad")
    with pytest.raises(dh.InputError, match=r"no column of words 'team'.*: none"):
        quiet(dh.leaderboard)("qrels", "runs", ["MAP"], group="team")


# ---- Runs ----


def test_runs_can_be_files_folders_and_patterns(folder):
    assert find_runs(["runs/alpha.run", "runs/*.run", "runs"]).keys() == set(NAMES)


def test_judgements_are_not_accepted_as_runs():
    with pytest.raises(dh.InputError, match=r"not Judgements.*leaderboard\(qrels, runs\)"):
        dh.leaderboard({"a": {"d": 1.0}}, dh.read_qrels({"q": {"d": 1}}))


def test_existing_path_with_brackets_is_not_a_pattern(folder):
    Path("runs/a[lph]a.run").write_text(Path("runs/alpha.run").read_text())
    assert list(find_runs(["runs/a[lph]a.run"])) == ["a[lph]a"]
    Path("runs/a[lph]a.run").unlink()
    with pytest.raises(dh.InputError, match=r"runs/x\[yz\]\.run: no file"):
        find_runs(["runs/x[yz].run"])


def test_run_name_that_is_not_utf_8_is_escaped(folder):
    Path("runs/alpha.run").rename("runs/\udc80alpha.run")
    board = quiet(dh.leaderboard)("qrels", "runs", ["MAP"])
    assert "\\x80alpha" in board.entries
    with pytest.raises(dh.InputError, match="cannot be written as UTF-8"):
        quiet(dh.leaderboard)("qrels", {"\udc80": "runs/beta.run"}, ["MAP"])


def test_qrels_and_board_matched_by_a_pattern_are_not_runs(folder):
    for name in NAMES:
        Path(f"runs/{name}.run").rename(f"{name}.run")
    board = quiet(dh.leaderboard)("qrels", "*", ["MAP"], published="board.csv")
    assert set(board.entries) == set(NAMES)
    assert not board.failures


def test_unreadable_run_does_not_stop_the_others(folder):
    intact = lzma.compress(Path("runs/beta.run").read_bytes())
    Path("runs/beta.run").write_bytes(intact[: len(intact) // 2])
    result = run_command("qrels", "runs", "--published", "board.csv", status=1)
    assert re.search(r"beta was not evaluated: runs/beta\.run: .*damaged", result.stderr)
    assert "alpha" in result.stdout and "Not evaluated:" in result.stdout
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert list(board.failures) == ["beta"]
    assert [(rule.met, rule.of) for rule in board.rules] == [(3, 3), (3, 3)]


def test_missing_run_file_is_reported_as_a_failure(folder):
    result = run_command("qrels", "runs/alpha.run", "runs/nobody.run", "-m", "MAP", status=1)
    assert re.search(r"nobody was not evaluated: runs/nobody\.run: .*no such", result.stderr)
    assert "1 run" in result.stdout


def test_board_of_one_run_has_no_pairs(folder):
    board = quiet(dh.leaderboard)("qrels", "runs/alpha.run", ["MAP"])
    assert board.summary["pairs"].to_list() == [0]
    assert board.rows.select("rank", "best_rank", "worst_rank").row(0) == (1, 1, 1)
    assert board.summary["tau_official_expected"].to_list() == [None]


def test_error_if_no_run_can_be_read(folder):
    for path in Path("runs").iterdir():
        path.write_text("nonsense")
    assert "no run could be evaluated" in run_command("qrels", "runs", status=2).stderr
    assert (
        "no run could be evaluated"
        in run_command("qrels", "runs", "--published", "board.csv", status=2).stderr
    )


# ---- Manifests ----


def test_manifest_with_several_boards(folder):
    Path("m.toml").write_text(
        '[[board]]\nname = "first"\nqrels = "qrels"\nruns = "runs"\npublished = "board.csv"\n'
        '[[board]]\nname = "second"\nqrels = "qrels"\nruns = ["runs/a*.run"]\nmeasures = ["MRR"]\n'
    )
    result = run_command("m.toml", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {row["board"] for row in rows} == {"first", "second"}
    assert {row["measure"] for row in rows if row["board"] == "second"} == {"MRR"}
    assert len(json.loads(run_command("m.toml", "--format", "json").stdout)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_invalid_manifest_is_rejected_with_a_reason(tmp_path, text, message):
    path = tmp_path / "m.toml"
    path.write_text(text)
    with pytest.raises(dh.InputError) as error:
        read_manifest(path)
    assert str(error.value).startswith(f"{path}: ") and message in str(error.value)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("name", ["r" * 5000, "r" * 5000 + "*", "a\0b"])
def test_invalid_file_names_are_rejected(folder, name):
    with pytest.raises(dh.InputError):
        quiet(dh.leaderboard)("qrels", [name], ["MAP"])


TEXTS = st.one_of(
    st.sampled_from(
        ["qrels", "runs", "runs/*", "board.csv", ".", "..", "/", "*", "**", "~", "-", ""]
    ),
    st.sampled_from(["MAP", "nDCG@5", "x" * 300, "a/../qrels", "runs/alpha.run/x", "[", "\0"]),
    st.text(st.characters(codec="utf-8"), max_size=8),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.fixed_dictionaries(
        {"qrels": st.one_of(st.just("qrels"), TEXTS)},
        optional={
            "runs": st.one_of(TEXTS, st.lists(TEXTS, max_size=2)),
            "published": TEXTS,
            "name": TEXTS,
            "measures": st.lists(TEXTS, max_size=2),
        },
    )
)
def test_any_manifest_gives_boards_or_an_error_with_its_name(folder, board):
    """Strings are written as JSON, which is valid for basic strings of TOML."""
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
    """Create a file that is not a run, outside the folder of the manifest."""
    path = tmp_path_factory.mktemp("outside") / "secret.txt"
    path.write_text("hunter2 password\n")
    return path


def make_outside_paths(key: str, outside: Path) -> dict[str, str]:
    """Return paths that lead out of the folder of a manifest."""
    Path("link").symlink_to(outside)
    Path("linked").symlink_to(outside.parent)
    Path("with_link").mkdir()
    Path("with_link/a.run").symlink_to(outside)
    places = {
        "absolute": str(outside),
        "up": f"../{Path.cwd().name}/qrels",
        "link": "link",
        "through a linked folder": f"linked/{outside.name}",
    }
    if key == "runs":
        places |= {"folder": "with_link", "linked folder": "linked", "pattern": "*/secret*"}
        places["pattern up"] = "../outside*/*"
    return places


@pytest.mark.parametrize("key", ["qrels", "runs", "published"])
def test_manifest_cannot_name_files_outside_its_folder(folder, outside, key):
    for way, path in make_outside_paths(key, outside).items():
        spec = {"qrels": "qrels", "runs": "runs", "published": "board.csv", key: path}
        text = "".join(f"{k} = {v!r}\n" for k, v in spec.items())
        Path("m.toml").write_text(f"[[board]]\n{text}")
        result = run_command("m.toml", "--format", "json", status=2)
        assert "m.toml: board 1: " in result.stderr, way
        assert "--allow-outside" in result.stderr and "hunter2" not in result.output, way
        with pytest.raises(dh.InputError, match=r"outside .*allow_outside=True"):
            dh.comparison.leaderboards("m.toml")


def test_allow_outside_permits_files_outside_the_folder(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("rounds")
    (elsewhere / "runs").symlink_to(folder / "runs")
    text = f"[[board]]\nqrels = '{folder / 'qrels'}'\nruns = 'runs'\nmeasures = ['MAP']\n"
    (elsewhere / "m.toml").write_text(text)
    run_command(elsewhere / "m.toml", status=2)
    data = json.loads(
        run_command(elsewhere / "m.toml", "--allow-outside", "--format", "json").stdout
    )
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
def test_failures_do_not_quote_file_contents(folder, name, text):
    """This holds for the board, its JSON, its page and the output of the command."""
    data = text if isinstance(text, bytes) else text.encode()
    Path(f"runs/{name}").write_bytes(data)
    base = ("qrels", "runs", "-m", "MAP")
    result = run_command(*base, "--format", "json", status=1)
    run_command(*base, "-o", "page.html", status=1)
    page = Path("page.html").read_text(encoding="utf-8")
    assert "SECRET" not in result.output + page + run_command(*base, status=1).output
    failure = json.loads(result.stdout)["failures"]["x"]
    assert failure.startswith(f"runs/{name}") and len(failure) > len(f"runs/{name}: ")
    lines = data.count(b"\n") + 1
    for number in re.findall(r", line (\d+): ", failure):
        assert 1 <= int(number) <= lines


# ---- The command ----


def test_command_writes_every_format(folder):
    base = ("qrels", "runs", "--published", "board.csv", "--group", "team")
    text = run_command(*base).stdout
    assert "4 of 4 met with nDCG@5" in text
    assert len(list(csv.DictReader(io.StringIO(run_command(*base, "--format", "csv").stdout)))) == 8
    data = json.loads(run_command(*base, "--format", "json").stdout)
    assert len(data["rows"]) == 8 and data["failures"] == {}
    assert "| alpha |" in run_command(*base, "--format", "markdown").stdout
    assert r"\begin{tabular}" in run_command(*base, "--format", "latex").stdout


def test_sort_top_and_by_options(folder):
    arguments = ("qrels", "runs", "--published", "board.csv", "--format", "csv")
    rows = list(
        csv.DictReader(
            io.StringIO(run_command(*arguments, "--by", "map", "--sort", "worst").stdout)
        )
    )
    assert {row["measure"] for row in rows} == {"MAP"}
    values = [float(row["worst"]) for row in rows]
    assert values == sorted(values, reverse=True)
    assert len(list(csv.DictReader(io.StringIO(run_command(*arguments, "--top", "2").stdout)))) == 2
    assert "cannot sort by 'wrost'" in run_command(*arguments, "--sort", "wrost", status=2).stderr
    assert "MRR was not evaluated" in run_command(*arguments, "--by", "MRR", status=2).stderr


def test_official_order_follows_the_published_board(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    published = board.ranking()["published"].to_list()
    assert published == sorted(published, reverse=True)
    assert board.ranking()["published_rank"].to_list() == sorted(board.ranking()["published_rank"])


def test_strict_exits_with_1_on_warnings(folder):
    lines = Path("board.csv").read_text().splitlines()
    Path("board.csv").write_text("\n".join([*lines, "ghost,red,0.1,0.1"]))
    run_command("qrels", "runs", "--published", "board.csv")
    run_command("qrels", "runs", "--published", "board.csv", "--strict", status=1)


def test_column_option_maps_headings(folder):
    text = Path("board.csv").read_text().replace("ndcg@5", "quality")
    Path("board.csv").write_text(text)
    arguments = ("qrels", "runs", "--published", "board.csv")
    assert "--column quality=nDCG@10" in run_command(*arguments, status=2).stderr
    assert (
        "quality: 4 of 4 met with nDCG@5"
        in run_command(*arguments, "--column", "quality=nDCG@5").stdout
    )
    assert "quality" not in run_command(*arguments, "--column", "quality=").stdout
    assert "--column quality: " in run_command(*arguments, "--column", "quality", status=2).stderr


def test_runs_can_be_renamed_on_the_command_line(folder):
    names = ("beta=runs/alpha.run", "runs/gamma.run", "runs/d*.run")
    result = run_command("qrels", *names, "-m", "MAP", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {row["run"] for row in rows} == {"beta", "gamma", "delta"}
    own = quiet(dh.evaluate)("qrels", "runs/alpha.run", "MAP")["MAP"].expected
    assert [float(row["expected"]) for row in rows if row["run"] == "beta"] == [own]


def test_last_line_summarises_the_effect_of_ties(folder):
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    widest = board.rows.sort(board.rows["worst_rank"] - board.rows["best_rank"])[-1]
    last = run_command("qrels", "runs", "--published", "board.csv").stdout.splitlines()[-1]
    assert last.startswith("board.csv: Ties allow ")
    assert f"any rank from {widest['best_rank'][0]} to {widest['worst_rank'][0]} in" in last
    written = run_command("qrels", "runs", "--published", "board.csv", "-o", "board.html")
    assert written.stdout.splitlines() == [last]


# ---- A real round ----


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_published_numbers_of_trec_covid_are_reproduced(shared):
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


def test_html_page_lists_every_run_and_measure(folder):
    base = ("qrels", "runs", "--published", "board.csv", "--group", "team", "--title", "Round 1")
    run_command(*base, "-o", "board.html")
    page = Path("board.html").read_text(encoding="utf-8")
    assert '<h2 id="board-0-title" class="unseen">Round 1</h2>' in page
    rankings = page.split('<div class="ranking">')[1:]
    assert len(rankings) == 2
    assert all(f'title="{name}"' in ranking for name in NAMES for ranking in rankings)
    assert "4 of 4 met with nDCG@5" in page
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
    assert "exists already" in run_command(*base, "-o", "board.html", status=2).stderr
    assert run_command(*base, "--format", "html").stdout == page


def test_html_in_names_is_escaped(judgements, runs):
    hostile = '<script>alert(1)</script>"><img src=x onerror=alert(2)>{{ 7 * 7 }}'
    named = {hostile if name == "alpha" else name: own for name, own in runs.items()}
    page = render_leaderboards([quiet(dh.leaderboard)(judgements, named, ["MAP"], name=hostile)])
    assert "<script>alert" not in page and "<img" not in page and "{{ 7 * 7 }}" in page
    assert page.count("<script>") == 1
    page.encode()


def test_marks_are_at_the_positions_of_their_values(judgements, runs):
    board = quiet(dh.leaderboard)(judgements, runs, ["MAP"])
    page = render_leaderboards([board])
    low, high = board.rows["worst"].min(), board.rows["best"].max()
    for row in board.rows.iter_rows(named=True):
        at = round(100 * (row["expected"] - low) / (high - low), 3)
        assert f'cx="{at}%"' in page


def test_equal_published_values_share_the_first_rank(folder):
    header, *rows = Path("board.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    same = [f"{name},{team},0e1,{ap}" for name, team, _, ap in cells]  # 0 ± 5 matches every value
    Path("board.csv").write_text("\n".join([header, *same]))
    board = quiet(dh.leaderboard)("qrels", "runs", published="board.csv")
    assert sorted(board.winners[0].official) == sorted(NAMES)
    assert set(board.ranking()["published_rank"]) == {1}


def load_benchmark(name):
    """Import a script of benchmarks/."""
    path = Path(__file__).parents[1] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    script = importlib.util.module_from_spec(spec)
    sys.modules[name] = script  # dataclasses look up their module there
    spec.loader.exec_module(script)
    return script


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_audit_page_of_a_folder_of_boards(folder, judgements, runs, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    write_runs(folder / "trec-covid" / "round2" / "runs", runs)
    columns = {"NDCG@10": "nDCG@10", "RBP(p=.5)": "RBP(p=0.5, gain='scaled')"}
    text = make_board(judgements, runs, columns, tie_break="pytrec_eval")
    board = folder / "trec-covid" / "round2" / "leaderboard.csv"
    board.write_text(text.replace("team", "type"))
    (folder / "qrels").rename(folder / "trec-covid" / "round2.qrels")
    distribution = write_semeval_distribution(folder / "distribution")
    load_benchmark("fetch_boards").convert_semeval(distribution, folder / "semeval2016")
    (folder / "images").mkdir()
    monkeypatch.setattr("sys.argv", ["audit.py", str(folder), "--images", str(folder / "images")])
    load_benchmark("audit").main()
    page = capsys.readouterr().out
    assert re.search(r"\b4 runs, 6 queries, 8 published numbers, .*\b8 are met", page)
    assert "RBP(p=.5): 4 of 4 met with RBP(p=0.5, gain='scaled'), float32 scores" in page
    assert "| TREC-COVID, round 2 | 4 | 8 | 8 |" in page
    # In input order the run with ties gets a perfect value.
    assert "| SemEval-2016 Task 3, subtask B | 2 | 4 | 4 | 1 | 2 | 2 | 2 |" in page
    pattern = r"tied-primary .*above sure-primary in MAP \(1\.0000 > 0\.5000\)"
    assert re.search(pattern, page)
    assert "alone has a MAP of 1.0000" in " ".join(page.split())
    assert "<!--" not in page
    for name in ("audit-round2.svg", "audit-task3b.svg"):
        assert f"(images/{name})" in page
        assert (folder / "images" / name).stat().st_size > 1000


def write_semeval_distribution(folder):
    """Write submissions, scores and gold labels as SemEval-2016 Task 3 published them.

    The first of ten candidates is relevant. One system ties all; the other ranks it second.
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
def test_semeval_2016_distribution_is_converted_to_a_board(shared, tmp_path):
    """Runs written in the published format are converted back to the same runs and judgements."""
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
