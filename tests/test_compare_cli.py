"""`deadheat compare`: output, files and errors."""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import click
import pytest
from click.testing import CliRunner
from made_up_runs import make_runs
from quiet import quiet

import deadheat as dh
from deadheat.cli import main
from deadheat.demo import recordings, write_files
from deadheat.settings import EvalOptions, EvalSettings


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    qrels, runs = make_runs()
    out = {}
    for name, data in {"qrels": qrels, **runs}.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(data))
        out[name] = str(path)
    return out


def run(*args: str):
    return CliRunner().invoke(main, ["compare", *args])


def test_table(files):
    result = run(files["qrels"], files["s0"], files["s1"], "-m", "MRR", "-m", "MAP", "--percent")
    assert result.exit_code == 0, result.output
    assert "s0 " in result.stdout and "p (Holm)" in result.stdout
    assert not result.stderr


def test_json_output_matches_the_library(files, tmp_path):
    target = tmp_path / "out.json"
    args = [files[name] for name in ("qrels", "s0", "s1", "s2")]
    args += ["-m", "MRR", "--baseline", files["s2"], "--alpha", "0.1", "--resamples", "999"]
    args += ["--seed", "5", "--tie-break", "id_desc", "--format", "json", "-o", str(target)]
    assert run(*args).exit_code == 0
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
    assert run(*args).exit_code == 2  # the file exists
    assert run(*args, "--force").exit_code == 0


@pytest.mark.parametrize("style", ["markdown", "latex", "csv", "json"])
def test_formats(files, style):
    result = run(files["qrels"], files["s0"], files["s1"], "-m", "MRR", "--format", style)
    assert result.exit_code == 0 and "s1" in result.stdout


def test_latex_fits_the_page_width(files):
    args = [files[name] for name in ("qrels", "s0", "s1", "s2")]
    text = run(*args, "-m", "MRR,MAP", "--format", "latex").stdout
    assert text.count(r"\begin{tabular}") == 2  # ranking and pairs
    rows = [line for line in text.splitlines() if line.endswith(r"\\") and "stack" not in line]
    plain = [re.sub(r"\\[a-z]+|[{}$&\\]", "", row) for row in rows]
    assert max(map(len, plain)) <= 95
    assert "verdict" in text and "p \\\\ (Holm)" in text
    assert "query interval (csv has all)" in text


def test_errors_and_strict_warnings_set_the_exit_status(files, tmp_path):
    cases = {
        (files["s0"],): "two systems or more",
        (files["s0"], files["s0"]): "s0.json is given twice",
        (files["s0"], files["s1"], "--baseline", "bm25"): "baseline 'bm25'",
        (files["s0"], files["s1"], "--alpha", "2"): "--alpha",
        (files["s0"], files["s1"], "--resamples", "0"): "--resamples",
        (files["s0"], str(tmp_path / "none.run")): "there is no such file",
    }
    for args, message in cases.items():
        result = run(files["qrels"], *args, "-m", "MRR")
        assert result.exit_code == 2 and message in result.stderr, result.stderr
    result = run(
        files["qrels"], files["s0"], files["s1"], "-m", "MRR", "--strict", "--resamples", "5"
    )
    assert result.exit_code == 1 and "warning: " in result.stderr


def test_regimes_with_identical_rankings_cause_no_warning(tmp_path):
    """The native and hps scores of the demo differ, but rank all documents in the same order."""
    write_files(recordings()["softmax"], tmp_path)
    runs = [str(tmp_path / f"softmax-{regime}.run") for regime in ("native", "hps")]
    result = run(str(tmp_path / "softmax-qrels.txt"), *runs, "-m", "MRR", "--strict")
    assert result.exit_code == 0 and "warning" not in result.stderr
    assert "identical" in result.stdout


@pytest.fixture
def many_files(tmp_path: Path) -> list[str]:
    """Files of judgements and of six runs, whose names have a common prefix and suffix."""
    qrels, runs = make_runs(systems=6)
    paths = [tmp_path / "qrels.json", *(tmp_path / f"team-{name}-v2.json" for name in runs)]
    for path, data in zip(paths, [qrels, *runs.values()], strict=True):
        path.write_text(json.dumps(data))
    return list(map(str, paths))


def test_many_systems_show_ranking_and_contested_pairs(many_files):
    result = run(*many_files, "-m", "MRR", "--resamples", "999")
    assert result.exit_code == 0, result.output
    titles = ["Ranking · 30 queries", "Verdicts on all pairs", "Contested: A against B"]
    assert [result.stdout.find(title) >= 0 for title in titles] == [True] * 3
    assert "│ team-s0-v2 " in result.stdout and ".json" not in result.stdout
    text = " ".join(result.stdout.split())  # notes are wrapped
    assert "p (Tukey)" in text and "999 permutations" in text
    all_pairs = run(*many_files, "-m", "MRR", "--resamples", "999", "--all-pairs")
    assert "A against B" in all_pairs.stdout and "Verdicts" not in all_pairs.stdout
    assert len(all_pairs.stdout.splitlines()) > len(result.stdout.splitlines())


def test_table_option_selects_pairs_or_ranking(many_files):
    args = [*many_files, "-m", "MRR", "--resamples", "99"]
    pairs = run(*args, "--format", "csv").stdout
    assert len(pairs.splitlines()) == 1 + 15
    assert run(*args, "--format", "csv", "--table", "pairs").stdout == pairs
    ranking = run(*args, "--format", "csv", "--table", "ranking").stdout
    assert ranking.startswith("measure,system,rank") and len(ranking.splitlines()) == 1 + 6
    ranking = run(*args, "--table", "ranking").stdout
    assert "Ranking" in ranking and "Verdicts" not in ranking
    pairs = run(*args, "--table", "pairs", "--all-pairs").stdout
    assert "Ranking" not in pairs and "A against B" in pairs


