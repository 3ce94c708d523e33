"""`mteb.evaluate`, with every view of the ties."""

from __future__ import annotations

import warnings
from typing import Any

from deadheat.errors import DeadheatWarning, InputError
from deadheat.integrations.mteb.models import wrap
from deadheat.integrations.mteb.scores import has_keys
from deadheat.integrations.mteb.tasks import aggregates, each_task, tie_aware
from deadheat.packages import require_host


def evaluate(model: Any, tasks: Any, *, regime: str | None = None, **options: Any) -> Any:
    """Evaluate as ``mteb.evaluate`` does, with every view of the ties in the results.

    Parameters
    ----------
    model, tasks
        As for ``mteb.evaluate``; the tasks become `tie_aware`.
    regime
        As for `wrap`; None leaves the model to MTEB as it is given.
    options
        Passed on to ``mteb.evaluate``. A result in its cache that lacks the keys of ties is not
        reused: the task is run again, with a warning. Where the `overwrite_strategy` forbids
        that, it is an error.

    Returns
    -------
    mteb.results.ModelResult
        What ``mteb.evaluate`` gives.
    """
    mteb = require_host("mteb", "mteb", "`evaluate` of deadheat.integrations.mteb")
    model = model if regime is None else wrap(model, regime)
    tasks = tie_aware(tasks if hasattr(tasks, "metadata") else list(tasks))
    chosen = options.get("overwrite_strategy", "only-missing")
    strategy = getattr(chosen, "value", chosen)
    if options.get("cache", "default") is not None and strategy != "always":
        for aggregate in aggregates(tasks):  # their own results would hide those of their parts
            evaluate(model, aggregate.tasks, **options)
    result = mteb.evaluate(model, tasks, **options)
    lacking = {stored.task_name for stored in result.task_results if not _has_keys(stored)}
    again = [task for task in each_task(tasks) if task.metadata.name in lacking]
    stale = {task.metadata.name for task in again}
    if not stale:
        return result
    names = ", ".join(sorted(stale))
    if strategy in ("never", "only-cache"):
        raise InputError(
            f"the cached results of {names} were stored without the views of their ties, and "
            f"overwrite_strategy={strategy!r} forbids to run them again: allow it, or read the "
            "predictions with `deadheat mteb`"
        )
    warnings.warn(
        f"the cached results of {names} were stored without the views of their ties: these tasks "
        "are run again",
        DeadheatWarning,
        stacklevel=2,
    )
    fresh = mteb.evaluate(model, again, **{**options, "overwrite_strategy": "always"})
    renewed = {stored.task_name: stored for stored in fresh.task_results}
    kept = [renewed.get(stored.task_name, stored) for stored in result.task_results]
    return result.model_copy(update={"task_results": kept})


def _has_keys(stored: Any) -> bool:
    return all(has_keys(scores) for subsets in stored.scores.values() for scores in subsets)
