"""Evaluate a corpus in shards on a real Ray cluster of two nodes on this machine."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="needs the extra ray")

from ray_nodes import engine, two_nodes  # noqa: E402

import deadheat as dh  # noqa: E402
from deadheat.engines.cluster import RayCluster  # noqa: E402

__all__ = ["engine", "two_nodes"]

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns about future changes

QUERIES, DOCUMENTS, WIDTH, JUDGED = 40, 6_000, 32, 70
MEASURES = ["nDCG@10", "MRR@10", "MAP", "bpref"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Embeddings in a file; many documents share each vector, so a change of one bit matters."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(200, WIDTH)).astype(np.float32)[rng.integers(0, 200, DOCUMENTS)]
    path = tmp_path_factory.mktemp("corpus") / "embeddings.npy"
    np.save(path, vectors)
    query_vectors = rng.normal(size=(QUERIES, WIDTH)).astype(np.float32)
    names = [f"q{q}" for q in range(QUERIES)]
    qrels = {
        name: {f"d{d}": 1 for d in rng.choice(DOCUMENTS, JUDGED, replace=False)} for name in names
    }
    return (names, query_vectors), path, qrels


@dataclass
class RangeShard:
    """A shard: some documents of the file, read by the worker."""

    path: Path
    positions: range
    tensors: bool = False

    def __call__(self):
        positions = self.positions
        vectors = np.load(self.path, mmap_mode="r")[
            positions.start : positions.stop : positions.step
        ]
        if self.tensors:
            import torch

            vectors = torch.from_numpy(np.array(vectors))
        yield [f"d{d}" for d in positions], vectors, list(positions)


def contiguous_shards(path, n, **options):
    step = -(-DOCUMENTS // n)
    bounds = ((first, min(first + step, DOCUMENTS)) for first in range(0, DOCUMENTS, step))
    return [RangeShard(path, range(*ends), **options) for ends in bounds]


def interleaved_shards(path, n, **options):
    return [RangeShard(path, range(first, DOCUMENTS, n), **options) for first in range(n)]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "shards", [partial(contiguous_shards, n=3), partial(interleaved_shards, n=11)]
)
def test_results_are_identical_to_one_machine(corpus, two_nodes, shards, workers):
    queries, path, qrels = corpus
    ray.shutdown()
    cluster = RayCluster(two_nodes.address, workers=workers)
    found = dh.evaluate_corpus(qrels, queries, shards(path), MEASURES, engine=cluster)
    whole = dh.evaluate_corpus(qrels, queries, contiguous_shards(path, 1), MEASURES)
    assert whole["MAP"].range > 0, "ties matter"
    assert found.to_json() == whole.to_json()


def test_progress_is_reported_per_shard(corpus, engine):
    queries, path, qrels = corpus
    steps = []
    dh.evaluate_corpus(
        qrels,
        queries,
        contiguous_shards(path, 3),
        MEASURES,
        engine=engine,
        progress=lambda *step: steps.append(step),
    )
    assert steps[:3] == [("reading ids", n, 3) for n in (1, 2, 3)]
    assert steps[3:] == [("counting", n, DOCUMENTS) for n in (2_000, 4_000, 6_000)]


def test_tensors_with_exact_ties(corpus, engine):
    torch = pytest.importorskip("torch")
    (names, query_vectors), path, qrels = corpus
    query_vectors = torch.from_numpy(query_vectors)[:5]
    evaluate = partial(
        dh.evaluate_corpus,
        qrels,
        (names[:5], query_vectors),
        measures=MEASURES,
        exact_ties=True,
    )
    found = evaluate(contiguous_shards(path, 3, tensors=True), engine=engine)
    assert found.to_json() == evaluate(contiguous_shards(path, 1, tensors=True)).to_json()


@dataclass
class ShardOnDyingNode(RangeShard):
    """A shard that waits until its node dies, after the node has counted another shard."""

    folder: Path = Path()

    def __call__(self):
        surveyed = self.folder / f"{self.positions.start}.surveyed"
        doomed = (self.folder / "doomed").read_text()
        node_id = ray.get_runtime_context().get_node_id()
        if surveyed.exists() and node_id == doomed:
            if (self.folder / "counted").exists():
                (self.folder / "waiting").touch()
                time.sleep(60)
            (self.folder / "counted").touch()
        if surveyed.exists():
            with (self.folder / "opened").open("a") as file:
                file.write(f"{self.positions.start}\n")
        time.sleep(0.2)  # so that every node gets some shards
        surveyed.touch()
        yield from super().__call__()


def test_results_are_complete_after_a_node_dies(corpus, two_nodes, tmp_path):
    """Neither the shard in progress nor the counts stored on the node are lost."""
    queries, path, qrels = corpus
    ray.shutdown()
    node = two_nodes.add_node(num_cpus=1)
    (tmp_path / "doomed").write_text(node.node_id)
    cluster = RayCluster(two_nodes.address, workers=3)

    def kill():
        while not (tmp_path / "waiting").exists():
            time.sleep(0.05)
        two_nodes.remove_node(node)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    shards = [
        ShardOnDyingNode(shard.path, shard.positions, folder=tmp_path)
        for shard in contiguous_shards(path, 12)
    ]
    found = dh.evaluate_corpus(qrels, queries, shards, MEASURES, engine=cluster)
    killer.join(timeout=0)
    assert not killer.is_alive(), "the node died before the end"
    whole = dh.evaluate_corpus(qrels, queries, contiguous_shards(path, 1), MEASURES)
    assert found.to_json() == whole.to_json()
    opened = (tmp_path / "opened").read_text().split()
    assert len(set(opened)) == 12 and len(opened) <= 13, "only lost work is repeated"


class CrashingShard(RangeShard):
    """A shard that ends the process that opens it."""

    def __call__(self):
        os._exit(1)


def test_repeated_crashes_of_a_worker_are_an_error(corpus, engine):
    queries, path, qrels = corpus
    shards = [CrashingShard(path, range(0, 3_000)), *contiguous_shards(path, 2)[1:]]
    with pytest.raises(dh.InputError, match=r"lost its worker 3 times .* it crashed"):
        dh.evaluate_corpus(qrels, queries, shards, MEASURES, engine=engine)


class OversizedShard(RangeShard):
    """A shard that needs more memory than there is."""

    def __call__(self):
        yield ["x"], np.empty((1 << 40, 1 << 10), np.float32)


def test_a_worker_out_of_memory_is_named(corpus, engine):
    queries, path, qrels = corpus
    with pytest.raises(dh.InputError, match=r"worker on .* ran out of memory .* use smaller"):
        dh.evaluate_corpus(qrels, queries, [OversizedShard(path, range(1))], engine=engine)


def test_shards_that_overlap_are_refused(corpus, engine):
    queries, path, qrels = corpus
    shards = [*contiguous_shards(path, 2), RangeShard(path, range(7, 9))]
    with pytest.raises(
        dh.InputError, match=r"'d7' more than once, in the shards \[0, 2\] \(2 such"
    ):
        dh.evaluate_corpus(qrels, queries, shards, engine=engine)


def test_missing_file_of_a_shard_is_named(corpus, engine):
    queries, path, qrels = corpus
    shards = [*contiguous_shards(path, 2), RangeShard(path.with_name("gone.npy"), range(7, 9))]
    with pytest.raises(dh.InputError, match=r"shard 2 of the corpus cannot be read .*gone\.npy"):
        dh.evaluate_corpus(qrels, queries, shards, engine=engine)
