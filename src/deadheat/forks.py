"""Forked processes: what they have lost of the process they were forked from."""

from __future__ import annotations

import os
import re
from pathlib import Path

from deadheat.errors import DeadheatError


class _Fork:
    """Whether this process was forked from one in which polars' threads ran.

    They are not copied, and polars would wait for them for ever. Linux tells the names of threads;
    elsewhere processes are seldom forked.
    """

    threads_ran = False
    threads_lost = False

    @classmethod
    def before(cls) -> None:
        """Look at the threads of the process that is about to fork."""
        try:
            names = [name.read_text() for name in Path("/proc/self/task").glob("*/comm")]
        except OSError:  # not Linux, or a thread that has just ended
            names = []
        cls.threads_ran = any(re.match(r"polars-\d", name) for name in names)

    @classmethod
    def in_child(cls) -> None:
        """Remember it."""
        cls.threads_lost |= cls.threads_ran


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_Fork.before, after_in_child=_Fork.in_child)


def check_fork() -> None:
    """Refuse work that needs polars' threads in a process that has lost them by a fork."""
    if _Fork.threads_lost:
        raise DeadheatError(
            "this process was forked after polars had started its threads, which a fork does not "
            "copy: start processes by 'spawn' or 'forkserver', as in "
            "multiprocessing.get_context('spawn'), or fork before the first evaluation; "
            "dictionaries and arrays can be evaluated here, with ties in input order"
        )
