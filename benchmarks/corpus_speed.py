"""Evaluation of a whole corpus, compared with the products alone and torch.topk; peak memory.

    python benchmarks/corpus_speed.py                 # 400,000 × 384, the size of the bar
    python benchmarks/corpus_speed.py --documents 50000
    python benchmarks/corpus_speed.py --memory 4000000  # documents × 64, from files
    python benchmarks/corpus_speed.py --memory 8841823 --width 1024  # MS MARCO: 36 GB of disk

Times are of one process; only their ratios are printed. On a machine that is busy with other work,
`--cpu` compares the CPU time of one thread instead of wall-clock time.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import deadheat as dh

MEASURES = ["nDCG@10", "MRR@10", "MAP@100", "Recall@100"]
RELEVANT, MANY = 3, 30
CHUNK, PART = 1 << 14, 100_000
TOP = 1_000
BAR, TILED_BAR = 1.15, 3
"""Limits relative to the products alone; the second if NumPy's products depend on positions."""


class Example:
    """Random embeddings of length 1, and queries near one of their three relevant documents."""

    def __init__(self, documents: int, width: int, queries: int) -> None:
        rng = np.random.default_rng(0)
        self.vectors = rng.standard_normal((documents, width), dtype=np.float32)
        self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        relevant = rng.choice(documents, (queries, RELEVANT), replace=False)
        noise = rng.standard_normal((queries, width), dtype=np.float32)
        self.query_vectors = self.vectors[relevant[:, 0]] + 0.1 * noise
        self.qrels = {str(q): {str(d): 1 for d in row} for q, row in enumerate(relevant.tolist())}
        self.names = list(self.qrels)
        self.ids = [str(d) for d in range(documents)]

    def chunks(self, vectors: Any) -> list[tuple[list[str], Any]]:
        return [
            (self.ids[start : start + CHUNK], vectors[start : start + CHUNK])
            for start in range(0, len(self.ids), CHUNK)
        ]


def numpy_calls(example: Example) -> dict[str, Callable[[], Any]]:
    """Return the functions to time with NumPy."""
    chunks = example.chunks(example.vectors)

    def products() -> None:
        for _, part in chunks:
            example.query_vectors @ part.T

    def ours() -> None:
        dh.evaluate_corpus(example.qrels, (example.names, example.query_vectors), chunks, MEASURES)

    return {"deadheat": ours, "products alone": products}


def torch_calls(example: Example) -> dict[str, Callable[[], Any]]:
    """Return the functions to time with torch."""
    import torch

    query_vectors = torch.from_numpy(example.query_vectors)
    chunks = example.chunks(torch.from_numpy(example.vectors))

    def products() -> None:
        for _, part in chunks:
            query_vectors @ part.T

    def topk() -> None:
        best = None
        for _, part in chunks:
            own = (query_vectors @ part.T).topk(min(TOP, len(part)), dim=1).values
            best = own if best is None else torch.cat((best, own), 1).topk(TOP, dim=1).values

    def ours() -> None:
        dh.evaluate_corpus(example.qrels, (example.names, query_vectors), chunks, MEASURES)

    return {"deadheat": ours, "products alone": products, f"torch.topk({TOP})": topk}


def time_corpus(documents: int, time_calls: Callable[..., dict[str, float]]) -> dict[str, Any]:
    """Return the seconds of each call, by backend."""
    example = Example(documents, 384, 512)
    times = {"NumPy": time_calls(numpy_calls(example), 7)}
    with contextlib.suppress(ImportError):
        times["torch"] = time_calls(torch_calls(example), 7)
    return times


def needs_tiles() -> bool:
    """Return whether one product gives equal documents different scores (see `Products`)."""
    rng = np.random.default_rng(0)
    query_vectors = rng.standard_normal((512, 384), np.float32)
    scores = query_vectors @ np.tile(rng.standard_normal(384, np.float32), (4096, 1)).T
    return bool((scores != scores[:, :1]).any())


