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
except Exception as error:
    print(f"{type(error).__name__}: {' '.join(str(error).split())[:150]}")
    sys.exit(1)
"""
"""Connects to a cluster, or prints the error."""
_names: dict[str, str] = {}
"""Addresses with which this process connected, and the address of each in Ray."""
_started: set[str] = set()
"""Addresses of the local clusters that this process started."""


def connect(ray: ModuleType, address: str | None) -> bool:
    """Connect this process to a cluster; return whether the cluster may grow.

    Without an address, it uses the cluster to which this process is connected. If there is none, it
    starts a cluster on this machine only, which listens on the loopback interface only.
    """
    address = _resolve_address(address)
    if ray.is_initialized():
        connected = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", connected) and _names.get(str(address)) != connected:
            raise InputError(
                f"this process is connected to the Ray cluster at {connected}, not at {address}: "
                "call ray.shutdown() first, or leave the address out to use the former"
            )
        return connected not in _started
    if address is not None:
        _try_connecting(address)
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is not None:
            ray.init(address, **quiet)
            _names[address] = ray.get_runtime_context().gcs_address
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


def _try_connecting(address: str) -> None:
    """Raise an error if no cluster answers in time.

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
    if attempt.returncode:
        last_line = (attempt.stdout.splitlines() or ["the attempt crashed"])[-1]
        raise _unreachable(address, last_line)


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
