"""Forks, threads and an optimising Python: the same numbers, or a plain word."""

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

linux_forks = pytest.mark.skipif(
    not hasattr(os, "fork") or not Path("/proc/self/task").is_dir(),
    reason="threads have no names here",
)


def run_python(code: str, *options: str, **environment: str) -> str:
    """Run code in a Python of its own, and give what it printed."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", *options, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


FORKED = """
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
        signal.alarm(60)  # what waits for ever
        again = dh.evaluate(qrels, run, ["nDCG@10", "MRR"])
        assert again == truth
        assert again.to_dict() == truth.to_dict()
        assert dh.evaluate_arrays([[1, 0]], [[1.0, 1.0]], "MRR")["MRR"].expected == 0.75
        for ask in (
            lambda: dh.evaluate(qrels, rows, "MRR"),
            lambda: dh.evaluate(qrels, run, "MRR", tie_break="id_desc"),
            lambda: again.per_query,
            lambda: str(again),
        ):
            try:
                ask()
                print("answered")
            except dh.DeadheatError as error:
                print("spawn" in str(error))
        sys.stdout.flush()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
"""


@linux_forks
def test_dictionaries_are_evaluated_after_a_fork_and_the_rest_is_refused():
    for start in (
        "dh.evaluate(qrels, rows, 'MRR').per_query",
        "pl.DataFrame(rows, orient='row').unique()",
    ):
        code = FORKED.replace("START", start)
        assert run_python(code).split() == ["True"] * 4 + ["0"]


@linux_forks
def test_a_fork_before_polars_begins_loses_nothing():
    code = FORKED.replace("truth = dh.evaluate", "truth = None and dh.evaluate")
    code = code.replace("assert again == truth", "truth = again").replace("START", "")
    assert run_python(code).split() == ["answered"] * 4 + ["0"]


@linux_forks
def test_a_child_that_started_polars_itself_can_use_it():
    code = """
        import os, sys
        import polars as pl
        import deadheat as dh

        rows = [("q", "d", 1.0)]
        if child := os.fork():
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        pl.DataFrame(rows * 1000, orient="row").lazy().unique().collect()
        print(dh.evaluate({"q": {"d": 1}}, rows, "MRR").per_query.height, flush=True)
        os._exit(0)  # polars 2.0 does not let a forked process end in the usual way
    """
    assert run_python(code) == "1\n"


@linux_forks
def test_a_thread_that_ends_while_threads_are_listed_is_ignored(tmp_path, monkeypatch):
    for thread, name in (("1", "python"), ("2", None), ("3", "polars-0")):
        (tmp_path / thread).mkdir()
        if name is not None:
            (tmp_path / thread / "comm").write_text(f"{name}\n")
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(thread_pool_size=lambda: 2))
    monkeypatch.setattr(fork_guard, "_TASKS", tmp_path)
    assert not fork_guard._lost_threads()
    (tmp_path / "3" / "comm").unlink()
    assert fork_guard._lost_threads()


def test_drafts_are_removed_and_others_are_not(tmp_path):
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


def test_processes_that_write_to_one_folder_leave_each_other_alone(tmp_path):
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        pool.map(write_often, [tmp_path / name for name in "abc"], chunksize=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


OPTIMISED = """
    import sys
    import deadheat as dh

    assert False, "this Python checks assertions"
    refused = 0
    for ask in (
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
            print("taken:", ask())
        except dh.InputError:
            refused += 1
    print(refused, repr(dh.measures.parse_measures("RBP(p=0.95)@10")[0]))
"""


def test_an_optimising_python_refuses_the_same():
    assert run_python(OPTIMISED, "-O") == "9 RBP(p=0.95)@10\n"
    assert run_python(OPTIMISED, "-OO") == "9 RBP(p=0.95)@10\n"


QRELS = {"q": {"a": 1, "c": 2}, "r": {"b": 1}}
RUN = {"q": {"a": 0.5, "b": 0.5, "c": 0.25}, "r": {"b": 1.0, "c": 1.0}}
MEASURES = ["nDCG@2", "nDCG", "MRR", "MAP", "Recall@1", "ERR", "RBP", "bpref"]


def evaluated(qrels: dict, run: dict) -> str:
    """What a process of its own computes."""
    return quiet(dh.evaluate)(qrels, run, MEASURES).to_json()


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
