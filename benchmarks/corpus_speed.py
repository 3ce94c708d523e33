"""A whole corpus: deadheat beside the products alone and torch.topk, and its peak memory.

    python benchmarks/corpus_speed.py                 # 400,000 × 384, as the bar has it
    python benchmarks/corpus_speed.py --documents 50000
    python benchmarks/corpus_speed.py --memory 2000000  # documents × 256, from a file

Times are of one process; only their ratios mean something. `--cpu` compares processor time on one
thread instead of the clock, for a machine that is busy with other work.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import deadheat as dh

MEASURES = ["nDCG@10", "MRR@10", "MAP@100", "Recall@100"]
RELEVANT = 3
CHUNK = 1 << 14
TOP = 1_000


class Example:
    """Random embeddings of length 1, and queries near one of their three relevant documents."""

    def __init__(self, documents: int, width: int, queries: int) -> None:
        rng = np.random.default_rng(0)
        self.vectors = rng.standard_normal((documents, width), dtype=np.float32)
        self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        relevant = rng.choice(documents, (queries, RELEVANT), replace=False)
        noise = rng.standard_normal((queries, width), dtype=np.float32)
        self.asked = self.vectors[relevant[:, 0]] + 0.1 * noise
        self.qrels = {str(q): {str(d): 1 for d in row} for q, row in enumerate(relevant.tolist())}
        self.names = list(self.qrels)
        self.ids = [str(d) for d in range(documents)]

    def chunks(self, vectors: Any) -> list[tuple[list[str], Any]]:
        return [
            (self.ids[start : start + CHUNK], vectors[start : start + CHUNK])
            for start in range(0, len(self.ids), CHUNK)
        ]


def numpy_calls(example: Example) -> dict[str, Callable[[], Any]]:
    chunks = example.chunks(example.vectors)

    def products() -> None:
        for _, part in chunks:
            example.asked @ part.T

    def ours() -> None:
        dh.evaluate_corpus((example.names, example.asked), chunks, example.qrels, MEASURES)

    return {"deadheat": ours, "products alone": products}


def torch_calls(example: Example) -> dict[str, Callable[[], Any]]:
    import torch

    asked = torch.from_numpy(example.asked)
    chunks = example.chunks(torch.from_numpy(example.vectors))

    def products() -> None:
        for _, part in chunks:
            asked @ part.T

    def topk() -> None:
        best = None
        for _, part in chunks:
            own = (asked @ part.T).topk(min(TOP, len(part)), dim=1).values
            best = own if best is None else torch.cat((best, own), 1).topk(TOP, dim=1).values

    def ours() -> None:
        dh.evaluate_corpus((example.names, asked), chunks, example.qrels, MEASURES)

    return {"deadheat": ours, "products alone": products, f"torch.topk({TOP})": topk}


def bench_corpus(
    report: Any, together: Callable[..., dict[str, float]], documents: int = 400_000
) -> None:
    """Add rows to the report of `bench.py`."""
    example = Example(documents, 384, 512)
    backends = {"NumPy": numpy_calls(example)}
    with contextlib.suppress(ImportError):
        backends["torch"] = torch_calls(example)
    for backend, calls in backends.items():
        times = together(calls, 3)
        ours = times.pop("deadheat")
        report.own(f"corpus {documents:,} × 384, {backend}", ours)
        for what, other in times.items():
            if what == "products alone":
                report.at_most(what, ours, other, 1.15)
            else:
                report.faster(f"{what} by chunks", ours, other, 1)


def stored(path: Path, documents: int, width: int) -> None:
    """Write embeddings, some at a time."""
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, documents, CHUNK):
            rows = min(CHUNK, documents - start)
            file.write(rng.standard_normal((rows, width), dtype=np.float32).tobytes())


def evaluate_stored(path: Path, documents: int, width: int, queries: int = 64) -> None:
    """Evaluate embeddings that are mapped into memory a chunk at a time."""

    def chunks() -> Iterator[tuple[range, Any]]:
        for start in range(0, documents, CHUNK):
            rows = min(CHUNK, documents - start)
            part = np.memmap(path, np.float32, "r", start * width * 4, (rows, width))
            yield range(start, start + rows), part
            del part

    asked = np.random.default_rng(1).standard_normal((queries, width), dtype=np.float32)
    qrels = {str(q): {str(q * 7 + i): 1 for i in range(RELEVANT)} for q in range(queries)}
    dh.evaluate_corpus((list(qrels), asked), chunks, qrels, MEASURES)


def show_memory(documents: int, width: int = 256) -> None:
    """Peak memory of this process before and after it evaluated a stored corpus."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "embeddings.bin"
        stored(path, documents, width)
        evaluate_stored(path, min(documents, CHUNK), width)
        before = peak()
        evaluate_stored(path, documents, width)
        size = path.stat().st_size / 1e6
    print(
        f"{documents:,} × {width} float32 in a file of {size:,.0f} MB: peak memory "
        f"{peak():,.0f} MB, of which {before:,.0f} MB for its first {CHUNK:,} documents"
    )


def peak() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=400_000)
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    if options.memory:
        show_memory(options.memory)
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
    else:  # the libraries read it when they are loaded
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **one})
