"""Workers on a Ray cluster: each an actor, replaced when it or its machine is lost."""

from __future__ import annotations

import os
import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from deadheat._internal.packages import find_versions, require
from deadheat.engines.connection import connect
from deadheat.engines.engine import MakeWorker, Pool
from deadheat.errors import DeadheatError, InputError, one_line

T = TypeVar("T")
P = TypeVar("P")

START_SECONDS = 120.0
"""Seconds in which the cluster must find room for a first worker."""
ATTEMPTS = 3
"""How often one piece of work may lose its worker before the run ends with an error."""
LIBRARIES = ("deadheat", "numpy", "polars", "torch", "transformers", "sentence-transformers")
"""Packages whose version must be the same wherever results are computed."""


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
        self, address: str | None = None, *, workers: int | None = None, gpus_per_worker: float = 0
    ) -> None:
        # Lost workers are replaced, so Ray need not print that they were lost.
        os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
        self._ray = require("ray", "The engine ray")
        limits = (("workers", workers, 1), ("gpus_per_worker", gpus_per_worker, 0))
        for name, value, least in limits:
            if value is not None and value < least:
                raise InputError(f"{name} must be at least {least}, not {value}")
        connect(self._ray, address)
        self._options = {"num_gpus": gpus_per_worker} if gpus_per_worker else {"num_cpus": 1.0}
        self._workers = workers or self._count_places(gpus_per_worker)

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function on a worker's machine, and return its answer."""
        with self.pool(lambda: lambda _: question()) as pool:
            answer: T
            [(_, answer)] = pool.results([None])
            return answer

    def pool(self, make_worker: MakeWorker) -> AbstractContextManager[Pool]:
        """Make workers for as long as the block runs; each is started by its first piece."""
        return closing(_RayPool(self._ray, make_worker, self._workers, self._options))

    def _count_places(self, gpus: float) -> int:
        """Count the workers that the machines could hold if they did nothing else."""
        kind, share = ("GPU", gpus) if gpus else ("CPU", 1)
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        places = sum(int(machine.get(kind, 0) / share) for machine in machines)
        if not places:
            what = f"{gpus:g} GPUs" if gpus else "a processor"
            raise InputError(f"no machine of the cluster has {what} for a worker: ask for less")
        return places


class _Actor:
    """What runs on a worker's machine; wrapped into a Ray actor."""

    def __init__(self, make_worker: MakeWorker, versions: dict[str, str], folder: str) -> None:
        with suppress(OSError):  # a path means the same to all, where this machine has the folder
            os.chdir(folder)
        self._make_worker = make_worker
        self._versions = versions
        self._work: Callable[..., object] | None = None

    def wait_started(self) -> None:
        """Return as soon as the actor runs."""

    def work(self, piece: object, *shared: object) -> object:
        """Do a piece of work; the worker is made for its first piece."""
        try:
            if self._work is None:
                _check_versions(self._versions)
                self._work = self._make_worker()
            return self._work(piece, *shared)
        except DeadheatError as error:
            raise InputError(str(error)) from None  # not every error can be sent
        except MemoryError as error:
            raise InputError(
                f"the worker on {platform.node()} ran out of memory ({one_line(error)}): use "
                "smaller batches or chunks, or fewer workers per machine"
            ) from None