@pytest.mark.parametrize("baseline", ["team-s3-v2", "team-s3-v2.json", "the path"])
def test_baseline_is_given_by_name_or_file(many_files, baseline):
    path = next(path for path in many_files if "s3" in Path(path).name)
    args = ["--baseline", path if baseline == "the path" else baseline, "--format", "csv"]
    result = run(*many_files, "-m", "MRR", *args)
    assert {line.split(",")[1] for line in result.stdout.splitlines()[1:]} == {"team-s3-v2"}


def test_run_has_the_same_name_in_all_commands(files, tmp_path):
    def invoke(*args):
        result = CliRunner().invoke(main, [*map(str, args)])
        assert result.exit_code == 0, result.output
        return result.stdout

    qrels, runs = files["qrels"], []
    for name, run_name in (("s0", "input.bm25.json"), ("s1", "bf16.run.json")):
        runs.append(tmp_path / run_name)
        runs[-1].write_text(Path(files[name]).read_text())
    names, args = ["bf16", "bm25"], [qrels, *runs, "-m", "MRR"]

    def column(text, *headings):
        rows = list(csv.DictReader(io.StringIO(text)))
        return sorted({row[heading] for row in rows for heading in headings})

    assert column(invoke("eval", *args, "--format", "csv"), "run") == names
    assert column(invoke("compare", *args, "--format", "csv"), "a", "b") == names
    assert column(invoke("leaderboard", *args, "--format", "csv"), "run") == names
    results = json.loads(invoke("eval", *args, "--per-query", "--format", "json"))
    assert sorted(result["name"] for result in results) == names
    assert [result["provenance"]["run"] for result in results] == list(map(str, runs))
    assert "Ties of bm25" in invoke("diagnose", "--qrels", qrels, runs[0], "-m", "MRR")
    page = tmp_path / "page.html"
    invoke("report", "--qrels", qrels, *runs, "-m", "MRR", "-o", page)
    assert f'<th scope="row">bm25</th><td>{runs[0]}</td>' in page.read_text()


def test_report_accepts_the_options_of_compare(many_files, tmp_path):
    qrels, *runs = many_files
    page = tmp_path / "page.html"
    args = ["report", "--qrels", qrels, *runs, "-m", "MRR", "--top", "0", "-o", str(page)]
    options = ["--baseline", "team-s1-v2.json", "--alpha", "0.1", "--resamples", "499"]
    result = CliRunner().invoke(main, [*args, *options])
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert "for 5 pairs in each measure" in text and "499 random sign flips" in text
    assert "90 % (Student" in text
    result = CliRunner().invoke(main, [*args, "--force", "--baseline", "none"])
    assert result.exit_code == 2 and "baseline 'none'" in result.stderr
    assert page.read_text() == text


def test_naming_one_run_keeps_the_short_labels_of_the_others(files):
    args = (files["qrels"], f"first={files['s0']}", files["s1"], files["s2"], "-m", "MRR")
    result = run(*args)
    assert "first" in result.stdout and ".json" not in result.stdout
    by_label = run(*args, "--baseline", "s1")  # the label in the table
    assert by_label.exit_code == 0, by_label.stderr
    same = run(files["qrels"], f"s1={files['s0']}", files["s1"], "-m", "MRR")
    assert "s1.json" in same.stdout  # because the name s1 is taken


@pytest.mark.parametrize("function", [dh.compare, dh.evaluate, dh.evaluate_arrays, dh.leaderboard])
def test_options_have_literal_types(function):
    options = inspect.signature(function).parameters["options"]
    assert options.annotation == "Unpack[EvalOptions]"
    hints = get_type_hints(EvalOptions)
    assert hints.keys() == {field.name for field in fields(EvalSettings)}
    assert set(get_args(hints["tie_break"])) == set(dh.settings.TIE_RULES)
    assert get_args(hints["nan"])


def test_evaluation_options_are_rejected_for_results(files):
    results = [quiet(dh.evaluate)(files["qrels"], files[name], "MRR") for name in ("s0", "s1")]
    with pytest.raises(dh.InputError, match=r"tie_break, nan: .*evaluated already"):
        dh.compare(results, tie_break="rank", nan="last")


TIMEOUT = 30
"""Seconds; long because the machine may be busy."""


def test_ctrl_c_interrupts_resampling_with_status_130(many_files):
    """The signal is sent when the progress bar appears; the resampling would take minutes."""
    args = [*many_files, "-m", "MRR", "-m", "nDCG@5", "--resamples", "50000000"]
    our_end, child_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "deadheat.cli", "compare", *args],
        stdout=subprocess.PIPE,
        stderr=child_end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(child_end)
    output, sent_at = b"", 0.0
    try:
        # Read until the end: the process blocks if the buffer of the terminal is full.
        while True:
            try:
                chunk = os.read(our_end, 4096)
            except OSError:  # the other end is closed
                break
            output += chunk
            if not chunk:
                break
            if not sent_at and b"resampling" in output:
                sent_at = time.monotonic()
                process.send_signal(signal.SIGINT)
            assert not sent_at or time.monotonic() < sent_at + TIMEOUT
        assert process.wait(TIMEOUT) == 130
    finally:
        process.kill()
        process.communicate()
        os.close(our_end)
    assert b"interrupted" in output and b"Traceback" not in output
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    assert time.monotonic() - sent_at < (TIMEOUT if busy else 2)


@pytest.mark.parametrize("args", [["eval", "qrels", "run"], ["leaderboard", "qrels", "run"]])
def test_ctrl_c_gives_status_130_in_every_command(args, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Command, "invoke", interrupt)
    result = CliRunner().invoke(main, args)
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")
