"""Table 1: bold only where it is certain, and no digit that ties make meaningless."""

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
    """A stored result whose evaluation is at hand."""

    result = None


def stored(model: str, scores: list[int], regime: str = "native", dtype: str = "bf16"):
    """What `load_results` gives: one relevant document of four."""
    origin = ModelProvenance(model, "r", "cross-encoder", dtype, "cpu", 16, 512, "sdpa", False)
    manifest = Manifest({}, origin, "sigmoid", "torch", 1, DatasetProvenance("d"), "d-0")
    made = Stored(CellFolder(Path("none")), manifest, regime)
    object.__setattr__(made, "result", dh.evaluate_arrays([[1, 0, 0, 0]], [scores], ["MRR"]))
    return made


def written(results: list[StoredResult], style: str = "table", *, percent: bool = True) -> str:
    return render([table1(results)], style, percent=percent)


def test_the_best_is_bold_only_if_it_is_best_whatever_the_tie_break():
    certain = [stored("good", GOOD), stored("poor", POOR)]
    assert r"\textbf{100.00}" in written(certain, "latex")
    assert "**100.00**" in written(certain, "markdown")
    assert "<b>100.00</b>" in written(certain, "html")
    assert "bold = the highest" in written(certain)
    # The tied model may reach 1, too: nobody wins for certain.
    for others in ([stored("tied", TIED)], [stored("tied", TIED), stored("poor", POOR)]):
        assert "textbf" not in written([stored("good", GOOD), *others], "latex")


def test_bold_compares_what_is_comparable():
    """Another regime or dtype is no rival, and one model alone beats nobody."""
    alone = [stored("good", GOOD), stored("good", GOOD, "hps"), stored("good", GOOD, dtype="fp16")]
    assert "**" not in written(alone, "markdown")


def test_digits_end_where_random_tie_breaking_begins():
    """MRR of one among four tied: expected 0.5208, tie std 0.29."""
    line = written([stored("tied", TIED)], "markdown").splitlines()[2]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[5:] == ["100.x", "52.08", "75.00", "+47.x"]
    fraction = written([stored("tied", TIED)], "markdown", percent=False).splitlines()[2]
    assert "| 1.0x | 0.5208 | 0.7500 | +0.4x |" in fraction
    exact = written([stored("good", GOOD)], "markdown").splitlines()[2]
    assert "| 100.00 | 100.00 | 0.00 | 0.00 |" in exact


def test_names_from_data_are_escaped():
    hostile = [stored("a_b <script> & 100%", GOOD)]
    assert "<script>" not in written(hostile, "html")
    assert r"a\_b" in written(hostile, "latex") and r"100\%" in written(hostile, "latex")


def test_a_measure_that_was_not_evaluated_is_refused():
    with pytest.raises(InputError, match=r"not evaluated: MAP;.* MRR$"):
        table1([stored("good", GOOD)], ["MRR", "MAP"])
