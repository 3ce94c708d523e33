"""Share work among threads of this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Condition
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Items = Callable[[Callable[[], None]], Iterable[T]]
"""Makes items; called with a barrier that waits until all earlier items are processed."""

_POLL_SECONDS = 0.2
"""How long a wait lasts at most before it is repeated, so that an interrupt is noticed."""


def share_work(
    work: Callable[[Iterator[T]], R],
    items: Items[T],
    threads: int,
    begin: Callable[[], Any] | None = None,
) -> list[R]:
    """Process items in threads: each takes the next item when it has processed its last.

    The calling thread makes the items, at most as many ahead as there are threads.

    Parameters
    ----------
    work
        Called in every thread with an iterator of its items; returns one result for them all.
    begin
        Called in every thread first.

    Returns
    -------
    list
        The result of each thread. Which thread gets which item is not determined.

    Notes
    -----
    After a failure or an interrupt no further item is taken. Of several failures, that of the
    earliest item is raised, whichever thread was faster.

    Examples
    --------
    >>> sum(share_work(sum, lambda _: range(10), threads=3))
    45
    """
    queue = _Queue[T](threads)
    shares = [_Share(queue) for _ in range(threads)]

    def make(share: _Share[T]) -> R:
        try:
            if begin is not None:
                begin()
            return work(share)
        except BaseException:
            queue.clear()
            raise

    made: list[Future[R]] = []
    failure: Exception | None = None
    with ThreadPoolExecutor(threads) as pool:
        try:
            made += [pool.submit(make, share) for share in shares]
            try:
                for item in items(queue.wait_processed):
                    if not queue.put(item):
                        break
                    del item  # keep no reference while the next one is made
            except Exception as error:  # raised after the failures of earlier items
                failure = error
            queue.close()
            while wait(made, timeout=_POLL_SECONDS).not_done:
                pass
        except BaseException:
            queue.clear()
            raise
    in_order = sorted(zip(shares, made, strict=True), key=lambda pair: pair[0].last)
    results = [future.result() for _, future in in_order]
    if failure is not None:
        raise failure
    return results


class _Queue(Generic[T]):
    """A bounded queue: one thread puts items into it, and others take them."""

    def __init__(self, limit: int) -> None:
        self._changed = Condition()
        self._waiting: deque[tuple[int, T]] = deque()
        self._limit = limit
        self._put = 0
        self._busy = 0
        """Threads that have an item."""
        self._closed = False
        self._cleared = False

    def put(self, item: T) -> bool:
        """Add an item once there is space; return whether items are still taken."""
        with self._changed:
            self._wait(lambda: len(self._waiting) < self._limit)
            self._waiting.append((self._put, item))
            self._put += 1
            self._changed.notify_all()
            return not self._cleared

    def wait_processed(self) -> None:
        """Wait until every item so far is processed."""
        with self._changed:
            self._wait(lambda: not self._waiting and not self._busy)

    def close(self) -> None:
        """Declare that no further item will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def clear(self) -> None:
        """Drop all items, and take no more."""
        with self._changed:
            self._closed = self._cleared = True
            self._waiting.clear()
            self._changed.notify_all()

    def take(self, share: _Share[T]) -> T:
        """Return the next item for a thread, which has processed its last."""
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
            self._changed.wait(_POLL_SECONDS)


class _Share(Iterator[T]):
    """The items of one thread."""

    def __init__(self, queue: _Queue[T]) -> None:
        self._queue = queue
        self.has_item = False
        self.last = -1
        """Number of the item that was taken last."""

    def __next__(self) -> T:
        return self._queue.take(self)
