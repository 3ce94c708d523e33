"""Products that are computed side by side, each in one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from threading import RLock
from typing import Any

from deadheat.numbers import is_tensor
from deadheat.packages import available_cores, require

_in_turn = RLock()
"""How many threads a product takes is a setting of the whole process: one caller at a time."""


@dataclass(frozen=True)
class SideBySide:
    """How products may be computed side by side."""

    threads: int
    """How many: as many threads as the library would share one product among."""
    begin: Callable[[], Any]
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
    with _in_turn, _torch_alone(operand) if is_tensor(operand) else _blas_alone() as side_by_side:
        yield side_by_side


@contextmanager
def _torch_alone(operand: Any) -> Iterator[SideBySide]:
    """Set torch's number of threads, of which every thread has its own; new ones take the last."""
    torch = require("torch", "a product of tensors")
    threads = torch.get_num_threads()
    begin = partial(torch.set_num_threads, 1)
    begin()
    try:
        yield SideBySide(threads if operand.device.type == "cpu" else 1, begin)
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _blas_alone() -> Iterator[SideBySide]:
    """Set the number of threads of the libraries that multiply arrays."""
    blas = _blas()
    known = [library.num_threads for library in blas.lib_controllers]
    limit = partial(blas.limit, limits=1)
    with limit():
        # Some of these libraries have a number for every thread.
        yield SideBySide(max(known, default=available_cores()), limit)


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # looks through all libraries of the process

    return ThreadpoolController().select(user_api="blas")
