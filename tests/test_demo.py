"""The demo prints recorded numbers and runs without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from deadheat.demo import MEASURE, recordings


def test_recordings_have_the_known_summaries():
    """Compare oblivious, expected, range and bias of nDCG@10 with their known values."""
    names = ("reranker", "softmax", "product", "sigmoid")
    reranker, softmax, product, sigmoid = (recordings()[name].results for name in names)
    known = [
        (reranker["fp32"], 80.00, 80.00, 0, 0),
        (reranker["native"], 80.49, 71.71, 26.59, 8.78),
        (reranker["hps"], 80.54, 80.34, 0.45, 0.19),
        (reranker["head"], 80.37, 80.30, 0.15, 0.08),
        (reranker["head-logit"], 80.37, 80.37, 0, 0),
        (softmax["fp32"], 63.65, 63.65, 0, 0),
        (softmax["native"], 66.85, 63.57, 14.93, 3.28),
        (softmax["hps"], 66.85, 63.57, 14.93, 3.28),
        (softmax["head"], 66.93, 66.93, 0, 0),
        (sigmoid["fp32"], 79.84, 79.84, 0, 0),
        (sigmoid["native"], 79.93, 79.81, 0.45, 0.12),
        (sigmoid["hps"], 79.78, 79.81, 0.15, -0.04),
        (sigmoid["head"], 79.89, 79.89, 0, 0),
    ]
    for result, *numbers in known:
        summary = result[MEASURE]
        views = (summary.oblivious, summary.expected, summary.range, summary.bias)
        assert [100 * view for view in views] == pytest.approx(numbers, abs=0.006)
    assert product["native"][MEASURE].range > 0.005
    assert product["hps"][MEASURE].range == 0


def test_demo_runs_without_torch_and_prints_its_conclusion_last(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None; from deadheat.cli import main; "
        "main(['demo', '--files', 'files'])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    lines = process.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in process.stdout
    last_screen = "\n".join(lines[-22:])  # of 24, two show the page's path and the prompt
    for fact in (
        "80.49 > 80.00",  # input order
        "│ 80.49 │       65.71 │    71.71 │ 26.59 │ +8.78 │",
        "leaves a range of 0.45",
        "changes 80.00 to 80.37",  # the forward pass
    ):
        assert fact in " ".join(last_screen.split("\n"))
    written = {path.name for path in (tmp_path / "files").iterdir()}
    assert {"reranker-qrels.txt", "reranker-head-logit.run", "softmax-native.run"} <= written
    assert all(name in process.stderr for name in written)
