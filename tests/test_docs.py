"""Every code block of README and docs runs; where output is shown, it is what is printed."""

from __future__ import annotations

import re

import pytest
from pages import ROOT, deadheat, run_page, run_python

import deadheat as dh

# Recipes need their hosts: tests/hosts runs them.
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").glob("**/*.md") if page.parent.name != "recipes"),
]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder like that of a reader who has run the demo."""
    monkeypatch.chdir(tmp_path)
    deadheat("demo", "--files", "demo")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_run_one_after_the_other(page, workplace):
    run_page(page)


def test_the_page_of_commands_is_what_the_commands_say():
    stored = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert stored == run_python(str(ROOT / "docs" / "make_command_line.py")), "make pages"


def test_every_page_is_in_the_navigation_and_every_picture_is_there():
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page for page in pages if f": {page}\n" not in navigation] == []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"(?:\]\(|src(?:set)?=\")([\w/.-]+\.(?:svg|png))", text):
            assert (page.parent / path).is_file(), f"{page.name}: {path}"


def test_every_public_name_is_in_the_reference():
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    elsewhere = {*dir(dh.measures), *dir(dh.errors)}  # measures.md, and a module as a whole
    names = [name for name in dh.__all__ if name not in elsewhere or name == "Measure"]
    shown = r"^(?:::: |      heading: )deadheat\.(?:\w+\.)*{}\b"
    assert [n for n in names if not re.search(shown.format(n), reference, re.MULTILINE)] == []
