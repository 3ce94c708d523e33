"""Products that are computed side by side, each in one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from deadheat.numbers import is_tensor
from deadheat.packages import available_cores, require


@dataclass(frozen=True)
class SideBySide:
    """How products may be computed side by side."""

    threads: int
    """How many: as many threads as the library would share one product among."""
    begin: Callable[[], Any] | None = None
    """What each thread has to call before its first product."""


@contextmanager
def one_thread_each(operand: Any) -> Iterator[SideBySide]:
    """Let every product take one thread, for as long as the block runs.

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
        begin = partial(torch.set_num_threads, 1)  # in every thread anew
        begin()
        try:
            yield SideBySide(threads if operand.device.type == "cpu" else 1, begin)
        finally:
            torch.set_num_threads(threads)
        return
    blas = _blas()
    known = [library.num_threads for library in blas.lib_controllers]
    with blas.limit(limits=1):
        yield SideBySide(max(known, default=available_cores()))


@cache
def _blas() -> Any:
    """Give the libraries that multiply arrays."""
    from threadpoolctl import ThreadpoolController  # looks through all libraries of the process

    return ThreadpoolController().select(user_api="blas")
