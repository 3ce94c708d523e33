"""Products that are computed side by side, each in one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from threading import RLock, Thread
from typing import Any

from deadheat.numbers import is_tensor
from deadheat.packages import available_cores, require

_in_turn = RLock()
"""How many threads a product of arrays takes is a setting of the process: one caller at a time."""


@dataclass(frozen=True)
class SideBySide:
    """How products may be computed side by side."""

    threads: int
    """How many: as many threads as the library would share one product among."""
    begin: Callable[[], Any]
    """What each thread has to call before its first product."""


@contextmanager
def one_thread_each(operand: Any) -> Iterator[SideBySide]:
    """Let every product take one thread, for as long as the block runs, in threads made for it.

    A library that shares one product among its threads lets all but one of them wait while its
    result is looked at. Threads that each multiply and look have no such pauses. And the last bits
    of a product do not depend on how many threads a machine has.

    Parameters
    ----------
    operand
        A matrix that is multiplied: what it is decides which library multiplies. Products of
        tensors on another device than the CPU are left to it, one after the other.
    """
    if is_tensor(operand):
        torch = require("torch", "a product of tensors")
        threads = torch.get_num_threads()
        here = operand.device.type == "cpu"
        yield SideBySide(threads if here else 1, partial(_begin_torch, torch, threads))
        return
    with _in_turn:
        blas = _blas()
        known = [library.num_threads for library in blas.lib_controllers]
        limit = partial(blas.limit, limits=1)
        with limit():
            # Some of these libraries have a number for every thread.
            yield SideBySide(max(known, default=available_cores()), limit)


def _begin_torch(torch: Any, threads: int) -> None:
    """Let this thread multiply alone, and record nothing for a backward pass.

    Every thread has its own number of threads. New ones take the one that was set last, so another
    thread, which then ends, sets it back at once.
    """
    torch.get_num_threads()  # from now on it has a number of its own
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    setting_back = Thread(target=torch.set_num_threads, args=(threads,))
    setting_back.start()
    setting_back.join()


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # looks through all libraries of the process

    return ThreadpoolController().select(user_api="blas")
