"""The command: exit statuses, formats, output files, and never a traceback."""

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
WARNS = "q1 Q0 d1 1 0.9 t\nq1 Q0 d3 2 0.5 t\n"  # q2 is missing


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"q": QRELS, "r": RUN, "o": OTHER, "w": WARNS}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(*words: str, status: int = 0, stdin: str | bytes | None = None):
    found = CliRunner().invoke(cli.main, [str(word) for word in words], input=stdin)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    assert "Traceback" not in found.output
    assert found.exit_code == status, found.output
    return found


def command(*words: str, **options) -> subprocess.CompletedProcess:
    environment = {**os.environ, **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "deadheat.cli", *words],
        capture_output=options.pop("capture_output", True),
        env=environment,
        check=False,
        **options,
    )


def test_version_names_the_counting_pass():
    text = run("--version").stdout
    assert dh.__version__ in text
    assert re.search(r"counting pass: (compiled|numpy)\)", text)


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


def test_table(folder):
    text = run("eval", "q", "r", "-m", "MRR", "-m", "nDCG@3").stdout
    assert "r · 2 queries" in text
    assert "oblivious: ties in input order" in text
    for measure in ("MRR", "nDCG@3"):
        summary = dh.evaluate("q", "r", measure)[measure]
        line = next(line for line in text.splitlines() if f" {measure} " in line)
        for value in (summary.expected, summary.std, summary.worst, summary.best, summary.range):
            assert f"{value:.4f}" in line


def test_percent(folder):
    text = run("eval", "q", "r", "-m", "Recall@2", "--percent", "--format", "markdown").stdout
    cells = [cell.strip() for cell in text.splitlines()[2].strip("|").split("|")]
    assert cells == ["Recall@2", "87.50", "12.50", "75.00", "100.00", "25.00", "75.00", "−12.50"]
    # machines get full precision, whatever was asked for people
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


def test_several_runs_side_by_side(folder):
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


def test_tie_break_and_queries_and_tolerance(folder):
    def value(*words, view="oblivious", path="r"):
        args = ("eval", "q", path, "-m", "Recall@2", "--format", "json", *words)
        return json.loads(run(*args).stdout)[0]["measures"]["Recall@2"][view]

    assert value("--tie-break", "input") == 0.75
    assert value("--tie-break", "id_desc") == 1
    assert value("--tie-break", "rank") == 0.75
    assert value(view="range") == 0.25
    assert value("--tie-tolerance", "5", view="expected") == pytest.approx(5 / 6)
    assert value("--queries", "intersection", path="w") == 1
    assert value(path="w") == 0.5


@pytest.mark.parametrize("place", [0, 1])
def test_standard_input(folder, place):
    words = ["q", "r"]
    text = (folder / words[place]).read_text()
    words[place] = "-"
    found = run("eval", *words, "-m", "MRR", "--format", "csv", stdin=text).stdout
    assert (
        found.splitlines()[1].split(",")[1:]
        == dh.evaluate("q", "r", "MRR").to_csv().splitlines()[1].split(",")[1:]
    )


def test_nan(folder):
    (folder / "n").write_text(RUN + "q2 Q0 d9 3 nan t\n")
    found = run("eval", "q", "n", status=2)
    assert "'q2'" in found.stderr
    assert "'d9'" in found.stderr
    assert "--nan last" in found.stderr
    run("eval", "q", "n", "--nan", "last")


def test_strict(folder):
    assert run("eval", "q", "r", "--strict").stderr == ""
    relaxed = run("eval", "q", "w", "-m", "MRR")
    assert "warning: w: 1 query judged but missing from the run, for example 'q2'" in relaxed.stderr
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


@pytest.mark.parametrize(("words", "says"), BAD, ids=[" ".join(b[0])[:40] for b in BAD])
def test_bad_usage_and_bad_input_exit_with_2_and_write_nothing(folder, words, says):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    found = run(*words, status=2)
    assert says in found.stderr
    assert found.stdout == ""
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
    run("eval", "q", "r", "-o", "y" * 255)  # the longest name there is
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
"""Commands, and files that each of them reads."""


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


@pytest.mark.parametrize(("words", "files"), INPUTS.values(), ids=INPUTS)
def test_force_does_not_replace_an_input(inputs, words, files):
    ending = "svg" if words[0] == "plot" else "txt"
    for file in files:
        before = (inputs / file).read_bytes()
        for path in ("symbolic", "hard"):
            (inputs / f"{path}.{ending}").unlink(missing_ok=True)
        (inputs / f"symbolic.{ending}").symlink_to(file)
        (inputs / f"hard.{ending}").hardlink_to(inputs / file)
        for output in (file, inputs / file, f"symbolic.{ending}", f"hard.{ending}"):
            found = run(*words, "-o", output, "--force", status=2)
            unwritten = "file ending" in found.stderr
            assert f"{output}: this file is also an input" in found.stderr or unwritten
            assert found.stdout == "" and (inputs / file).read_bytes() == before


