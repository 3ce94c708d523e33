"""Every recipe of the documentation and every example runs, where its host is installed."""

from __future__ import annotations

import pytest
from needed import HOSTS, needs
from pages import ROOT, run_page, run_python

RECIPES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

# What the hosts warn about is theirs.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe_runs_as_pasted(page, tmp_path, monkeypatch):
    needs(page.stem)
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_an_example_runs(script, tmp_path, monkeypatch):
    needs(script.stem.replace("_", "-"))
    monkeypatch.chdir(tmp_path)
    assert run_python(str(script)).strip()


def test_the_table_names_every_recipe_and_example():
    assert {page.stem for page in RECIPES} <= set(HOSTS)
    assert {script.stem.replace("_", "-") for script in EXAMPLES} <= set(HOSTS)
