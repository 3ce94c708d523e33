"""Tables: all kinds of columns in all styles."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import polars as pl
import pytest

from deadheat.errors import InputError
from deadheat.tables import STYLES, Column, Heading, Table, number, render, standing_digits
from deadheat.tables.cells import WRITERS, cell


@pytest.mark.parametrize(
    ("kind", "values", "fraction", "percent"),
    [
        ("name", ["bm25"], "bm25", "bm25"),
        ("value", [0.63571], "0.6357", "63.57"),
        ("value", [None], "–", "–"),
        ("signed", [0.0328], "+0.0328", "+3.28"),
        ("signed", [-0.0328], "−0.0328", "−3.28"),
        ("signed", [-1e-9], "0.0000", "0.00"),
        ("word", ["A is better"], "A is better", "A is better"),
        ("significant", [0.66853, 0.0113], "0.66x", "66.x"),
        ("significant", [0.0, 0.0113], "0.0000", "0.00"),
        ("significant", [None, None], "–", "–"),
        ("significant", [0.66853, 0.0], "0.6685", "66.85"),
        ("significant", [0.66853, None], "0.6685", "66.85"),
        ("significant signed", [0.0328, 0.0113], "+0.03x", "+3.x"),
        ("significant signed", [-0.0328, 0.0113], "−0.03x", "−3.x"),
        ("span", [0.5675, 0.7167], "0.5675–0.7167", "56.75–71.67"),
        ("span", [0.5, 0.5], "0.5000", "50.00"),
        ("interval", [-0.01, 0.02], "[−0.0100, +0.0200]", "[−1.00, +2.00]"),
        ("interval", [None, None], "–", "–"),
        ("count", [12345], "12,345", "12,345"),
        ("ranks", [1, 3], "1–3", "1–3"),
        ("ranks", [2, 2], "2", "2"),
        ("share", [0.341], "34.1%", "34.1%"),
        ("ratio", [1.0013], "1.0013", "1.0013"),
        ("distance", [0.00391], "0.0039", "0.0039"),
        ("distance", [1.79e-7], "1.8e−07", "1.8e−07"),
        ("distance", [0.0], "0", "0"),
        ("distance", [None], "–", "–"),
        ("probability", [0.0001], "<0.0005", "<0.0005"),
        ("probability", [1.0, "certain"], "1", "1"),
        ("probability", [0.312, "sampled", 0.0081], "0.312±0.009", "0.312±0.009"),
        ("probability", [0.99999, "exact"], ">0.9995", ">0.9995"),
        ("flag", [True], "yes", "yes"),
    ],
)
def test_cell_text_of_each_kind(kind, values, fraction, percent):
    assert str(cell(kind, values, percent=False)) == fraction
    assert str(cell(kind, values, percent=True)) == percent


def test_every_kind_has_a_writer():
    from typing import get_args

    from deadheat.tables import Kind

    assert set(WRITERS) == set(get_args(Kind))


@pytest.mark.parametrize(
    ("std", "digits"), [(None, 2), (0.0, 2), (0.0004, 2), (0.0011, 1), (0.011, 0), (0.3, 0)]
)
def test_standing_digits_of_percentages(std, digits):
    assert standing_digits(std, percent=True) == digits


def table(**options) -> Table:
    frame = pl.DataFrame(
        {"who": ["x.run", "x.run", "b|y"], "m": [0.5, 0.25, None], "sure": [True, False, False]}
    )
    columns = (
        Column("who", "name"),
        Column("m", title="E[M]", over="hps", bold="sure"),
    )
    return Table(frame, columns, "Title", ["a note"], grouped=1, **options)


def test_table_in_all_styles():
    rendered = {style: render([table()], style) for style in STYLES}
    assert rendered["markdown"].splitlines() == [
        "| who | hps E[M] |",
        "| --- | ---: |",
        "| x.run | **0.5000** |",
        "| x.run | 0.2500 |",
        "| b\\|y | – |",
        "",
        "a note",
    ]
    assert rendered["latex"].splitlines()[3:7] == [
        r" & hps \\",
        r"who & E[M] \\",
        r"\midrule",
        r"x.run & \textbf{0.5000} \\",
    ]
    assert rendered["latex"].endswith("% a note")
    assert rendered["csv"].splitlines()[0] == "who,m,sure"
    assert json.loads(rendered["json"])[2] == {"who": "b|y", "m": None, "sure": False}
    assert "<b>0.5000</b></td>" in rendered["html"] and "></caption>" in rendered["html"]
    lines = rendered["table"].splitlines()
    assert lines[0] == "Title" and lines[-1] == "a note"
    assert sum("x.run" in line for line in lines) == 1  # the name of a group is shown once


def test_headings_sentences_and_tables_in_one_document():
    parts = [Heading("Ties of x"), "A sentence with [brackets].", table()]
    markdown = render(parts, "markdown")
    assert markdown.startswith("# Ties of x\n\nA sentence with [brackets].\n\n## Title\n\n| who")
    assert render(parts, "html").startswith("<h1>Ties of x</h1>\n\n<p>A sentence")
    assert render(parts, "latex").startswith("% Ties of x\n\n% A sentence")
    assert "A sentence with [brackets]." in render(parts, "table")
    assert render(parts, "csv").startswith("who,m,sure")


def test_narrow_terminal_uses_the_narrow_table():
    frame = pl.DataFrame({"short": [1]})
    narrow = Table(frame, (Column("short", "count"),))
    assert "E[M]" in render([table(narrow=narrow)], "table", width=60)
    assert "E[M]" not in render([table(narrow=narrow)], "table", width=12)


def test_unknown_style_raises():
    with pytest.raises(InputError, match=r"style 'papyrus'.* table, "):
        render([table()], "papyrus")


def test_number_has_four_decimals():
    assert number(0.5) == "0.5000"


SPECIAL_CHARS = [
    "[k1=0.9] a|b",
    "*star",
    "50% & more_of $x$",
    r"back\slash {y} ^ ~ #1",
    "− ± – · ≈ × < > …",
]


def latex_document(text: str) -> str:
    packages = re.findall(r"^% (\\usepackage.*)$", text, re.MULTILINE)
    lines = [r"\documentclass{article}", *dict.fromkeys(packages), r"\begin{document}"]
    return "\n".join([*lines, text, r"\end{document}"])


def test_latex_groups_have_one_name_and_a_rule_between():
    lines = render([table()], "latex").splitlines()
    assert lines[0] == r"% \usepackage{booktabs}"
    assert [line.split(" & ")[0] for line in lines[6:10]] == [
        "x.run",
        "",
        r"\midrule",
        r"b\textbar{}y",
    ]


def test_latex_digits_that_are_not_significant_are_grey():
    frame = pl.DataFrame({"m": [0.74123], "std": [0.0113]})
    text = render([Table(frame, [Column(("m", "std"), "significant")])], "latex", percent=True)
    assert r"74.\textcolor{gray}{12} \\" in text and "x}" not in text.replace("gray}", "")
    assert text.startswith(r"% \usepackage{booktabs,xcolor}")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles_with_pdflatex(tmp_path):
    frame = pl.DataFrame(
        {"who": SPECIAL_CHARS, "m": [0.5, -0.5, None, 0.1, 0.2], "std": [0.01] * 5}
    )
    columns = (
        Column("who", "name"),
        Column("m", "signed"),
        Column(("m", "std"), "significant", over="%"),
    )
    table_ = Table(frame, columns, "a % title", ["100 % \\ of it"], grouped=1)
    document = latex_document(render([Heading("x_y %"), table_, table()], "latex"))
    (tmp_path / "t.tex").write_text(document, encoding="utf-8")
    result = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    log = result.stdout.decode(errors="replace")
    assert result.returncode == 0, log[-2000:]
    assert "Missing character" not in log
