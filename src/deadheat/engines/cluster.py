"""Workers on a Ray cluster: each an actor, replaced when it or its machine is lost."""

from __future__ import annotations

import operator
import os
import platform
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import reduce
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from deadheat.engines.connection import connect
from deadheat.engines.engine import MakeWorker, Pool, given
from deadheat.errors import DeadheatError, InputError, one_line
from deadheat.packages import require

T = TypeVar("T")

ROOM_PATIENCE = 120.0
"""Seconds in which the cluster must find room for a first worker."""
ATTEMPTS = 3
"""How often one piece of work may lose its worker before the work is given up."""
TOGETHER = 8
"""How many results are added at once: the branching of the tree in which they are summed."""
LIBRARIES = ("deadheat", "numpy", "polars", "torch", "transformers", "sentence-transformers")
"""Packages whose version must be the same wherever results are computed."""

_MEMORY = "it ran out of memory; use smaller batches or chunks, or fewer workers per machine"


class RayCluster:
    """An engine of workers on a Ray cluster.

    Parameters
    ----------
    address
        ``host:port``, or ``auto`` for the cluster that this machine belongs to. Unless given, the
        cluster that this process is connected to; where there is none, one of this machine alone
        is started.
    workers
        How many; one for each GPU (with `gpus_per_worker`) or processor of the cluster unless
        given.
    gpus_per_worker
        GPUs that each worker has for itself; a fraction shares one.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        gpus_per_worker: float = 0,
    ) -> None:
        # What a lost worker leaves is seen to here, and no news to print.
        os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
        self._ray = require("ray", "The engine ray")
        for name, value, least in (
            ("workers", workers, 1),
            ("gpus_per_worker", gpus_per_worker, 0),
        ):
            if value is not None and value < least:
                raise InputError(f"{name} must be at least {least}, not {value}")
        may_grow = connect(self._ray, address)
        self._options = {"num_gpus": gpus_per_worker} if gpus_per_worker else {"num_cpus": 1}
        room = None if workers and may_grow else self._room(gpus_per_worker)
        self._workers = workers or room or 1

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function on a worker's machine, and give its answer."""
        with self.pool(_Asked(question)) as pool:
            [(_, answer)] = pool.results([None])
            result: T = answer
            return result

    @contextmanager
    def pool(self, make_worker: MakeWorker) -> Iterator[Pool]:
        """Make workers, for as long as the block runs; the first piece of each starts it."""
        pool = _RayPool(self._ray, make_worker, self._workers, self._options)
        try:
            yield pool
        finally:
            pool.close()

    def _room(self, gpus: float) -> int:
        """Count the workers that the machines could hold if they did nothing else."""
        kind, share = ("GPU", gpus) if gpus else ("CPU", 1)
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        room = sum(int(machine.get(kind, 0) / share) for machine in machines)
        if not room:
            what = f"{gpus:g} GPUs" if gpus else "a processor"
            raise InputError(f"no machine of the cluster has {what} for a worker: ask for less")
        return room


class _Asked:
    """Makes a worker that answers one question."""

    def __init__(self, question: Callable[[], Any]) -> None:
        self._question = question

    def __call__(self) -> Callable[[Any], Any]:
        return lambda _: self._question()


class _Actor:
    """What runs on a worker's machine; wrapped into a Ray actor.

    Every call gives two things: why it was refused, and the result. The first is all that the
    driver looks at; the second stays where it was made until somebody needs it.
    """

    def __init__(self, make_worker: MakeWorker, versions: dict[str, str], folder: str) -> None:
        with suppress(OSError):  # a path means the same to all, where this machine has the folder
            os.chdir(folder)
        self._make_worker = make_worker
        self._versions = versions
        self._work: Callable[..., Any] | None = None

    def started(self) -> None:
        """Answer."""

    def do(self, piece: Any, beside: Any) -> tuple[str | None, Any]:
        """Do a piece of work; the worker is made for its first piece."""
        try:
            if self._work is None:
                _check_versions(self._versions)
                self._work = self._make_worker()
            return None, self._work(piece, *given(beside))
        except DeadheatError as error:
            return str(error), None
        except (MemoryError, RuntimeError) as error:
            if not _out_of_memory(error):
                raise
            return f"the worker on {platform.node()} failed ({one_line(error)}): {_MEMORY}", None

    def add(self, *results: Any) -> tuple[str | None, Any]:
        """Add results that other workers may have made."""
        return None, reduce(operator.add, results)


