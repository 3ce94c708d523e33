"""Options for the engine that does the work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from deadheat.cli.output import options
from deadheat.engines import Engine, LocalEngine
from deadheat.errors import InputError

CLUSTER = options(
    click.option(
        "--engine",
        type=click.Choice(["here", "ray"]),
        default="here",
        help="Do the work in this process, or on a Ray cluster; the numbers are the same.",
    ),
    click.option(
        "--ray-address",
        metavar="ADDRESS",
        help="host:port or auto. [default: a cluster of this machine alone]",
    ),
)
WORKERS = click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Workers on the cluster. [default: all there is]",
)
ENGINE = options(
    CLUSTER,
    WORKERS,
    click.option("--gpus-per-worker", type=float, help="GPUs that each worker has. [default: 0]"),
)
ENGINE_OPTIONS = ("engine", "ray_address", "workers", "gpus_per_worker")


def make_cluster(given: Mapping[str, Any], *, workers_here: bool = False) -> Engine | None:
    """Make the cluster that the options of a command ask for; None: the work is done here.

    With `workers_here`, the option --workers is also allowed without a cluster.
    """
    given = dict.fromkeys(ENGINE_OPTIONS) | dict(given)
    if given["engine"] == "ray":
        return make_engine(given)
    make_engine(
        given | {"workers": None} if workers_here else given
    )  # refuses options of a cluster
    return None


def make_engine(given: Mapping[str, Any]) -> Engine:
    """Make the engine that the options of a command ask for."""
    if given["engine"] == "ray":
        from deadheat.engines import RayCluster

        return RayCluster(
            given["ray_address"],
            workers=given["workers"],
            gpus_per_worker=given["gpus_per_worker"] or 0,
        )
    for name in ENGINE_OPTIONS[1:]:
        if given[name] is not None:
            raise InputError(f"--{name.replace('_', '-')} is about a Ray cluster: add --engine ray")
    return LocalEngine()
