"""Options for the engine that does the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from deadheat.cli.help import F
from deadheat.cli.output import gather
from deadheat.engines import Engine
from deadheat.errors import InputError

_CLUSTER = (
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


def engine_options(*more: Callable[..., Any], workers: str = "") -> Callable[[F], F]:
    """Add the options of the engine; the command receives them as the dict ``engine``.

    Parameters
    ----------
    more
        Further options of `make_engine`.
    workers
        Help text of --workers. Default: that of workers on a cluster.
    """
    text = workers or "Number of workers on the cluster. [default: as many as fit]"
    option = click.option("--workers", type=click.IntRange(min=1), help=text)
    return gather("engine", dict, *_CLUSTER, option, *more)


GPUS = click.option("--gpus-per-worker", type=float, help="GPUs per worker. [default: 0]")


def make_engine(*, engine: str, **given: Any) -> Engine | None:
    """Return the engine of a command's options; None means this process."""
    if engine == "ray":
        from deadheat.engines import RayCluster

        address, gpus = given.pop("ray_address"), given.pop("gpus_per_worker", None)
        return RayCluster(address, gpus_per_worker=gpus or 0, **given)
    for name, value in given.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')} needs a Ray cluster; add --engine ray")
    return None
