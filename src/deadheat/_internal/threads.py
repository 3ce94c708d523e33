"""Share work among threads of this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

_POLL_SECONDS = 0.2
"""How long a wait lasts at most before it is repeated, so that an interrupt is noticed."""


def share_work(
    work: Callable[[T], R],
    items: Iterable[T],
    threads: int,
    begin: Callable[[], object] | None = None,
) -> Iterator[R]:
    """Process items in threads, and yield the results in the order of the items.

    The calling thread makes the items. At most twice as many as there are threads exist at a time.

    Parameters
    ----------
    work
        Called with one item at a time, in as many threads.
    begin
        Called in every thread first.

    Notes
    -----
    After a failure or an interrupt no further item is taken. Of several items that fail, the error
    of the earliest is raised, whichever thread was faster.

    Examples
    --------
    >>> list(share_work(abs, range(-2, 3), threads=3))
    [2, 1, 0, 1, 2]
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # it takes a while to import

    def process(held: list[T]) -> R:
        return work(held.pop())  # the pool would keep a reference to the item itself

    def finish(future: Future[R]) -> R:
        while not wait([future], _POLL_SECONDS).done:
            pass
        return future.result()

    pending: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads, initializer=begin) as pool:
        try:
            for item in items:
                held = [item]
                del item  # keep no reference while the next one is made
                pending.append(pool.submit(process, held))
                if len(pending) == 2 * threads:
                    yield finish(pending.popleft())
            while pending:
                yield finish(pending.popleft())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
