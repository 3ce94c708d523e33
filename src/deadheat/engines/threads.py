"""Threads of this process that share work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Lock
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def shared(
    work: Callable[[Iterator[T]], R],
    items: Iterable[T],
    threads: int,
    begin: Callable[[], Any] | None = None,
) -> list[R]:
    """Let threads share items: each takes the next one when it is done with the one before.

    Parameters
    ----------
    work
        Called in every thread with the items that fall to it; gives what it makes of them all.
    begin
        Called in every thread first.

    Returns
    -------
    list
        What each thread made. Which items fell to it is a matter of chance.

    Notes
    -----
    Where work fails, or is interrupted, no further item is taken. The failure of the first item
    that failed is raised, whichever thread was faster.

    Examples
    --------
    >>> sum(shared(sum, range(10), threads=3))
    45
    """
    if threads == 1:
        return [work(iter(items))]
    queue = _Queue(items)
    shares = [_Share(queue) for _ in range(threads)]

    def make(share: _Share[T]) -> R:
        try:
            return work(share)
        except BaseException:
            queue.ended = True
            raise

    with ThreadPoolExecutor(threads, initializer=begin) as pool:
        try:
            made = [pool.submit(make, share) for share in shares]
            while wait(made, timeout=0.2).not_done:
                pass  # an interrupt that comes just before it waits is heard now
        finally:
            queue.ended = True
    in_order = sorted(zip(shares, made, strict=True), key=lambda pair: pair[0].last)
    return [future.result() for _, future in in_order]


class _Queue(Generic[T]):
    """Items that are taken by threads, each once."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)
        self._taken = 0
        self._lock = Lock()
        self.ended = False

    def take(self, share: _Share[T]) -> T:
        with self._lock:
            if self.ended:
                raise StopIteration
            share.last = self._taken
            self._taken += 1
            return next(self._items)


class _Share(Iterator[T]):
    """The items that fall to one thread."""

    def __init__(self, queue: _Queue[T]) -> None:
        self._queue = queue
        self.last = -1
        """Number of the item that was taken last."""

    def __next__(self) -> T:
        return self._queue.take(self)
