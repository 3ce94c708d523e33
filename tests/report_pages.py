"""Helpers for tests of report pages: inputs, pages and their data."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import deadheat as dh
from deadheat.cli import main
from deadheat.report.page import Collection, System, render_page

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "<!--<script>",
    "{{ 7 * 7 }} %{x} &lt;b&gt; \u2028 \u2029",
    "<a href='javascript:alert(4)'>x</a>",
)


def write_inputs(folder: Path, queries: int = 60, *, names: tuple[str, ...] = ()) -> list[str]:
    """Write judgements and two runs, with and without ties, as JSON, which allows any id."""
    random = np.random.default_rng(0)
    ids = [*names, *(f"q{i}" for i in range(queries - len(names)))]
    docs = [*names, *(f"d{i}" for i in range(30 - len(names)))]
    qrels = {q: {d: int(random.integers(1, 3)) for d in random.choice(docs, 3)} for q in ids}
    runs = {"tied": {}, "sharp": {}}
    for q in ids:
        scores = random.normal(size=len(docs))
        runs["sharp"][q] = dict(zip(docs, scores.tolist(), strict=True))
        runs["tied"][q] = dict(zip(docs, np.round(scores).tolist(), strict=True))
    paths = [folder / "qrels.json", *(folder / f"{name}.json" for name in runs)]
    for path, data in zip(paths, (qrels, *runs.values()), strict=True):
        path.write_text(json.dumps(data), encoding="utf-8")
    return [str(path) for path in paths]


def run_deadheat(*args: object, status: int = 0) -> str:
    result = CliRunner().invoke(main, [str(word) for word in args])
    assert result.exit_code == status, result.output
    return result.output


def parse_data(page: str) -> dict:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(match[1])


def evaluate_quietly(qrels: dict, run: dict, measures: list[str], **options: object) -> dh.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dh.DeadheatWarning)
        return dh.evaluate(qrels, run, measures, **options)


def render_comparison(*results: dh.Result) -> str:
    """Return a page that compares results, whose names are numbers."""
    systems = [System(result, str(i)) for i, result in enumerate(results)]
    measures = [measure for result in results for measure in result.views]
    return render_page([Collection("c", systems).compare(measures)])
