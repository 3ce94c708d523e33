"""Share work among threads of this process."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore, get_ident
from typing import TypeVar

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
) -> list[R]:
    """Process items in threads, and return the results in the order of the items.

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
    >>> share_work(abs, lambda _: range(-2, 3), threads=3)
    [2, 1, 0, 1, 2]
    """
    limit = 2 * threads
    slots = Semaphore(limit)
    waiting: deque[tuple[int, T]] = deque()
    results: dict[int, R] = {}
    errors: dict[int, BaseException] = {}
    first_error = math.inf
    begun: set[int] = set()
    made = 0

    def process_next() -> None:
        nonlocal first_error
        # Taken from a queue: a pool would keep a reference to its argument until after the release.
        number, item = waiting.popleft()
        try:
            if begin is not None and get_ident() not in begun:
                begun.add(get_ident())
                begin()
            if number < first_error:
                results[number] = work(item)
        except BaseException as error:
            first_error = min(first_error, number)
            errors[number] = error
        del item
        slots.release()

    def acquire_slot() -> None:
        while not slots.acquire(timeout=_POLL_SECONDS):
            pass

    def wait_processed() -> None:
        for _ in range(limit):
            acquire_slot()
        slots.release(limit)

    with ThreadPoolExecutor(threads) as pool:
        try:
            try:
                for item in items(wait_processed):
                    if errors:
                        break
                    acquire_slot()
                    waiting.append((made, item))
                    made += 1
                    del item  # keep no reference while the next one is made
                    pool.submit(process_next)
            except Exception as error:  # raised after the failures of earlier items
                errors[made] = error
            wait_processed()
        except BaseException:
            first_error = -1
            raise
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(made)]
