"""A corpus on a cluster: bytes sent over the network, and the speedup of a second worker.

    python benchmarks/corpus_cluster.py            # bytes, extrapolated to a billion documents
    python benchmarks/corpus_cluster.py --workers  # one and two workers on Ray; needs the extra ray

Bytes are those of the pickled objects that an engine sends. Workers have one thread each, and load
all libraries before the clock starts. On a machine that is busy with other work, the second worker
shares a core.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import pickle
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from corpus_speed import MEASURES, RELEVANT, Example

import deadheat as dh
from deadheat.engines import LocalEngine
from deadheat.evaluation.corpus.chunks import open_shards
from deadheat.evaluation.corpus.evaluate import Corpus, CountTask, evaluate_shards
from deadheat.formats import read_qrels
from deadheat.measures.parse import parse_measures
from deadheat.scoring import Products

WIDTH, SHARD, SHARDS = 384, 20_000, 8
BILLION = 1_000_000_000
REPEATS = 5
"""Number of runs, of which the fastest counts."""


class CountingEngine:
    """A local engine that counts the bytes that a cluster would send."""

    def __init__(self) -> None:
        self.sent: dict[str, list[int]] = {}

    def count(self, what: str, value: Any) -> None:
        self.sent.setdefault(what, []).append(len(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)))

    @contextmanager
    def pool(self, make_worker: Any) -> Iterator[Any]:
        self.count("queries", make_worker)
        with LocalEngine().pool(make_worker) as workers:
            yield _CountingPool(workers, self)


class _CountingPool:
    def __init__(self, workers: Any, engine: CountingEngine) -> None:
        self._workers, self._engine = workers, engine

    def results(self, pieces: Any, task: Any) -> Iterator[tuple[Any, Any]]:
        is_scan = not isinstance(task, CountTask)
        what = "ids of judged documents" if is_scan else "scores of judged documents"
        self._engine.count(what, task)
        for piece, result in self._workers.results(pieces, task):
            self._engine.count("what a shard holds" if is_scan else "counts", result)
            yield piece, result


def count_bytes(queries: int, documents: int, *, numbered: bool) -> dict[str, float]:
    """Return the mean bytes of each kind of message, per shard or per worker."""
    example = Example(documents, WIDTH, queries)
    half = documents // 2
    names = range(documents) if numbered else example.ids
    shards = [lambda a=a: [(names[a : a + half], example.vectors[a : a + half])] for a in (0, half)]
    engine = CountingEngine()
    products = Products.of(example.query_vectors, "dot", "native")
    corpus = Corpus(products, example.names, open_shards(shards), engine)
    evaluate_shards(corpus, read_qrels(example.qrels), parse_measures(MEASURES))
    return {what: float(np.mean(bytes_)) for what, bytes_ in engine.sent.items()}


def slope(few: dict[str, float], many: dict[str, float], what: str, more: int) -> float:
    """Return the bytes for each further query or document."""
    return (many[what] - few[what]) / more


def show_traffic() -> None:
    """Print the bytes sent for each query and document."""
    base = count_bytes(256, 2 * SHARD, numbered=True)
    more_queries = count_bytes(512, 2 * SHARD, numbered=True)
    more_documents = count_bytes(256, 4 * SHARD, numbered=True)
    named = count_bytes(256, 2 * SHARD, numbered=False)
    more_named = count_bytes(256, 4 * SHARD, numbered=False)
    print(f"embeddings of the width {WIDTH}, FP32; three relevant documents a query; bytes\n")
    print("to each worker, once, for every query:")
    per_worker = 0.0
    for what in ("queries", "ids of judged documents", "scores of judged documents"):
        own = slope(base, more_queries, what, 256)
        per_worker += own
        print(f"  {what:34} {own:8,.0f}")
    counts = slope(base, more_queries, "counts", 256)
    judged = slope(base, more_queries, "what a shard holds", 256)
    print("from each shard, for every query:")
    print(f"  {'counts':34} {counts:8,.0f}")
    print("from its shard, once, for every judged document:")
    print(f"  {'id, position, embedding':34} {judged * 2 / RELEVANT:8,.0f}")
    print("from each shard, for every document:")
    for what, (few, many) in {
        "named by numbers": (base, more_documents),
        "with other ids": (named, more_named),
    }.items():
        print(f"  {what:34} {slope(few, many, 'what a shard holds', SHARD):8,.3f}")
    shards, queries = 1_000, 6_980
    print(f"\na billion documents in {shards:,} shards, {queries:,} queries:")
    print(f"  counts to the driver                 {counts * queries * shards / 1e9:8,.2f} GB")
    print(f"  to 100 workers                       {per_worker * queries * 100 / 1e9:8,.2f} GB")
    print(f"  judged documents to the driver       {2 * judged * queries / 1e9:8,.3f} GB")
    print(f"  ids that are no numbers              {8 * BILLION / 1e9:8,.2f} GB")
    print(f"  the embeddings, which stay           {BILLION * WIDTH * 4 / 1e9:8,.0f} GB")


def time_workers(
    documents: int, address: str | None = None
) -> tuple[dict[int, float], dict[int, float]]:
    """Compare one worker with two on the same shards in files.

    Return the wall-clock seconds of each, and the CPU seconds of the driver and its busiest worker.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    from safetensors.numpy import save_file

    from deadheat.engines.cluster import RayCluster

    example = Example(documents, WIDTH, 512)
    queries = example.names, example.query_vectors
    clock: dict[int, float] = {}
    cpu: dict[int, float] = {}
    results = set()
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(np.array_split(example.vectors, SHARDS)):
            save_file({"embeddings": part}, Path(folder) / f"part-{number:02}.safetensors")
        shards = dh.evaluation.stored_shards(folder, chunk=1 << 14)
        for _ in range(REPEATS):
            for workers in (1, 2):
                with WarmEngine(RayCluster(address, workers=workers), workers) as engine:
                    before, start = engine.cpu_times(), time.perf_counter()
                    result = dh.evaluate_corpus(
                        example.qrels, queries, shards, MEASURES, engine=engine
                    )
                    took, after = time.perf_counter() - start, engine.cpu_times()
                spent = {process: after[process] - before[process] for process in after}
                longest = spent.pop(os.getpid()) + max(spent.values())
                clock[workers] = min(clock.get(workers, np.inf), took)
                cpu[workers] = min(cpu.get(workers, np.inf), longest)
                results.add(result.to_json())
    if len(results) > 1:
        raise AssertionError("the results of one worker and of two differ")
    return clock, cpu


