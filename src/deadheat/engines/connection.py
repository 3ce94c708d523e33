"""Connecting to a Ray cluster: in time, and to the one that was named."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

from deadheat.errors import InputError, one_line

PATIENCE = 10.0
"""Seconds in which something must answer at an address."""
CONNECT_PATIENCE = 3
"""How many times as long a connection may take: another process tries it first."""

_CONNECT = """
import sys
sys.path[:] = sys.argv[2:]
import ray
try:
    ray.init(sys.argv[1], log_to_driver=False, logging_level="ERROR")
    print(*(node["NodeID"] for node in ray.nodes()))
except Exception as error:
    print(f"{type(error).__name__}: {' '.join(str(error).split())[:150]}")
    sys.exit(1)
"""
"""Prints the nodes of a cluster, or why there is no connection."""
_started: set[str] = set()
"""Addresses of the clusters of this machine that were started here."""


def connect(ray: Any, address: str | None) -> bool:
    """Connect this process to a cluster; tell whether it may grow, as one of this machine cannot.

    Without an address the cluster that this process is connected to is taken; where there is none,
    one of this machine alone is started.
    """
    address = _meant(address)
    if ray.is_initialized():
        if address not in (None, "auto"):
            _check_same(ray, str(address))
        return ray.get_runtime_context().gcs_address not in _started
    if address is not None:
        _nodes_at(address)
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level="ERROR",
            include_dashboard=False if address is None else None,
        )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise _unreachable(address or "of this machine", one_line(error)) from error
    if address is None:
        _started.add(ray.get_runtime_context().gcs_address)
    return address is not None


def _meant(address: str | None) -> str | None:
    """Give the address that Ray would take; None for that of a cluster on this machine alone."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address is not None and address.startswith("ray://"):
        raise InputError(
            f"{address} is an address for Ray Client, through which deadheat does not work: run "
            "this on a machine of the cluster, or send it there with `ray job submit`, and give "
            "host:port or auto"
        )
    return None if address == "local" else address


def _check_same(ray: Any, address: str) -> None:
    """Refuse another cluster than that of this process; one may have several addresses."""
    connected = ray.get_runtime_context().gcs_address
    if address == connected:
        return
    own = {node["NodeID"] for node in ray.nodes()}
    if own.isdisjoint(_nodes_at(address)):
        raise InputError(
            f"this process is connected to the Ray cluster at {connected}, which is not the one at "
            f"{address}: call ray.shutdown() first, or leave the address out to use the former"
        )


def _nodes_at(address: str) -> set[str]:
    """Name the nodes of a cluster; refuse an address at which there is none in time.

    Another process connects: Ray's attempts last minutes, and only their process can end them.
    """
    if address != "auto":
        _check_listens(address)
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _CONNECT, address, *map(str, sys.path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=CONNECT_PATIENCE * PATIENCE,
        )
    except subprocess.TimeoutExpired as error:
        raise _silent(address, "timed out", error.timeout) from None
    said = (asked.stdout.splitlines() or ["the attempt crashed"])[-1]
    if asked.returncode:
        raise _unreachable(address, said)
    return set(said.split())


def _check_listens(address: str) -> None:
    """Refuse what is no address, and one at which nothing listens, for which Ray would wait."""
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
        if host is None or port is None:
            raise ValueError("a port is missing" if host else "a host is missing")
    except ValueError as error:
        raise InputError(
            f"{address!r} is no address of a Ray cluster ({error}): write host:port or auto"
        ) from None
    try:
        socket.create_connection((host, port), timeout=PATIENCE).close()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise _silent(address, why, PATIENCE) from None


def _silent(address: str, why: str, seconds: float) -> InputError:
    return InputError(
        f"no Ray cluster answers at {address} ({why}) within {seconds:g} seconds: check the "
        "address, that the cluster is up, and that this machine belongs to it"
    )


def _unreachable(address: str, why: str) -> InputError:
    return InputError(
        f"the Ray cluster {address} cannot be reached ({why}): check the address, and that Ray and "
        "Python have the same versions there"
    )
