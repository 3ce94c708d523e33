"""Workers on a Ray cluster. Each is an actor, which is replaced if it or its machine is lost."""

from __future__ import annotations

import os
import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
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
"""Time limit in seconds for the start of the first worker."""
ATTEMPTS = 3
"""Number of lost workers of one piece of work after which an error is raised."""
LIBRARIES = ("deadheat", "numpy", "polars", "torch", "transformers", "sentence-transformers")
"""Packages that must have the same version on all machines."""


class RayCluster:
    """An engine of workers on a Ray cluster.

    Parameters
    ----------
    address
        ``host:port``, or ``auto`` for the cluster of this machine. Default: the cluster to which
        this process is connected; if there is none, a new cluster on this machine only.
    workers
        Number of workers. Default: one per GPU (with `gpus_per_worker`) or processor of the
        cluster.
    gpus_per_worker
        Number of GPUs per worker; with a fraction, workers share a GPU.
    """

    def __init__(
        self, address: str | None = None, *, workers: int | None = None, gpus_per_worker: float = 0
    ) -> None:
        # Lost workers are replaced, so the messages of Ray about them are not needed.
        os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
        self._ray = require("ray", "The engine ray")
        limits = (("workers", workers, 1), ("gpus_per_worker", gpus_per_worker, 0))
        for name, value, least in limits:
            if value is not None and value < least:
                raise InputError(f"{name} must be at least {least}, not {value}")
        may_grow = connect(self._ray, address)
        self._options: dict[str, float] = {"num_cpus": 1}
        if gpus_per_worker:
            self._options = {"num_gpus": gpus_per_worker}
        capacity = None if workers and may_grow else self._count_places(gpus_per_worker)
        self._workers = workers or capacity or 1

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function on the machine of a worker, and return its result."""
        with self.pool(lambda: lambda _: question()) as pool:
            [(_, answer)] = pool.results([None])
            result: T = answer
            return result

    @contextmanager
    def pool(self, make_worker: MakeWorker) -> Iterator[Pool]:
        """Yield a pool of workers. The first piece of a worker starts it."""
        pool = _RayPool(self._ray, make_worker, self._workers, self._options)
        try:
            yield pool
        finally:
            pool.close()

    def _count_places(self, gpus: float) -> int:
        """Return the number of workers that idle machines could run."""
        kind, share = ("GPU", gpus) if gpus else ("CPU", 1)
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        places = sum(int(machine.get(kind, 0) / share) for machine in machines)
        if not places:
            what = f"{gpus:g} GPUs" if gpus else "a processor"
            raise InputError(f"no machine of the cluster has {what} for a worker: ask for less")
        return places


class _Actor:
    """The code that runs on the machine of a worker, as a Ray actor."""

    def __init__(self, make_worker: MakeWorker, versions: dict[str, str], folder: str) -> None:
        with suppress(OSError):  # so that relative paths are the same on all machines
            os.chdir(folder)
        self._make_worker = make_worker
        self._versions = versions
        self._work: Callable[..., object] | None = None

    def work(self, piece: object, *shared: object) -> object:
        """Do a piece of work; the first piece creates the worker."""
        try:
            if self._work is None:
                _check_versions(self._versions)
                self._work = self._make_worker()
            return self._work(piece, *shared)
        except DeadheatError as error:
            raise InputError(str(error)) from None  # not every error can be pickled
        except MemoryError as error:
            raise InputError(
                f"the worker on {platform.node()} ran out of memory ({one_line(error)}): use "
                "smaller batches or chunks, or fewer workers per machine"
            ) from None


class _WorkError(Exception):
    """The error of a worker with its traceback; the cause of the error that is raised."""


class _RayPool:
    """Actors that get one piece of work at a time.

    Ray can restart actors and retry their calls itself, but such a call waits for its own actor,
    forever if no machine can run it again. This pool gives the piece to another actor.
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
        """Actors that have not started yet, by the reference to their start."""
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
                    self._starting[actor.__ray_ready__.remote()] = actor
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
        """Return the reference of the first call that ends."""
        has_started = len(self._actors) > len(self._starting)
        timeout = None if has_started else START_SECONDS
        done, _ = self._ray.wait(references, timeout=timeout, fetch_local=False)
        if not done:
            raise InputError(
                f"in {START_SECONDS:g} seconds the Ray cluster could not start a worker: other "
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
        """Raise the error, unless it is a lost worker that can be replaced."""
        lost = self._ray.exceptions
        is_loss = isinstance(
            error,
            (
                lost.RayActorError,
                lost.WorkerCrashedError,
                lost.NodeDiedError,
                lost.ObjectLostError,
                lost.OutOfMemoryError,
            ),
        )
        if not is_loss:
            name = getattr(piece, "name", repr(piece)[:100])
            cause = _WorkError(f"{name} failed on a worker: {error}")
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
    """Return the versions of the packages on this machine that results depend on."""
    return {"python": platform.python_version(), **find_versions(LIBRARIES)}


def _check_versions(drivers: dict[str, str]) -> None:
    """Raise an error if the versions differ from those of the driver."""
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
