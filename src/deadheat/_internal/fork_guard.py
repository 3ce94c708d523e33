"""Check that polars can be used in a process that was forked."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from deadheat.errors import DeadheatError

_TASKS = Path("/proc/self/task")
"""Where Linux lists the threads of a process."""
_safe_pid = os.getpid()
"""A process in which polars has its threads, or can start them: first the one that imports this."""


def check_fork() -> None:
    """Raise an error in a process that lost polars' threads by a fork: polars would hang there."""
    global _safe_pid
    if os.getpid() == _safe_pid:
        return
    if _lost_threads():
        raise DeadheatError(
            "this process was forked after polars had started its threads, which a fork does not "
            "copy: start processes by 'spawn' or 'forkserver', as in "
            "multiprocessing.get_context('spawn'), or fork before the first evaluation; "
            "dictionaries and arrays can be evaluated here, with ties in input order"
        )
    _safe_pid = os.getpid()


def _lost_threads() -> bool:
    """Whether polars was forked with a pool of threads that are not in this process.

    Asked for its size, polars starts a pool that was not started yet, and new threads appear. Of a
    pool that was started in this process, there are threads with its name.
    """
    if "polars" not in sys.modules or not _TASKS.is_dir():  # other systems seldom fork
        return False
    before = set(_TASKS.iterdir())
    size = sys.modules["polars"].thread_pool_size()
    threads = set(_TASKS.iterdir())
    return len(threads - before) < size and not any(map(_is_polars, threads))


def _is_polars(thread: Path) -> bool:
    try:
        return re.match(r"polars-\d", (thread / "comm").read_text()) is not None
    except OSError:  # the thread has just ended
        return False
