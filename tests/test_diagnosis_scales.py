"""How fine must a scale of grades be: against enumeration, and against finer scores themselves."""

from __future__ import annotations

import itertools
import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from quiet import quiet

import deadheat as dh
from deadheat.cli import main
from deadheat.demo import recordings
from deadheat.diagnosis.what_if import find_scale, to_levels

GRADED = {
    "0 to 3": ([0, 1, 2, 3], 4),
    "one of 1 to 5 is not used": ([1, 2, 4, 5], 5),
    "halves": ([0.5, 1, 2.5], 5),
    "tenths": (np.arange(11, dtype=np.float32) / np.float32(10), 11),
    "fives of a hundred": (range(0, 101, 5), 21),
    "below zero": ([-1, 0, 1], 3),
}
NOT_GRADED = {
    "three decimals": [0.125, 0.25, 0.5],
    "more than 0 to 100": [0, 1, 101],
    "one value": [1],
    "no even steps that are few": [0.01, 0.02, 9],
    "no number of decimals": [1 / 3, 2 / 3],
    "beyond whole float64 numbers": [0, 2.0**60],
}


@pytest.mark.parametrize(("values", "levels"), GRADED.values(), ids=GRADED)
def test_grades_are_found(values, levels):
    values = np.asarray(values)
    scale = find_scale(values if values.dtype.kind == "f" else values + 0.0, 1_000, 900)
    assert scale.levels == levels
    assert scale.used == len(values)


@pytest.mark.parametrize("values", NOT_GRADED.values(), ids=NOT_GRADED)
def test_other_scores_are_no_grades(values):
    assert find_scale(np.array(values, float), 1_000, 900) is None


def test_scores_that_hardly_tie_are_no_grades():
    values = np.arange(50.0)
    assert find_scale(values, 1_000, 900) is not None
    assert find_scale(values, 1_000, 20) is None  # ranks, say
    assert find_scale(values, 60, 50) is None


RUN = {"q": {"a": 1, "b": 1, "c": 1, "d": 0, "e": 0, "f": 0}, "p": {"a": 1, "b": 1, "c": 0}}
QRELS = {"q": {"b": 1, "e": 1}, "p": {"b": 1}}


def test_refining_agrees_with_every_way_to_split_the_grades():
    measures = ["MRR", "nDCG@3", "MAP"]
    run, qrels = {"q": RUN["q"]}, {"q": QRELS["q"]}
    given = dh.evaluate(qrels, run, measures)
    split = []
    for parts in itertools.product(range(2), repeat=len(run["q"])):
        pairs = zip(run["q"].items(), parts, strict=True)
        finer = {"q": {document: 2 * grade + part for (document, grade), part in pairs}}
        split.append(dh.evaluate(qrels, finer, measures))
    found = dh.diagnose(qrels, run, measures, levels=[4]).effect.scales
    assert [(row.levels, row.how) for row in found[3:]] == [(4, "refined")] * 3
    for row in found[3:]:
        before, ways = given[row.measure], [result[row.measure] for result in split]
        assert min(way.worst for way in ways) >= before.worst
        assert max(way.best for way in ways) <= before.best
        assert row.expected == before.expected
        assert np.mean([way.expected for way in ways]) == pytest.approx(before.expected)
        margin = row.bound - row.range
        assert 0 < margin < 0.2
        assert abs(row.range - np.mean([way.range for way in ways])) <= 2 * margin


def rounded(recording, levels):
    """The scores of the FP32 model on a scale of so many whole grades."""
    scores = recording.scores["fp32"]
    step = np.ptp(scores.astype(float)) / (levels - 1)
    grades = np.rint((to_levels(scores, levels) - scores.min()) / step)
    return recording.pairs.select("query_id", "doc_id", pl.Series("score", grades))


