"""Untrusted text is escaped in output; files that are replaced keep their mode."""

from __future__ import annotations

import json
import os
import re
import stat
import sys

import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt

import deadheat as dh
from deadheat._internal.output import write_whole
from deadheat._internal.remarks import warning
from deadheat.cli import main, output as cli_output
from deadheat.errors import InputError, printable
from deadheat.tables import STYLES, Column, Heading, Table, render

UNTRUSTED = "\x1b[31mred\x1b]0;title\x07\x9b2J\x08\r\u202etxt\u2066\x7f\ud800"
CONTROL_CHARS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def deadheat(*arguments: object, status: int = 0, color: bool = True):
    """Run a command as on a terminal, where click keeps escape sequences."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], color=color)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == status, result.output
    return result


@given(st.text())
def test_printable_removes_control_characters(text):
    shown = printable(text)
    assert not CONTROL_CHARS.search(shown) and "\n" not in shown and "\t" not in shown
    shown.encode()  # fails if a surrogate is left
    others = re.compile("[\n\t\ufffe\uffff\ud800-\udfff]")
    assert shown == text or CONTROL_CHARS.search(text) or others.search(text)
    assert printable(text, keep="\n").count("\n") == text.count("\n")


def test_printable_keeps_letters_of_all_scripts():
    text = "naïve 漢字 العربية עברית 👩‍👩‍👧 q₁ −0.5"
    assert printable(text) == text


@pytest.mark.parametrize("style", ["table", "markdown", "latex", "html"])
def test_tables_have_no_control_characters(style):
    frame = pl.DataFrame({"id": [UNTRUSTED.replace("\ud800", "")], "x": [0.5]})
    columns = [
        Column("id", "name", title=UNTRUSTED, over=UNTRUSTED),
        Column("x", title="[bold]x[/nope]"),
    ]
    table = Table(frame, columns, title=UNTRUSTED, notes=[UNTRUSTED])
    text = render([Heading(UNTRUSTED), UNTRUSTED, table], style)
    assert not CONTROL_CHARS.search(text), style
    assert "x1b" in text and "u202e" in text
    assert "[bold]x" in text.replace(r"\[", "[").replace("{[}", "["), (
        "brackets must not be parsed as markup"
    )


@pytest.mark.parametrize("style", STYLES)
def test_command_output_has_no_control_characters(tmp_path, monkeypatch, style):
    """In ids, file names, errors and warnings."""
    monkeypatch.setattr(cli_output, "on_terminal", lambda: True)
    query, doc, name = (f"{what}{UNTRUSTED[:-1]}" for what in ("q", "d", "run"))
    qrels, run = tmp_path / "qrels.json", tmp_path / f"{name}.json".replace("/", "")
    qrels.write_text(json.dumps({query: {doc: 1}, f"missing {query}": {doc: 1}}))
    run.write_text(json.dumps({query: {doc: 0.5, "d2": 0.5}}))
    output = deadheat("eval", qrels, run, "--per-query", "--format", style).output
    assert "warning" in output and not CONTROL_CHARS.search(output), repr(output)
    for arguments in (
        ("eval", qrels, tmp_path / f"{name}.absent"),
        ("eval", qrels, run, f"--tie-break={UNTRUSTED[:-1]}"),
        ("table", tmp_path, name),
        ("diagnose", f"{run}.absent"),
    ):
        output = deadheat(*arguments, status=2).output
        assert "x1b" in output and not CONTROL_CHARS.search(output), repr(output)


def test_errors_and_warnings_have_no_control_characters(tmp_path):
    with pytest.raises(InputError) as caught:
        dh.read_run(tmp_path / f"{UNTRUSTED[:-1]}.run")
    assert r"\x1b[31m" in str(caught.value) and not CONTROL_CHARS.search(str(caught.value))
    with pytest.warns(dh.DeadheatWarning) as record:
        from deadheat._internal.remarks import emit_warnings

        emit_warnings([str(warning("{name} is odd", name=UNTRUSTED))])
    assert not CONTROL_CHARS.search(str(record[0].message))


def test_progress_bar_does_not_parse_markup_in_model_names(monkeypatch):
    """Draw the progress bar of `deadheat run` to a stream whose `isatty` is true."""
    import io

    from deadheat.cli.progress import progress_bar

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with progress_bar() as progress:
        for name in ("[/bold]", "[red]model[/]", "[link=file:///x]", f"{UNTRUSTED} in bf16"):
            progress(f"{name}: logits", 0, 2)
            progress(f"{name}: logits", 1, 2)
    drawn = screen.getvalue()
    assert "[/bold]" in drawn and r"\x1b]0" in drawn
    assert "\x1b]0;" not in drawn and "\x9b" not in drawn and "\u202e" not in drawn


def test_markdown_links_and_html_are_escaped():
    names = [
        "[click](http://evil.example)",
        "![x](//evil.example/x.png)",
        "<img src=x>",
        "www.evil.example",
        "a]: //evil.example",
        "&lt;b&gt;",
    ]
    table = Table(pl.DataFrame({"id": names}), [Column("id", "name")])
    reader = MarkdownIt("commonmark").enable("table")
    for text in (
        render([table], "markdown"),
        "\n\n".join(render([n, n], "markdown") for n in names),
    ):
        html = reader.render(text)
        assert "<a " not in html and "<img" not in html and "&amp;lt;b" in html
    assert r"http\://evil" in text and r"www\.evil" in text


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has file modes")
def test_replaced_file_keeps_its_mode(tmp_path):
    (tmp_path / "q").write_text("q 0 d 1\n")
    (tmp_path / "r").write_text("q Q0 d 1 0.5 t\n")
    out = tmp_path / "out.csv"
    arguments = ("eval", tmp_path / "q", tmp_path / "r", "--format", "csv", "-o", out, "--force")
    mask = os.umask(0o027)
    try:
        deadheat(*arguments)
        assert stat.S_IMODE(out.stat().st_mode) == 0o640, "a new file has the usual mode"
        for mode in (0o600, 0o444, 0o755, 0o666):
            out.chmod(mode)
            deadheat(*arguments)
            assert stat.S_IMODE(out.stat().st_mode) == mode
    finally:
        os.umask(mask)


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has file modes")
def test_temporary_file_has_the_mode_of_the_replaced_file(tmp_path, monkeypatch):
    private = tmp_path / "private"
    private.write_bytes(b"old")
    private.chmod(0o600)
    modes = []
    real = os.fsync

    def record_modes(handle):
        modes.extend(stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob(".deadheat.*"))
        real(handle)

    monkeypatch.setattr(os, "fsync", record_modes)
    write_whole(private, b"new")
    assert modes == [0o600]
    assert private.read_bytes() == b"new" and list(tmp_path.iterdir()) == [private]
