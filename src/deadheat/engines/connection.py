"""Connect to a Ray cluster, with time limits."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from types import ModuleType

from deadheat.errors import InputError, one_line

ANSWER_SECONDS = 10.0
"""Time limit in seconds for an answer at an address."""
CONNECT_FACTOR = 3
"""Factor of the time limit for a connection, which another process tries first."""

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
"""Prints the nodes of a cluster, or the error of the connection."""
_started: set[str] = set()
"""Addresses of the local clusters that this process started."""


def connect(ray: ModuleType, address: str | None) -> bool:
    """Connect this process to a cluster; return whether the cluster may grow.

    Without an address, it uses the cluster to which this process is connected. If there is none, it
    starts a cluster on this machine only, which listens on the loopback interface only.
    """
    address = _resolve_address(address)
    if ray.is_initialized():
        if address not in (None, "auto"):
            _check_same(ray, str(address))
        return ray.get_runtime_context().gcs_address not in _started
    if address is not None:
        _find_nodes(address)
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is not None:
            ray.init(address, **quiet)
            return True
        with _bind_loopback(ray):
            ray.init("local", include_dashboard=False, **quiet)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise _unreachable(address or "of this machine", one_line(error)) from error
    if not all(ip_address(node["NodeManagerAddress"]).is_loopback for node in ray.nodes()):
        ray.shutdown()
        raise InputError(
            f"Ray {ray.__version__} cannot be started for this machine alone: it would accept "
            "connections from the network, and run the code that they send; start a cluster with "
            "`ray start --head` behind a firewall, and give its address"
        )
    _started.add(ray.get_runtime_context().gcs_address)
    return False


@contextmanager
def _bind_loopback(ray: ModuleType) -> Iterator[None]:
    """Make Ray listen on the loopback interface, as it does by default on macOS and Windows.

    On Linux ``ray.init`` replaces a loopback address by that of the network, whatever is passed.
    This constant of Ray prevents that.
    """
    constants = ray._private.ray_constants
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _resolve_address(address: str | None) -> str | None:
    """Return the address that Ray would use; None for a cluster on this machine only."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address is not None and address.startswith("ray://"):
        raise InputError(
            f"{address} is an address for Ray Client, through which deadheat does not work: run "
            "this on a machine of the cluster, or send it there with `ray job submit`, and give "
            "host:port or auto"
        )
    return None if address == "local" else address


def _check_same(ray: ModuleType, address: str) -> None:
    """Raise an error if the address is another cluster; a cluster may have several addresses."""
    connected = ray.get_runtime_context().gcs_address
    if address == connected:
        return
    own = {node["NodeID"] for node in ray.nodes()}
    if own.isdisjoint(_find_nodes(address)):
        raise InputError(
            f"this process is connected to the Ray cluster at {connected}, which is not the one at "
            f"{address}: call ray.shutdown() first, or leave the address out to use the former"
        )


def _find_nodes(address: str) -> set[str]:
    """Return the ids of the nodes of a cluster; raise an error if none answers in time.

    Another process connects, because Ray tries for minutes, and only its process can be ended.
    """
    if address != "auto":
        _check_listens(address)
    try:
        attempt = subprocess.run(
            [sys.executable, "-c", _CONNECT, address, *map(str, sys.path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=CONNECT_FACTOR * ANSWER_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise _silent(address, "timed out", error.timeout) from None
    last_line = (attempt.stdout.splitlines() or ["the attempt crashed"])[-1]
    if attempt.returncode:
        raise _unreachable(address, last_line)
    return set(last_line.split())


def _check_listens(address: str) -> None:
    """Raise an error if nothing listens at the address; Ray would wait for it."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _silent(address, one_line(error), ANSWER_SECONDS) from None


def _silent(address: str, why: str, seconds: float) -> InputError:
    return InputError(
        f"no Ray cluster answers at {address} ({why}) within {seconds:g} seconds: check the "
        "address (host:port or auto), that the cluster is up, and that this machine belongs to it"
    )


def _unreachable(address: str, why: str) -> InputError:
    return InputError(
        f"the Ray cluster {address} cannot be reached ({why}): check the address, and that Ray and "
        "Python have the same versions there"
    )
