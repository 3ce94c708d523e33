"""The demo: real recorded numbers, in seconds, without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from deadheat.demo import MEASURE, recordings


def test_the_recordings_show_what_is_known_of_them():
    """Oblivious, expected, range and bias of nDCG@10, as they were when recorded."""
    softmax, sigmoid, product = (recording.results for recording in recordings())
    known = [
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


def test_the_demo_runs_without_torch(tmp_path):
    code = "import sys; sys.modules['torch'] = None; from deadheat.cli import main; main(['demo'])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "BF16 beats FP32, 66.85 > 63.65" in done.stdout
    assert "accident of the input order" in done.stdout
    assert "…" not in done.stdout  # nothing cut off in 80 columns
