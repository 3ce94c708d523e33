"""Oblivious values compared with the program trec_eval.

The program is on the path, or is built from the source folder in TREC_EVAL_SOURCE; the tests are
skipped otherwise.
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
"""Measures as options of trec_eval, and as names in its output, which deadheat can parse."""


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
def test_oblivious_values_equal_trec_eval(trec_eval: str, tmp_path: Path, seed: int):
    """Scores are exact in float32, so versions 9 and 10 agree; both sort ties by descending id."""
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
    options = [option for name in NAMES for option in ("-m", name)]
    process = subprocess.run(
        [trec_eval, "-q", *options, str(qrels), str(run)],
        capture_output=True,
        text=True,
        check=True,
    )
    printed: dict[str, dict[str, float]] = {name: {} for name in NAMES.values()}
    for line in process.stdout.splitlines():
        name, query, number = line.split()
        if query != "all" and name in printed:
            printed[name][query] = float(number)
    result = dh.evaluate(qrels, run, list(NAMES.values()), tie_break="id_desc")
    for name, values in printed.items():
        oblivious = result.views[dh.measures.parse_measures([name])[0]].oblivious
        by_query = dict(zip(result.query_ids, oblivious.tolist(), strict=True))
        assert values, name
        for query, number in values.items():  # trec_eval prints four decimals
            assert by_query[query] == pytest.approx(number, abs=5.1e-5), (name, query)