def bench_corpus(
    report: Any, time_calls: Callable[..., dict[str, float]], documents: int = 400_000
) -> None:
    """Add rows to the report of `bench.py`, timed in a new process."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        by_backend = pool.submit(time_corpus, documents, time_calls).result()
    for backend, times in by_backend.items():
        ours = times.pop("deadheat")
        report.add_deadheat(f"corpus {documents:,} × 384, {backend}", ours)
        for what, other in times.items():
            if what == "products alone":
                bar = TILED_BAR if backend == "NumPy" and needs_tiles() else BAR
                report.add_limit(what, ours, other, bar)
            else:
                report.add_speedup(f"{what} by chunks", ours, other, 1)


def bench_threads(report: Any, time_calls: Callable[..., dict[str, float]]) -> None:
    """Count scores in one thread and in two.

    It needs many documents: with few, memory limits two threads as much as one.
    """
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((512, 1 << 16), dtype=np.float32)
    query = np.repeat(np.arange(512), MANY)

    def count(threads: int) -> Callable[[], None]:
        position = np.tile(np.arange(MANY), 512)
        counter = dh.ties.TieCounter(
            512, query, scores[:, :MANY].ravel(), np.ones(len(query)), position
        )
        return lambda: counter.update(scores, threads=threads)

    times = time_calls({"two threads": count(2), "one thread": count(1)}, 5)
    what = f"512 × 65,536 scores, {MANY} relevant"
    report.add_deadheat(what, times["two threads"], "deadheat, two threads")
    report.add_speedup("deadheat, one thread", times["two threads"], times["one thread"], 1.5)


def write_embeddings(folder: Path, documents: int, width: int) -> None:
    """Write embeddings in parts, each with a file of document ids."""
    from safetensors.numpy import save_file

    rng = np.random.default_rng(0)
    for number, start in enumerate(range(0, documents, PART)):
        rows = min(PART, documents - start)
        vectors = rng.standard_normal((rows, width), dtype=np.float32)
        save_file({"embeddings": vectors}, folder / f"part-{number:04}.safetensors")
        names = "".join(f"{d}\n" for d in range(start, start + rows))
        (folder / f"part-{number:04}.ids.txt").write_text(names)


def measure_peak(folder: str, parts: int, width: int, queries: int = 64) -> float:
    """Evaluate the first parts of stored embeddings; return the peak memory in MB."""
    query_vectors = np.random.default_rng(1).standard_normal((queries, width), dtype=np.float32)
    qrels = {str(q): {str(q * 7 + i): 1 for i in range(RELEVANT)} for q in range(queries)}
    shards = dh.evaluation.stored_shards(folder, chunk=CHUNK)[:parts]
    dh.evaluate_corpus(qrels, (list(qrels), query_vectors), shards, MEASURES)
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


def show_memory(documents: int, width: int) -> None:
    """Print the peak memory for stored corpora, each in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        write_embeddings(Path(folder), documents, width)
        parts = len(list(Path(folder).glob("*.safetensors")))
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            one, all_ = (pool.apply(measure_peak, (folder, n, width)) for n in (1, parts))
    size = documents * width * 4 / 1e6
    print(f"{documents:,} × {width} float32, {size:,.0f} MB in {parts} files with ids beside them:")
    print(f"peak memory {all_:,.0f} MB; {one:,.0f} MB for the first {PART:,} documents")
    each = (all_ - one) * 1e6 / (documents - PART)
    print(f"so {each:.1f} bytes for every further document")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=400_000)
    parser.add_argument("--memory", type=int, default=0, metavar="DOCUMENTS")
    parser.add_argument("--width", type=int, default=64, help="of the embeddings of --memory")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    if options.memory:
        show_memory(options.memory, options.width)
        return
    clock = time.process_time if options.cpu else time.perf_counter
    example = Example(options.documents, 384, 512)
    for backend, make in {"NumPy": numpy_calls, "torch": torch_calls}.items():
        calls = make(example)
        best = dict.fromkeys(calls, np.inf)
        for _ in range(3):
            for name, call in calls.items():
                start = clock()
                call()
                best[name] = min(best[name], clock() - start)
        ours = best.pop("deadheat")
        for name, other in best.items():
            print(f"{backend}: deadheat takes {ours / other:.2f} × {name}")


if __name__ == "__main__":
    if "--cpu" not in sys.argv or os.environ.get("OMP_NUM_THREADS") == "1":
        main()
    else:  # libraries read these variables when they are loaded
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **one})
