"""Where independent pieces of work are done: here, or on a Ray cluster."""

from deadheat.engines.engine import Engine, LocalEngine, MakeWorker, Pool, Progress

__all__ = ["Engine", "LocalEngine", "MakeWorker", "Pool", "Progress"]
