"""Forks, threads and `python -O` give the same numbers or a clear error."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
from quiet import quiet

import deadheat as dh
from deadheat._internal import fork_guard
from deadheat._internal.output import remove_drafts, write_whole
from deadheat.errors import DeadheatError, MissingPackageError

needs_linux_fork = pytest.mark.skipif(
    not hasattr(os, "fork") or not Path("/proc/self/task").is_dir(),
    reason="needs fork and /proc/self/task",
)


def run_python(code: str, *options: str, **environment: str) -> str:
    """Run code in a new Python process and return its output."""
    completed = subprocess.run(
        [sys.executable, "-W", "ignore", *options, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


FORK_CODE = """
    import os, signal, sys
    import polars as pl
    import deadheat as dh

    run = {f"q{i}": {f"d{j}": float(i * j % 7) for j in range(50)} for i in range(50)}
    qrels = {q: {d: len(d) % 2 for d in docs} for q, docs in run.items()}
    rows = [(q, d, x) for q, docs in run.items() for d, x in docs.items()]
    truth = dh.evaluate(qrels, run, ["nDCG@10", "MRR"])
    START
    sys.stdout.flush()
    child = os.fork()
    if not child:
        signal.alarm(60)  # ends the child after a deadlock
        again = dh.evaluate(qrels, run, ["nDCG@10", "MRR"])
        assert again == truth
        assert again.to_dict() == truth.to_dict()
        assert dh.evaluate_arrays([[1, 0]], [[1.0, 1.0]], "MRR")["MRR"].expected == 0.75
        for call in (
            lambda: dh.evaluate(qrels, rows, "MRR"),
            lambda: dh.evaluate(qrels, run, "MRR", tie_break="id_desc"),
            lambda: again.per_query,
            lambda: str(again),
        ):
            try:
                call()
                print("answered")
            except dh.DeadheatError as error:
                print("spawn" in str(error))
        sys.stdout.flush()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
"""


@needs_linux_fork
def test_only_dictionaries_are_evaluated_after_a_fork():
    for start in (
        "dh.evaluate(qrels, rows, 'MRR').per_query",
        "pl.DataFrame(rows, orient='row').unique()",
    ):
        code = FORK_CODE.replace("START", start)
        assert run_python(code).split() == ["True"] * 4 + ["0"]


@needs_linux_fork
def test_fork_before_polars_starts_has_no_restrictions():
    code = FORK_CODE.replace("truth = dh.evaluate", "truth = None and dh.evaluate")
    code = code.replace("assert again == truth", "truth = again").replace("START", "")
    assert run_python(code).split() == ["answered"] * 4 + ["0"]


@needs_linux_fork
def test_forked_child_can_start_polars_itself():
    code = """
        import os, sys
        import polars as pl
        import deadheat as dh

        rows = [("q", "d", 1.0)]
        if child := os.fork():
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        pl.DataFrame(rows * 1000, orient="row").lazy().unique().collect()
        print(dh.evaluate({"q": {"d": 1}}, rows, "MRR").per_query.height, flush=True)
        os._exit(0)  # with polars 2.0 a forked process cannot exit normally
    """
    assert run_python(code) == "1\n"


@needs_linux_fork
def test_thread_that_ends_during_listing_is_ignored(tmp_path, monkeypatch):
    for thread, name in (("1", "python"), ("2", None), ("3", "polars-0")):
        (tmp_path / thread).mkdir()
        if name is not None:
            (tmp_path / thread / "comm").write_text(f"{name}\n")
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(thread_pool_size=lambda: 2))
    monkeypatch.setattr(fork_guard, "_TASKS", tmp_path)
    assert not fork_guard._lost_threads()
    (tmp_path / "3" / "comm").unlink()
    assert fork_guard._lost_threads()


def test_remove_drafts_deletes_only_drafts(tmp_path):
    drafts = [tmp_path / f".deadheat.{digit * 16}" for digit in "01"]
    names = (".deadheat.notes", f".deadheat.{'g' * 16}", f"my.deadheat.{'0' * 16}")
    others = [tmp_path / name for name in names]
    for path in (*drafts, *others):
        path.touch()
    link = tmp_path / f".deadheat.{'2' * 16}"
    link.symlink_to(others[0])
    remove_drafts(tmp_path)
    assert set(tmp_path.iterdir()) == {link, *others}


def write_often(path: Path) -> None:
    for number in range(100):
        write_whole(path, str(number).encode())


def test_processes_can_write_to_the_same_folder(tmp_path):
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        pool.map(write_often, [tmp_path / name for name in "abc"], chunksize=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


OPTIMISED_CODE = """
    import sys
    import deadheat as dh

    assert False, "this Python checks assertions"
    rejected = 0
    for call in (
        lambda: dh.measures.parse_measures("RBP(0.95)@10"),
        lambda: dh.measures.parse_measures("nDCG@0"),
        lambda: dh.evaluate({"q": {"d": 1}}, {"q": {"d": float("nan")}}, "MRR"),
        lambda: dh.evaluate({"q": {"d": 1}}, {"q": {"d": None}}, "MRR"),
        lambda: dh.evaluate({"q": {"d": 1}}, {"q": {None: 1.0}}, "MRR"),
        lambda: dh.evaluate({"q": {"d": 1}}, [("q", "d", 1), ("q", "d", 2)], "MRR"),
        lambda: dh.evaluate_arrays([[1.0, 2.0]], [[1]], "MRR"),
        lambda: dh.evaluate_arrays([[1.0]], [[1]], "MRR", tie_tolerance=-1),
        lambda: dh.ties.TieCounter(1, query=[2], score=[1.0], grade=[1], position=[0]),
    ):
        try:
            print("accepted:", call())
        except dh.InputError:
            rejected += 1
    print(rejected, repr(dh.measures.parse_measures("RBP(p=0.95)@10")[0]))
"""


def test_optimised_python_rejects_the_same_input():
    assert run_python(OPTIMISED_CODE, "-O") == "9 RBP(p=0.95)@10\n"
    assert run_python(OPTIMISED_CODE, "-OO") == "9 RBP(p=0.95)@10\n"


QRELS = {"q": {"a": 1, "c": 2}, "r": {"b": 1}}
RUN = {"q": {"a": 0.5, "b": 0.5, "c": 0.25}, "r": {"b": 1.0, "c": 1.0}}
MEASURES = ["nDCG@2", "nDCG", "MRR", "MAP", "Recall@1", "ERR", "RBP", "bpref"]


def evaluate_to_json(qrels: dict, run: dict) -> str:
    """Evaluate and return JSON; a spawned process imports this function."""
    return quiet(dh.evaluate)(qrels, run, MEASURES).to_json()


def test_spawned_child_returns_the_same_json():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(evaluate_to_json, (QRELS, RUN)) == evaluate_to_json(QRELS, RUN)
        with pytest.raises(dh.InputError, match="d1"):
            pool.apply(evaluate_to_json, (QRELS, {"q": {"d1": "x"}}))


@pytest.mark.parametrize(
    "error",
    [dh.InputError("what \x1b, where"), MissingPackageError("ray", "ray", "Working elsewhere")],
)
def test_errors_can_be_pickled(error: DeadheatError):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)


def test_results_can_be_pickled():
    result = dh.evaluate(QRELS, RUN, MEASURES)
    assert pickle.loads(pickle.dumps(result)).to_json() == result.to_json()
