"""Check that polars can be used in a process that was forked."""

from __future__ import annotations

import os
import sys

from deadheat.errors import DeadheatError

_safe_pid = os.getpid()
"""Id of the process that may use polars; first the process that imports deadheat."""


def check_fork() -> None:
    """Raise an error in a process that was forked after polars was imported.

    The threads of polars are not copied to such a process, where polars would hang.
    """
    if os.getpid() != _safe_pid and "polars" in sys.modules:
        raise DeadheatError(
            "this process was forked after polars was imported, and a fork does not copy the "
            "threads of polars: start processes with 'spawn' or 'forkserver', for example "
            "multiprocessing.get_context('spawn'); only dictionaries and arrays can be evaluated "
            "here, with ties in input order"
        )


def allow_polars() -> None:
    """Note that this process imports polars itself."""
    global _safe_pid
    _safe_pid = os.getpid()