@pytest.mark.parametrize(
    "recording",
    [recordings()[name] for name in ("softmax", "sigmoid", "product")],
    ids=lambda r: r.name,
)
def test_what_four_grades_foretell_is_what_finer_scores_do(recording):
    qrels = recording.qrels
    found = quiet(dh.diagnose)(qrels, rounded(recording, 4), "nDCG@10", levels=[12, 100])
    assert [row.how for row in found.effect.scales] == ["as given", "refined", "refined"]
    for row, slack in zip(found.effect.scales, (0, 0.2, 1.5), strict=True):
        finer = quiet(dh.evaluate)(qrels, rounded(recording, row.levels), "nDCG@10")["nDCG@10"]
        assert finer.range / (1 + slack) - 1e-12 <= row.range <= finer.range * (1 + slack) + 1e-12


def test_finer_scores_are_rounded():
    recording = recordings()["softmax"]
    qrels, run = recording.qrels, recording.runs["fp32"]
    found = dh.diagnose(qrels, run, ["nDCG@10", "MRR@10"], levels=(101, 4, 4)).effect.scales
    assert [(row.levels, row.how) for row in found] == [
        *[(4, "rounded")] * 2,
        *[(101, "rounded")] * 2,
    ]
    for row in found:
        same = quiet(dh.evaluate)(qrels, rounded(recording, row.levels), row.measure)[row.measure]
        assert (row.expected, row.range) == pytest.approx((same.expected, same.range))
        assert row.bound == row.range


def test_scores_that_are_no_grades_are_put_on_no_scale_unasked():
    recording = recordings()["softmax"]
    diagnosis = dh.diagnose(recording.qrels, recording.runs["native"], "nDCG@10")
    assert diagnosis.scale is None
    assert diagnosis.effect.scales == []


def test_draws_without_a_tie_do_not_prove_that_there_are_none():
    run = {"q": {"a": 1, "b": 1, "c": 0, "d": 0}}  # 1 of 100 draws of 100 parts ties a and b
    rows = dh.diagnose({"q": {"a": 1}}, run, "MRR", tolerance=0.001).effect.scales
    assert rows[-1].levels == 200
    assert rows[-1].range <= 0.5 / 100 <= rows[-1].bound
    assert not rows[-1].enough


def test_enough_is_a_scale_all_finer_ones_of_which_are():
    loose, tight = (dh.diagnose(QRELS, RUN, "MRR", tolerance=t) for t in (0.1, 1e-6))
    enough = [row.levels for row in loose.effect.scales if row.enough]
    assert f"Coarsest scale enough for MRR ± 0.1: {min(enough)} values." in str(loose)
    assert "Coarsest scale enough for MRR ± 1e-06: none." in str(tight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": [1]}, r"2 or more, .* not \[1\]"),
        ({"levels": []}, r"2 or more, .* not \[\]"),
        ({"levels": [2.5]}, "whole numbers"),
        ({"levels": 4}, "whole numbers"),
        ({"levels": [4], "qrels": None}, "levels need judgements"),
        ({"levels": [4], "run": {"q": {"b": np.inf, "c": 1.0, "d": 0.3}}}, "infinite .*scale"),
    ],
)
def test_bad_levels_are_told(options, message):
    with pytest.raises(dh.InputError, match=message):
        dh.diagnose(**{"run": RUN, "qrels": QRELS, **options})


def test_on_the_command_line(tmp_path):
    qrels, run = tmp_path / "qrels.json", tmp_path / "run.json"
    qrels.write_text(json.dumps(QRELS))
    run.write_text(json.dumps(RUN))

    def diagnose(*options):
        return CliRunner().invoke(
            main, ["diagnose", "--qrels", str(qrels), str(run), "-m", "MRR", *options]
        )

    shown = diagnose()
    assert shown.exit_code == 0
    assert "Scale: 2 values are used of the 2 from 0 to 1 in steps of 1" in shown.output
    assert "How fine must the scale be?" in shown.output
    data = json.loads(diagnose("--levels", "2, 4", "--format", "json").stdout)
    assert data["scale"] == {"lowest": 0.0, "highest": 1.0, "step": 1.0, "used": 2}
    assert [row["levels"] for row in data["effect"]["scales"]] == [2, 4]
    refused = diagnose("--levels", "four")
    assert refused.exit_code == 2
    assert "--levels" in refused.output and "'four'" in refused.output
