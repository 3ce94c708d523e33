"""Threads, forked and spawned processes, and paths with every awkward character."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import deadheat as dh
from deadheat.cli import main
from deadheat.errors import DeadheatError, MissingPackageError

QRELS = {"q": {"a": 1, "c": 2}, "r": {"b": 1}}
RUN = {"q": {"a": 0.5, "b": 0.5, "c": 0.25}, "r": {"b": 1.0, "c": 1.0}}
MEASURES = ["nDCG@2", "nDCG", "MRR", "MAP", "Recall@1", "ERR", "RBP", "bpref"]

# Cold threads: the first evaluation of a process, six at once, each of another length.
THREADS = """
import sys, threading
import numpy as np
import deadheat as dh

ready = threading.Barrier(6)
found, failed = {}, []

def work(i):
    random = np.random.default_rng(i)
    shape = 3, 7 * (i + 1)
    scores, labels = random.integers(0, 4, shape), random.integers(0, 3, shape)
    labels[:, 0] = 1
    ready.wait()
    try:
        for k in (1 + i, 300 * (i + 1), None):
            measures = [dh.nDCG(cutoff=k), dh.MAP(cutoff=k), dh.ERR(cutoff=k), dh.RBP(cutoff=k)]
            result = dh.evaluate_arrays(scores, labels, measures)
            found.setdefault(i, []).append([s.expected for s in result])
            again = dh.evaluate_arrays(scores, labels, measures)
            if [s.expected for s in again] != found[i][-1]:
                failed.append(i)
    except BaseException as error:
        failed.append(repr(error))

threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
first = {i: values for i, values in sorted(found.items())}
found.clear()
ready = threading.Barrier(1)
for i in range(6):
    work(i)
print(failed, first == found)
"""


@pytest.mark.parametrize("trial", range(3))
def test_cold_threads(trial):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", THREADS],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.strip() == "[] True", done.stdout + done.stderr


def evaluated(qrels: dict, run: dict) -> str:
    """What a process of its own computes."""
    return dh.evaluate.quiet(qrels, run, MEASURES).to_json()


# Evaluate dicts, fork, and evaluate dicts in the child, which may hang: hence a time limit.
FORK = """
import json, os, signal, sys
import deadheat as dh

qrels, run, measures = json.loads(sys.argv[1])
here = dh.evaluate(qrels, run, measures).to_json()
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if dh.evaluate(qrels, run, measures).to_json() == here else 1)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_evaluates_dicts():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, json.dumps([QRELS, RUN, MEASURES])],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.strip() == "0", done.stdout + done.stderr


def test_a_spawned_child_gives_the_same_bytes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(evaluated, (QRELS, RUN)) == evaluated(QRELS, RUN)
        with pytest.raises(dh.InputError, match="d1"):
            pool.apply(evaluated, (QRELS, {"q": {"d1": "x"}}))


@pytest.mark.parametrize(
    "error",
    [dh.InputError("what \x1b, where"), MissingPackageError("ray", "ray", "Working elsewhere")],
)
def test_errors_come_back_from_other_processes(error: DeadheatError):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)


def test_results_come_back_from_other_processes():
    result = dh.evaluate(QRELS, RUN, MEASURES)
    assert pickle.loads(pickle.dumps(result)).to_json() == result.to_json()


NAMES = [
    "g[1]",
    "*",
    "a?b",
    "with space ",
    "'quotes\"",
    "back\\slash",
    "new\nline",
    "tab\t",
    "#hash%20&$HOME~",
    "{brace},(x);|<>",
    "-dash",
    "--force",
    ".hidden",
    "ünïcödé 漢字 🐎",
    "[red]markup[/]",
    "n" * 200,
    "\x1b[31m\x07",
    "file:x",
    "\udcff\udcfe",  # not UTF-8
]


@pytest.mark.skipif(os.name != "posix", reason="names of POSIX")
@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:20])
def test_a_path_means_itself(tmp_path, monkeypatch, name):
    """Beside decoys that a pattern would match: folders, files, and what is written."""
    monkeypatch.chdir(tmp_path)
    decoy = {"q": {"a": 1}, "z": {"z": 1}}
    for other in ("g1", "ab", "axb", "x", "1", "HOME"):
        Path(other).mkdir()
        (Path(other) / "r.json").write_text(json.dumps(decoy))
        (Path(other) / "q.json").write_text(json.dumps(decoy))
    folder = Path(name)
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"the file system has no such name: {error}")
    run, qrels = folder / f"{name[:100]}.json", folder / "q.json"
    run.write_text(json.dumps(RUN))
    qrels.write_text(json.dumps(QRELS))
    wanted = dh.evaluate(QRELS, RUN, ["MRR"])["MRR"]
    assert dh.evaluate(qrels, run, ["MRR"])["MRR"] == wanted
    out = folder / "out.json"
    words = ["eval", "-m", "MRR", "--format", "json", "-o", str(out), "--", str(qrels), str(run)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    (result,) = json.loads(out.read_text())
    assert result["measures"]["MRR"]["expected"] == wanted.expected
    done = CliRunner().invoke(main, ["eval", "--", str(qrels), str(run), str(run)])
    assert done.exit_code == 0 and "\x1b" not in done.output, done.output
    done = CliRunner().invoke(main, ["diagnose", "--", str(run)])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [run.name, "q.json", "out.json"]
    )
