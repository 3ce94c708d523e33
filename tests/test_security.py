"""Untrusted text and files: no control of a terminal, no foreign files, no wider rights."""

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

ORDERS = "\x1b[31mred\x1b]0;title\x07\x9b2J\x08\r\u202etxt\u2066\x7f\ud800"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def deadheat(*words: object, status: int = 0, color: bool = True):
    """Call the command as on a terminal: click leaves escape sequences in."""
    done = CliRunner().invoke(main, [str(word) for word in words], color=color)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == status, done.output
    return done


@given(st.text())
def test_printable_text_gives_no_orders(text):
    shown = printable(text)
    assert not OBEYED.search(shown) and "\n" not in shown and "\t" not in shown
    shown.encode()  # half characters included
    others = re.compile("[\n\t\ufffe\uffff\ud800-\udfff]")
    assert shown == text or OBEYED.search(text) or others.search(text)
    assert printable(text, keep="\n").count("\n") == text.count("\n")


def test_letters_of_every_script_stay():
    text = "naïve 漢字 العربية עברית 👩‍👩‍👧 q₁ −0.5"
    assert printable(text) == text


@pytest.mark.parametrize("style", ["table", "markdown", "latex", "html"])
def test_no_table_gives_orders(style):
    frame = pl.DataFrame({"id": [ORDERS.replace("\ud800", "")], "x": [0.5]})
    columns = [Column("id", "name", title=ORDERS, over=ORDERS), Column("x", title="[bold]x[/nope]")]
    table = Table(frame, columns, title=ORDERS, notes=[ORDERS])
    text = render([Heading(ORDERS), ORDERS, table], style)
    assert not OBEYED.search(text), style
    assert "x1b" in text and "u202e" in text
    assert "[bold]x" in text.replace(r"\[", "[").replace("{[}", "["), "brackets are no markup"


@pytest.mark.parametrize("style", STYLES)
def test_commands_give_no_orders_to_a_terminal(tmp_path, monkeypatch, style):
    """Ids, names of files and the texts of errors and warnings."""
    monkeypatch.setattr(cli_output, "on_terminal", lambda: True)
    query, doc, name = (f"{what}{ORDERS[:-1]}" for what in ("q", "d", "run"))
    qrels, run = tmp_path / "qrels.json", tmp_path / f"{name}.json".replace("/", "")
    qrels.write_text(json.dumps({query: {doc: 1}, f"missing {query}": {doc: 1}}))
    run.write_text(json.dumps({query: {doc: 0.5, "d2": 0.5}}))
    said = deadheat("eval", qrels, run, "--per-query", "--format", style).output
    assert "warning" in said and not OBEYED.search(said), repr(said)
    for words in (
        ("eval", qrels, tmp_path / f"{name}.absent"),
        ("eval", qrels, run, f"--tie-break={ORDERS[:-1]}"),
        ("table", tmp_path, name),
        ("diagnose", f"{run}.absent"),
    ):
        said = deadheat(*words, status=2).output
        assert "x1b" in said and not OBEYED.search(said), repr(said)


def test_errors_and_warnings_of_the_library_give_no_orders(tmp_path):
    with pytest.raises(InputError) as caught:
        dh.read_run(tmp_path / f"{ORDERS[:-1]}.run")
    assert r"\x1b[31m" in str(caught.value) and not OBEYED.search(str(caught.value))
    with pytest.warns(dh.DeadheatWarning) as warned:
        from deadheat._internal.remarks import emit_warnings

        emit_warnings([str(warning("{name} is odd", name=ORDERS))])
    assert not OBEYED.search(str(warned[0].message))


def test_brackets_in_a_models_name_are_no_markup_on_a_terminal(monkeypatch):
    """The bar of `deadheat run`, drawn to what says that it is a terminal."""
    import io

    from deadheat.cli.progress import progress_bar

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with progress_bar() as progress:
        for name in ("[/bold]", "[red]model[/]", "[link=file:///x]", f"{ORDERS} in bf16"):
            progress(f"{name}: logits", 0, 2)
            progress(f"{name}: logits", 1, 2)
    drawn = screen.getvalue()
    assert "[/bold]" in drawn and r"\x1b]0" in drawn
    assert "\x1b]0;" not in drawn and "\x9b" not in drawn and "\u202e" not in drawn


def test_links_in_markdown_are_text():
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


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_replaced_file_keeps_its_mode(tmp_path):
    (tmp_path / "q").write_text("q 0 d 1\n")
    (tmp_path / "r").write_text("q Q0 d 1 0.5 t\n")
    out = tmp_path / "out.csv"
    words = ("eval", tmp_path / "q", tmp_path / "r", "--format", "csv", "-o", out, "--force")
    mask = os.umask(0o027)
    try:
        deadheat(*words)
        assert stat.S_IMODE(out.stat().st_mode) == 0o640, "a new file has the usual mode"
        for mode in (0o600, 0o444, 0o755, 0o666):
            out.chmod(mode)
            deadheat(*words)
            assert stat.S_IMODE(out.stat().st_mode) == mode
    finally:
        os.umask(mask)


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_private_file_is_private_all_the_time(tmp_path, monkeypatch):
    private = tmp_path / "private"
    private.write_bytes(b"old")
    private.chmod(0o600)
    seen = []
    real = os.fsync

    def looking(handle):
        seen.extend(stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob(".deadheat.*"))
        real(handle)

    monkeypatch.setattr(os, "fsync", looking)
    write_whole(private, b"new")
    assert seen == [0o600]
    assert private.read_bytes() == b"new" and list(tmp_path.iterdir()) == [private]