class _RayPool:
    """Actors that are given one piece of work at a time.

    Ray can restart actors and retry their calls itself, but a call then waits for its own actor,
    for ever where no machine has room for it again. Here another actor takes over the piece.
    """

    def __init__(
        self, ray: ModuleType, make_worker: MakeWorker, workers: int, options: dict[str, float]
    ) -> None:
        self._ray = ray
        self._make_worker = ray.put(make_worker)
        self._workers = workers
        self._folder = _find_folder()
        self._actor = ray.remote(**options)(_Actor)
        self._actors: set[Any] = set()
        self._idle: list[Any] = []
        self._starting: dict[object, Any] = {}
        """Actors that the cluster has found no room for yet, by the reference to their start."""
        self._lost_starts = 0

    def results(self, pieces: Iterable[P], *shared: object) -> Iterator[tuple[P, Any]]:
        stored = [self._ray.put(argument) for argument in shared]
        waiting = deque((piece, 1) for piece in pieces)
        running: dict[object, tuple[Any, P, int]] = {}
        try:
            while waiting or running:
                for _ in range(min(self._workers, len(waiting) + len(running)) - len(self._actors)):
                    actor = self._actor.remote(self._make_worker, collect_versions(), self._folder)
                    self._actors.add(actor)
                    self._starting[actor.wait_started.remote()] = actor
                while waiting and self._idle:
                    actor, (piece, attempt) = self._idle.pop(), waiting.popleft()
                    running[actor.work.remote(piece, *stored)] = actor, piece, attempt
                reference = self._wait([*running, *self._starting])
                if reference in self._starting:
                    self._finish_start(reference)
                    continue
                actor, piece, attempt = running.pop(reference)
                try:
                    result = self._ray.get(reference)
                except self._ray.exceptions.RayError as error:
                    self._dismiss(actor)
                    self._check_lost(error, piece, attempt)
                    waiting.appendleft((piece, attempt + 1))
                else:
                    self._idle.append(actor)
                    yield piece, result
        finally:
            for actor, _, _ in running.values():
                self._dismiss(actor)

    def close(self) -> None:
        """End all workers."""
        for actor in list(self._actors):
            self._dismiss(actor)

    def _wait(self, references: list[object]) -> object:
        """Return the reference to the first call that ends."""
        has_started = len(self._actors) > len(self._starting)
        timeout = None if has_started else START_SECONDS
        done, _ = self._ray.wait(references, timeout=timeout, fetch_local=False)
        if not done:
            raise InputError(
                f"in {START_SECONDS:g} seconds the Ray cluster had no room for a worker: other "
                "work may hold its processors or GPUs, or it may have none; ask for less, or wait"
            )
        return done[0]

    def _finish_start(self, reference: object) -> None:
        actor = self._starting.pop(reference)
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._dismiss(actor)
            self._lost_starts += 1
            self._check_lost(error, "the start of a worker", self._lost_starts)
        else:
            self._lost_starts = 0
            self._idle.append(actor)

    def _check_lost(self, error: Exception, piece: object, attempt: int) -> None:
        """Raise the error of the work itself; raise one where too many workers were lost."""
        if isinstance(error, self._ray.exceptions.RayTaskError):
            name = getattr(piece, "name", repr(piece)[:100])
            cause = RuntimeError(f"{name} failed on a worker: {error}")
            raise getattr(error, "cause", None) or error from cause
        if attempt == ATTEMPTS:
            raise InputError(
                f"a piece of work lost its worker {ATTEMPTS} times in a row "
                f"({type(error).__name__}): it crashed, was killed, or ran out of memory (see the "
                "logs of the cluster); what was done before stays valid"
            ) from error

    def _dismiss(self, actor: Any) -> None:
        self._actors.discard(actor)
        self._ray.kill(actor)


def _find_folder() -> str:
    """Return the working directory; empty if it was deleted."""
    with suppress(FileNotFoundError):
        return str(Path.cwd())
    return ""


def collect_versions() -> dict[str, str]:
    """Return the versions on this machine of what results depend on."""
    return {"python": platform.python_version(), **find_versions(LIBRARIES)}


def _check_versions(drivers: dict[str, str]) -> None:
    """Refuse to work where results might differ."""
    own = collect_versions()
    differing = [
        f"{name} {own.get(name, 'missing')} (the driver has {drivers.get(name, 'none')})"
        for name in {**own, **drivers}
        if own.get(name) != drivers.get(name)
    ]
    if differing:
        raise InputError(
            f"the worker on {platform.node()} has other versions: {', '.join(differing)}; its "
            "numbers could differ, install the same versions on every machine"
        )
