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
"""Seconds in which something must answer at an address."""
CONNECT_FACTOR = 3
"""How many times as long a connection may take: another process tries it first."""

_CONNECT = """
import sys
sys.path[:] = sys.argv[2:]
import ray
try:
    ray.init(sys.argv[1], log_to_driver=False, logging_level="ERROR")
except Exception as error:
    sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())[:150]}")
"""


def connect(ray: ModuleType, address: str | None) -> None:
    """Connect this process to a cluster.

    Without an address the cluster that this process is connected to is taken; where there is none,
    one of this machine alone is started, which listens on the loopback interface only.
    """
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address is not None and address.startswith("ray://"):
        raise InputError(
            f"{address} is an address for Ray Client, which deadheat does not support: run this on "
            "a machine of the cluster, or with `ray job submit`, and give host:port or auto"
        )
    if address == "local":
        address = None
    if address not in (None, "auto"):
        _check_listens(str(address))
    if ray.is_initialized():
        if address not in (None, "auto"):
            _check_same(ray, str(address))
        return
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is not None:
            _try_connecting(address)
            ray.init(address, **quiet)
            return
        with _bind_loopback(ray):
            ray.init("local", include_dashboard=False, **quiet)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise _unreachable(address or "local", one_line(error)) from error
    if not all(ip_address(node["NodeManagerAddress"]).is_loopback for node in ray.nodes()):
        ray.shutdown()
        raise InputError(
            f"Ray {ray.__version__} cannot be started for this machine alone: it would accept "
            "connections from the network, and run the code that they send; start a cluster with "
            "`ray start --head` behind a firewall, and give its address"
        )


@contextmanager
def _bind_loopback(ray: ModuleType) -> Iterator[None]:
    """Make Ray listen on the loopback interface, as it does by default on macOS and Windows.

    On Linux ``ray.init`` replaces a loopback address by that of the network, whatever is passed;
    this constant decides it.
    """
    constants = ray._private.ray_constants
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _check_listens(address: str) -> None:
    """Refuse an address at which nothing listens, for which Ray would wait."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _unreachable(address, one_line(error)) from None


def _check_same(ray: ModuleType, address: str) -> None:
    """Refuse another cluster than that of this process; one may have several addresses."""
    connected = ray.get_runtime_context().gcs_address
    (host, _, port), (own_host, _, own_port) = (a.rpartition(":") for a in (address, connected))
    ip = socket.getaddrinfo(host.strip("[]"), None)[0][4][0]
    if port != own_port or not (ip == own_host or ip_address(ip).is_loopback):
        raise InputError(
            f"this process is connected to the Ray cluster at {connected}, which is not the one at "
            f"{address}: call ray.shutdown() first, or leave the address out to use the former"
        )


def _try_connecting(address: str) -> None:
    """Refuse an address at which no cluster answers in time.

    Another process connects: Ray's attempts last minutes, and only their process can end them.
    """
    try:
        subprocess.run(
            [sys.executable, "-c", _CONNECT, address, *map(str, sys.path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=CONNECT_FACTOR * ANSWER_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise _unreachable(address, f"timed out after {error.timeout:g} seconds") from None
    except subprocess.CalledProcessError as error:
        why = (error.stderr.splitlines() or ["the attempt crashed"])[-1]
        raise _unreachable(address, why) from None


def _unreachable(address: str, why: str) -> InputError:
    return InputError(
        f"no Ray cluster answers at {address} ({why}): check the address (host:port or auto), that "
        "the cluster is up and this machine belongs to it, and that Ray and Python have the same "
        "versions there"
    )
