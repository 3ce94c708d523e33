"""The protocol of engines, and the engine that needs no cluster: this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
P = TypeVar("P")

MakeWorker = Callable[[], Callable[..., Any]]
"""Returns a worker, a function of one piece of work; called once per process.

Shared arguments are passed to the worker after the piece. All of these are sent to other machines,
so they must be picklable.
"""

Progress = Callable[[str, int, int], None]
"""Called with the name of the step, the amount done, and the total."""


class Pool(Protocol):
    """A pool of workers."""

    def results(self, pieces: Iterable[P], *shared: object) -> Iterator[tuple[P, Any]]:
        """Yield each piece with its result as soon as it is done, in any order.

        A `DeadheatError` of a worker is raised here. A result must depend only on the piece and
        the shared arguments, not on the worker or the time.
        """


class Engine(Protocol):
    """The protocol of an engine, which runs pieces of work."""

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function in the environment of the workers, and return its result."""

    def pool(self, make_worker: MakeWorker) -> AbstractContextManager[Pool]:
        """Return a context manager with a pool of workers."""


class LocalEngine:
    """The engine of this process: one piece after the other, in the order given.

    >>> with LocalEngine().pool(lambda: abs) as workers:
    ...     list(workers.results([1, -2]))
    [(1, 1), (-2, 2)]
    >>> with LocalEngine().pool(lambda: pow) as workers:
    ...     list(workers.results([1, 2, 3], 2))
    [(1, 1), (2, 4), (3, 9)]
    """

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function, and return its result."""
        return question()

    def pool(self, make_worker: MakeWorker) -> AbstractContextManager[Pool]:
        """Return a context manager with one worker."""
        return nullcontext(_LocalPool(make_worker()))


@dataclass(frozen=True)
class _LocalPool:
    work: Callable[..., Any]

    def results(self, pieces: Iterable[P], *shared: object) -> Iterator[tuple[P, Any]]:
        for piece in pieces:
            yield piece, self.work(piece, *shared)
