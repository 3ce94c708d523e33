"""Matrix products in several threads, each product in one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from threading import Lock, RLock
from typing import Any

import numpy as np

from deadheat._internal.packages import available_cores, require
from deadheat.scoring.products import Matrix

_blas_lock = RLock()
"""The number of BLAS threads is a setting of the process: one caller changes it at a time."""
_torch_lock = Lock()
"""Held while the number of torch threads that new threads take is 1."""


@contextmanager
def single_thread_blas(operand: Matrix) -> Iterator[tuple[int, Callable[[], object]]]:
    """Limit every product to one thread while the block runs.

    Yields how many threads the library would use for one product, and a function that each thread
    must call before its first product.

    Threads that each multiply and count are faster than products of several threads whose results
    one thread counts. And the last bits of a product then do not depend on the number of threads.

    Parameters
    ----------
    operand
        A matrix that is multiplied; its type decides which library multiplies. Tensors on another
        device than the CPU are multiplied one after the other.
    """
    if not isinstance(operand, np.ndarray):
        torch = require("torch", "a product of tensors")
        with _torch_lock:  # this thread may have begun while another one had set it to 1
            threads = _call_in_new_thread(torch.get_num_threads)
        is_cpu = operand.device.type == "cpu"
        yield threads if is_cpu else 1, partial(_begin_torch, torch, threads)
        return
    with _blas_lock:
        blas = _blas()
        known = [library.num_threads for library in blas.lib_controllers]
        limit = partial(blas.limit, limits=1)
        with limit():
            # Some BLAS libraries have this setting per thread.
            yield max(known) if known else available_cores(), limit


def _begin_torch(torch: Any, threads: int) -> None:
    """Let this thread multiply alone, and record nothing for a backward pass.

    Every thread has its own number of threads. New ones take the one that was set last, so another
    thread, which then ends, sets it back at once.
    """
    with _torch_lock:
        torch.get_num_threads()  # from now on it has a number of its own
        torch.set_num_threads(1)
        _call_in_new_thread(torch.set_num_threads, threads)
    torch.set_grad_enabled(False)


def _call_in_new_thread(function: Callable[..., Any], *arguments: object) -> Any:
    from concurrent.futures import ThreadPoolExecutor  # it takes a while to import

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # looks through all libraries of the process

    return ThreadpoolController().select(user_api="blas")
