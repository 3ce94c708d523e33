"""`mteb.evaluate`, with every view of the ties."""

from __future__ import annotations

from typing import Any

from deadheat.integrations.mteb.cache import tie_aware_cache
from deadheat.integrations.mteb.models import wrap
from deadheat.integrations.mteb.tasks import aggregates, tie_aware
from deadheat.packages import require_host
from deadheat.scoring import Regime


def evaluate(model: Any, tasks: Any, *, regime: Regime | None = None, **options: Any) -> Any:
    """Evaluate as ``mteb.evaluate`` does, with every view of the ties in the results.

    Parameters
    ----------
    model, tasks
        As for ``mteb.evaluate``; the tasks become `tie_aware`.
    regime
        As for `wrap`; None leaves the model to MTEB as it is given.
    options
        Passed on to ``mteb.evaluate``. A result in its cache that lacks the keys of ties is not
        reused: the task is run again, with a warning (`tie_aware_cache`). Where the
        `overwrite_strategy` forbids that, it is an error.

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
    cache = options.get("cache", mteb.ResultCache())
    if cache is not None and strategy != "always":
        options["cache"] = tie_aware_cache(cache, run_again=strategy == "only-missing")
        for aggregate in aggregates(tasks):  # their own results would hide those of their parts
            evaluate(model, aggregate.tasks, **options)
    return mteb.evaluate(model, tasks, **options)
