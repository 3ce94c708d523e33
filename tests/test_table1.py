"""Table 1 of a study: bold values and significant digits."""

from __future__ import annotations

from pathlib import Path

import pytest

import deadheat as dh
from deadheat.errors import InputError
from deadheat.lab.experiment import StoredResult, table1
from deadheat.lab.experiment.folder import CellFolder, Manifest
from deadheat.provenance import DatasetProvenance, ModelProvenance
from deadheat.tables import render

GOOD, TIED, POOR = [4, 3, 2, 1], [1, 1, 1, 1], [1, 2, 3, 4]


class Stored(StoredResult):
    """A stored result whose evaluation is in memory."""

    result = None


def make_stored(model: str, scores: list[int], regime: str = "native", dtype: str = "bf16"):
    """Return a stored result of one query with one relevant document of four."""
    origin = ModelProvenance(model, "r", "cross-encoder", dtype, "cpu", 16, 512, "sdpa", False)
    manifest = Manifest({}, origin, "sigmoid", "torch", 1, DatasetProvenance("d"), "d-0")
    stored = Stored(CellFolder(Path("none")), manifest, regime)
    object.__setattr__(stored, "result", dh.evaluate_arrays([[1, 0, 0, 0]], [scores], ["MRR"]))
    return stored


def render_table1(
    results: list[StoredResult], style: str = "table", *, percent: bool = True
) -> str:
    return render([table1(results)], style, percent=percent)


def test_best_value_is_bold_only_if_ties_cannot_change_it():
    certain = [make_stored("good", GOOD), make_stored("poor", POOR)]
    assert r"\textbf{100.00}" in render_table1(certain, "latex")
    assert "**100.00**" in render_table1(certain, "markdown")
    assert "<b>100.00</b>" in render_table1(certain, "html")
    assert "bold = the highest" in render_table1(certain)
    # The tied model can also reach 1, so no model is certain to be best.
    for others in (
        [make_stored("tied", TIED)],
        [make_stored("tied", TIED), make_stored("poor", POOR)],
    ):
        assert "textbf" not in render_table1([make_stored("good", GOOD), *others], "latex")


def test_bold_compares_only_the_same_regime_and_dtype():
    """A single model in a regime and dtype is not bold."""
    alone = [
        make_stored("good", GOOD),
        make_stored("good", GOOD, "hps"),
        make_stored("good", GOOD, dtype="fp16"),
    ]
    assert "**" not in render_table1(alone, "markdown")


def test_digits_below_the_tie_std_are_masked():
    """One relevant of four tied documents has an expected MRR of 0.5208 and a tie std of 0.29."""
    line = render_table1([make_stored("tied", TIED)], "markdown").splitlines()[2]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[5:] == ["100.x", "52.08", "75.00", "+47.x"]
    fraction = render_table1([make_stored("tied", TIED)], "markdown", percent=False).splitlines()[2]
    assert "| 1.0x | 0.5208 | 0.7500 | +0.4x |" in fraction
    exact = render_table1([make_stored("good", GOOD)], "markdown").splitlines()[2]
    assert "| 100.00 | 100.00 | 0.00 | 0.00 |" in exact


def test_names_from_data_are_escaped():
    untrusted = [make_stored("a_b <script> & 100%", GOOD)]
    assert "<script>" not in render_table1(untrusted, "html")
    assert r"a\_b" in render_table1(untrusted, "latex") and r"100\%" in render_table1(
        untrusted, "latex"
    )


def test_unknown_measure_of_stored_results_raises():
    with pytest.raises(InputError, match=r"not evaluated: MAP;.* MRR$"):
        table1([make_stored("good", GOOD)], ["MRR", "MAP"])
