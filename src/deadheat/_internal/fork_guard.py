"""Check that polars can be used in a process that was forked."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from deadheat.errors import DeadheatError

_TASKS = Path("/proc/self/task")
"""The folder in which Linux lists the threads of a process."""
_safe_pid = os.getpid()
"""Id of a process in which polars has its threads or can start them; first the importing one."""


def check_fork() -> None:
    """Raise an error in a forked process without the threads of polars, where polars would hang."""
    global _safe_pid
    if os.getpid() == _safe_pid:
        return
    if _lost_threads():
        raise DeadheatError(
            "this process was forked after polars had started its threads, which a fork does not "
            "copy: start processes with 'spawn' or 'forkserver', for example "
            "multiprocessing.get_context('spawn'), or fork before the first evaluation; only "
            "dictionaries and arrays can be evaluated here, with ties in input order"
        )
    _safe_pid = os.getpid()


def _lost_threads() -> bool:
    """Return whether polars has a thread pool whose threads are not in this process.

    A request for the size of the pool starts a pool that was not started yet, and new threads
    appear. A pool that was started in this process has threads with its name.
    """
    if "polars" not in sys.modules or not _TASKS.is_dir():  # other systems rarely fork
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
