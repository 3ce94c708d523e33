"""Share work among threads of this process."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")
Barrier = Callable[[], None]
"""Waits until all items that were given before are processed."""
Items = Callable[[Barrier], Iterable[T]]
"""Makes items; the function that it is called with waits until all earlier ones are processed."""

_POLL_SECONDS = 0.2
"""How long a wait lasts at most before it is repeated, so that an interrupt is noticed."""


def share_work(
    work: Callable[[T], R],
    items: Items[T],
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
    After a failure or an interrupt no further item is taken. Of several failures, that of the
    earliest item is raised, whichever thread was faster.

    Examples
    --------
    >>> list(share_work(abs, lambda _: range(-2, 3), threads=3))
    [2, 1, 0, 1, 2]
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # it takes a while to import

    begun: set[int] = set()
    pending: deque[Future[R]] = deque()
    done: deque[R] = deque()
    made, first_error = 0, math.inf

    def process(number: int, held: list[T]) -> R:
        nonlocal first_error
        try:
            if begin is not None and get_ident() not in begun:
                begun.add(get_ident())
                begin()
            if number > first_error:
                raise RuntimeError("not processed: an earlier item failed")
            return work(held.pop())  # the pool would keep a reference to the item itself
        except BaseException:
            first_error = min(first_error, number)
            raise

    def wait_for(allowed: int = 0) -> None:
        """Wait until so many items, at most, are not processed."""
        while len(pending) > allowed:
            while not wait(list(pending)[:1], _POLL_SECONDS).done:
                pass
            future = pending.popleft()
            if future.exception() is not None:
                pending.clear()  # later failures are not raised
            done.append(future.result())

    with ThreadPoolExecutor(threads) as pool:
        try:
            try:
                for item in items(wait_for):
                    held = [item]
                    del item  # keep no reference while the next one is made
                    pending.append(pool.submit(process, made, held))
                    made += 1
                    wait_for(2 * threads - 1)
                    while done:
                        yield done.popleft()
            except Exception:
                wait_for()  # raises the failure of an earlier item instead, if there is one
                raise
            wait_for()
        except BaseException:
            first_error = -1
            raise
    yield from done
