"""The protocol of engines, and the engine that needs no cluster: this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
P = TypeVar("P")

MakeWorker = Callable[[], Callable[..., Any]]
"""Makes a worker, once in every process that works: a function of one piece of work.

Where shared arguments are given with the pieces, they are the function's further arguments. All of
these travel to other machines, so they must pickle.
"""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


class Pool(Protocol):
    """Workers that are ready."""

    def results(self, pieces: Iterable[P], *shared: object) -> Iterator[tuple[P, Any]]:
        """Yield each piece with its result as soon as it is done, in any order.

        A `DeadheatError` that a worker raises is raised here. A result depends on the piece and on
        the shared arguments, never on the worker or the time.
        """


class Engine(Protocol):
    """A place where work is done."""

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function where the work will be done, and return its answer."""

    def pool(self, make_worker: MakeWorker) -> AbstractContextManager[Pool]:
        """Make workers for as long as the block runs."""


class LocalEngine:
    """The engine of this process: piece after piece, in the order given.

    >>> with LocalEngine().pool(lambda: abs) as workers:
    ...     list(workers.results([1, -2]))
    [(1, 1), (-2, 2)]
    >>> with LocalEngine().pool(lambda: pow) as workers:
    ...     list(workers.results([1, 2, 3], 2))
    [(1, 1), (2, 4), (3, 9)]
    """

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function."""
        return question()

    def pool(self, make_worker: MakeWorker) -> AbstractContextManager[Pool]:
        """Make one worker."""
        return nullcontext(_LocalPool(make_worker()))


@dataclass(frozen=True)
class _LocalPool:
    work: Callable[..., Any]

    def results(self, pieces: Iterable[P], *shared: object) -> Iterator[tuple[P, Any]]:
        for piece in pieces:
            yield piece, self.work(piece, *shared)
