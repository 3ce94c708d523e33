"""The command: exit statuses, formats, output files, and never a traceback."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import deadheat as dh
from deadheat import cli
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
        assert re.search(rf"^{re.escape(measure.name)}( |$)", text, re.MULTILINE)
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
    assert "oblivious = as reported (input order)" in text
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
    assert run(*args, "table").stdout.strip() == str(result).strip()
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
    (["eval", "q", "r", "-o", ""], "empty"),
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
