"""Aliases of options, suggestions for typing errors, and shell completion."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from deadheat.cli import main

QRELS = "q1 0 d1 1\nq2 0 d1 1\nq3 0 d1 1\n"
RUN = (
    "q1 Q0 d1 1 0.5 x\nq1 Q0 d2 2 0.5 x\nq2 Q0 d1 1 0.9 x\nq3 Q0 d1 1 0.5 x\nq3 Q0 d2 2 0.5 x\n"
    "q3 Q0 d3 3 0.5 x\n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("qrels.txt").write_text(QRELS)
    Path("bm25.run").write_text(RUN)
    return tmp_path


def call(*args: str, status: int = 0):
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == status, result.output
    return result


def test_misspelled_command_gets_a_suggestion():
    assert "did you mean 'eval'?" in call("evla", status=2).stderr
    assert "did you mean" not in call("zzzzzz", status=2).stderr


def test_misspelled_file_gets_a_suggestion(folder):
    assert "did you mean 'bm25.run'?" in call("eval", "qrels.txt", "bm52.run", status=2).stderr
    assert "did you mean" not in call("eval", "qrels.txt", "nothing-like-it", status=2).stderr


def test_score_precision_is_an_alias_of_score_dtype(folder):
    files = ("eval", "qrels.txt", "bm25.run", "-m", "MRR")
    old, new = call(*files, "--score-precision", "fp32"), call(*files, "--score-dtype", "float32")
    assert old.stdout == new.stdout


def test_unknown_choice_is_rejected_with_the_valid_ones(folder):
    files = ("eval", "qrels.txt", "bm25.run")
    assert "id_desc" in call(*files, "--tie-break", "trec_eval", status=2).stderr
    assert "markdown" in call(*files, "--format", "md", status=2).stderr


def test_unknown_file_ending_is_rejected_with_the_valid_ones(folder):
    result = call("eval", "qrels.txt", "bm25.run", "-o", "t.xlsx", status=2)
    assert "t.xlsx" in result.stderr and ".csv" in result.stderr and not Path("t.xlsx").exists()


def test_brief_prints_one_value_per_line(folder):
    files = ("eval", "qrels.txt", "bm25.run")
    assert call(*files, "-m", "MRR,P@1", "--brief").stdout == "MRR\t0.7870\nPrecision@1\t0.6111\n"
    two = call(*files, "again=bm25.run", "-m", "MRR", "--brief").stdout.splitlines()
    assert [line.split("\t")[1:] for line in two] == [["MRR", "0.7870"]] * 2


def test_per_query_rows_are_sorted_and_limited_by_top(folder):
    args = ("eval", "qrels.txt", "bm25.run", "-m", "MRR", "--per-query", "--format", "csv")
    rows = call(*args, "--sort", "range", "--top", "2").stdout.splitlines()[1:]
    assert [row.split(",")[1] for row in rows] == ["q3", "q1"]
    assert "--per-query" in call("eval", "qrels.txt", "bm25.run", "--top", "2", status=2).stderr


BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("deadheat", "ev"), "eval"),
        (("deadheat", "eval", "qr"), "qrels.txt"),
        (("deadheat", "eval", "qrels.txt", "bm"), "bm25.run"),
        (("deadheat", "check", "qr"), "qrels.txt"),
        (("deadheat", "eval", "--tie-break", "id_d"), "id_desc"),
    ],
)
def test_bash_completes_commands_files_and_choices(folder, words, expected):
    program = folder / "bin" / "deadheat"
    program.parent.mkdir()
    start = "from deadheat.cli import main; main(prog_name='deadheat')"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{start}" "$@"\n')
    program.chmod(0o755)
    # Like readline: call the function, and complete file names if it requests the default.
    script = f"""
source <(_DEADHEAT_COMPLETE=bash_source deadheat)
function=$(complete -p deadheat | sed 's/.*-F \\([^ ]*\\).*/\\1/')
compopt() {{ [ "$2" = default ] && files=1; return 0; }}
COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
$function deadheat "{words[-1]}" "{words[-2]}"
printf '%s\\n' "${{COMPREPLY[@]}}"
[ -n "$files" ] && compgen -f "{words[-1]}"
true
"""
    env = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    process = subprocess.run(
        [BASH, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    assert expected in process.stdout.split(), process