@dataclass(frozen=True)
class _Task:
    """One call of an actor."""

    call: str
    """``do`` or ``add``."""
    arguments: tuple[Any, ...]
    pieces: tuple[Any, ...]
    """Pieces of work that the result stands for."""
    attempt: int = 1
    added: tuple[tuple[_Task, Any], ...] = ()
    """What an ``add`` adds: tasks with their results."""


class _WorkError(Exception):
    """What failed on a worker, and where in the code; the cause of the error that is raised."""

    @classmethod
    def of(cls, task: _Task, error: Exception) -> _WorkError:
        piece = task.pieces[0]
        return cls(f"{getattr(piece, 'name', repr(piece)[:100])} failed on a worker: {error}")


class _RayPool:
    def __init__(
        self, ray: Any, make_worker: MakeWorker, workers: int, options: dict[str, Any]
    ) -> None:
        self._ray = ray
        self._make_worker = ray.put(make_worker)
        self._workers = workers
        self._folder = _folder()
        self._actor = ray.remote(**options)(_Actor)
        self._starting: dict[Any, Any] = {}
        """Actors that the cluster has found no room for yet, by what is there once it has."""
        self._ready: set[Any] = set()
        self._idle: list[Any] = []
        """Those of the ready ones that have nothing to do."""
        self._lost_starts = 0

    def results(self, pieces: Iterable[Any], beside: Any = None) -> Iterator[tuple[Any, Any]]:
        shared = self._ray.put(beside)
        waiting = deque(_Task("do", (piece, shared), (piece,)) for piece in pieces)
        for task, reference in self._done(waiting):
            try:
                result = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                waiting.extend(self._again(task, shared, error))
                continue
            yield task.pieces[0], result

    def total(
        self, pieces: Iterable[Any], beside: Any = None, done: Callable[[Any], None] | None = None
    ) -> Any:
        shared = self._ray.put(beside)
        waiting = deque(_Task("do", (piece, shared), (piece,)) for piece in pieces)
        sums: list[tuple[_Task, Any]] = []
        while True:
            for task, reference in self._done(waiting, shared):
                if done is not None and task.call == "do":
                    done(task.pieces[0])
                sums.append((replace(task, added=()), reference))
                if len(sums) == TOGETHER:
                    waiting.append(_addition(sums))
                    sums = []
            if len(sums) > 1:
                waiting.append(_addition(sums))
                sums = []
                continue
            [(task, reference)] = sums
            try:
                return self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                waiting.extend(self._again(task, shared, error))
                sums = []

    def close(self) -> None:
        """Let all workers go."""
        for actor in [*self._starting.values(), *self._ready]:
            self._ray.kill(actor)
        self._starting, self._ready, self._idle = {}, set(), []

    def _done(self, waiting: deque[_Task], shared: Any = None) -> Iterator[tuple[_Task, Any]]:
        """Do tasks, those included that are added while others are done; give their results.

        A result is a reference to where it lies.
        """
        busy: dict[Any, tuple[Any, _Task, Any]] = {}
        try:
            while waiting or busy:
                self._start(len(waiting))
                while waiting and self._idle:
                    task, actor = waiting.popleft(), self._idle.pop()
                    call = getattr(actor, task.call).options(num_returns=2)
                    status, result = call.remote(*task.arguments)
                    busy[status] = actor, task, result
                for status in self._first_done(list(busy)):
                    actor, task, result = busy.pop(status)
                    try:
                        refusal = self._ray.get(status)
                    except self._ray.exceptions.RayError as error:
                        self._dismiss(actor)
                        waiting.extendleft(self._again(task, shared, error))
                        continue
                    self._idle.append(actor)
                    if refusal is not None:
                        raise InputError(refusal)
                    yield task, result
        finally:
            for actor, _, _ in busy.values():
                self._dismiss(actor)

    def _again(self, task: _Task, shared: Any, error: Exception) -> list[_Task]:
        """Give what has to be done again where a worker, or what it had made, is lost."""
        if not _is_loss(self._ray, error):
            raise getattr(error, "cause", None) or error from _WorkError.of(task, error)
        if task.attempt == ATTEMPTS:
            raise InputError(_lost(error)) from error
        if task.call == "do":
            return [replace(task, attempt=task.attempt + 1)]
        kept: list[tuple[_Task, Any]] = []
        lost: list[Any] = []
        for added, reference in task.added:
            try:
                self._ray.get(reference)
                kept.append((added, reference))
            except self._ray.exceptions.RayError:
                lost += added.pieces
        if not task.added:  # the sum itself is lost, after it was made
            lost = list(task.pieces)
        attempt = task.attempt + 1
        again = [_Task("do", (piece, shared), (piece,), attempt) for piece in lost]
        return again + ([replace(_addition(kept), attempt=attempt)] if kept else [])

    def _start(self, tasks: int) -> None:
        """Ask for as many actors as there is work for, and not more than the workers asked for."""
        wanted = min(self._workers, len(self._ready) - len(self._idle) + tasks)
        for _ in range(wanted - len(self._ready) - len(self._starting)):
            actor = self._actor.remote(self._make_worker, installed(), self._folder)
            self._starting[actor.started.remote()] = actor

    def _first_done(self, work: list[Any]) -> list[Any]:
        """Wait until work is done or an actor has started; give the work that is done.

        Not for ever, where the cluster has no room for a single actor.
        """
        events = [*work, *self._starting]
        patience = None if self._ready else ROOM_PATIENCE
        done, _ = self._ray.wait(events, timeout=patience, fetch_local=False)
        if not done:
            raise InputError(
                f"in {ROOM_PATIENCE:g} seconds the Ray cluster had no room for a worker: other "
                "work may hold its processors or GPUs, or it may have none; ask for less, or wait"
            )
        for start in self._starting.keys() & set(done):
            self._started(start)
        return [status for status in work if status in done]

    def _started(self, start: Any) -> None:
        actor = self._starting.pop(start)
        try:
            self._ray.get(start)
        except self._ray.exceptions.RayError as error:
            self._ray.kill(actor)
            self._lost_starts += 1
            if self._lost_starts == ATTEMPTS or not _is_loss(self._ray, error):
                raise InputError(_lost(error)) from error
            return
        self._lost_starts = 0
        self._ready.add(actor)
        self._idle.append(actor)

    def _dismiss(self, actor: Any) -> None:
        self._ready.remove(actor)
        self._ray.kill(actor)


