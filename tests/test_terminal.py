"""Tables in a terminal: they fit its width, and all rows keep their labels."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import polars as pl
import pytest
from rich.cells import cell_len
from rich.console import Console

from deadheat.demo import recordings, write_files
from deadheat.tables import Column, Table, render, rich_parts
from deadheat.tables.terminal import fit, shorten_name

MANY = """
import sys
from deadheat.cli import main
for line in sys.argv[1:]:
    main(line.split(), standalone_mode=False)
"""


def run_in_terminal(columns: int, folder: Path, *commands: str, env: dict[str, str] | None = None):
    """Return what commands print to a pseudo-terminal, one after the other."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 100, columns, 0, 0))
    plain = {name: v for name, v in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-c", MANY, *commands],
        **dict.fromkeys(("stdin", "stdout", "stderr"), child),
        cwd=folder,
        env={**plain, "TERM": "xterm-256color", **(env or {})},
    )
    os.close(child)
    output = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:  # Linux raises when the other end of the terminal is closed
            break
        if not part:
            break
        output += part
    os.close(parent)
    assert process.wait() == 0, output.decode()
    return output.decode().replace("\r\n", "\n")


def remove_colour(text: str) -> str:
    """Remove escape sequences of colours and of progress bars."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Write recorded runs under long file names."""
    folder = tmp_path_factory.mktemp("terminal")
    write_files(recordings()["softmax"], folder)
    for regime in ("native", "head", "fp32"):
        name = f"qwen2.5-coder-0.5b-instruct-yes-no-reranker-{regime}-of-the-model.run"
        (folder / f"softmax-{regime}.run").rename(folder / name)
    return folder


def parse_tables(text: str) -> list[list[list[str]]]:
    """Return the cells of each table by section; the headings are the first section."""
    tables: list[list[list[str]]] = []
    for line in text.splitlines():
        if line.startswith("┏"):
            tables.append([[]])
        elif line.startswith(("├", "┡")):
            tables[-1].append([])
        elif line.startswith(("│", "┃")):
            tables[-1][-1].append([cell.strip() for cell in re.split("[│┃]", line)[1:-1]])
    return tables


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_the_terminal_and_keep_all_labels(folder, columns):
    runs = " ".join(sorted(path.name for path in folder.glob("qwen*.run")))
    text = remove_colour(
        run_in_terminal(
            columns,
            folder,
            f"eval softmax-qrels.txt {runs}",
            f"eval softmax-qrels.txt {runs} --per-query -m MRR@10",
            f"compare softmax-qrels.txt {runs} -m nDCG@10 -m MRR@10 --resamples 99",
            f"diagnose softmax-qrels.txt {runs.split()[-1]} -m nDCG@10 --details",
        )
    )
    lines = [line for line in text.splitlines() if not line.startswith("warning: ")]
    assert max(map(cell_len, lines)) <= columns
    labels = {"run", "measure", "query", "system", "A", "B", "verdict", "size", "format"}
    tables = parse_tables(text)
    assert len(tables) >= 6
    for headings, *sections in tables:
        names = [i for i, name in enumerate(headings[-1]) if name in labels]
        assert names
        for section in sections:
            for i in names:
                assert section[0][i] not in ("", "…"), section
    pairs = next(table for table in tables if "verdict" in table[0][-1])
    column = pairs[0][-1].index("verdict")
    for row in (row for section in pairs[1:] for row in section):
        assert row[column] in (
            "not significant",
            "undecided: ties",
            "decision error",
            "A is better",
            "B is better",
        )
    assert {row[0] for section in tables[0][1:] for row in section} == {
        "",
        "…-fp32-…",
        "…-head-…",
        "…-native-…",
    }
    hidden = text.count("--wide shows all")
    assert hidden >= 2 if columns == 80 else hidden >= 1


def test_wide_shows_every_column(folder):
    runs = " ".join(sorted(path.name for path in folder.glob("qwen*.run")))
    text = remove_colour(run_in_terminal(80, folder, f"eval softmax-qrels.txt {runs} --wide"))
    [(headings, *_)] = parse_tables(text)
    expected = "run measure expected ± tie std worst best range oblivious bias"
    assert " ".join(headings[-1]) == expected
    assert "hidden" not in text


def table(names: list[str], **options: object) -> Table:
    n = len(names)
    frame = pl.DataFrame(
        {
            "run": names,
            "kind": ["one kind"] * n,
            "verdict": ["A is better"] * n,
            "expected": [0.5] * n,
            "std": [0.01] * n,
            "worst": [0.25] * n,
            "best": [0.75] * n,
        }
    )
    span = Column(("worst", "best"), "span", title="worst–best")
    columns = (
        Column("run", "name"),
        Column("kind", "name"),
        Column("verdict", "word"),
        Column("expected"),
        Column("std", title="± tie std", drop_priority=1),
        Column("worst", drop_priority=2, instead=span),
        Column("best", drop_priority=2),
    )
    return Table(frame, columns, **options)


def headings_at(width: int, names: list[str]) -> list[str]:
    form = fit(table(names), percent=False, width=width)
    return [column.heading for column in form.columns]


def test_columns_are_dropped_in_order_of_priority():
    names = ["bm25", "bf16-native"]
    every = ["run", "kind", "verdict", "expected", "± tie std", "worst", "best"]
    assert headings_at(200, names) == every
    # A column with one value for all rows moves to the title; headings wrap.
    without_kind = ["run", "verdict", "expected", "± tie\nstd", "worst", "best"]
    assert headings_at(75, names) == without_kind
    assert headings_at(60, names) == ["run", "verdict", "expected", "worst", "best"]
    assert headings_at(57, names) == ["run", "verdict", "expected", "worst–best"]
    # Names, the verdict and the first value are never dropped.
    assert headings_at(20, names) == ["run", "verdict", "expected"]


def test_hidden_columns_are_listed_and_a_shared_value_moves_to_the_title():
    text = render([table(["bm25", "bf16-native"], title="2 runs")], "table", width=60)
    assert text.startswith("2 runs · kind one kind\n")
    assert text.endswith("\nhidden columns: ± tie std (--wide shows all)")
    assert "hidden" not in render([table(["bm25", "bf16-native"])], "table")


@pytest.mark.parametrize("width", range(35, 120, 7))
def test_long_names_lose_their_common_parts(width):
    names = [f"a-very-long-name-of-a-retrieval-system-{i}-with-an-end" for i in range(3)]
    text = render([table(names)], "table", width=width)
    assert max(map(cell_len, text.splitlines())) <= width
    [(_, rows)] = parse_tables(text)
    shown = [row[0] for row in rows if row[0]]
    assert shown == (names if "-retrieval-" in text else [f"…-{i}-…" for i in range(3)])


def test_shorten_name_omits_the_middle():
    assert shorten_name("abcdefghij", 10) == "abcdefghij"
    assert shorten_name("abcdefghij", 7) == "abc…hij"
    assert shorten_name("abcdefghij", 6) == "abc…ij"
    assert cell_len(shorten_name("漢字漢字漢字漢字", 7)) <= 7


def test_digits_that_are_not_significant_are_grey_or_x():
    frame = pl.DataFrame({"m": [0.66853], "std": [0.0113]})
    significant = Table(frame, (Column(("m", "std"), "significant"),))
    assert "66.x" in render([significant], "table", percent=True)
    assert "66.85" not in render([significant], "table", percent=True)
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system="256", width=80)
    terminal.print(rich_parts([significant], percent=True))
    assert "66.\x1b[2m85" in terminal.file.getvalue()
