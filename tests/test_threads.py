"""Threads that share work, and products that take one thread each."""

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
def test_every_item_is_taken_once(items, threads):
    taken = []
    found = share_work(lambda item: taken.append(item) or -item, iter(items), threads)
    assert list(found) == [-item for item in items]
    assert sorted(taken) == sorted(items)


def test_threads_work_at_the_same_time():
    meeting = threading.Barrier(3, timeout=20)
    met = share_work(lambda _: meeting.wait(), range(3), 3)
    assert sorted(met) == [0, 1, 2]


def test_each_thread_begins_once():
    begun = []
    list(share_work(abs, range(9), 3, lambda: begun.append(threading.get_ident())))
    assert len(begun) == len(set(begun)) <= 3


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("slow", [5, 6, 7])
def test_the_first_failure_is_raised(threads, slow):
    """Items 5 and up fail; whichever thread is slow, 5 is told, and no more are taken."""
    taken = []

    def work(item):
        taken.append(item)
        if item == slow:
            time.sleep(0.05)
        if item >= 5:
            raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 5"):
        list(share_work(work, range(1_000), threads))
    assert len(taken) <= 5 + 2 * threads


@pytest.mark.parametrize("threads", [1, 3])
def test_items_that_cannot_be_read(threads):
    def items():
        yield from range(4)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(share_work(abs, items(), threads))


@pytest.fixture
def interruptible():
    """A shell lets what it starts in the background ignore the signal of Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_all_threads():
    """Ctrl-C comes to the thread that waits; the others take no further item."""
    taken = []

    def work(item):
        taken.append(item)
        if item == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        list(share_work(work, range(10_000), 2))
    assert len(taken) < 100


def blas_threads():
    """Threads of the libraries that were there when the first product was; NumPy's was."""
    return [pool["num_threads"] for pool in _blas().info()]


def test_products_of_arrays_take_one_thread():
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


def test_callers_take_turns():
    """Each leaves the settings as they were, whatever the others do; so a second one waits."""
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


