"""Run every code block of README and docs, and compare the output they show."""

from __future__ import annotations

import re

import pytest
from pages import ROOT, deadheat, run_page, run_python

import deadheat as dh

# Recipes need host libraries, so tests/hosts runs them.
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").glob("**/*.md") if page.parent.name != "recipes"),
]


@pytest.fixture
def demo_folder(tmp_path, monkeypatch):
    """Change to a folder with the files of the demo, which the pages read."""
    monkeypatch.chdir(tmp_path)
    deadheat("demo", "--files", "demo")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_blocks_run_in_order(page, demo_folder):
    run_page(page)


def test_command_line_page_is_up_to_date():
    stored = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert stored == run_python(str(ROOT / "docs" / "make_command_line.py")), "make pages"


def test_navigation_has_every_page_and_every_image_exists():
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page for page in pages if f": {page}\n" not in navigation] == []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"(?:\]\(|src(?:set)?=\")([\w/.-]+\.(?:svg|png))", text):
            assert (page.parent / path).is_file(), f"{page.name}: {path}"


def test_reference_has_every_public_name():
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    # measures.md documents the measures; the reference documents the errors as one module.
    documented_elsewhere = {*dir(dh.measures), *dir(dh.errors)}
    names = [name for name in dh.__all__ if name not in documented_elsewhere or name == "Measure"]
    heading = r"^(?:::: |      heading: )deadheat\.(?:\w+\.)*{}\b"
    assert [n for n in names if not re.search(heading.format(n), reference, re.MULTILINE)] == []
