"""Every recipe of the documentation and every example runs, where its host is installed."""

from __future__ import annotations

import pytest
from needed import HOSTS, needs
from pages import ROOT, run_page, run_python
from stand_ins import give_tasks_data, make_checkpoints

RECIPES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
# A script of the name of its host would stand in the host's way.
EXAMPLES = {
    script.stem.removeprefix("in_").replace("_", "-"): script
    for script in sorted((ROOT / "examples").glob("in_*.py"))
}

# What the hosts warn about is theirs.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe_runs_as_pasted(page, tmp_path, monkeypatch):
    needs(page.stem)
    monkeypatch.chdir(tmp_path)
    make_checkpoints(tmp_path)
    give_tasks_data(monkeypatch)
    if page.stem == "beir":  # which gives BEIR another pytrec_eval: put its own back
        from beir.retrieval import evaluation

        monkeypatch.setattr(evaluation, "pytrec_eval", evaluation.pytrec_eval)
    run_page(page)


@pytest.mark.parametrize("host", EXAMPLES)
def test_an_example_runs(host, tmp_path, monkeypatch):
    needs(host)
    monkeypatch.chdir(tmp_path)
    assert run_python(str(EXAMPLES[host])).strip()


def test_each_host_has_its_recipe_and_its_example():
    assert {page.stem for page in RECIPES} == set(EXAMPLES) == set(HOSTS)