def test_products_of_tensors_take_one_thread_in_every_thread():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with single_thread_blas(torch.ones(2, 2)) as (threads, begin):
            assert threads == 3
            assert torch.get_num_threads() == 3, "only that of the threads that multiply"
            own = share_work(lambda _: torch.get_num_threads(), range(2), 2, begin)
            assert list(own) == [1, 1]
        assert torch.get_num_threads() == 3
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 3, "in new threads, too"
        with single_thread_blas(torch.ones(2, 2, device="meta")) as (elsewhere, _):
            assert elsewhere == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("as_tensor", [False, True])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, as_tensor):
    """Random embeddings of many documents each, in many blocks: ties hang on the last bit."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(97, 40)).astype(np.float32)[rng.integers(0, 97, 5_003)]
    asked = rng.normal(size=(6, 40)).astype(np.float32)
    qrels = {f"q{q}": {f"d{d}": 1 for d in rng.choice(5_003, 5)} for q in range(6)}
    ids = [f"d{d}" for d in range(5_003)]
    for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
        monkeypatch.setattr(corpus_chunks, limit, 64)
    if as_tensor:
        torch = pytest.importorskip("torch")
        asked, vectors = torch.from_numpy(asked), torch.from_numpy(vectors)
        before = torch.get_num_threads()
    found = set()
    for threads in (1, 2, 5):
        if as_tensor:
            torch.set_num_threads(threads)
        with threadpoolctl.threadpool_limits(threads, "blas"):
            result = dh.evaluate_corpus(
                qrels,
                (list(qrels), asked),
                [(ids[a : a + 700], vectors[a : a + 700]) for a in range(0, 5_003, 700)],
                ["MRR", "MAP", "nDCG@10"],
                exact_ties=True,
            )
        assert result["MAP"].range > 0 and result.remarks == ()
        found.add(result.to_json())
    if as_tensor:
        torch.set_num_threads(before)
    assert len(found) == 1


def evaluated(chunks, vectors, relevant=7):
    qrels = {"q": {f"d{relevant}": 1}}
    return dh.evaluate_corpus(qrels, (["q"], vectors[:1]), chunks, ["MRR", "MAP"])


@pytest.fixture
def many(monkeypatch):
    """Documents of many blocks, four of which are multiplied at a time."""
    for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
        monkeypatch.setattr(corpus_chunks, limit, 16)
    with threadpoolctl.threadpool_limits(4, "blas"):
        yield np.random.default_rng(0).normal(size=(3_000, 8)).astype(np.float32)


@pytest.mark.parametrize("step", [1, 16, 100, 1_000])
def test_chunks_may_be_made_in_one_place(many, step):
    """As from a file that is read into an array again and again."""
    place = np.empty((step, 8), np.float32)

    def chunks():
        for first in range(0, len(many), step):
            rows = many[first : first + step]
            place[: len(rows)] = rows
            yield [f"d{first + i}" for i in range(len(rows))], place[: len(rows)]
            place[:] = np.nan

    expected = evaluated([([f"d{d}" for d in range(len(many))], many)], many)
    for _ in range(3):
        assert evaluated(chunks, many).to_json() == expected.to_json()


def test_chunks_are_made_by_the_caller(many):
    """What belongs to a thread stays with it, and chunks may evaluate others."""
    threads = set()

    def chunks():
        for first in range(0, len(many), 500):
            threads.add(threading.current_thread())
            own = [f"d{first + i}" for i in range(500)], many[first : first + 500]
            assert evaluated([own], many, relevant=first)["MRR"].best > 0
            yield own

    found = evaluated(chunks, many)
    assert threads == {threading.current_thread()}
    assert found["MRR"].best > 0


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_does_not_wait_for_a_slow_chunk(many):
    def chunks():
        for first in range(0, len(many), 500):
            yield [f"d{first + i}" for i in range(500)], many[first : first + 500]
            if passes:
                signal.raise_signal(signal.SIGINT)
                time.sleep(30)
        passes.append(1)

    passes = []
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        evaluated(chunks, many)
    assert passes and time.monotonic() - start < 15


@pytest.mark.parametrize("mode", ["plain", "no_grad", "inference_mode"])
@pytest.mark.parametrize("inside", [False, True])
def test_tensors_of_models_are_multiplied_as_they_are(monkeypatch, mode, inside):
    """With a gradient or without, in whatever mode the caller or the chunks are."""
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
        found = evaluated(chunks, layer(vectors[:1]))
    with torch.no_grad():
        expected = evaluated([([f"d{d}" for d in range(100)], layer(vectors))], layer(vectors[:1]))
    assert found["MRR"] == expected["MRR"]


def test_new_threads_have_as_many_threads_as_before():
    """While a corpus of tensors is counted in a thread, and in another one after it."""
    torch = pytest.importorskip("torch")
    with ThreadPoolExecutor(1) as pool:  # the number of this thread may be another one
        before = pool.submit(torch.get_num_threads).result()
    vectors = torch.randn(9_000, 8)
    chunks = [([f"d{d}" for d in range(9_000)], vectors)]
    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(evaluated, chunks, vectors) for _ in range(4)]:
            future.result()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == before


def test_threads_share_the_blocks_of_small_shards(monkeypatch):
    """Two shards of a block each are multiplied at the same time."""
    vectors = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    meeting, multiply, judged = threading.Barrier(2, timeout=20), Products.multiply, []

    def together(self, documents):
        if judged:
            meeting.wait()
        judged.append(1)  # the first product is that of the judged document
        return multiply(self, documents)

    @dataclass
    class Shard:
        number: int

        def __call__(self):
            yield [f"d{self.number}"], vectors[self.number : self.number + 1]

    monkeypatch.setattr(Products, "multiply", together)
    for limit in ("MIN_DOCUMENTS", "MAX_DOCUMENTS"):
        monkeypatch.setattr(corpus_chunks, limit, 1)
    with threadpoolctl.threadpool_limits(2, "blas"):
        found = dh.evaluate_corpus(
            {"q": {"d0": 1}}, (["q"], vectors[:1]), [Shard(0), Shard(1)], ["MRR"]
        )
    assert found["MRR"].expected == 1
    assert len(judged) == 3


def test_of_several_broken_documents_the_first_is_named(monkeypatch):
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