def test_every_command_with_force_is_among_those():
    def forced(command, *names: str):
        for name in getattr(command, "commands", ()):
            yield from forced(command.commands[name], *names, name)
        if any("--force" in option.opts for option in command.params):
            yield " ".join(names)

    context = click.Context(cli.main)
    found = {
        one for name in cli.COMMANDS for one in forced(cli.main.get_command(context, name), name)
    }
    reading = {label.partition(" of ")[0].partition(" --")[0] for label in INPUTS}
    assert found == reading | {"demo"}  # the demo reads no file


def test_force_does_not_replace_what_standard_input_reads(folder):
    with (folder / "r").open("rb") as stream:
        found = command("eval", "q", "-", "-o", "r", "--force", stdin=stream)
    assert found.returncode == 2 and b"r: this file is also an input" in found.stderr
    assert (folder / "r").read_text() == RUN


def test_force_replaces_a_page_in_the_folder_of_an_experiment(inputs):
    (inputs / "dir" / "table.md").write_text("old")
    cli_output.Output(output="dir/table.md", force=True).check(Path("dir"), None)


def test_output_is_written_completely_or_not_at_all(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    found = run("eval", "q", "r", "-o", "out", status=2)
    assert "out: cannot be written (No space left on device)" in found.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["o", "q", "r", "w"]


def test_output_follows_a_link_and_leaves_special_files_alone(folder):
    (folder / "link").symlink_to("real")
    run("eval", "q", "r", "-o", "link")
    assert (folder / "link").is_symlink()
    assert (folder / "real").read_text() == run("eval", "q", "r").stdout
    os.mkfifo(folder / "pipe")
    assert "regular file" in run("eval", "q", "r", "-o", "pipe", "--force", status=2).stderr
    assert (folder / "pipe").is_fifo()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_unwritable_folder(folder):
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
def test_names_are_shown_as_they_are(folder, name):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(RUN)
    label = path.name.removesuffix(".run").removesuffix(".txt")
    assert run("eval", "q", name, "-m", "MRR").stdout.startswith(f"{label} · 2 queries\n")
    assert f" {label} " in run("eval", "q", "r", name, "-m", "MRR").stdout


def test_piped_output_is_plain_text_in_utf_8(folder):
    expected = run("eval", "q", "r").stdout
    for env in ({}, {"FORCE_COLOR": "1"}, {"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C"}):
        found = command("eval", "q", "r", env=env)
        assert (found.returncode, found.stderr) == (0, b"")
        assert found.stdout.decode() == expected
        assert b"\x1b" not in found.stdout


def test_statuses_of_the_process(folder):
    assert command("eval", "q", "r").returncode == 0
    assert command("eval", "q", "w", "--strict").returncode == 1
    for words in (("eval", "q", "nope"), ("eval", "q"), ("eval", "q", "r", "-m", "foo")):
        found = command(*words)
        assert found.returncode == 2
        assert b"Traceback" not in found.stderr
    found = command("eval", "-", "r", input=QRELS.encode())
    assert found.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_disk_and_closed_streams(folder):
    with Path("/dev/full").open("wb") as full:
        found = command("eval", "q", "r", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert found.returncode == 2
    assert b"Traceback" not in found.stderr
    assert b"standard output cannot be written" in found.stderr
    for redirect in ("<&-", ">&-"):
        shell = f'"{sys.executable}" -m deadheat.cli eval - r {redirect}'
        found = subprocess.run(
            ["sh", "-c", shell], input=QRELS.encode(), capture_output=True, check=False
        )
        assert found.returncode == 2
        assert b"Traceback" not in found.stderr
        assert b"closed" in found.stderr


def test_file_name_that_is_not_utf_8(folder):
    name = os.fsdecode(b"r\xff.run")
    try:
        (folder / name).write_text(RUN)
    except OSError:
        pytest.skip("this file system wants names in UTF-8")
    for style in ("table", "json", "csv"):
        found = command("eval", "q", name, "--format", style)
        assert found.returncode == 0, found.stderr
        assert b"\\xff" in found.stdout


EVERY = [
    *(name for name in cli.COMMANDS if name != "plot"),
    *("plot curves", "plot compare", "plot list", "plot sizes"),
]


@pytest.mark.parametrize("words", EVERY)
def test_the_help_of_a_command_has_groups_and_an_example_that_fits(words):
    text = run(*words.split(), "--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert f"\nExample:\n  deadheat {words}" in text
    assert "\nOutput:\n" in text and "\nOptions:\n" not in text
    assert "RR@k of ir_measures" not in text  # the tie rules are explained once


def test_no_summary_is_cut_and_the_tie_rules_are_explained_once():
    for words in ((), ("plot",)):
        summaries = run(*words, "--help").stdout.partition("Commands:\n")[2]
        assert summaries and "..." not in summaries
    text = run("eval", "--tie-rules-help").stdout
    for name, meaning in dh.settings.TIE_RULES.items():
        assert f"{name}\n    {meaning}\n" in text


def completions(*words: str) -> list[str]:
    """What a shell is offered for the last word."""
    environment = {
        "_DEADHEAT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["deadheat", *words]),
        "COMP_CWORD": str(len(words)),
    }
    found = CliRunner().invoke(cli.main, env=environment, prog_name="deadheat")
    return [line.partition(",")[2] for line in found.stdout.splitlines()]


def test_measures_and_tie_rules_are_completed():
    assert "nDCG@10" in completions("eval", "q", "r", "-m", "nd")
    assert completions("eval", "q", "r", "-m", "MRR@10,ndc")[-1] == "MRR@10,nDCG@10"
    assert completions("eval", "q", "r", "-m", "MRR@10")[:1] == ["MRR@10"]
    assert completions("eval", "q", "r", "--tie-break", "id_") == ["id_desc", "id_asc"]


def test_the_ending_of_the_output_names_the_format(folder):
    for ending, style in cli_output.SUFFIXES.items():
        found = run("eval", "q", "r", "o", "-m", "MRR", "-o", f"out{ending}")
        assert (found.stdout, found.stderr) == ("", f"wrote out{ending}\n")
        as_asked = run("eval", "q", "r", "o", "-m", "MRR", "--format", style).stdout
        assert (folder / f"out{ending}").read_text() == as_asked
    assert run("eval", "q", "r", "-o", "x.CSV").stderr == "wrote x.CSV\n"
    run("eval", "q", "r", "-o", "y.csv", "--format", "csv")
    run("eval", "q", "r", "-o", "z.csv", "--format", "latex")
    assert "tabular" in (folder / "z.csv").read_text()
    assert (folder / "x.CSV").read_text().startswith("run,measure,")


def last_lines(*words: str) -> str:
    """The last paragraph of what a command prints, as one line."""
    return " ".join(run(*words).stdout.rpartition("\n\n")[2].split())


def test_the_last_lines_say_what_ties_do_and_the_remedy(folder, monkeypatch):
    said = last_lines("eval", "q", "r", "o", "-m", "Recall@2", "-m", "MRR")
    assert said.startswith("Ties can move Recall@2 of r by 0.2500;")
    found = run("check", "q", "r", "-m", "Recall@2").stdout
    assert " ".join(found[found.index("Remedy") :].split()) in said
    monkeypatch.setattr("deadheat.cli.findings.SMALL", 0)  # a large file is not read again
    said = last_lines("eval", "q", "r", "o", "-m", "Recall@2", "-m", "MRR")
    assert "Remedy report the mean over tie orders (0.8750)" in said
    assert "deadheat check q r -m Recall@2" in said
    assert "by 25.00 points" in last_lines("eval", "q", "r", "-m", "Recall@2", "--percent")
    quiet = run("eval", "q", "o", "-m", "Recall@2").stdout.splitlines()[-1]
    assert quiet == "Ties cannot move any of these values."
    # what is read by machines, or printed in a paper, ends as it did
    for style in ("csv", "json", "markdown", "latex", "html"):
        assert "Ties can move" not in run("eval", "q", "r", "--format", style).stdout
    piped = run("eval", "q", "-", "-m", "Recall@2", stdin=RUN).stdout
    assert "Remedy" in piped and "deadheat check" not in piped


def test_a_diagnosis_begins_with_effect_cause_and_remedy(folder):
    found = run("diagnose", "q", "r", "-m", "Recall@2").stdout.split("\n\n")
    checked = run("check", "q", "r", "-m", "Recall@2").stdout
    assert found[1] == checked.rstrip("\n")
    assert [line.split()[0] for line in checked.splitlines() if line[0] != " "] == [
        "Effect",
        "Cause",
        "Remedy",
    ]
    assert "deadheat diagnose QRELS r" in run("diagnose", "r").stdout.splitlines()[-1]
    assert "nothing to do" in run("diagnose", "q", "o").stdout


def test_the_last_line_of_a_comparison(folder):
    said = run("compare", "q", "r", "o", "-m", "Recall@2").stdout.splitlines()[-1]
    assert said == (
        "Ties alone decide whether r or o is better in Recall@2: under random tie-breaking r wins "
        "0% of the time, o 50%, 50% are draws. Undecided because of ties: 1 of 1 comparisons."
    )
    (folder / "p").write_text(RUN.replace("d3 3 0.5", "d3 3 0.3"))
    said = run("compare", "q", "p", "o", "-m", "Recall@2").stdout.splitlines()[-1]
    assert said == "Ties change none of these verdicts."
    # many queries in which the order of the input hides that one run is worse
    grades, good, tied = [], [], []
    for q in range(12):
        grades.append(f"q{q} 0 d1 1")
        good += [f"q{q} Q0 d1 1 1 t", f"q{q} Q0 d2 2 0 t"]
        tied += [f"q{q} Q0 d1 1 1 t", f"q{q} Q0 d2 2 1 t"]
    good[:2] = ["q0 Q0 d1 1 0 t", "q0 Q0 d2 2 1 t"]
    for name, lines in {"many": grades, "good": good, "tied": tied}.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    said = run("compare", "many", "good", "tied", "-m", "MRR").stdout.splitlines()[-1]
    assert said == (
        "With ties in input order, tied beats good in MRR; in the mean over all tie orders, good "
        "is better by 0.2083. Decision errors: 1 of 1 comparisons."
    )


def test_a_run_by_another_name(folder):
    text = run("eval", "q", "old=r", "new=o", "-m", "MRR", "--format", "markdown").stdout
    assert [line.split("|")[1].strip() for line in text.splitlines()[2:4]] == ["old", "new"]
    data = json.loads(run("eval", "q", "old=r", "--format", "json").stdout)
    assert (data[0]["provenance"]["label"], data[0]["provenance"]["run"]) == ("old", "r")
    assert run("eval", "q", "old=r", "-m", "MRR").stdout.startswith("old · 2 queries")
    assert "warning: late: 1 query judged" in run("eval", "q", "late=w", "-m", "MRR").stderr
    # a file that is there means itself, whatever is in its name
    (folder / "k1=0.9").write_text(RUN)
    assert run("eval", "q", "k1=0.9", "-m", "MRR").stdout.startswith("k1=0.9 · 2 queries")
    assert "identical" in run("compare", "q", "old=r", "new=r", "-m", "MRR").stdout
    assert "Ties of old" in run("diagnose", "q", "old=r").stdout
    found = run("eval", "q", "r", "r", status=2)
    assert "r is given twice" in found.stderr and "again=r" in found.stderr
    assert "x is given twice" in run("eval", "q", "x=r", "x=o", status=2).stderr


def test_a_diagnosis_takes_judgements_first_or_by_name(folder):
    first = run("diagnose", "q", "r", "-m", "MRR", "--enough-within", "0.5").stdout
    assert "MRR ± 0.5: " in first
    named = run("diagnose", "--qrels", "q", "r", "-m", "MRR", "--enough-within", "0.5")
    assert named.stdout == first
    assert "swapped" in run("diagnose", "r", "q", "-m", "MRR", status=2).stderr
    assert run("diagnose", "q", "-", "-m", "MRR", stdin=RUN).exit_code == 0
    assert run("diagnose", "-", "r", "-m", "MRR", stdin=QRELS).exit_code == 0


def test_measures_in_one_word_and_one_switch_for_percent(folder):
    both = run("eval", "q", "r", "-m", "nDCG@10,MRR@10", "--format", "csv").stdout
    assert run("eval", "q", "r", "-m", "nDCG@10", "-m", "MRR@10", "--format", "csv").stdout == both
    assert "did you mean nDCG?" in run("eval", "q", "r", "-m", "nDCG10", status=2).stderr
    assert " 75.00 " in run("diagnose", "q", "r", "-m", "MRR", "--percent").stdout
    assert run("eval", "q", "r", "--fraction").stdout == run("eval", "q", "r").stdout


def test_notes_on_several_runs_name_them(folder):
    (folder / "long").write_text(RUN + "q2 Q0 d8 3 -1 t\nq2 Q0 d9 4 -1 t\n")
    text = run("eval", "q", "r", "long", "-m", "Recall@10").stdout
    note = next(line for line in text.splitlines() if "inside a tie group" in line)
    assert note.startswith("r, long: ") or note.startswith("long: ") or note.startswith("r: ")


def test_the_query_that_ties_move_most_is_drawn(folder):
    pytest.importorskip("matplotlib")
    found = run("plot", "list", "q", "r", "-m", "Recall@2", "-o", "list.svg")
    assert "query q1: largest range of Recall@2, 0.5000" in found.stderr
    assert "wrote list.svg" in found.stderr
    assert "query q1" in found.stdout


@pytest.mark.parametrize("style", cli_output.STYLES)
def test_output_can_be_redirected_to_a_stream_of_text(folder, style):
    """As `contextlib.redirect_stdout` does with io.StringIO: a stream without bytes below."""
    (folder / "é").write_text(RUN)
    words = ["eval", "q", "é", "-m", "MRR", "--per-query", "--format", style]
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        cli.main(words, standalone_mode=False)
    assert stream.getvalue() == run(*words).stdout
    assert "MRR" in stream.getvalue()
