"""The command: exit statuses, formats and output files; no input causes a traceback."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import deadheat as dh
from deadheat import cli
from deadheat.cli import output as cli_output
from deadheat.measures import MEASURES

QRELS = "q1 0 d1 1\nq1 0 d3 1\nq2 0 d2 2\n"
RUN = "q1 Q0 d1 1 0.9 t\nq1 Q0 d2 2 0.5 t\nq1 Q0 d3 3 0.5 t\nq2 Q0 d1 1 1 t\nq2 Q0 d2 2 0 t\n"
OTHER = RUN.replace("d3 3 0.5", "d3 3 0.7")
INCOMPLETE = "q1 Q0 d1 1 0.9 t\nq1 Q0 d3 2 0.5 t\n"  # q2 is missing


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"q": QRELS, "r": RUN, "o": OTHER, "w": INCOMPLETE}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(*args: str, status: int = 0, stdin: str | bytes | None = None):
    result = CliRunner().invoke(cli.main, [str(arg) for arg in args], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert result.exit_code == status, result.output
    return result


def command(*args: str, **options) -> subprocess.CompletedProcess:
    environment = {**os.environ, **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "deadheat.cli", *args],
        capture_output=options.pop("capture_output", True),
        env=environment,
        check=False,
        **options,
    )


def test_version_names_the_counting_backend():
    text = run("--version").stdout
    assert dh.__version__ in text
    assert re.search(r"\((compiled|numpy)\)", text)


def test_measures_help_lists_all_measures_and_their_names():
    text = run("eval", "--measures-help").stdout
    for measure in MEASURES:
        assert f"\n## {measure.name}\n" in text
        for alias in measure.aliases:
            assert alias in text
    assert "``" not in text


def test_help():
    assert "QRELS" in run("eval", "-h").stdout
    assert "eval" in run("--help").stdout


def test_default_measures(folder):
    data = json.loads(run("eval", "q", "r", "--format", "json").stdout)
    assert list(data[0]["measures"]) == ["nDCG@10", "MRR@10", "MAP", "Recall@100"]


def test_table_shows_all_views(folder):
    text = run("eval", "q", "r", "-m", "MRR", "-m", "nDCG@3").stdout
    assert "r · 2 queries" in text
    assert "oblivious: ties in input order" in text
    for measure in ("MRR", "nDCG@3"):
        summary = dh.evaluate("q", "r", measure)[measure]
        line = next(line for line in text.splitlines() if f" {measure} " in line)
        for value in (summary.expected, summary.std, summary.worst, summary.best, summary.range):
            assert f"{value:.4f}" in line


def test_percent_applies_to_tables_only(folder):
    text = run("eval", "q", "r", "-m", "Recall@2", "--percent", "--format", "markdown").stdout
    cells = [cell.strip() for cell in text.splitlines()[2].strip("|").split("|")]
    assert cells == ["Recall@2", "87.50", "12.50", "75.00", "100.00", "25.00", "75.00", "−12.50"]
    # csv and json have full precision; --percent does not apply to them
    for style in ("csv", "json"):
        args = ("eval", "q", "r", "-m", "Recall@2", "--format", style)
        assert run(*args, "--percent").stdout == run(*args).stdout


def test_formats(folder):
    result = dh.evaluate("q", "r", "MRR")
    args = ("eval", "q", "r", "-m", "MRR", "--format")
    assert run(*args, "markdown").stdout.strip() == result.to_markdown()
    assert run(*args, "latex").stdout.strip() == result.to_latex()
    assert run(*args, "csv").stdout.strip() == result.to_csv()
    assert run(*args, "table").stdout.startswith(str(result).strip())
    assert json.loads(run(*args, "json").stdout) == [result.to_dict(per_query=False)]


def test_per_query(folder):
    args = ("eval", "q", "r", "-m", "MRR", "--per-query", "--format")
    table = list(csv.DictReader(io.StringIO(run(*args, "csv").stdout)))
    assert [(row["query_id"], float(row["expected"])) for row in table] == [("q1", 1), ("q2", 0.5)]
    data = json.loads(run(*args, "json").stdout)
    assert dh.Result.from_dict(data[0])["MRR"].expected == 0.75
    for style in ("table", "markdown", "latex"):
        text = run(*args, style).stdout
        assert "q1" in text
        assert "q2" in text


def test_several_runs_in_one_table(folder):
    text = run("eval", "q", "r", "o", "-m", "MAP", "--format", "markdown").stdout
    table = text.split("\n\n")[0].splitlines()
    assert [line.split("|")[1].strip() for line in table] == ["run", "---", "r", "o"]
    data = json.loads(run("eval", "q", "r", "o", "-m", "MAP", "--format", "json").stdout)
    assert [each["provenance"]["run"] for each in data] == ["r", "o"]
    assert data[0]["measures"]["MAP"]["range"] > 0 == data[1]["measures"]["MAP"]["range"]
    same_name = folder / "sub"
    same_name.mkdir()
    (same_name / "r").write_text(OTHER)
    text = run("eval", "q", "r", "sub/r", "-m", "MAP").stdout
    assert "sub/r" in text


def test_tie_break_queries_and_tolerance_options(folder):
    def value(*options, view="oblivious", path="r"):
        args = ("eval", "q", path, "-m", "Recall@2", "--format", "json", *options)
        return json.loads(run(*args).stdout)[0]["measures"]["Recall@2"][view]

    assert value("--tie-break", "input") == 0.75
    assert value("--tie-break", "id_desc") == 1
    assert value("--tie-break", "rank") == 0.75
    assert value(view="range") == 0.25
    assert value("--tie-tolerance", "5", view="expected") == pytest.approx(5 / 6)
    assert value("--queries", "intersection", path="w") == 1
    assert value(path="w") == 0.5


@pytest.mark.parametrize("index", [0, 1])
def test_standard_input(folder, index):
    args = ["q", "r"]
    text = (folder / args[index]).read_text()
    args[index] = "-"
    output = run("eval", *args, "-m", "MRR", "--format", "csv", stdin=text).stdout
    expected = dh.evaluate("q", "r", "MRR").to_csv()
    assert output.splitlines()[1].split(",")[1:] == expected.splitlines()[1].split(",")[1:]


def test_nan_is_rejected_unless_ranked_last(folder):
    (folder / "n").write_text(RUN + "q2 Q0 d9 3 nan t\n")
    result = run("eval", "q", "n", status=2)
    assert "'q2'" in result.stderr
    assert "'d9'" in result.stderr
    assert "--nan last" in result.stderr
    run("eval", "q", "n", "--nan", "last")


def test_strict_exits_with_1_after_a_warning(folder):
    assert run("eval", "q", "r", "--strict").stderr == ""
    relaxed = run("eval", "q", "w", "-m", "MRR")
    assert re.search("warning: w: 1 query .*missing.* 'q2'", relaxed.stderr)
    strict = run("eval", "q", "w", "-m", "MRR", "--strict", status=1)
    assert strict.stdout == relaxed.stdout != ""
    run("eval", "q", "w", "-m", "MRR", "--strict", "-o", "out", status=1)
    assert (folder / "out").read_text() == relaxed.stdout


BAD = [
    ([], "Usage"),
    (["eval"], "Missing argument"),
    (["eval", "q"], "Missing argument"),
    (["nope"], "No such command"),
    (["eval", "q", "nope"], "error: nope: there is no such file"),
    (["eval", "nope", "r"], "error: nope: there is no such file"),
    (["eval", "q", "x" * 300], "cannot be read"),
    (["eval", "q", "q/x"], "cannot be read"),
    (["eval", "q", "."], "folder"),
    (["eval", "r", "q"], "swapped"),
    (["eval", "q", "r", "q"], "swapped"),
    (["eval", "-", "-"], "only once"),
    (["eval", "q", "r", "-m", "foo"], "unknown measure 'foo'"),
    (["eval", "q", "r", "-m", "nDCG@0"], "cutoff"),
    (["eval", "q", "r", "-m", ""], "cannot read the measure"),
    (["eval", "q", "r", "--format", "pdf"], "--format"),
    (["eval", "q", "r", "--tie-break", "coin"], "--tie-break"),
    (["eval", "q", "r", "--tie-tolerance", "-1"], "--tie-tolerance"),
    (["eval", "q", "r", "--tie-tolerance", "nan"], "tie_tolerance"),
    (["eval", "q", "r", "--nope"], "--nope"),
    (["eval", "q", "r", "-o", ""], "regular file"),
    (["eval", "q", "r", "-o", "."], "directory"),
    (["eval", "q", "r", "-o", "nowhere/out"], "nowhere"),
    (["eval", "q", "r", "-o", "q/out"], "folder"),
    (["eval", "q", "r", "-o", "q"], "q: exists already; use --force"),
    (["eval", "q", "r", "-o", "x" * 300], "cannot be written"),
]


@pytest.mark.parametrize(("args", "message"), BAD, ids=[" ".join(b[0])[:40] for b in BAD])
def test_bad_usage_and_bad_input_exit_with_2_and_write_nothing(folder, args, message):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run(*args, status=2)
    assert message in result.stderr
    assert result.stdout == ""
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_output_file(folder):
    expected = run("eval", "q", "r").stdout
    assert run("eval", "q", "r", "-o", "out").stdout == ""
    assert (folder / "out").read_text() == expected
    (folder / "out").write_text("precious")
    run("eval", "q", "r", "-o", "out", status=2)
    assert (folder / "out").read_text() == "precious"
    run("eval", "q", "nope", "-o", "out", "--force", status=2)
    assert (folder / "out").read_text() == "precious"
    run("eval", "q", "r", "-o", "out", "--force")
    assert (folder / "out").read_text() == expected
    run("eval", "q", "r", "-o", "y" * 255)  # the longest name that is possible
    assert sorted(p.name[:3] for p in folder.iterdir()) == ["o", "out", "q", "r", "w", "yyy"]


INPUTS = {
    "eval": (["eval", "q", "r"], ["q", "r"]),
    "check": (["check", "q", "r"], ["q", "r"]),
    "eval of a folder": (["eval", "q", "parquet"], ["parquet/0.parquet"]),
    "compare": (["compare", "q", "a=r", "b=o"], ["q", "r", "o"]),
    "leaderboard": (["leaderboard", "q", "runs", "--published", "w"], ["q", "runs/r.run", "w"]),
    "leaderboard of a pattern": (["leaderboard", "q", "runs/*.run"], ["runs/r.run"]),
    "leaderboard of a manifest": (["leaderboard", "b.toml"], ["b.toml", "q", "runs/r.run", "w"]),
    "diagnose": (["diagnose", "q", "r", "--logits", "o"], ["q", "r", "o"]),
    "diagnose --qrels": (["diagnose", "r", "--qrels", "q"], ["q", "r"]),
    "report": (["report", "--qrels", "q", "x=r", "--dataset", "runs"], ["q", "r", "runs/r.run"]),
    "report --runs": (["report", "w", "--qrels", "q", "--runs", "r"], ["q", "r", "w"]),
    "table": (["table", "dir"], ["dir/experiment.json", "dir/cells/c/results/native.json"]),
    "mteb": (["mteb", "runs", "--qrels", "A/B=q"], ["q", "runs/r.run"]),
    "plot curves": (["plot", "curves", "q", "r.svg"], ["r.svg"]),
    "plot compare": (["plot", "compare", "q", "r.svg", "o"], ["r.svg"]),
    "plot ranks": (["plot", "ranks", "q", "r.svg", "o"], ["r.svg"]),
    "plot list": (["plot", "list", "q", "r.svg"], ["r.svg"]),
    "plot sizes": (["plot", "sizes", "r.svg"], ["r.svg"]),
}
"""Arguments of commands, and the files that they read."""


@pytest.fixture
def inputs(folder) -> Path:
    for name in ("runs", "parquet", "dir/cells/c/results"):
        (folder / name).mkdir(parents=True)
    (folder / "runs" / "r.run").write_text(RUN)
    (folder / "parquet" / "0.parquet").write_bytes(b"PAR1")
    (folder / "r.svg").write_text(RUN)
    (folder / "b.toml").write_text("[[board]]\nqrels = 'q'\nruns = 'runs/*'\npublished = 'w'")
    for name in ("experiment.json", "cells/c/results/native.json"):
        (folder / "dir" / name).write_text("{}")
    return folder


@pytest.mark.parametrize(("args", "files"), INPUTS.values(), ids=INPUTS)
def test_force_does_not_replace_an_input(inputs, args, files):
    ending = "svg" if args[0] == "plot" else "txt"
    for file in files:
        before = (inputs / file).read_bytes()
        for path in ("symbolic", "hard"):
            (inputs / f"{path}.{ending}").unlink(missing_ok=True)
        (inputs / f"symbolic.{ending}").symlink_to(file)
        (inputs / f"hard.{ending}").hardlink_to(inputs / file)
        for output in (file, inputs / file, f"symbolic.{ending}", f"hard.{ending}"):
            result = run(*args, "-o", output, "--force", status=2)
            wrong_ending = "file ending" in result.stderr
            assert f"{output}: this file is also an input" in result.stderr or wrong_ending
            assert result.stdout == "" and (inputs / file).read_bytes() == before


def test_every_command_with_force_is_tested():
    def commands_with_force(command, *names: str):
        for name in getattr(command, "commands", ()):
            yield from commands_with_force(command.commands[name], *names, name)
        if any("--force" in option.opts for option in command.params):
            yield " ".join(names)

    context = click.Context(cli.main)
    commands = {
        command
        for name in cli.COMMANDS
        for command in commands_with_force(cli.main.get_command(context, name), name)
    }
    tested = {label.partition(" of ")[0].partition(" --")[0] for label in INPUTS}
    assert commands == tested | {"demo"}  # the demo reads no file


def test_force_does_not_replace_the_file_on_standard_input(folder):
    with (folder / "r").open("rb") as stream:
        result = command("eval", "q", "-", "-o", "r", "--force", stdin=stream)
    assert result.returncode == 2 and b"r: this file is also an input" in result.stderr
    assert (folder / "r").read_text() == RUN


def test_force_replaces_a_page_in_the_folder_of_an_experiment(inputs):
    (inputs / "dir" / "table.md").write_text("old")
    cli_output.Output(output="dir/table.md", force=True).check(Path("dir"), None)


def test_output_file_is_written_atomically(folder, monkeypatch):
    def raise_disk_full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", raise_disk_full)
    result = run("eval", "q", "r", "-o", "out", status=2)
    assert "out: cannot be written (No space left on device)" in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["o", "q", "r", "w"]


def test_output_follows_a_link_and_rejects_special_files(folder):
    (folder / "link").symlink_to("real")
    run("eval", "q", "r", "-o", "link")
    assert (folder / "link").is_symlink()
    assert (folder / "real").read_text() == run("eval", "q", "r").stdout
    os.mkfifo(folder / "pipe")
    assert "regular file" in run("eval", "q", "r", "-o", "pipe", "--force", status=2).stderr
    assert (folder / "pipe").is_fifo()


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write to every folder")
def test_output_in_an_unwritable_folder_is_rejected(folder):
    (folder / "locked").mkdir(mode=0o500)
    assert "cannot be written to" in run("eval", "q", "r", "-o", "locked/x", status=2).stderr


def test_output_permissions_follow_the_umask(folder):
    mask = os.umask(0o027)
    try:
        run("eval", "q", "r", "-o", "out")
    finally:
        os.umask(mask)
    assert (folder / "out").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["bm25[k1=0.9].run", "run[/b].txt", ":smile:", "a|b", "[red]x"])
def test_names_are_not_parsed_as_markup(folder, name):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(RUN)
    label = path.name.removesuffix(".run").removesuffix(".txt")
    assert run("eval", "q", name, "-m", "MRR").stdout.startswith(f"{label} · 2 queries\n")
    assert f" {label} " in run("eval", "q", "r", name, "-m", "MRR").stdout


def test_piped_output_is_plain_text_in_utf_8(folder):
    expected = run("eval", "q", "r").stdout
    for env in ({}, {"FORCE_COLOR": "1"}, {"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C"}):
        result = command("eval", "q", "r", env=env)
        assert (result.returncode, result.stderr) == (0, b"")
        assert result.stdout.decode() == expected
        assert b"\x1b" not in result.stdout


def test_exit_status_of_the_process(folder):
    assert command("eval", "q", "r").returncode == 0
    assert command("eval", "q", "w", "--strict").returncode == 1
    for args in (("eval", "q", "nope"), ("eval", "q"), ("eval", "q", "r", "-m", "foo")):
        result = command(*args)
        assert result.returncode == 2
        assert b"Traceback" not in result.stderr
    result = command("eval", "-", "r", input=QRELS.encode())
    assert result.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full does not exist")
def test_full_disk_and_closed_streams(folder):
    with Path("/dev/full").open("wb") as full:
        result = command(
            "eval", "q", "r", capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr
    assert b"standard output cannot be written" in result.stderr
    for redirect in ("<&-", ">&-"):
        shell = f'"{sys.executable}" -m deadheat.cli eval - r {redirect}'
        result = subprocess.run(
            ["sh", "-c", shell], input=QRELS.encode(), capture_output=True, check=False
        )
        assert result.returncode == 2
        assert b"Traceback" not in result.stderr
        assert b"closed" in result.stderr


def test_file_name_that_is_not_utf_8_is_escaped(folder):
    name = os.fsdecode(b"r\xff.run")
    try:
        (folder / name).write_text(RUN)
    except OSError:
        pytest.skip("this file system requires names in UTF-8")
    for style in ("table", "json", "csv"):
        result = command("eval", "q", name, "--format", style)
        assert result.returncode == 0, result.stderr
        assert b"\\xff" in result.stdout


ALL_COMMANDS = [
    *(name for name in cli.COMMANDS if name != "plot"),
    *("plot curves", "plot compare", "plot list", "plot sizes"),
]


@pytest.mark.parametrize("command", ALL_COMMANDS)
def test_help_has_option_groups_and_an_example_within_80_columns(command):
    text = run(*command.split(), "--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert f"\nExample:\n  deadheat {command}" in text
    assert "\nOutput:\n" in text and "\nOptions:\n" not in text
    assert "RR@k of ir_measures" not in text  # only --tie-rules-help explains the tie rules


def test_summaries_are_not_truncated_and_tie_rules_help_lists_all_rules():
    for args in ((), ("plot",)):
        summaries = run(*args, "--help").stdout.partition("Commands:\n")[2]
        assert summaries and "..." not in summaries
    text = run("eval", "--tie-rules-help").stdout
    for name, meaning in dh.settings.TIE_RULES.items():
        assert f"{name}\n    {meaning}\n" in text


def completions(*args: str) -> list[str]:
    """Return the completions that a shell gets for the last argument."""
    environment = {
        "_DEADHEAT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["deadheat", *args]),
        "COMP_CWORD": str(len(args)),
    }
    result = CliRunner().invoke(cli.main, env=environment, prog_name="deadheat")
    return [line.partition(",")[2] for line in result.stdout.splitlines()]


def test_measures_and_tie_rules_are_completed():
    assert "nDCG@10" in completions("eval", "q", "r", "-m", "nd")
    assert completions("eval", "q", "r", "-m", "MRR@10,ndc")[-1] == "MRR@10,nDCG@10"
    assert completions("eval", "q", "r", "-m", "MRR@10")[:1] == ["MRR@10"]
    assert completions("eval", "q", "r", "--tie-break", "id_") == ["id_desc", "id_asc"]


def test_file_ending_selects_the_format(folder):
    for ending, style in cli_output.SUFFIXES.items():
        result = run("eval", "q", "r", "o", "-m", "MRR", "-o", f"out{ending}")
        assert (result.stdout, result.stderr) == ("", f"wrote out{ending}\n")
        expected = run("eval", "q", "r", "o", "-m", "MRR", "--format", style).stdout
        assert (folder / f"out{ending}").read_text() == expected
    assert run("eval", "q", "r", "-o", "x.CSV").stderr == "wrote x.CSV\n"
    run("eval", "q", "r", "-o", "y.csv", "--format", "csv")
    run("eval", "q", "r", "-o", "z.csv", "--format", "latex")
    assert "tabular" in (folder / "z.csv").read_text()
    assert (folder / "x.CSV").read_text().startswith("run,measure,")


def last_lines(*args: str) -> str:
    """Return the last paragraph of the output as one line."""
    return " ".join(run(*args).stdout.rpartition("\n\n")[2].split())


def test_eval_table_ends_with_effect_and_remedy(folder, monkeypatch):
    paragraph = last_lines("eval", "q", "r", "o", "-m", "Recall@2", "-m", "MRR")
    assert paragraph.startswith("Ties can move Recall@2 of r by 0.2500;")
    check = run("check", "q", "r", "-m", "Recall@2").stdout
    assert " ".join(check[check.index("Remedy") :].split()) in paragraph
    # Treat the files as large: large files are not read again.
    monkeypatch.setattr("deadheat.cli.findings.SMALL", 0)
    paragraph = last_lines("eval", "q", "r", "o", "-m", "Recall@2", "-m", "MRR")
    assert re.search(r"Remedy .*mean.* \(0\.8750\)", paragraph)
    assert "deadheat check q r -m Recall@2" in paragraph
    assert "by 25.00 points" in last_lines("eval", "q", "r", "-m", "Recall@2", "--percent")
    without_ties = run("eval", "q", "o", "-m", "Recall@2").stdout.splitlines()[-1]
    assert without_ties.startswith("Ties cannot move")
    # only the format table has this paragraph
    for style in ("csv", "json", "markdown", "latex", "html"):
        assert "Ties can move" not in run("eval", "q", "r", "--format", style).stdout
    piped = run("eval", "q", "-", "-m", "Recall@2", stdin=RUN).stdout
    assert "Remedy" in piped and "deadheat check" not in piped


def test_diagnose_starts_with_effect_cause_and_remedy(folder):
    result = run("diagnose", "q", "r", "-m", "Recall@2").stdout.split("\n\n")
    checked = run("check", "q", "r", "-m", "Recall@2").stdout
    assert result[1] == checked.rstrip("\n")
    assert [line.split()[0] for line in checked.splitlines() if line[0] != " "] == [
        "Effect",
        "Cause",
        "Remedy",
    ]
    assert "deadheat diagnose QRELS r" in run("diagnose", "r").stdout.splitlines()[-1]
    assert "nothing to do" in run("diagnose", "q", "o").stdout


def test_compare_ends_with_the_effect_of_ties(folder):
    line = run("compare", "q", "r", "o", "-m", "Recall@2").stdout.splitlines()[-1]
    assert re.match("Ties alone decide .* r or o .* Recall@2", line)
    assert "r wins 0% of the time, o 50%, 50% are draws" in line
    assert "Undecided because of ties: 1 of 1" in line
    (folder / "p").write_text(RUN.replace("d3 3 0.5", "d3 3 0.3"))
    line = run("compare", "q", "p", "o", "-m", "Recall@2").stdout.splitlines()[-1]
    assert line == "Ties change none of these verdicts."
    # in input order the run `tied` wins, in the mean over all tie orders it loses
    grades, good, tied = [], [], []
    for q in range(12):
        grades.append(f"q{q} 0 d1 1")
        good += [f"q{q} Q0 d1 1 1 t", f"q{q} Q0 d2 2 0 t"]
        tied += [f"q{q} Q0 d1 1 1 t", f"q{q} Q0 d2 2 1 t"]
    good[:2] = ["q0 Q0 d1 1 0 t", "q0 Q0 d2 2 1 t"]
    for name, lines in {"many": grades, "good": good, "tied": tied}.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    line = run("compare", "many", "good", "tied", "-m", "MRR").stdout.splitlines()[-1]
    assert re.search(r"tied beats good in MRR; .* good is better by 0\.2083", line)
    assert "Decision errors: 1 of 1" in line


def test_run_can_be_named(folder):
    text = run("eval", "q", "old=r", "new=o", "-m", "MRR", "--format", "markdown").stdout
    assert [line.split("|")[1].strip() for line in text.splitlines()[2:4]] == ["old", "new"]
    data = json.loads(run("eval", "q", "old=r", "--format", "json").stdout)
    assert (data[0]["provenance"]["label"], data[0]["provenance"]["run"]) == ("old", "r")
    assert run("eval", "q", "old=r", "-m", "MRR").stdout.startswith("old · 2 queries")
    assert "warning: late: 1 query judged" in run("eval", "q", "late=w", "-m", "MRR").stderr
    # an existing file is read even if its name contains '='
    (folder / "k1=0.9").write_text(RUN)
    assert run("eval", "q", "k1=0.9", "-m", "MRR").stdout.startswith("k1=0.9 · 2 queries")
    assert "identical" in run("compare", "q", "old=r", "new=r", "-m", "MRR").stdout
    assert "Ties of old" in run("diagnose", "q", "old=r").stdout
    result = run("eval", "q", "r", "r", status=2)
    assert "r is given twice" in result.stderr and "again=r" in result.stderr
    assert "x is given twice" in run("eval", "q", "x=r", "x=o", status=2).stderr


def test_diagnose_accepts_judgements_as_argument_or_option(folder):
    first = run("diagnose", "q", "r", "-m", "MRR", "--enough-within", "0.5").stdout
    assert "MRR ± 0.5: " in first
    named = run("diagnose", "--qrels", "q", "r", "-m", "MRR", "--enough-within", "0.5")
    assert named.stdout == first
    assert "swapped" in run("diagnose", "r", "q", "-m", "MRR", status=2).stderr
    assert run("diagnose", "q", "-", "-m", "MRR", stdin=RUN).exit_code == 0
    assert run("diagnose", "-", "r", "-m", "MRR", stdin=QRELS).exit_code == 0


def test_measures_separated_by_commas_and_percent_switch(folder):
    both = run("eval", "q", "r", "-m", "nDCG@10,MRR@10", "--format", "csv").stdout
    assert run("eval", "q", "r", "-m", "nDCG@10", "-m", "MRR@10", "--format", "csv").stdout == both
    assert "did you mean nDCG?" in run("eval", "q", "r", "-m", "nDCG10", status=2).stderr
    assert " 75.00 " in run("diagnose", "q", "r", "-m", "MRR", "--percent").stdout
    assert run("eval", "q", "r", "--fraction").stdout == run("eval", "q", "r").stdout


def test_notes_on_several_runs_name_the_runs(folder):
    (folder / "long").write_text(RUN + "q2 Q0 d8 3 -1 t\nq2 Q0 d9 4 -1 t\n")
    text = run("eval", "q", "r", "long", "-m", "Recall@10").stdout
    note = next(line for line in text.splitlines() if "inside a tie group" in line)
    assert note.startswith("r, long: ") or note.startswith("long: ") or note.startswith("r: ")


def test_plot_list_without_query_uses_the_largest_range(folder):
    pytest.importorskip("matplotlib")
    result = run("plot", "list", "q", "r", "-m", "Recall@2", "-o", "list.svg")
    assert re.search(r"q1\b.* range of Recall@2.* 0\.5000", result.stderr)
    assert "wrote list.svg" in result.stderr
    assert "query q1" in result.stdout


@pytest.mark.parametrize("style", cli_output.STYLES)
def test_output_can_be_redirected_to_a_text_stream(folder, style):
    """`contextlib.redirect_stdout` with `io.StringIO`, which has no `buffer`."""
    (folder / "é").write_text(RUN)
    args = ["eval", "q", "é", "-m", "MRR", "--per-query", "--format", style]
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        cli.main(args, standalone_mode=False)
    assert stream.getvalue() == run(*args).stdout
    assert "MRR" in stream.getvalue()
