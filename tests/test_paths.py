"""Paths with special characters are used literally."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

import deadheat as dh
from deadheat.cli import main

QRELS = {"q": {"a": 1, "c": 2}, "r": {"b": 1}}
RUN = {"q": {"a": 0.5, "b": 0.5, "c": 0.25}, "r": {"b": 1.0, "c": 1.0}}

NAMES = [
    "g[1]",
    "*",
    "a?b",
    "with space ",
    "'quotes\"",
    "back\\slash",
    "new\nline",
    "tab\t",
    "#hash%20&$HOME~",
    "{brace},(x);|<>",
    "-dash",
    "--force",
    ".hidden",
    "ünïcödé 漢字 🐎",
    "[red]markup[/]",
    "n" * 200,
    "\x1b[31m\x07",
    "file:x",
    "a=b",
    "\udcff\udcfe",  # not UTF-8
]


@pytest.mark.skipif(os.name != "posix", reason="the names are valid on POSIX only")
@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:20])
def test_path_is_used_literally(tmp_path, monkeypatch, name):
    """The folders next to it would match if the path were a pattern or were expanded."""
    monkeypatch.chdir(tmp_path)
    decoy_data = {"q": {"a": 1}, "z": {"z": 1}}
    for other in ("g1", "ab", "axb", "x", "1", "HOME"):
        Path(other).mkdir()
        (Path(other) / "r.json").write_text(json.dumps(decoy_data))
        (Path(other) / "q.json").write_text(json.dumps(decoy_data))
    folder = Path(name)
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"the file system does not allow this name: {error}")
    run, qrels = folder / f"{name[:100]}.json", folder / "q.json"
    run.write_text(json.dumps(RUN))
    qrels.write_text(json.dumps(QRELS))
    expected = dh.evaluate(QRELS, RUN, ["MRR"])["MRR"]
    assert dh.evaluate(qrels, run, ["MRR"])["MRR"] == expected
    out = folder / "out.json"
    args = ["eval", "-m", "MRR", "--format", "json", "-o", str(out), "--", str(qrels), str(run)]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, done.output
    (result,) = json.loads(out.read_text())
    assert result["measures"]["MRR"]["expected"] == expected.expected
    done = CliRunner().invoke(main, ["eval", "--", str(qrels), str(run), "x/r.json"])
    assert done.exit_code == 0 and "\x1b" not in done.output, done.output
    done = CliRunner().invoke(main, ["diagnose", "--", str(run)])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [run.name, "q.json", "out.json"]
    )
