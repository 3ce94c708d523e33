"""The example notebook: its cells run in order, and its outputs are stored.

The cells run as plain Python, since none of them needs Jupyter, with the fixture of SmolLM2. Its
BF16 scores can differ between processors.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict

import pytest
from pages import ROOT

NOTEBOOK = ROOT / "examples" / "reranker_to_report.ipynb"
CELLS = [
    (cell["id"], "".join(cell["source"]), cell["outputs"])
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    if cell["cell_type"] == "code"
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:with 5 queries:deadheat.DeadheatWarning")
def test_cells_run_in_order(smollm2, tmp_path, monkeypatch):
    calls = []

    def load_model(folder, **options):
        calls.append((folder, options))
        return smollm2

    monkeypatch.setattr("deadheat.lab.models.load_model", load_model)
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for name, source, _ in CELLS:
        exec(compile(source, f"{NOTEBOOK.name}, {name}", "exec"), namespace)
    ((folder, options),) = calls
    assert next(folder.glob("*.gguf")).is_file()
    assert options["model_dtype"] == "bf16"
    assert asdict(options["prompt"]) == smollm2.provenance.prompt
    distinct = {
        regime: len({score for listed in run.values() for score in listed.values()})
        for regime, run in namespace["runs"].items()
    }
    assert distinct["native"] <= distinct["hps"] < distinct["head"]
    results = namespace["results"]
    assert results["native"]["nDCG@3"].range > results["head"]["nDCG@3"].range == 0
    assert "tie group" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_outputs_are_stored_without_errors():
    for name, source, outputs in CELLS:
        assert outputs or not source.rstrip().endswith(")"), name
        assert all(output["output_type"] != "error" for output in outputs), name
        assert all(output.get("name") != "stderr" for output in outputs), name
    shown = [output.get("data", {}) for *_, outputs in CELLS for output in outputs]
    (figure,) = (data["image/png"] for data in shown if "image/png" in data)
    assert base64.b64decode(figure).startswith(b"\x89PNG")


def test_no_local_path_is_stored():
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert "site-packages" not in text
    assert re.findall(r"""["'\s(=]/\w[^"'\s]*""", text) == []  # absolute paths
