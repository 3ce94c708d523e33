"""`diagnose` on graded scores: how many levels a scale needs, compared with enumeration."""

from __future__ import annotations

import itertools
import json
import re

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
    "1 to 5 without 3": ([1, 2, 4, 5], 5),
    "halves": ([0.5, 1, 2.5], 5),
    "tenths": (np.arange(11, dtype=np.float32) / np.float32(10), 11),
    "0 to 100 in steps of 5": (range(0, 101, 5), 21),
    "negative": ([-1, 0, 1], 3),
}
NOT_GRADED = {
    "three decimals": [0.125, 0.25, 0.5],
    "more than 0 to 100": [0, 1, 101],
    "one value": [1],
    "too many steps": [0.01, 0.02, 9],
    "not decimal": [1 / 3, 2 / 3],
    "integers that float64 rounds": [0, 2.0**60],
}


@pytest.mark.parametrize(("values", "levels"), GRADED.values(), ids=GRADED)
def test_find_scale_detects_grades(values, levels):
    values = np.asarray(values)
    scale = find_scale(values if values.dtype.kind == "f" else values + 0.0, 1_000, 900)
    assert scale.levels == levels
    assert scale.used == len(values)


@pytest.mark.parametrize("values", NOT_GRADED.values(), ids=NOT_GRADED)
def test_find_scale_rejects_other_scores(values):
    assert find_scale(np.array(values, float), 1_000, 900) is None


def test_find_scale_rejects_scores_with_few_ties():
    values = np.arange(50.0)
    assert find_scale(values, 1_000, 900) is not None
    assert find_scale(values, 1_000, 20) is None  # for example ranks
    assert find_scale(values, 60, 50) is None


RUN = {"q": {"a": 1, "b": 1, "c": 1, "d": 0, "e": 0, "f": 0}, "p": {"a": 1, "b": 1, "c": 0}}
QRELS = {"q": {"b": 1, "e": 1}, "p": {"b": 1}}


def test_refined_scale_matches_all_ways_to_split_the_grades():
    measures = ["MRR", "nDCG@3", "MAP"]
    run, qrels = {"q": RUN["q"]}, {"q": QRELS["q"]}
    unsplit = dh.evaluate(qrels, run, measures)
    split = []
    for parts in itertools.product(range(2), repeat=len(run["q"])):
        pairs = zip(run["q"].items(), parts, strict=True)
        finer = {"q": {document: 2 * grade + part for (document, grade), part in pairs}}
        split.append(dh.evaluate(qrels, finer, measures))
    scales = dh.diagnose(qrels, run, measures, levels=[4]).effect.scales
    assert [(row.levels, row.how) for row in scales[3:]] == [(4, "refined")] * 3
    for row in scales[3:]:
        before, ways = unsplit[row.measure], [result[row.measure] for result in split]
        assert min(way.worst for way in ways) >= before.worst
        assert max(way.best for way in ways) <= before.best
        assert row.expected == before.expected
        assert np.mean([way.expected for way in ways]) == pytest.approx(before.expected)
        margin = row.bound - row.range
        assert 0 < margin < 0.2
        assert abs(row.range - np.mean([way.range for way in ways])) <= 2 * margin


def round_to_levels(recording, levels):
    """Return the FP32 model's scores, rounded to integer grades on a scale of `levels` values."""
    scores = recording.scores["fp32"]
    step = np.ptp(scores.astype(float)) / (levels - 1)
    grades = np.rint((to_levels(scores, levels) - scores.min()) / step)
    return recording.pairs.select("query_id", "doc_id", pl.Series("score", grades))


@pytest.mark.parametrize(
    "recording",
    [recordings()[name] for name in ("softmax", "sigmoid", "product")],
    ids=lambda r: r.name,
)
def test_prediction_from_four_grades_matches_finer_scores(recording):
    qrels = recording.qrels
    diagnosis = quiet(dh.diagnose)(
        qrels, round_to_levels(recording, 4), "nDCG@10", levels=[12, 100]
    )
    assert [row.how for row in diagnosis.effect.scales] == ["as given", "refined", "refined"]
    for row, slack in zip(diagnosis.effect.scales, (0, 0.2, 1.5), strict=True):
        run = round_to_levels(recording, row.levels)
        finer = quiet(dh.evaluate)(qrels, run, "nDCG@10")["nDCG@10"]
        assert finer.range / (1 + slack) - 1e-12 <= row.range <= finer.range * (1 + slack) + 1e-12


def test_fine_scores_are_rounded_to_levels():
    recording = recordings()["softmax"]
    qrels, run = recording.qrels, recording.runs["fp32"]
    scales = dh.diagnose(qrels, run, ["nDCG@10", "MRR@10"], levels=(101, 4, 4)).effect.scales
    assert [(row.levels, row.how) for row in scales] == [
        *[(4, "rounded")] * 2,
        *[(101, "rounded")] * 2,
    ]
    for row in scales:
        rounded = round_to_levels(recording, row.levels)
        summary = quiet(dh.evaluate)(qrels, rounded, row.measure)[row.measure]
        assert (row.expected, row.range) == pytest.approx((summary.expected, summary.range))
        assert row.bound == row.range


def test_scores_without_grades_have_no_scale_by_default():
    recording = recordings()["softmax"]
    diagnosis = dh.diagnose(recording.qrels, recording.runs["native"], "nDCG@10")
    assert diagnosis.scale is None
    assert diagnosis.effect.scales == []


def test_bound_covers_ties_that_no_draw_has():
    run = {"q": {"a": 1, "b": 1, "c": 0, "d": 0}}  # 1 of 100 draws of 100 parts ties a and b
    rows = dh.diagnose({"q": {"a": 1}}, run, "MRR", tolerance=0.001).effect.scales
    assert rows[-1].levels == 200
    assert rows[-1].range <= 0.5 / 100 <= rows[-1].bound
    assert not rows[-1].enough


def test_text_names_the_coarsest_scale_that_is_enough():
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
def test_bad_levels_raise_input_error(options, message):
    with pytest.raises(dh.InputError, match=message):
        dh.diagnose(**{"run": RUN, "qrels": QRELS, **options})


def test_levels_on_the_command_line(tmp_path):
    qrels, run = tmp_path / "qrels.json", tmp_path / "run.json"
    qrels.write_text(json.dumps(QRELS))
    run.write_text(json.dumps(RUN))

    def diagnose(*options):
        return CliRunner().invoke(
            main, ["diagnose", "--qrels", str(qrels), str(run), "-m", "MRR", *options]
        )

    result = diagnose()
    assert result.exit_code == 0
    assert re.search(r"Scale: 2 values .* 2 from 0 to 1 in steps of 1\b", result.output)
    assert "How fine must the scale be?" in result.output
    data = json.loads(diagnose("--levels", "2, 4", "--format", "json").stdout)
    assert data["scale"] == {"lowest": 0.0, "highest": 1.0, "step": 1.0, "used": 2}
    assert [row["levels"] for row in data["effect"]["scales"]] == [2, 4]
    result = diagnose("--levels", "four")
    assert result.exit_code == 2
    assert "--levels" in result.output and "'four'" in result.output
