"""Studies on a real Ray cluster of two nodes on this machine."""

from __future__ import annotations

import os
import platform
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

ray = pytest.importorskip("ray", reason="needs the extra ray")
pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parents[1]))
from experiment_folders import MEASURES, made  # noqa: E402
from ray_nodes import engine, other_nodes, two_nodes  # noqa: E402

from deadheat.engines import cluster, connection  # noqa: E402
from deadheat.engines.cluster import RayCluster  # noqa: E402
from deadheat.errors import InputError  # noqa: E402
from deadheat.lab.experiment import (  # noqa: E402
    Study,
    derive,
    error_budget,
    load_results,
    run_study,
    running,
)

__all__ = ["engine", "made", "other_nodes", "two_nodes"]

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns about future changes


def make_study(made, kind, **options):
    settings = {"model_dtypes": ["bf16"], "measures": MEASURES, "batch_size": 2, **options}
    return Study.of(models=[made[kind]], datasets=[made["data"]], **settings)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name[0] != ".")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def one_thread():
    """Use one thread, as a worker does."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class SquaringFactory:
    """Creates a worker that squares numbers and dies at a path that does not exist yet."""

    def __call__(self):
        def work(piece):
            if isinstance(piece, str):
                path = Path(piece)
                if not path.exists():
                    path.write_text("died here")
                    os.kill(os.getpid(), signal.SIGKILL)
                return "again"
            return piece * piece

        return work


class FailingFactory:
    def __call__(self):
        def work(piece):
            if piece:
                os.kill(os.getpid(), signal.SIGKILL)
            raise InputError("this is no number")

        return work


def test_results_are_complete_and_a_lost_worker_is_replaced(engine, tmp_path):
    pieces = [1, 2, str(tmp_path / "died"), 3, 4]
    with engine.pool(SquaringFactory()) as pool:
        assert dict(pool.results(pieces)) == {1: 1, 2: 4, pieces[2]: "again", 3: 9, 4: 16}
        assert dict(pool.results([5])) == {5: 25}, "the pool can be reused"
    assert (tmp_path / "died").exists()


def test_workers_use_the_working_directory_of_the_driver(engine, tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert engine.ask(Path.cwd) == folder
    monkeypatch.setattr(cluster, "_find_folder", lambda: str(tmp_path / "nowhere"))
    assert engine.ask(Path.cwd).is_dir(), "a machine without the folder keeps its own"
    monkeypatch.undo()
    os.chdir(folder)
    folder.rmdir()
    try:
        assert engine.ask(Path.cwd).is_dir()
    finally:
        os.chdir(tmp_path)


def test_input_error_of_a_worker_is_raised(engine):
    with engine.pool(FailingFactory()) as pool, pytest.raises(InputError, match="is no number"):
        list(pool.results([0]))


def test_exception_of_a_worker_names_the_piece(engine):
    piece = SimpleNamespace(name="shard 3 of the corpus")
    with engine.pool(SquaringFactory()) as pool, pytest.raises(TypeError) as caught:
        list(pool.results([2, piece]))
    assert type(caught.value) is TypeError
    where = str(caught.value.__cause__)
    assert where.startswith("shard 3 of the corpus failed on a worker: ")
    assert "return piece * piece" in where, "the traceback includes the line of code"


def test_repeated_loss_of_workers_is_an_error(engine):
    with engine.pool(FailingFactory()) as pool, pytest.raises(InputError, match="3 times in a row"):
        list(pool.results([1]))


@pytest.mark.parametrize("kind", ["sigmoid", "product"])
def test_scores_match_one_machine(made, engine, one_thread, tmp_path, kind):
    assert run_study(make_study(made, kind), tmp_path / "here") == []
    assert run_study(make_study(made, kind), tmp_path / "cluster", engine=engine) == []
    assert contents(tmp_path / "cluster") == contents(tmp_path / "here")


def test_full_corpus_is_counted_by_the_workers(made, engine, one_thread, tmp_path, monkeypatch):
    """The shards are small; scores are not stored, as for a very long run."""
    whole = make_study(made, "product", candidates="full")
    monkeypatch.setattr(derive, "LONGEST_RUN", 0)
    assert run_study(whole, tmp_path / "here") == []
    engines, make = [], derive.Corpus
    monkeypatch.setattr(derive, "Corpus", lambda *args: engines.append(args[3:]) or make(*args))
    monkeypatch.setattr(derive, "CHUNK", 3)
    assert run_study(whole, tmp_path / "cluster", engine=engine) == []
    assert set(engines) == {(engine,)}
    assert contents(tmp_path / "cluster") == contents(tmp_path / "here")
    assert not list(tmp_path.rglob("scores"))


def test_corpus_without_stored_scores_matches_one_machine(
    made, engine, one_thread, tmp_path, monkeypatch
):
    variants = make_study(made, "product", candidates="full", batch_size=[1, 8])
    monkeypatch.setattr(derive, "LONGEST_RUN", 0)
    assert run_study(variants, tmp_path / "here") == []
    assert run_study(variants, tmp_path / "cluster", engine=engine) == []
    assert contents(tmp_path / "cluster") == contents(tmp_path / "here")
    table = error_budget(load_results(tmp_path / "cluster"), ["MRR"])
    [row] = table.frame.filter(regime="hps").to_dicts()
    assert row["compute_range"] is not None and row["changed"] is None


def test_results_are_complete_after_a_node_dies(made, two_nodes, engine, tmp_path):
    assert run_study(make_study(made, "sigmoid"), tmp_path / "whole", engine=engine) == []
    node = two_nodes.add_node(num_cpus=1)
    steps = []

    def kill(phase, done, total):
        steps.append(done)
        if len(steps) == 3:
            two_nodes.remove_node(node)

    assert (
        run_study(make_study(made, "sigmoid"), tmp_path / "hurt", engine=engine, progress=kill)
        == []
    )
    assert len(steps) > 4
    assert contents(tmp_path / "hurt") == contents(tmp_path / "whole")


def test_other_versions_on_a_worker_are_refused(engine, monkeypatch):
    versions = {**cluster.collect_versions(), "torch": "1.0"}
    monkeypatch.setattr(cluster, "collect_versions", lambda: versions)
    with (
        engine.pool(SquaringFactory()) as pool,
        pytest.raises(InputError, match=r"other versions: torch .* \(the driver has 1\.0\)"),
    ):
        list(pool.results([1]))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"device": "cuda:0"}, "its device is cpu, not cuda:0"),
        ({"backend": "cuda"}, "its backend is torch, not cuda"),
        ({"revision": "sha256:1"}, "its revision is sha256:.*, not sha256:1,"),
    ],
)
def test_worker_with_another_environment_is_refused_by_name(
    made, engine, tmp_path, monkeypatch, setting, message
):
    """For example, the first worker has a GPU and another worker has none."""
    find = running.find_environment
    monkeypatch.setattr(running, "find_environment", lambda *args: replace(find(*args), **setting))
    [failure] = run_study(make_study(made, "sigmoid"), tmp_path, engine=engine)
    expected = f"^{platform.node()} differs from .* first worker: {message}"
    assert re.search(expected, str(failure.error))


def test_workers_use_the_requested_number_of_threads(made, engine, tmp_path):
    """The number of CPUs of a worker does not matter."""
    two_threads = make_study(made, "product", threads=2)
    assert run_study(two_threads, tmp_path / "here") == []
    assert run_study(two_threads, tmp_path / "cluster", engine=engine) == []
    assert contents(tmp_path / "cluster") == contents(tmp_path / "here")
    assert load_results(tmp_path / "cluster")[0].manifest.threads == 2


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"),
        ("somewhere", "no Ray cluster answers at somewhere .*host:port or auto"),
        ("host:many", "no Ray cluster answers at host:many"),
        ("127.0.0.1:99999", "no Ray cluster answers at 127.0.0.1:99999"),
    ],
)
def test_invalid_addresses_are_refused(address, message):
    ray.shutdown()
    with pytest.raises(InputError, match=message):
        RayCluster(address)


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "auto"])
def test_ray_client_address_is_refused(address, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "ray://127.0.0.1:10001")
    message = "ray://127.0.0.1:10001 .*Ray Client.* host:port or auto"
    with pytest.raises(InputError, match=message):
        RayCluster(address)


@pytest.mark.parametrize(
    "reply",
    [b"", b"HTTP/1.1 400 Bad\r\n\r\n", b"\0\0\0\x04\0\0\0\0\0"],
    ids=["nothing", "HTTP", "gRPC"],
)
def test_server_that_is_no_cluster_is_refused_after_a_timeout(reply, monkeypatch, capfd):
    ray.shutdown()
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 1)
    connections = []
    with socket.create_server(("", 0)) as server:

        def answer():
            with suppress(OSError):  # raised when the server is closed
                while True:
                    connections.append(server.accept()[0])
                    connections[-1].sendall(reply)

        threading.Thread(target=answer, daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(InputError, match=f"no Ray cluster answers at {address} .timed out"):
            RayCluster(address)
        assert time.monotonic() - start < 30  # Ray itself retries for minutes
    assert capfd.readouterr() == ("", "")


def test_equivalent_addresses_of_the_connected_cluster_are_accepted(two_nodes, monkeypatch):
    ray.shutdown()
    local_address = f"localhost:{two_nodes.address.rpartition(':')[2]}"
    for address in (local_address, None, "auto", two_nodes.address, local_address):
        RayCluster(address, workers=1)
    monkeypatch.setenv("RAY_ADDRESS", local_address)
    RayCluster("auto", workers=1)


def test_second_cluster_is_refused_while_connected(engine, two_nodes, other_nodes, monkeypatch):
    own, other = two_nodes.address, other_nodes.address
    monkeypatch.setenv("RAY_ADDRESS", other)
    for address in (other, "auto"):
        with pytest.raises(InputError, match=rf"at {own}, not at {other}: call ray.shutdown\(\)"):
            RayCluster(address)
    ray.shutdown()
    RayCluster(other)
    assert ray.get_runtime_context().gcs_address == other


def test_more_gpus_than_any_machine_has_are_refused(two_nodes, other_nodes):
    for nodes, gpus in ((two_nodes, 1), (other_nodes, 2)):
        ray.shutdown()
        with pytest.raises(InputError, match=rf"no machine .*has {gpus} GPUs"):
            RayCluster(nodes.address, gpus_per_worker=gpus)


def test_local_cluster_does_not_wait_for_more_nodes(monkeypatch):
    """Other clusters may grow: deadheat waits if a number of workers is given."""
    ray.shutdown()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for _ in range(2):  # the second call finds the cluster that the first has started
        with pytest.raises(InputError, match=r"no machine .*has 1 GPUs"):
            RayCluster(workers=1, gpus_per_worker=1)
    ray.shutdown()


LISTEN_SCRIPT = """
import os
from pathlib import Path

