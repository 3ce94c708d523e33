"""Workers on a Ray cluster: each an actor, replaced when it or its machine is lost."""

from __future__ import annotations

import platform
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar
from urllib.parse import urlsplit

from deadheat.engines.engine import MakeWorker, Pool
from deadheat.errors import DeadheatError, InputError, one_line
from deadheat.packages import require

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds that the head of a cluster has to answer."""
ROOM_PATIENCE = 12
"""How many times as long the cluster has to find room for a first worker."""
ATTEMPTS = 3
"""How often one piece of work may lose its worker before the work is given up."""
LIBRARIES = ("deadheat", "numpy", "polars", "torch", "transformers", "sentence-transformers")
"""Packages whose version must be the same wherever results are computed."""


class RayCluster:
    """An engine of workers on a Ray cluster.

    Parameters
    ----------
    address
        ``host:port``, ``ray://host:port``, or ``auto`` for the cluster that this machine belongs
        to. Unless given, a cluster of this machine alone is started.
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
        self._ray = require("ray", "The engine ray")
        for name, value, least in (
            ("workers", workers, 1),
            ("gpus_per_worker", gpus_per_worker, 0),
        ):
            if value is not None and value < least:
                raise InputError(f"{name} must be at least {least}, not {value}")
        self._connect(address)
        self._options = {"num_gpus": gpus_per_worker} if gpus_per_worker else {"num_cpus": 1}
        self._workers = workers or self._room(gpus_per_worker)

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

    def _connect(self, address: str | None) -> None:
        ray = self._ray
        if address not in (None, "auto", "local"):
            _check_answers(str(address))
        if ray.is_initialized():
            return
        try:
            ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level="ERROR",
                include_dashboard=False if address is None else None,
            )
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise InputError(
                f"the Ray cluster {address or 'of this machine'} cannot be reached "
                f"({one_line(error)}): check the address, and that Ray and Python have the same "
                "versions there"
            ) from error

    def _room(self, gpus: float) -> int:
        resources = self._ray.cluster_resources()
        room = resources.get("GPU", 0) / gpus if gpus else resources.get("CPU", 0)
        if room < 1:
            what = f"{gpus:g} GPUs" if gpus else "a processor"
            raise InputError(f"no machine of the cluster has {what} for a worker")
        return int(room)


class _Asked:
    """Makes a worker that answers one question."""

    def __init__(self, question: Callable[[], Any]) -> None:
        self._question = question

    def __call__(self) -> Callable[[Any], Any]:
        return lambda _: self._question()


class _Actor:
    """What runs on a worker's machine; wrapped into a Ray actor."""

    def __init__(self, make_worker: MakeWorker, versions: dict[str, str]) -> None:
        self._make_worker = make_worker
        self._versions = versions
        self._work: Callable[[Any], Any] | None = None

    def started(self) -> None:
        """Answer."""

    def do(self, piece: Any) -> tuple[Any, str | None]:
        """Give the result, or why there is none; the worker is made for its first piece."""
        try:
            if self._work is None:
                _check_versions(self._versions)
                self._work = self._make_worker()
            return self._work(piece), None
        except DeadheatError as error:
            return None, str(error)


class _RayPool:
    def __init__(
        self, ray: Any, make_worker: MakeWorker, workers: int, options: dict[str, Any]
    ) -> None:
        self._ray = ray
        self._make_worker = ray.put(make_worker)
        self._workers = workers
        self._actor = ray.remote(**options)(_Actor)
        self._starts: dict[Any, Any] = {}
        """Every actor, and what is there once it has started."""
        self._idle: list[Any] = []

    def results(self, pieces: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        waiting = deque((piece, 1) for piece in pieces)
        busy: dict[Any, tuple[Any, Any, int]] = {}
        try:
            while waiting or busy:
                while waiting and (actor := self._free_actor()) is not None:
                    piece, attempt = waiting.popleft()
                    busy[actor.do.remote(piece)] = actor, piece, attempt
                done = self._first_done(list(busy))
                actor, piece, attempt = busy.pop(done)
                try:
                    result, refusal = self._ray.get(done)
                except self._ray.exceptions.RayError as error:
                    self._dismiss(actor)
                    if not _is_loss(self._ray, error):
                        raise
                    if attempt == ATTEMPTS:
                        raise InputError(_lost(error)) from error
                    waiting.appendleft((piece, attempt + 1))
                    continue
                self._idle.append(actor)
                if refusal is not None:
                    raise InputError(refusal)
                yield piece, result
        finally:
            for actor, _, _ in busy.values():
                self._dismiss(actor)

    def close(self) -> None:
        """Let all workers go."""
        for actor in list(self._starts):
            self._dismiss(actor)

    def _free_actor(self) -> Any:
        """Give an actor that has nothing to do, or a new one; None where there are enough."""
        if self._idle:
            return self._idle.pop()
        if len(self._starts) == self._workers:
            return None
        actor = self._actor.remote(self._make_worker, installed())
        self._starts[actor] = actor.started.remote()
        return actor

    def _first_done(self, work: list[Any]) -> Any:
        """Wait for a piece of work, but not for a cluster that never has room for a worker."""
        for _ in range(ROOM_PATIENCE):
            done, _ = self._ray.wait(work, timeout=PATIENCE)
            if done:
                return done[0]
            if self._ray.wait(list(self._starts.values()), timeout=0)[0]:
                return self._ray.wait(work)[0][0]
        raise InputError(
            f"in {ROOM_PATIENCE * PATIENCE:g} seconds the Ray cluster had no room for a worker: "
            "other work may hold its processors or GPUs; ask for less, or wait"
        )

    def _dismiss(self, actor: Any) -> None:
        del self._starts[actor]
        self._ray.kill(actor)


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


def _check_answers(address: str) -> None:
    """Refuse an address at which nothing listens, before Ray waits for it."""
    parts = urlsplit(address if "//" in address else f"//{address}")
    try:
        host, port = parts.hostname, parts.port
        if host is None or port is None:
            raise ValueError("a port is missing" if host else "a host is missing")
    except ValueError as error:
        raise InputError(
            f"{address!r} is no address of a Ray cluster ({error}): write host:port, "
            "ray://host:port or auto"
        ) from None
    try:
        socket.create_connection((host, port), timeout=PATIENCE).close()
    except OSError as error:
        raise InputError(
            f"no Ray cluster answers at {address} ({error.strerror or error}) within "
            f"{PATIENCE:g} seconds: check the address, and that the cluster is up"
        ) from None


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


def _lost(error: Exception) -> str:
    memory = "memory" in str(error).lower()
    hint = (
        "it ran out of memory; use a smaller batch or fewer workers per machine"
        if memory
        else "see the logs of the cluster"
    )
    # The last line says what happened, those before where.
    why = (str(error).strip().splitlines() or [type(error).__name__])[-1][:200]
    return (
        f"a piece of work lost its worker {ATTEMPTS} times in a row ({why}): {hint}; what was done "
        "before stays valid"
    )
