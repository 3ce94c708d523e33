"""Oblivious values against trec_eval's own program, where it or its source is at hand.

A program called trec_eval is taken from the path, or built from the folder of sources that
TREC_EVAL_SOURCE names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import deadheat as dh

NAMES = {
    "map": "map",
    "recip_rank": "recip_rank",
    "Rprec": "Rprec",
    "bpref": "bpref",
    "P.5": "P_5",
    "recall.5": "recall_5",
    "success.5": "success_5",
    "ndcg_cut.5": "ndcg_cut_5",
    "map_cut.5": "map_cut_5",
    "ndcg": "ndcg",
}
"""What trec_eval is asked for, and what it calls it; deadheat understands the latter."""


@pytest.fixture(scope="module")
def trec_eval(tmp_path_factory: pytest.TempPathFactory) -> str:
    if program := shutil.which("trec_eval"):
        return program
    source = os.environ.get("TREC_EVAL_SOURCE")
    if not source or not (shutil.which("cc") and shutil.which("make")):
        pytest.skip("no trec_eval on the path, and no TREC_EVAL_SOURCE with a compiler to build it")
    built = tmp_path_factory.mktemp("trec_eval") / "source"
    shutil.copytree(source, built)
    subprocess.run(["make", "-s", "trec_eval"], cwd=built, check=True, capture_output=True)
    return str(built / "trec_eval")


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize("seed", range(5))
def test_oblivious_values_are_trec_evals(trec_eval: str, tmp_path: Path, seed: int):
    """Scores that float32 holds, so that versions 9 and 10 agree; ids decide ties, descending."""
    random = np.random.default_rng(seed)
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    judged, ranked = [], []
    for query in range(30):
        documents = random.choice(60, 12, replace=False)
        judged += [f"q{query} 0 d{doc} {random.integers(0, 4)}\n" for doc in documents]
        documents = random.choice(60, 25, replace=False)
        ranked += [f"q{query} Q0 d{doc} 0 {random.integers(-3, 4) / 4} t\n" for doc in documents]
    qrels.write_text("".join(judged))
    run.write_text("".join(ranked))
    words = [word for name in NAMES for word in ("-m", name)]
    done = subprocess.run(
        [trec_eval, "-q", *words, str(qrels), str(run)], capture_output=True, text=True, check=True
    )
    theirs: dict[str, dict[str, float]] = {name: {} for name in NAMES.values()}
    for line in done.stdout.splitlines():
        name, query, number = line.split()
        if query != "all" and name in theirs:
            theirs[name][query] = float(number)
    result = dh.evaluate(qrels, run, list(NAMES.values()), tie_break="id_desc")
    for name, found in theirs.items():
        own = result.views[dh.measures.parse_measures([name])[0]].oblivious
        ours = dict(zip(result.query_ids, own.tolist(), strict=True))
        assert found, name
        for query, number in found.items():  # four decimals are printed
            assert ours[query] == pytest.approx(number, abs=5.1e-5), (name, query)
