"""Compute several matrix products in parallel, each in one thread."""

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
"""Lock for the number of BLAS threads, which is a setting of the process."""
_torch_lock = Lock()
"""Held while the number of torch threads of new threads is 1."""


@contextmanager
def single_thread_blas(operand: Matrix) -> Iterator[tuple[int, Callable[[], object]]]:
    """Limit every product to one thread inside the block.

    Yields the number of threads that the library would use for one product, and a function that
    each thread must call before its first product.

    Several threads that each multiply and count are faster than multi-threaded products whose
    results one thread counts. The last bits of a product also do not depend on the number of
    threads.

    Parameters
    ----------
    operand
        A matrix of the product; its type determines the library. Tensors that are not on the CPU
        are multiplied one after the other.
    """
    if not isinstance(operand, np.ndarray):
        torch = require("torch", "a product of tensors")
        with _torch_lock:  # another thread may have set the number to 1 when this one started
            threads = _call_in_new_thread(torch.get_num_threads)
        is_cpu = operand.device.type == "cpu"
        yield threads if is_cpu else 1, partial(_begin_torch, torch, threads)
        return
    with _blas_lock:
        blas = _blas()
        known = [library.num_threads for library in blas.lib_controllers]
        limit = partial(blas.limit, limits=1)
        with limit():
            # In some BLAS libraries this is a setting of the thread.
            yield max(known) if known else available_cores(), limit


def _begin_torch(torch: Any, threads: int) -> None:
    """Set the number of torch threads of this thread to 1, and disable gradients.

    In torch every thread has its own number of threads, and new threads get the number set last. So
    a temporary thread resets it.
    """
    with _torch_lock:
        torch.get_num_threads()  # from now on this thread has its own number
        torch.set_num_threads(1)
        _call_in_new_thread(torch.set_num_threads, threads)
    torch.set_grad_enabled(False)


def _call_in_new_thread(function: Callable[..., Any], *arguments: object) -> Any:
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # slow: searches all libraries of the process

    return ThreadpoolController().select(user_api="blas")
