"""Worker threads, and matrix products limited to one BLAS thread each."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings, strategies as st

import deadheat as dh
from deadheat._internal.threads import share_work
from deadheat.evaluation.corpus import chunks as corpus_chunks
from deadheat.scoring import Products
from deadheat.scoring.products import _blas, single_thread_blas


@settings(max_examples=50)
@given(items=st.lists(st.integers(), max_size=30), threads=st.integers(1, 5))
def test_share_work_processes_each_item_once(items, threads):
    processed = []
    found = share_work(lambda item: processed.append(item) or -item, iter(items), threads)
    assert list(found) == [-item for item in items]
    assert sorted(processed) == sorted(items)


def test_share_work_runs_threads_concurrently():
    barrier = threading.Barrier(3, timeout=20)
    found = share_work(lambda _: barrier.wait(), range(3), 3)
    assert sorted(found) == [0, 1, 2]


def test_share_work_initialises_each_thread_once():
    started = []
    list(share_work(abs, range(9), 3, lambda: started.append(threading.get_ident())))
    assert len(started) == len(set(started)) <= 3


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("slow", [5, 6, 7])
def test_share_work_raises_the_error_of_the_first_item(threads, slow):
    """Items from 5 on fail. The error of item 5 is raised, whichever thread is slow."""
    processed = []

    def work(item):
        processed.append(item)
        if item == slow:
            time.sleep(0.05)
        if item >= 5:
            raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 5"):
        list(share_work(work, range(1_000), threads))
    assert len(processed) <= 5 + 2 * threads


@pytest.mark.parametrize("threads", [1, 3])
def test_share_work_raises_errors_of_the_iterator(threads):
    def items():
        yield from range(4)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(share_work(abs, items(), threads))


@pytest.fixture
def interruptible():
    """Handle Ctrl-C, because a shell lets processes in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_keyboard_interrupt_stops_all_threads():
    """Ctrl-C interrupts the waiting main thread; the others process no further item."""
    processed = []

    def work(item):
        processed.append(item)
        if item == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        list(share_work(work, range(10_000), 2))
    assert len(processed) < 100


def blas_threads():
    """Return the number of threads of each BLAS library that was loaded at the first product."""
    return [pool["num_threads"] for pool in _blas().info()]


def test_single_thread_blas_limits_numpy_to_one_thread():
    array = np.ones((2, 2), np.float32)
    with threadpoolctl.threadpool_limits(3, "blas"):
        before = blas_threads()
        with single_thread_blas(array) as (threads, _):
            assert threads == 3
            assert set(blas_threads()) == {1}
            with single_thread_blas(array) as (inner, _):
                assert inner == 1
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


def test_single_thread_blas_excludes_other_callers():
    """A second caller waits, so that each restores the original settings."""
    operand, before, order = np.ones((2, 2), np.float32), blas_threads(), []

    def second():
        with single_thread_blas(operand) as (threads, _):
            order.append("second")
            assert threads == max(before) and set(blas_threads()) == {1}
        assert blas_threads() == before

    with ThreadPoolExecutor(1) as pool:
        with single_thread_blas(operand):
            done = pool.submit(second)
            time.sleep(0.1)
            order.append("first")
        done.result()
    assert order == ["first", "second"]
    assert blas_threads() == before


def test_single_thread_blas_limits_torch_in_each_worker_thread():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with single_thread_blas(torch.ones(2, 2)) as (threads, begin):
            assert threads == 3
            assert torch.get_num_threads() == 3, "the limit is only for worker threads"
            own = share_work(lambda _: torch.get_num_threads(), range(2), 2, begin)
            assert list(own) == [1, 1]
        assert torch.get_num_threads() == 3
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 3, "new threads, too"
        with single_thread_blas(torch.ones(2, 2, device="meta")) as (elsewhere, _):
            assert elsewhere == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("as_tensor", [False, True])
