"""Other packages: optional ones, imported when they are needed, and polars after a fork."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any

from deadheat.errors import DeadheatError, MissingPackageError

EXTRAS = {
    "bm25s": "models",
    "datasets": "models",
    "filelock": "models",
    "gguf": "models",
    "huggingface_hub": "models",
    "ir_datasets": "ir",
    "jinja2": "report",
    "matplotlib": "plots",
    "plotly": "report",
    "safetensors": "models",
    "sentence_transformers": "models",
    "torch": "models",
    "transformers": "models",
}
"""The extra of deadheat that brings each optional package."""


def own_version() -> str:
    """Version of deadheat."""
    from importlib.metadata import version

    return version("deadheat")


def require(module: str, purpose: str) -> Any:
    """Import a module of an optional package, or say which extra brings what is missing.

    Parameters
    ----------
    module
        ``torch``, ``plotly.offline``, …; its package is one of `EXTRAS`.
    purpose
        What needs it, in words that can begin a sentence.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or module).partition(".")[0]
        raise MissingPackageError(missing, EXTRAS.get(missing, EXTRAS[package]), purpose) from error


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
