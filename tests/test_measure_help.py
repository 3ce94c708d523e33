"""The help of the measures: examples are correct and declarations complete."""

from __future__ import annotations

from pathlib import Path

import pytest

import deadheat as dh
from deadheat.measures import MEASURES, help

PAGE = Path(__file__).resolve().parents[1] / "docs" / "measures.md"
COMMAND = "python -m deadheat.measures.help > docs/measures.md"


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_example_of_every_measure_is_correct(measure):
    example = measure.example
    assert isinstance(dh.measures.parse_measure(example.measure), type(measure))
    run = {f"d{i}": -i for i in range(len(example.ranked))}
    qrels = {f"d{i}": grade for i, grade in enumerate(example.ranked) if grade is not None}
    qrels |= {f"unretrieved{i}": grade for i, grade in enumerate(example.unretrieved)}
    value = dh.evaluate({"q": qrels}, {"q": run}, example.measure)[example.measure].expected
    assert round(value, 4) == example.value
    # The working is a Python expression with other signs and rounded logarithms.
    working = example.working.replace("·", "*").replace("−", "-").replace("^", "**")
    assert eval(working) == pytest.approx(example.value, abs=1e-4)


@pytest.mark.parametrize("page", [help.as_text(), help.as_markdown()], ids=["text", "Markdown"])
def test_help_contains_the_declarations_of_every_measure(page):
    content = " ".join(page.replace("`", "").split())
    for measure in MEASURES:
        assert " ".join(type(measure).__doc__.replace("`", "").split()) in content
        assert measure.formula in content
        assert f"{measure.example.measure} is {measure.example.working}" in content
        assert f"= {measure.example.value:g}." in content
        for alias in measure.aliases:
            assert alias in content
        for name, declared in measure.parameters().items():
            assert name in content
            assert repr(declared.default) in content
            assert declared.about in content
            for text in (*declared.choices, *declared.choices.values()):
                assert text in content
            if not declared.choices:
                assert declared.rule in content


def test_help_text_fits_into_80_columns():
    assert max(map(len, help.as_text().splitlines())) <= 80


def test_documentation_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == help.as_markdown(), f"outdated, run: {COMMAND}"