def test_result_does_not_depend_on_the_number_of_threads(monkeypatch, as_tensor):
    """Many blocks share embeddings, so a difference in the last bit would break ties."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(97, 40)).astype(np.float32)[rng.integers(0, 97, 5_003)]
    queries = rng.normal(size=(6, 40)).astype(np.float32)
    qrels = {f"q{q}": {f"d{d}": 1 for d in rng.choice(5_003, 5)} for q in range(6)}
    ids = [f"d{d}" for d in range(5_003)]
    for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
        monkeypatch.setattr(corpus_chunks, limit, 64)
    if as_tensor:
        torch = pytest.importorskip("torch")
        queries, vectors = torch.from_numpy(queries), torch.from_numpy(vectors)
        before = torch.get_num_threads()
    found = set()
    for threads in (1, 2, 5):
        if as_tensor:
            torch.set_num_threads(threads)
        with threadpoolctl.threadpool_limits(threads, "blas"):
            result = dh.evaluate_corpus(
                qrels,
                (list(qrels), queries),
                [(ids[a : a + 700], vectors[a : a + 700]) for a in range(0, 5_003, 700)],
                ["MRR", "MAP", "nDCG@10"],
                exact_ties=True,
            )
        assert result["MAP"].range > 0 and result.remarks == ()
        found.add(result.to_json())
    if as_tensor:
        torch.set_num_threads(before)
    assert len(found) == 1


def evaluate(chunks, vectors, relevant=7):
    qrels = {"q": {f"d{relevant}": 1}}
    return dh.evaluate_corpus(qrels, (["q"], vectors[:1]), chunks, ["MRR", "MAP"])


@pytest.fixture
def vectors(monkeypatch):
    """Embeddings of many blocks, of which four threads multiply one each."""
    for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
        monkeypatch.setattr(corpus_chunks, limit, 16)
    with threadpoolctl.threadpool_limits(4, "blas"):
        yield np.random.default_rng(0).normal(size=(3_000, 8)).astype(np.float32)


@pytest.mark.parametrize("step", [1, 16, 100, 1_000])
def test_chunks_may_reuse_a_buffer(vectors, step):
    """For example, if parts of a file are read into the same array."""
    buffer = np.empty((step, 8), np.float32)

    def chunks():
        for first in range(0, len(vectors), step):
            rows = vectors[first : first + step]
            buffer[: len(rows)] = rows
            yield [f"d{first + i}" for i in range(len(rows))], buffer[: len(rows)]
            buffer[:] = np.nan

    expected = evaluate([([f"d{d}" for d in range(len(vectors))], vectors)], vectors)
    for _ in range(3):
        assert evaluate(chunks, vectors).to_json() == expected.to_json()


def test_chunks_are_created_in_the_thread_of_the_caller(vectors):
    """Chunks may use thread-local state, and may evaluate other corpora."""
    threads = set()

    def chunks():
        for first in range(0, len(vectors), 500):
            threads.add(threading.current_thread())
            own = [f"d{first + i}" for i in range(500)], vectors[first : first + 500]
            assert evaluate([own], vectors, relevant=first)["MRR"].best > 0
            yield own

    found = evaluate(chunks, vectors)
    assert threads == {threading.current_thread()}
    assert found["MRR"].best > 0


@pytest.mark.usefixtures("interruptible")
def test_interrupt_does_not_wait_for_a_slow_chunk(vectors):
    def chunks():
        for first in range(0, len(vectors), 500):
            yield [f"d{first + i}" for i in range(500)], vectors[first : first + 500]
            if interrupt:
                signal.raise_signal(signal.SIGINT)
                time.sleep(30)
        interrupt.append(True)  # from the second pass on

    interrupt = []
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        evaluate(chunks, vectors)
    assert interrupt and time.monotonic() - start < 15


@pytest.mark.parametrize("mode", ["plain", "no_grad", "inference_mode"])
@pytest.mark.parametrize("inside", [False, True])
def test_tensors_with_gradients_and_in_inference_mode(monkeypatch, mode, inside):
    """The mode of the caller or of the chunks does not change the result."""
    torch = pytest.importorskip("torch")
    for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
        monkeypatch.setattr(corpus_chunks, limit, 16)
    vectors = torch.randn(100, 8, generator=torch.Generator().manual_seed(0))
    layer = torch.nn.Linear(8, 8)
    context = {"plain": torch.enable_grad, "no_grad": torch.no_grad,
               "inference_mode": torch.inference_mode}[mode]  # fmt: skip

    def chunks():
        with context() if inside else torch.enable_grad():
            for first in range(0, 100, 30):
                rows = layer(vectors[first : first + 30])
                yield [f"d{first + i}" for i in range(len(rows))], rows

    with torch.enable_grad() if inside else context():
        found = evaluate(chunks, layer(vectors[:1]))
    with torch.no_grad():
        expected = evaluate([([f"d{d}" for d in range(100)], layer(vectors))], layer(vectors[:1]))
    assert found["MRR"] == expected["MRR"]


def test_torch_threads_of_new_threads_do_not_change():
    """Evaluations of tensors in several threads do not change the default of torch."""
    torch = pytest.importorskip("torch")
    with ThreadPoolExecutor(1) as pool:  # a new thread, because this one may have another setting
        before = pool.submit(torch.get_num_threads).result()
    vectors = torch.randn(9_000, 8)
    chunks = [([f"d{d}" for d in range(9_000)], vectors)]
    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(evaluate, chunks, vectors) for _ in range(4)]:
            future.result()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == before


def test_blocks_of_different_shards_are_multiplied_concurrently(monkeypatch):
    """Two shards have one block each; both are multiplied at the same time."""
    vectors = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    barrier, multiply, products = threading.Barrier(2, timeout=20), Products.multiply, []

    def wait_and_multiply(self, documents):
        if products:
            barrier.wait()
        products.append(1)  # the first product is that of the judged document
        return multiply(self, documents)

    @dataclass
    class Shard:
        number: int

        def __call__(self):
            yield [f"d{self.number}"], vectors[self.number : self.number + 1]

    monkeypatch.setattr(Products, "multiply", wait_and_multiply)
    for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
        monkeypatch.setattr(corpus_chunks, limit, 1)
    with threadpoolctl.threadpool_limits(2, "blas"):
        found = dh.evaluate_corpus(
            {"q": {"d0": 1}}, (["q"], vectors[:1]), [Shard(0), Shard(1)], ["MRR"]
        )
    assert found["MRR"].expected == 1
    assert len(products) == 3


def test_error_names_the_first_of_several_bad_documents(monkeypatch):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(4_000, 8)).astype(np.float32)
    vectors[1_000:, 3] = np.nan
    for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
        monkeypatch.setattr(corpus_chunks, limit, 32)
    chunks = [([f"d{d}" for d in range(4_000)], vectors)]
    with (
        threadpoolctl.threadpool_limits(4, "blas"),
        pytest.raises(dh.InputError, match="document 'd1000'"),
    ):
        dh.evaluate_corpus({"q": {"d7": 1}}, (["q"], vectors[:1]), chunks, ["MRR"])
