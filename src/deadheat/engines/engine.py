"""What an engine is, and the one that needs nothing: this process."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import reduce
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

MakeWorker = Callable[[], Callable[..., Any]]
"""Makes a worker, once in every process that works: a function of one piece of work.

Where something is given beside the pieces, it is the function's second argument. All of these
travel to other machines, so they must pickle.
"""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


class Pool(Protocol):
    """Workers that are ready."""

    def results(self, pieces: Iterable[Any], beside: Any = None) -> Iterator[tuple[Any, Any]]:
        """Give each piece with its result as it is done, in any order.

        A `DeadheatError` that a worker raises is raised here. Results depend on the piece and on
        what is given `beside` all of them, never on who did it or when.
        """

    def total(
        self, pieces: Iterable[Any], beside: Any = None, done: Callable[[Any], None] | None = None
    ) -> Any:
        """Give the sum of the results of one or more pieces, added up where the work is done.

        Results are added in any order; only the sum comes back. `done` is told each piece when it
        is done; twice where its result was lost, and it was done again.
        """


class Engine(Protocol):
    """A place where work is done."""

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function where the work will be done, and give its answer."""

    def pool(self, make_worker: MakeWorker) -> AbstractContextManager[Pool]:
        """Make workers, for as long as the block runs."""


class Here:
    """The engine of this process: piece after piece, in the order given.

    >>> with Here().pool(lambda: abs) as workers:
    ...     list(workers.results([1, -2]))
    [(1, 1), (-2, 2)]
    >>> with Here().pool(lambda: pow) as workers:
    ...     workers.total([1, 2, 3], beside=2)
    14
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

    def results(self, pieces: Iterable[Any], beside: Any = None) -> Iterator[tuple[Any, Any]]:
        for piece in pieces:
            yield piece, self._work(piece, *given(beside))

    def total(
        self, pieces: Iterable[Any], beside: Any = None, done: Callable[[Any], None] | None = None
    ) -> Any:
        def results() -> Iterator[Any]:
            for piece, result in self.results(pieces, beside):
                if done is not None:
                    done(piece)
                yield result

        return reduce(operator.add, results())


def given(beside: Any) -> tuple[Any, ...]:
    """Arguments of a worker after the piece."""
    return () if beside is None else (beside,)
