"""Options for the engine that does the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from deadheat.cli.help import F
from deadheat.cli.output import options
from deadheat.engines import Engine
from deadheat.errors import InputError

CLUSTER = options(
    click.option(
        "--engine",
        type=click.Choice(["here", "ray"]),
        default="here",
        help="Compute in this process, or on a Ray cluster; the numbers are the same.",
    ),
    click.option(
        "--ray-address",
        metavar="ADDRESS",
        help="host:port or auto. [default: a cluster on this machine only]",
    ),
)


def workers_option(help: str) -> Callable[[F], F]:
    """Make the option --workers."""
    return click.option("--workers", type=click.IntRange(min=1), help=help)


WORKERS = workers_option("Number of workers on the cluster. [default: as many as fit]")
ENGINE = options(
    CLUSTER,
    WORKERS,
    click.option("--gpus-per-worker", type=float, help="GPUs per worker. [default: 0]"),
)
ENGINE_OPTIONS = ("engine", "ray_address", "workers", "gpus_per_worker")


def make_engine(given: Mapping[str, Any]) -> Engine | None:
    """Return the engine of a command's options; None means this process."""
    if given["engine"] == "ray":
        from deadheat.engines import RayCluster

        return RayCluster(
            given["ray_address"],
            workers=given["workers"],
            gpus_per_worker=given.get("gpus_per_worker") or 0,
        )
    for name in ENGINE_OPTIONS[1:]:
        if given.get(name) is not None:
            raise InputError(f"--{name.replace('_', '-')} needs a Ray cluster; add --engine ray")
    return None
