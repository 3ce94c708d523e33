"""Table 1: bold only where it is certain, and no digit that ties make meaningless."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

import deadheat as dh
from deadheat.errors import InputError
from deadheat.report.table1 import standing_digits, table1

GOOD, TIED, POOR = [4, 3, 2, 1], [1, 1, 1, 1], [1, 2, 3, 4]


def stored(model: str, scores: list[int], regime: str = "native", dtype: str = "bf16"):
    """What `load_results` gives, as far as the table looks at it: one relevant document of four."""
    result = dh.evaluate_arrays([scores], [[1, 0, 0, 0]], ["MRR"])
    result = replace(result, provenance={**result.provenance, "regime_meaning": regime})
    return SimpleNamespace(
        model=model, model_dtype=dtype, dataset="d", regime=regime, result=result
    )


def test_the_best_is_bold_only_if_it_is_best_whatever_the_tie_break():
    certain = [stored("good", GOOD), stored("poor", POOR)]
    assert r"\textbf{100.00}" in table1(certain, "latex")
    assert "**100.00**" in table1(certain, "markdown")
    assert "<b>100.00</b>" in table1(certain, "html")
    assert "highest whatever the tie-break" in table1(certain)
    # The tied model may reach 1, too: nobody wins for certain.
    for others in ([stored("tied", TIED)], [stored("tied", TIED), stored("poor", POOR)]):
        assert "textbf" not in table1([stored("good", GOOD), *others], "latex")


def test_bold_compares_what_is_comparable():
    """Another regime or dtype is no rival, and one model alone beats nobody."""
    alone = [stored("good", GOOD), stored("good", GOOD, "hps"), stored("good", GOOD, dtype="fp16")]
    assert "**" not in table1(alone, "markdown")


def test_digits_end_where_random_tie_breaking_begins():
    """MRR of one among four tied: expected 0.5208, tie std 0.29."""
    line = table1([stored("tied", TIED)], "markdown").splitlines()[2]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[5:] == ["100", "52.08", "75.00", "+48"]
    fraction = table1([stored("tied", TIED)], "markdown", percent=False).splitlines()[2]
    assert "| 1.0 | 0.5208 | 0.7500 | +0.5 |" in fraction
    exact = table1([stored("good", GOOD)], "markdown").splitlines()[2]
    assert "| 100.00 | 100.00 | 0.00 | 0.00 |" in exact


@pytest.mark.parametrize(
    ("std", "digits"), [(None, 2), (0.0, 2), (0.0004, 2), (0.0011, 1), (0.011, 0), (0.3, 0)]
)
def test_standing_digits_of_a_percentage(std, digits):
    assert standing_digits(std, 100, 2) == digits


def test_names_from_data_are_escaped():
    hostile = [stored("a_b <script> & 100%", GOOD)]
    assert "<script>" not in table1(hostile, "html")
    assert r"a\_b" in table1(hostile, "latex") and r"100\%" in table1(hostile, "latex")


def test_an_unknown_style_is_refused():
    with pytest.raises(InputError, match="unknown table style"):
        table1([stored("good", GOOD)], "papyrus")