import ray

from deadheat.engines.cluster import RayCluster


def parents():
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            yield int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # the process has ended
            pass


engine = RayCluster(workers=2)
with engine.pool(lambda: abs) as pool:
    assert sorted(pool.results([-1, -2])) == [(-2, 2), (-1, 1)]
    pids, n_before = {os.getpid()}, 0
    while n_before != len(pids):
        n_before = len(pids)
        pids |= {pid for pid, parent in parents() if parent in pids}
    sockets = set()
    for pid in pids:
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            try:
                sockets.add(os.readlink(handle))
            except OSError:  # the handle was closed
                pass
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in sockets:
                print(local.partition(":")[0])
ray.shutdown()
"""


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="Linux lists sockets in /proc")
def test_local_cluster_listens_on_loopback_only():
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LISTEN_SCRIPT], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    addresses = process.stdout.split()
    assert len(addresses) > 3, "the scheduler, the store and the workers listen"
    loopback = ("0100007F", "0000000000000000FFFF00000100007F", f"{'0' * 24}01000000")
    assert set(addresses) <= set(loopback)


def test_local_cluster_on_a_network_address_is_refused(monkeypatch):
    ray.shutdown()
    monkeypatch.setattr(connection, "_bind_loopback", lambda _: nullcontext())
    monkeypatch.setattr(ray, "nodes", lambda: [{"NodeManagerAddress": "192.0.2.1"}])
    with pytest.raises(InputError, match="connections from the network"):
        RayCluster(workers=1)
    assert not ray.is_initialized()


def test_invalid_options_are_refused():
    for options in ({"workers": 0}, {"gpus_per_worker": -1}):
        with pytest.raises(InputError, match="must be at least"):
            RayCluster("127.0.0.1:1", **options)
