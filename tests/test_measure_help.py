"""The help of the measures: every example holds, and every declaration is told."""

from __future__ import annotations

from pathlib import Path

import pytest

import deadheat as dh
from deadheat.measures import MEASURES, help

PAGE = Path(__file__).resolve().parents[1] / "docs" / "measures.md"
COMMAND = "python -m deadheat.measures.help > docs/measures.md"


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_the_example_of_every_measure_holds(measure):
    example = measure.example
    assert isinstance(dh.measures.parse_measure(example.measure), type(measure))
    run = {f"d{i}": -i for i in range(len(example.ranked))}
    qrels = {f"d{i}": grade for i, grade in enumerate(example.ranked) if grade is not None}
    qrels |= {f"unretrieved{i}": grade for i, grade in enumerate(example.unretrieved)}
    value = dh.evaluate({"q": qrels}, {"q": run}, example.measure)[example.measure].expected
    assert round(value, 4) == example.value
    # The working is arithmetic in Python's own notation, but for two signs, and rounded logarithms.
    working = example.working.replace("·", "*").replace("−", "-").replace("^", "**")
    assert eval(working) == pytest.approx(example.value, abs=1e-4)


@pytest.mark.parametrize("told", [help.as_text(), help.as_markdown()], ids=["text", "Markdown"])
def test_all_of_every_measure_is_told(told):
    words = " ".join(told.replace("`", "").split())
    for measure in MEASURES:
        assert " ".join(type(measure).__doc__.replace("`", "").split()) in words
        assert measure.formula in words
        assert f"{measure.example.measure} is {measure.example.working}" in words
        assert f"= {measure.example.value:g}." in words
        for alias in measure.aliases:
            assert alias in words
        for name, declared in measure.parameters().items():
            assert name in words
            assert repr(declared.default) in words
            assert declared.about in words
            for text in (*declared.choices, *declared.choices.values()):
                assert text in words
            if not declared.choices:
                assert declared.rule in words


def test_the_terminal_has_eighty_columns():
    assert max(map(len, help.as_text().splitlines())) <= 80


def test_the_page_of_the_documentation_is_what_the_measures_say():
    assert PAGE.read_text(encoding="utf-8") == help.as_markdown(), f"write it anew: {COMMAND}"
