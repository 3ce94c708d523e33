"""Distribute work among threads of this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

_POLL_SECONDS = 0.2
"""Longest wait in seconds; waits are repeated, so that interrupts are handled."""


def share_work(
    work: Callable[[T], R],
    items: Iterable[T],
    threads: int,
    begin: Callable[[], object] | None = None,
) -> Iterator[R]:
    """Process items in threads, and yield the results in the order of the items.

    The calling thread creates the items. At most twice as many items as threads exist at a time.

    Parameters
    ----------
    work
        Called with one item, in any of the threads.
    begin
        Called once in every thread, before `work`.

    Notes
    -----
    After an error or an interrupt, no further item is started. If several items fail, the error of
    the first item in the order is raised.

    Examples
    --------
    >>> list(share_work(abs, range(-2, 3), threads=3))
    [2, 1, 0, 1, 2]
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # slow to import

    def process(held: list[T]) -> R:
        return work(held.pop())  # otherwise the pool keeps a reference to the item

    def finish(future: Future[R]) -> R:
        while not wait([future], _POLL_SECONDS).done:
            pass
        return future.result()

    pending: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads, initializer=begin) as pool:
        try:
            for item in items:
                held = [item]
                del item  # keep no reference while the next item is created
                pending.append(pool.submit(process, held))
                if len(pending) == 2 * threads:
                    yield finish(pending.popleft())
            while pending:
                yield finish(pending.popleft())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
