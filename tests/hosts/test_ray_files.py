"""Evaluate run files and folders on a real Ray cluster of two nodes on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import polars as pl
import pytest

ray = pytest.importorskip("ray", reason="needs the extra ray")

sys.path.insert(0, str(Path(__file__).parents[1]))
from click.testing import CliRunner  # noqa: E402
from quiet import quiet  # noqa: E402
from test_run_folders import MEASURES, make_qrels, make_rows, write_parts  # noqa: E402

import deadheat as dh  # noqa: E402
from deadheat.cli import main  # noqa: E402
from deadheat.engines.cluster import RayCluster  # noqa: E402
from deadheat.evaluation import evaluate_runs, folders  # noqa: E402
from deadheat.formats.folders import run_folder  # noqa: E402
from deadheat.settings import EvalSettings  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns about future changes


@pytest.fixture(scope="module")
def two_nodes():
    """A cluster of two nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    os.environ["POLARS_MAX_THREADS"] = "1"
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes.add_node(num_cpus=1)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture(scope="module")
def engine(two_nodes):
    ray.shutdown()
    return RayCluster(two_nodes.address, workers=2)


def test_folder_is_evaluated_by_all_workers(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "PART_ROWS", 60)
    folder = write_parts(tmp_path / "run", make_rows(1), 4)
    for rule in ("input", "id_desc", "rank"):
        on_cluster = folders.evaluate_folder(
            dh.read_qrels(make_qrels(1)),
            run_folder(folder),
            MEASURES,
            EvalSettings(rule),
            engine=engine,
        )
        whole = quiet(dh.evaluate)(make_qrels(1), make_rows(1), MEASURES, tie_break=rule)
        assert on_cluster.views == whole.views
        assert on_cluster.query_ids == whole.query_ids
        assert on_cluster.remarks == whole.remarks


def test_document_in_two_files_is_refused(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "PART_ROWS", 60)
    folder = write_parts(tmp_path / "run", make_rows(1), 4)
    pl.read_parquet(folder / "part-00002.parquet")[:1].write_parquet(folder / "z.parquet")
    with pytest.raises(dh.InputError, match=r"run: query 'q\d+' lists document 'd"):
        folders.evaluate_folder(
            dh.read_qrels(make_qrels(1)),
            run_folder(folder),
            MEASURES,
            EvalSettings(),
            engine=engine,
        )


def test_many_runs_are_evaluated_by_all_workers(engine, tmp_path):
    qrels = dh.read_qrels(make_qrels(2))
    paths = [tmp_path / f"{i}.parquet" for i in range(5)]
    for i, path in enumerate(paths):
        make_rows(i).write_parquet(path)
    runs = [*paths[:2], write_parts(tmp_path / "folder", make_rows(7), 3), *paths[2:]]
    results = evaluate_runs(qrels, runs, MEASURES, EvalSettings(), engine=engine)
    for result, local_result in zip(
        results, evaluate_runs(qrels, runs, MEASURES, EvalSettings()), strict=True
    ):
        assert result == local_result
    with pytest.raises(dh.InputError, match=r"nowhere\.run: .*no such file"):
        evaluate_runs(
            qrels, [paths[0], tmp_path / "nowhere.run"], MEASURES, EvalSettings(), engine=engine
        )
    with pytest.raises(dh.InputError, match="standard input"):
        evaluate_runs(qrels, ["-"], MEASURES, EvalSettings(), engine=engine)


def test_leaderboard_matches_one_machine(engine, tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    for i in range(4):
        make_rows(i).write_parquet(runs / f"system-{i}.parquet")
    (runs / "broken.run").write_text("q Q0 d 1 high tag\n")
    published = {
        f"system-{i}": {
            "nDCG@5": round(quiet(dh.evaluate)(make_qrels(3), make_rows(i))["nDCG@10"].oblivious, 4)
        }
        for i in range(4)
    }
    steps = []
    for options in ({}, {"published": published}):
        board = quiet(dh.leaderboard)(
            make_qrels(3),
            runs,
            "nDCG@5",
            engine=engine,
            progress=lambda *step: steps.append(step),
            **options,
        )
        local_board = quiet(dh.leaderboard)(make_qrels(3), runs, "nDCG@5", **options)
        assert board.rows.equals(local_board.rows)
        assert board.failures == local_board.failures
        assert list(board.failures) == ["broken"]
    assert steps[-1][1] == steps[-1][2]


def test_command_line_accepts_ray_address(two_nodes, engine, tmp_path, monkeypatch):
    """Workers resolve paths relative to the working directory of the command."""
    monkeypatch.chdir(tmp_path)
    write_parts(tmp_path / "folder", make_rows(6), 3)
    make_rows(7).write_parquet(tmp_path / "whole.parquet")
    (tmp_path / "qrels.txt").write_text(
        "".join(f"{q} 0 {d} {g}\n" for q, own in make_qrels(6).items() for d, g in own.items())
    )
    ray_args = ["--engine", "ray", "--ray-address", two_nodes.address, "--workers", "2"]
    for args in (
        ["eval", "qrels.txt", "folder", "whole.parquet", "-m", "nDCG@5"],
        ["leaderboard", "qrels.txt", "a=folder", "whole.parquet", "-m", "MRR"],
    ):
        on_cluster = CliRunner().invoke(main, [*args, "--format", "csv", *ray_args])
        on_one_machine = CliRunner().invoke(main, [*args, "--format", "csv"])
        assert on_cluster.exit_code == 0, on_cluster.output
        assert on_cluster.output == on_one_machine.output
