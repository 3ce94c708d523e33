"""`mteb.evaluate` with every view of ties, and a cache that detects results without views."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from deadheat.errors import DeadheatWarning, InputError
from deadheat.integrations.base import load_host
from deadheat.integrations.mteb.models import wrap
from deadheat.integrations.mteb.scores import has_keys
from deadheat.integrations.mteb.tasks import tie_aware
from deadheat.scoring import Regime

if TYPE_CHECKING:
    from mteb import ResultCache
    from mteb.abstasks import AbsTask
    from mteb.results import ModelResult, TaskResult

__all__ = ["evaluate", "tie_aware", "tie_aware_cache", "wrap"]

_mteb = load_host("mteb")


def evaluate(
    model: object,
    tasks: AbsTask | Iterable[AbsTask],
    *,
    regime: Regime | None = None,
    **options: Any,
) -> ModelResult:
    """Evaluate like ``mteb.evaluate``, with every view of ties in the results.

    Parameters
    ----------
    model, tasks
        As for ``mteb.evaluate``; the tasks become `tie_aware`.
    regime
        As for `wrap`. Default (None): the model is not wrapped.
    options
        Passed on to ``mteb.evaluate``. A cached result without the keys of ties is not reused: the
        task is run again, with a warning (`tie_aware_cache`). If `overwrite_strategy` forbids
        that, it is an error.

    Returns
    -------
    mteb.results.ModelResult
        The result of ``mteb.evaluate``.
    """
    model = model if regime is None else wrap(model, regime)
    tasks = tie_aware(tasks if hasattr(tasks, "metadata") else list(tasks))
    chosen = options.get("overwrite_strategy", "only-missing")
    strategy = getattr(chosen, "value", chosen)
    cache = options.get("cache", _mteb.ResultCache())
    if cache is not None and strategy != "always":
        options["cache"] = tie_aware_cache(cache, run_again=strategy == "only-missing")
        for task in tasks if isinstance(tasks, list) else [tasks]:
            if hasattr(task, "tasks"):  # the stored result of an aggregate would replace its parts'
                evaluate(model, task.tasks, **options)
    return _mteb.evaluate(model, tasks, **options)


def tie_aware_cache(cache: ResultCache | None = None, *, run_again: bool = True) -> ResultCache:
    """Return a cache of MTEB that does not reuse results without views of ties.

    MTEB reuses a stored result with any keys. If a task is made `tie_aware` after its result was
    stored, the result would stay without views, and there would be no warning.

    Parameters
    ----------
    cache
        An ``mteb.ResultCache``. Default: MTEB's own.
    run_again
        What to do with a result of a retrieval or reranking task without views. True: warn, and
        let MTEB run the task again and store the new result. False: raise an error.

    Returns
    -------
    mteb.ResultCache
        A cache for ``mteb.evaluate``. It uses the files of `cache`.

    Examples
    --------
    ::

        mteb.evaluate(model, tie_aware(tasks), cache=tie_aware_cache())
    """
    checking = copy.copy(_mteb.ResultCache() if cache is None else cache)
    if not isinstance(checking, _mteb.ResultCache):
        raise InputError(f"{cache!r:.60} is not a cache of MTEB; give an mteb.ResultCache")
    load = partial(type(checking).load_task_result, checking)

    def load_task_result(*args: object, **options: object) -> TaskResult | None:
        """Load a result like the cache; a result without the keys of ties is not found."""
        stored = load(*args, **options)
        if stored is None or all(has_keys(s) for each in stored.scores.values() for s in each):
            return stored
        lacking = f"the cached results of {stored.task_name} have no views of their ties"
        if not run_again:
            raise InputError(
                f"{lacking}, and overwrite_strategy forbids to run the task again; change it, or "
                "read the predictions with `deadheat mteb`"
            )
        warnings.warn(f"{lacking}: the task is run again", DeadheatWarning, stacklevel=2)
        return None

    checking.load_task_result = load_task_result
    return checking
