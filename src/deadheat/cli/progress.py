"""The progress bar of all commands."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from deadheat.engines import Progress
from deadheat.errors import printable
from deadheat.tables import shorten_name

if TYPE_CHECKING:
    from rich.progress import TaskID

_NAME_LENGTH = 34
"""Width of the description of a bar, in characters."""


@contextmanager
def progress_bar(first: str = "reading", *, delay: float = 0) -> Iterator[Progress | None]:
    """Yield a callback that draws a bar per kind of work on standard error.

    It is None if standard error is not a terminal.

    Parameters
    ----------
    first
        Description of the work before the first call.
    delay
        Seconds before a bar is drawn; shorter work draws none.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress as Bars,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = [
        TextColumn("{task.description}", markup=False),  # a model's name may contain brackets
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
    ]
    bars = Bars(*columns, console=Console(stderr=True), transient=True)
    waiting = bars.add_task(first, total=None)
    tasks: dict[str, TaskID] = {}
    start = time.monotonic()

    def advance(what: str, done: int, total: int) -> None:
        for task in bars.tasks:
            if task.finished or task.id == waiting:
                bars.update(task.id, visible=False)
        if what not in tasks:
            tasks[what] = bars.add_task(shorten_name(printable(what), _NAME_LENGTH))
        bars.update(tasks[what], completed=done, total=total, visible=True)
        if time.monotonic() - start >= delay:
            bars.start()  # does nothing if the bars are already drawn

    if not delay:
        bars.start()
    try:
        yield advance
    finally:
        bars.stop()


def hide_other_bars() -> None:
    """Disable the progress bars of other libraries."""
    for package in ("transformers", "datasets"):
        with suppress(ImportError, AttributeError):  # missing packages are reported on use
            import_module(f"{package}.utils.logging").disable_progress_bar()
