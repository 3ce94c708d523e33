"""`deadheat compare`: what it prints, writes, refuses."""

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
from made_up_runs import made_up
from quiet import quiet

import deadheat as dh
from deadheat.cli import main
from deadheat.demo import recordings, write_files
from deadheat.settings import EvalOptions, EvalSettings


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
    assert "s0 " in done.stdout and "p (Holm)" in done.stdout
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
    assert done.exit_code == 0 and "s1" in done.stdout


def test_latex_fits_a_page(files):
    words = [files[name] for name in ("qrels", "s0", "s1", "s2")]
    text = run(*words, "-m", "MRR,MAP", "--format", "latex").stdout
    assert text.count(r"\begin{tabular}") == 2  # ranking and pairs
    rows = [line for line in text.splitlines() if line.endswith(r"\\") and "stack" not in line]
    plain = [re.sub(r"\\[a-z]+|[{}$&\\]", "", row) for row in rows]
    assert max(map(len, plain)) <= 95
    assert "verdict" in text and "p \\\\ (Holm)" in text
    assert "query interval (csv has all)" in text


def test_cli_refuses_and_warns(files, tmp_path):
    cases = {
        (files["s0"],): "two systems or more",
        (files["s0"], files["s0"]): "s0.json is given twice",
        (files["s0"], files["s1"], "--baseline", "bm25"): "baseline 'bm25'",
        (files["s0"], files["s1"], "--alpha", "2"): "--alpha",
        (files["s0"], files["s1"], "--resamples", "0"): "--resamples",
        (files["s0"], str(tmp_path / "none.run")): "there is no such file",
    }
    for words, message in cases.items():
        done = run(files["qrels"], *words, "-m", "MRR")
        assert done.exit_code == 2 and message in done.stderr, done.stderr
    done = run(
        files["qrels"], files["s0"], files["s1"], "-m", "MRR", "--strict", "--resamples", "5"
    )
    assert done.exit_code == 1 and "warning: " in done.stderr


def test_regimes_in_run_files_are_not_taken_for_one_run(tmp_path):
    """The demo's native and hps scores differ, and order all documents alike."""
    write_files(recordings()["softmax"], tmp_path)
    runs = [str(tmp_path / f"softmax-{regime}.run") for regime in ("native", "hps")]
    done = run(str(tmp_path / "softmax-qrels.txt"), *runs, "-m", "MRR", "--strict")
    assert done.exit_code == 0 and "warning" not in done.stderr
    assert "identical" in done.stdout


@pytest.fixture
def many_files(tmp_path: Path) -> list[str]:
    """Judgements and runs of six systems, as TREC files whose names share words."""
    qrels, runs = made_up(systems=6)
    paths = [tmp_path / "qrels.json", *(tmp_path / f"team-{name}-v2.json" for name in runs)]
    for path, data in zip(paths, [qrels, *runs.values()], strict=True):
        path.write_text(json.dumps(data))
    return list(map(str, paths))


def test_cli_shows_the_ranking_and_what_is_contested(many_files):
    done = run(*many_files, "-m", "MRR", "--resamples", "999")
    assert done.exit_code == 0, done.output
    titles = ["Ranking · 30 queries", "Verdicts on all pairs", "Contested: A against B"]
    assert [done.stdout.find(title) >= 0 for title in titles] == [True] * 3
    assert "│ team-s0-v2 " in done.stdout and ".json" not in done.stdout
    text = " ".join(done.stdout.split())  # notes are wrapped
    assert "p (Tukey)" in text and "999 permutations" in text
    everything = run(*many_files, "-m", "MRR", "--resamples", "999", "--all-pairs")
    assert "A against B" in everything.stdout and "Verdicts" not in everything.stdout
    assert len(everything.stdout.splitlines()) > len(done.stdout.splitlines())


def test_cli_gives_either_table(many_files):
    words = [*many_files, "-m", "MRR", "--resamples", "99"]
    pairs = run(*words, "--format", "csv").stdout
    assert len(pairs.splitlines()) == 1 + 15
    assert run(*words, "--format", "csv", "--table", "pairs").stdout == pairs
    ranking = run(*words, "--format", "csv", "--table", "ranking").stdout
    assert ranking.startswith("measure,system,rank") and len(ranking.splitlines()) == 1 + 6
    alone = run(*words, "--table", "ranking").stdout
    assert "Ranking" in alone and "Verdicts" not in alone
    rest = run(*words, "--table", "pairs", "--all-pairs").stdout
    assert "Ranking" not in rest and "A against B" in rest


@pytest.mark.parametrize("baseline", ["team-s3-v2", "team-s3-v2.json", "the path"])
def test_cli_takes_the_name_or_the_file_of_a_baseline(many_files, baseline):
    path = next(path for path in many_files if "s3" in Path(path).name)
    words = ["--baseline", path if baseline == "the path" else baseline, "--format", "csv"]
    done = run(*many_files, "-m", "MRR", *words)
    assert {line.split(",")[1] for line in done.stdout.splitlines()[1:]} == {"team-s3-v2"}


