"""A corpus on a cluster: what travels over the network, and what a second worker brings.

    python benchmarks/corpus_cluster.py            # bytes; the arithmetic of a billion documents
    python benchmarks/corpus_cluster.py --workers  # two workers beside one, on Ray; needs the extra

The bytes are those of the very objects that an engine sends, pickled. Workers have one thread each;
on a machine that is busy with other work the second one has no processor of its own.
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from corpus_speed import MEASURES, RELEVANT, Example

import deadheat as dh
from deadheat.engines import Here
from deadheat.evaluation.corpus import corpus_result
from deadheat.evaluation.corpus_shards import Corpus
from deadheat.formats import read_qrels
from deadheat.measures.parse import parse_measures
from deadheat.scoring import Products

WIDTH, SHARD = 384, 20_000
BILLION = 1_000_000_000


class Wire(Here):
    """An engine in this process that adds up what would travel; it stands for a cluster."""

    def __init__(self) -> None:
        self.sent: dict[str, list[int]] = {}

    def count(self, what: str, value: Any) -> None:
        self.sent.setdefault(what, []).append(len(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)))

    @contextmanager
    def pool(self, make_worker: Any) -> Iterator[Any]:
        self.count("queries", make_worker)
        with super().pool(make_worker) as workers:
            yield _Counted(workers, self)


class _Counted:
    def __init__(self, workers: Any, wire: Wire) -> None:
        self._workers, self._wire = workers, wire

    def results(self, pieces: Any, beside: Any = None) -> Iterator[tuple[Any, Any]]:
        self._wire.count("ids of judged documents", beside)
        for piece, result in self._workers.results(pieces, beside):
            self._wire.count("what a shard holds", result)
            yield piece, result

    def total(self, pieces: Any, beside: Any = None) -> Any:
        self._wire.count("scores of judged documents", beside)
        results = [result for _, result in self._workers.results(pieces, beside)]
        for result in results:
            self._wire.count("counts", result)
        return sum(results[1:], results[0])


def traffic(queries: int, documents: int, *, numbered: bool) -> dict[str, float]:
    """Bytes of each kind that one of two shards costs, or one worker."""
    example = Example(documents, WIDTH, queries)
    half = documents // 2
    names = range(documents) if numbered else example.ids
    shards = [lambda a=a: [(names[a : a + half], example.vectors[a : a + half])] for a in (0, half)]
    wire = Wire()
    products = Products.of(example.asked, "dot", "native")
    corpus = Corpus(products, example.names, shards, wire)
    corpus_result(corpus, read_qrels(example.qrels), parse_measures(MEASURES))
    return {what: float(np.mean(bytes_)) for what, bytes_ in wire.sent.items()}


def slope(few: dict[str, float], many: dict[str, float], what: str, more: int) -> float:
    return (many[what] - few[what]) / more


def show_traffic() -> None:
    base = traffic(256, 2 * SHARD, numbered=True)
    asked = traffic(512, 2 * SHARD, numbered=True)
    longer = traffic(256, 4 * SHARD, numbered=True)
    named = traffic(256, 2 * SHARD, numbered=False)
    named_longer = traffic(256, 4 * SHARD, numbered=False)
    print(f"embeddings of the width {WIDTH}, FP32; three relevant documents a query; bytes\n")
    print("to each worker, once, for every query:")
    per_worker = 0.0
    for what in ("queries", "ids of judged documents", "scores of judged documents"):
        own = slope(base, asked, what, 256)
        per_worker += own
        print(f"  {what:34} {own:8,.0f}")
    counts = slope(base, asked, "counts", 256)
    held = slope(base, asked, "what a shard holds", 256)
    print("from each shard, for every query:")
    print(f"  {'counts, up the tree':34} {counts:8,.0f}")
    print("from its shard, once, for every judged document:")
    print(f"  {'id, position, embedding':34} {held * 2 / RELEVANT:8,.0f}")
    print("from each shard, for every document:")
    for what, (few, many) in {
        "named by numbers": (base, longer),
        "with other ids": (named, named_longer),
    }.items():
        print(f"  {what:34} {slope(few, many, 'what a shard holds', SHARD):8,.3f}")
    shards, queries = 1_000, 6_980
    print(f"\na billion documents in {shards:,} shards, {queries:,} queries:")
    up = counts * queries * shards * 8 / 7
    print(f"  counts, through a tree of eights     {up / 1e9:8,.2f} GB")
    print(f"  of them to the driver                {counts * queries / 1e9:8,.4f} GB")
    print(f"  to 100 workers                       {per_worker * queries * 100 / 1e9:8,.2f} GB")
    print(f"  judged documents to the driver       {2 * held * queries / 1e9:8,.3f} GB")
    print(f"  ids that are no numbers              {8 * BILLION / 1e9:8,.2f} GB")
    print(f"  the embeddings, which stay           {BILLION * WIDTH * 4 / 1e9:8,.0f} GB")


def show_workers(documents: int, address: str | None) -> None:
    """Time one worker and two on the same shards in files, each after a first run."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    from safetensors.numpy import save_file

    from deadheat.engines.cluster import RayCluster

    example = Example(documents, WIDTH, 512)
    queries = example.names, example.asked
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(np.array_split(example.vectors, 8)):
            save_file({"embeddings": part}, Path(folder) / f"part-{number}.safetensors")
        shards = dh.stored_shards(folder, chunk=1 << 14)
        times: dict[int, float] = {}
        results = set()
        for _ in range(3):
            for workers in (1, 2):
                engine = RayCluster(address, workers=workers)
                pool = _Warm(engine)
                with pool:
                    start = time.perf_counter()
                    result = dh.evaluate_corpus(
                        queries, shards, example.qrels, MEASURES, engine=pool
                    )
                    took = time.perf_counter() - start
                times[workers] = min(times.get(workers, np.inf), took)
                results.add(result.to_json())
    ratio = times[1] / times[2]
    print(f"{documents:,} × {WIDTH}, 512 queries: two workers are {ratio:.2f} × as fast as one")
    rate = documents / times[1]
    print(f"one worker with one thread: {rate:,.0f} documents a second")
    print(f"a billion documents on 100 such workers: {BILLION / rate / 100 / 60:,.0f} minutes")
    print("all results are the same" if len(results) == 1 else "RESULTS DIFFER")


class _Warm:
    """An engine whose workers have started before the clock does; several pools share them."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        self._context = self._engine.pool(_Deferred())
        self._pool = self._context.__enter__()
        for _ in range(2):
            list(self._pool.results([_Ready()] * 4))

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    @contextmanager
    def pool(self, make_worker: Any) -> Iterator[Any]:
        yield _Given(self._pool, make_worker)


class _Ready:
    def do(self) -> None:
        time.sleep(0.5)


class _Deferred:
    """Makes a worker that is told what it is with every piece."""

    def __call__(self) -> Any:
        made: dict[int, Any] = {}

        def work(piece: Any, beside: Any = None) -> Any:
            if isinstance(piece, _Ready):
                return piece.do()
            make_worker, own = beside
            work = made.setdefault(0, make_worker())
            return work(piece, own)

        return work


class _Given:
    def __init__(self, pool: Any, make_worker: Any) -> None:
        self._pool, self._make_worker = pool, make_worker

    def results(self, pieces: Any, beside: Any = None) -> Any:
        return self._pool.results(pieces, (self._make_worker, beside))

    def total(self, pieces: Any, beside: Any = None) -> Any:
        return self._pool.total(pieces, (self._make_worker, beside))


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