def bench_workers(report: Any, documents: int = 400_000) -> None:
    """Add rows to the report of `bench.py`, if Ray is installed."""
    if importlib.util.find_spec("ray") is None:
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:  # its end also stops Ray
        clock, _ = pool.submit(time_workers, documents).result()
    report.add_deadheat(
        f"corpus {documents:,} × {WIDTH} on Ray, a thread each", clock[2], "two workers"
    )
    report.add_speedup("one worker", clock[2], clock[1], 1.7)


def show_workers(documents: int, address: str | None) -> None:
    """Print how much faster two workers are than one."""
    clock, cpu = time_workers(documents, address)
    print(f"{documents:,} × {WIDTH}, 512 queries, {SHARDS} shards, a thread each: two workers are")
    print(f"  {clock[1] / clock[2]:.2f} × as fast as one by the clock (bar: 1.7 ×)")
    print(f"  {cpu[1] / cpu[2]:.2f} × by processor time of the driver and its busiest worker")
    rate = documents / cpu[1]
    print(f"one worker: {rate:,.0f} documents in a second of processor time, so a billion on 100")
    print(f"  such workers take {BILLION / rate / 100:,.0f} seconds")
    print("all results are the same")


class WarmEngine:
    """An engine whose workers start before the clock does."""

    def __init__(self, engine: Any, workers: int) -> None:
        self._engine, self._workers = engine, workers

    def __enter__(self) -> WarmEngine:
        self._context = self._engine.pool(_Worker)
        self._pool = self._context.__enter__()
        self.cpu_times()
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    def cpu_times(self) -> dict[int, float]:
        """Return the CPU seconds of this process and of all workers, by process id."""
        found = {os.getpid(): time.process_time()}
        while len(found) <= self._workers:
            found |= {pid: spent for _, (pid, spent) in self._pool.results([None] * self._workers)}
        return found

    @contextmanager
    def pool(self, make_worker: Any) -> Iterator[Any]:
        yield _Pool(self._pool, make_worker)


class _Pool:
    def __init__(self, pool: Any, make_worker: Any) -> None:
        self._pool, self._make_worker = pool, make_worker

    def results(self, pieces: Any, *shared: Any) -> Any:
        return self._pool.results(pieces, self._make_worker, *shared)


class _Worker:
    """A worker that gets its work with each piece, and returns its CPU time for the piece None."""

    def __init__(self) -> None:
        one = np.ones((1, 2), np.float32)  # loads all libraries
        dh.evaluate_corpus({"q": {"d": 1}}, (["q"], one), [(["d"], one)], MEASURES)
        self._work: Any = None

    def __call__(self, piece: Any, make_worker: Any = None, *shared: Any) -> Any:
        if piece is None:
            time.sleep(0.3)  # so that other workers take a piece, too
            return os.getpid(), time.process_time()
        self._work = self._work or make_worker()
        return self._work(piece, *shared)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", action="store_true")
    parser.add_argument("--documents", type=int, default=400_000)
    parser.add_argument("--ray-address")
    options = parser.parse_args()
    if options.workers:
        show_workers(options.documents, options.ray_address)
    else:
        show_traffic()


if __name__ == "__main__":
    main()