def test_a_run_has_one_name_in_all_commands(files, tmp_path):
    def invoke(*words):
        done = CliRunner().invoke(main, [*map(str, words)])
        assert done.exit_code == 0, done.output
        return done.stdout

    qrels, runs = files["qrels"], []
    for name, run_name in (("s0", "input.bm25.json"), ("s1", "bf16.run.json")):
        runs.append(tmp_path / run_name)
        runs[-1].write_text(Path(files[name]).read_text())
    names, words = ["bf16", "bm25"], [qrels, *runs, "-m", "MRR"]

    def column(text, *headings):
        rows = list(csv.DictReader(io.StringIO(text)))
        return sorted({row[heading] for row in rows for heading in headings})

    assert column(invoke("eval", *words, "--format", "csv"), "run") == names
    assert column(invoke("compare", *words, "--format", "csv"), "a", "b") == names
    assert column(invoke("leaderboard", *words, "--format", "csv"), "run") == names
    stored = json.loads(invoke("eval", *words, "--per-query", "--format", "json"))
    assert sorted(result["name"] for result in stored) == names
    assert [result["provenance"]["run"] for result in stored] == list(map(str, runs))
    assert "Ties of bm25" in invoke("diagnose", "--qrels", qrels, runs[0], "-m", "MRR")
    page = tmp_path / "page.html"
    invoke("report", "--qrels", qrels, *runs, "-m", "MRR", "-o", page)
    assert f'<th scope="row">bm25</th><td>{runs[0]}</td>' in page.read_text()  # and its source


def test_the_report_takes_the_options_of_a_comparison(many_files, tmp_path):
    qrels, *runs = many_files
    page = tmp_path / "page.html"
    words = ["report", "--qrels", qrels, *runs, "-m", "MRR", "--top", "0", "-o", str(page)]
    options = ["--baseline", "team-s1-v2.json", "--alpha", "0.1", "--resamples", "499"]
    done = CliRunner().invoke(main, [*words, *options])
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "for 5 pairs in each measure" in text and "499 random sign flips" in text
    assert "90 % (Student" in text
    done = CliRunner().invoke(main, [*words, "--force", "--baseline", "none"])
    assert done.exit_code == 2 and "baseline 'none'" in done.stderr
    assert page.read_text() == text


def test_a_name_for_one_run_leaves_the_labels_of_the_others_short(files):
    words = (files["qrels"], f"first={files['s0']}", files["s1"], files["s2"], "-m", "MRR")
    done = run(*words)
    assert "first" in done.stdout and ".json" not in done.stdout
    by_label = run(*words, "--baseline", "s1")  # as the table has it
    assert by_label.exit_code == 0, by_label.stderr
    same = run(files["qrels"], f"s1={files['s0']}", files["s1"], "-m", "MRR")
    assert "s1.json" in same.stdout  # or two systems would be called s1


@pytest.mark.parametrize("function", [dh.compare, dh.evaluate, dh.evaluate_arrays, dh.leaderboard])
def test_rules_and_policies_are_words_that_an_editor_offers(function):
    options = inspect.signature(function).parameters["options"]
    assert options.annotation == "Unpack[EvalOptions]"
    hints = get_type_hints(EvalOptions)
    assert hints.keys() == {field.name for field in fields(EvalSettings)}
    assert set(get_args(hints["tie_break"])) == set(dh.settings.TIE_RULES)
    assert get_args(hints["nan"])


def test_results_take_no_options_of_evaluating(files):
    results = [quiet(dh.evaluate)(files["qrels"], files[name], "MRR") for name in ("s0", "s1")]
    with pytest.raises(dh.InputError, match=r"tie_break, nan: .*evaluated already"):
        dh.compare(results, tie_break="rank", nan="last")


WAITS = 30
"""Seconds after which a test gives up; the machine may be busy."""


def test_ctrl_c_ends_a_long_comparison_at_once_with_status_130(many_files):
    """A bar shows that the resampling has begun; it would take minutes."""
    words = [*many_files, "-m", "MRR", "-m", "nDCG@5", "--resamples", "50000000"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "deadheat.cli", "compare", *words],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    shown, sent = b"", 0.0
    try:
        # Read until the end: a process that writes to a full terminal waits.
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # nobody has the other end any more
                break
            shown += read
            if not read:
                break
            if not sent and b"resampling" in shown:
                sent = time.monotonic()
                process.send_signal(signal.SIGINT)
            assert not sent or time.monotonic() < sent + WAITS
        assert process.wait(WAITS) == 130
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
    assert b"interrupted" in shown and b"Traceback" not in shown
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    assert time.monotonic() - sent < (WAITS if busy else 2)


@pytest.mark.parametrize("words", [["eval", "qrels", "run"], ["leaderboard", "qrels", "run"]])
def test_ctrl_c_gives_status_130_in_every_command(words, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Command, "invoke", interrupted)
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stderr) == (130, "interrupted\n")
