"""Engines, which run independent pieces of work: in this process, or on a Ray cluster."""

from typing import TYPE_CHECKING

from deadheat.engines.engine import (
    Engine as Engine,
    LocalEngine as LocalEngine,
    MakeWorker as MakeWorker,
    Pool as Pool,
    Progress as Progress,
)

if TYPE_CHECKING:
    from deadheat.engines.cluster import RayCluster as RayCluster


def __getattr__(name: str) -> object:
    """Import `RayCluster`, and Ray with it, when it is first used."""
    if name != "RayCluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from deadheat.engines.cluster import RayCluster

    return RayCluster
