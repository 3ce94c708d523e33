"""Threads of this process that share work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Condition
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Items = Callable[[Callable[[], None]], Iterable[T]]
"""Makes items. It is given what waits until all those that came before are done with."""

_HEARD = 0.2
"""Seconds after which one who waits looks up: an interrupt may have come just before."""


def shared(
    work: Callable[[Iterator[T]], R],
    items: Items[T],
    threads: int,
    begin: Callable[[], Any] | None = None,
) -> list[R]:
    """Let threads share items: each takes the next one when it is done with the one before.

    Items are made by the thread that calls this, no more of them ahead than there are threads.

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
    >>> sum(shared(sum, lambda _: range(10), threads=3))
    45
    """
    table = _Table[T](threads)
    shares = [_Share(table) for _ in range(threads)]

    def make(share: _Share[T]) -> R:
        try:
            if begin is not None:
                begin()
            return work(share)
        except BaseException:
            table.clear()
            raise

    made: list[Future[R]] = []
    failure: Exception | None = None
    with ThreadPoolExecutor(threads) as pool:
        try:
            made += [pool.submit(make, share) for share in shares]
            try:
                for item in items(table.finish):
                    if not table.put(item):
                        break
                    del item  # not held while the next one is made
            except Exception as error:  # after what was made before it
                failure = error
            table.close()
            while wait(made, timeout=_HEARD).not_done:
                pass
        except BaseException:
            table.clear()
            raise
    in_order = sorted(zip(shares, made, strict=True), key=lambda pair: pair[0].last)
    results = [future.result() for _, future in in_order]
    if failure is not None:
        raise failure
    return results


class _Table(Generic[T]):
    """Where one thread puts items, and others take them."""

    def __init__(self, room: int) -> None:
        self._changed = Condition()
        self._waiting: deque[tuple[int, T]] = deque()
        self._room = room
        self._put = 0
        self._busy = 0
        """Threads that have an item."""
        self._closed = False
        self._cleared = False

    def put(self, item: T) -> bool:
        """Put an item there once there is room; tell whether anybody still wants it."""
        with self._changed:
            self._wait(lambda: len(self._waiting) < self._room)
            self._waiting.append((self._put, item))
            self._put += 1
            self._changed.notify_all()
            return not self._cleared

    def finish(self) -> None:
        """Wait until everything that was put there is done with."""
        with self._changed:
            self._wait(lambda: not self._waiting and not self._busy)

    def close(self) -> None:
        """Tell that nothing more will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def clear(self) -> None:
        """Tell that nothing more is wanted."""
        with self._changed:
            self._closed = self._cleared = True
            self._waiting.clear()
            self._changed.notify_all()

    def take(self, share: _Share[T]) -> T:
        """Give the next item to a thread, which is done with the one before."""
        with self._changed:
            self._busy -= share.has_item
            share.has_item = False
            self._changed.notify_all()
            while not self._waiting and not self._closed:
                self._changed.wait()
            if self._cleared or not self._waiting:
                raise StopIteration
            share.last, item = self._waiting.popleft()
            share.has_item = True
            self._busy += 1
            return item

    def _wait(self, ready: Callable[[], bool]) -> None:
        while not ready() and not self._cleared:
            self._changed.wait(_HEARD)


class _Share(Iterator[T]):
    """The items that fall to one thread."""

    def __init__(self, table: _Table[T]) -> None:
        self._table = table
        self.has_item = False
        self.last = -1
        """Number of the item that was taken last."""

    def __next__(self) -> T:
        return self._table.take(self)
