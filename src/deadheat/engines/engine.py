"""The protocol of engines, and the engine that needs no cluster: this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
P = TypeVar("P")

MakeWorker = Callable[[], Callable[..., Any]]
"""Makes a worker, once in every process that works: a function of one piece of work.

Where a shared argument is given with the pieces, it is the function's second argument. All of
these travel to other machines, so they must pickle.
"""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


class Pool(Protocol):
    """Workers that are ready."""

    def results(self, pieces: Iterable[P], shared_arg: object = None) -> Iterator[tuple[P, Any]]:
        """Yield each piece with its result as soon as it is done, in any order.

        A `DeadheatError` that a worker raises is raised here. A result depends on the piece and on
        the shared argument, never on the worker or the time.
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
    ...     list(workers.results([1, 2, 3], shared_arg=2))
    [(1, 1), (2, 4), (3, 9)]
    """

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function."""
        return question()

    @contextmanager
    def pool(self, make_worker: MakeWorker) -> Iterator[Pool]:
        """Make one worker."""
        yield _OneWorker(make_worker())


class _OneWorker:
    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work

    def results(self, pieces: Iterable[P], shared_arg: object = None) -> Iterator[tuple[P, Any]]:
        for piece in pieces:
            yield piece, self._work(piece, *worker_args(shared_arg))


def worker_args(shared_arg: object) -> tuple[object, ...]:
    """Return the arguments of a worker after the piece."""
    return () if shared_arg is None else (shared_arg,)
