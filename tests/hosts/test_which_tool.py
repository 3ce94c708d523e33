"""The page "Which tool breaks ties how" matches the installed tools."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
from pages import ROOT
from quiet import quiet

import deadheat as dh

# Warnings of the tools are not under test.
pytestmark = pytest.mark.filterwarnings("default")


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module here
    spec.loader.exec_module(module)
    return module


which_tool = load("which_tool")
PAGE = (ROOT / "docs" / "which-tool.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "tool", which_tool.TOOLS, ids=lambda tool: f"{tool.name} {tool.measure}".replace("`", "")
)
def test_tool_orders_ties_as_documented(tool, monkeypatch):
    if not tool.installed:
        pytest.skip(f"{tool.package} is not installed: run `make test-hosts`")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with which_tool.quiet():
        answer = which_tool.asked(tool)
    if not tool.promised:  # its order is not fixed, so its ranks depend on the machine
        assert all(rank is not None for rank in answer.ranks.values())
        assert which_tool.row(answer).rpartition("| ")[0].split(" | ")[0] in PAGE
        return
    assert answer.order == tool.promised
    assert which_tool.row(answer) in PAGE.splitlines()
    rule = which_tool.RULES.get((answer.order, answer.sees))
    if rule is not None and tool.measure in which_tool.MEASURES:
        name = which_tool.MEASURES[tool.measure]
        for query in (which_tool.Query(16), which_tool.Query(16, mixed=True)):
            with which_tool.quiet():
                value = tool.ask(query)
            ours = quiet(dh.evaluate)(query.qrels, query.run, name, tie_break=rule)[name]
            assert value == pytest.approx(ours.oblivious, abs=6e-6)


def test_the_page_lists_every_tool_and_version():
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    listed = [line.split(" | ")[0].removeprefix("| ") for line in lines]
    for tool in which_tool.TOOLS:
        assert listed.count(tool.name) == sum(t.name == tool.name for t in which_tool.TOOLS)
        assert f"{tool.package or 'Python'} " in PAGE.rpartition("Made with ")[2]


@pytest.mark.parametrize("length", which_tool.LENGTHS)
def test_orders_give_different_ranks(length):
    for query in (which_tool.Query(length), which_tool.Query(length, mixed=True)):
        tied = query.scores == query.scores[query.relevant]
        assert tied.sum() > 1
        assert len(query.ids) == len(set(query.ids)) == length
    ranks = [which_tool.Query(length).rank(order) for order in which_tool.ORDERS]
    assert len(set(ranks)) == len(ranks)
    mixed = which_tool.Query(length, mixed=True)
    assert 1 < len(np.unique(mixed.scores)) < length


def test_order_that_holds_at_some_lengths_only_is_not_reported():
    tool = which_tool.Tool("a", "", "RR", lambda query: 1 / query.place if query.length < 99 else 1)
    assert which_tool.asked(tool).order == ""
