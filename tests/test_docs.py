"""Every code block of README and docs runs; where output is shown, it is what is printed."""

from __future__ import annotations

import pytest
from pages import ROOT, deadheat, run_page

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
