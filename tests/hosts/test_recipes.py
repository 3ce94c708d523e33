"""Every recipe and every example runs if its host is installed."""

from __future__ import annotations

import pytest
from needed import HOSTS, import_host
from pages import ROOT, run_page, run_python
from stand_ins import make_checkpoints, patch_task_data

RECIPES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
# Scripts have the prefix `in_`, because a script named like its host would shadow it on import.
EXAMPLES = {
    script.stem.removeprefix("in_").replace("_", "-"): script
    for script in sorted((ROOT / "examples").glob("in_*.py"))
}

# Warnings of the host libraries are not under test.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_recipe_runs(page, tmp_path, monkeypatch):
    import_host(page.stem)
    monkeypatch.chdir(tmp_path)
    make_checkpoints(tmp_path)
    patch_task_data(monkeypatch)
    if page.stem == "beir":  # the recipe replaces pytrec_eval in BEIR: restore it afterwards
        from beir.retrieval import evaluation

        monkeypatch.setattr(evaluation, "pytrec_eval", evaluation.pytrec_eval)
    run_page(page)


@pytest.mark.parametrize("host", EXAMPLES)
def test_example_runs(host, tmp_path, monkeypatch):
    import_host(host)
    monkeypatch.chdir(tmp_path)
    assert run_python(str(EXAMPLES[host])).strip()


def test_each_host_has_a_recipe_and_an_example():
    assert {page.stem for page in RECIPES} == set(EXAMPLES) == set(HOSTS)