def _addition(sums: list[tuple[_Task, Any]]) -> _Task:
    """Make one result of several: a branch of the tree in which results are summed."""
    pieces = tuple(piece for task, _ in sums for piece in task.pieces)
    attempt = max(task.attempt for task, _ in sums)
    return _Task("add", tuple(result for _, result in sums), pieces, attempt, tuple(sums))


def _folder() -> str:
    """Where this process is; nowhere, if its folder was deleted."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return ""


def installed() -> dict[str, str]:
    """Versions of what results depend on, on this machine."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "missing"
    return versions


def _check_versions(drivers: dict[str, str]) -> None:
    """Refuse to work where results might differ."""
    differing = [
        f"{name} {own} (the driver has {drivers.get(name)})"
        for name, own in installed().items()
        if drivers.get(name) != own
    ]
    if differing:
        raise InputError(
            f"the worker on {platform.node()} has other versions: {', '.join(differing)}; its "
            "numbers could differ, install the same versions on every machine"
        )


def _is_loss(ray: Any, error: Exception) -> bool:
    """Tell a worker or machine that was lost from work that failed."""
    lost = ray.exceptions
    return isinstance(
        error,
        (
            lost.RayActorError,
            lost.WorkerCrashedError,
            lost.NodeDiedError,
            lost.ObjectLostError,
            lost.OutOfMemoryError,
        ),
    )


def _out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    # Not where memory is named among all that may have happened, as Ray does.
    said = re.compile("out of memory|not enough memory|low on memory|allocate memory", re.I)
    return said.search(str(error)) is not None


def _lost(error: Exception) -> str:
    out_of_memory = _out_of_memory(error)
    hint = _MEMORY if out_of_memory else "it crashed, or was killed: see the logs of the cluster"
    # The last line says what happened, those before where; of a death Ray knows only guesses.
    why = (str(error).strip().splitlines() or [""])[-1][:200] if out_of_memory else ""
    why = why or type(error).__name__
    return (
        f"a piece of work lost its worker {ATTEMPTS} times in a row ({why}): {hint}; what was done "
        "before stays valid"
    )
