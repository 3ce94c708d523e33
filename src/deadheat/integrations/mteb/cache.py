"""MTEB's cache of results, with an eye for those that were stored without the views of ties."""

from __future__ import annotations

import copy
import warnings
from functools import lru_cache
from typing import Any

from deadheat.errors import DeadheatWarning, InputError
from deadheat.integrations.mteb.scores import has_keys
from deadheat.packages import require_host


def tie_aware_cache(cache: Any = None, *, run_again: bool = True) -> Any:
    """Give a cache of MTEB that does not reuse results without the views of their ties.

    MTEB reuses a stored result whatever keys it has, so that a task made `tie_aware` after its
    result was stored would stay without them, and nobody would be told.

    Parameters
    ----------
    cache
        An ``mteb.ResultCache``; None is MTEB's own.
    run_again
        What to do with a result of a retrieval or reranking task without the keys: warn, and let
        MTEB run the task again and store that; or, if false, raise an error.

    Returns
    -------
    mteb.ResultCache
        To pass on to ``mteb.evaluate``. It reads and writes where `cache` does.

    Examples
    --------
    ::

        mteb.evaluate(model, tie_aware(tasks), cache=tie_aware_cache())
    """
    mteb = require_host("mteb", "mteb", "`tie_aware_cache`")
    checking = copy.copy(mteb.ResultCache() if cache is None else cache)
    if not isinstance(checking, mteb.ResultCache):
        raise InputError(f"{cache!r:.60} is no cache of MTEB: give an mteb.ResultCache")
    own: Any = type(checking)
    if not issubclass(own, _Checking):
        checking.__class__ = _checking_class(own)
    checking.run_again = run_again
    return checking


class _Checking:
    run_again: bool

    def load_task_result(self, *args: Any, **options: Any) -> Any:
        """Load a result as the cache does; one without the keys of ties is not found."""
        upstream: Any = super()
        stored = upstream.load_task_result(*args, **options)
        if stored is None or _complete(stored):
            return stored
        lacking = (
            f"the cached results of {stored.task_name} were stored without the views of their ties"
        )
        if not self.run_again:
            raise InputError(
                f"{lacking}, and must not be run again: allow it (overwrite_strategy), or read the "
                "predictions with `deadheat mteb`"
            )
        warnings.warn(f"{lacking}: the task is run again", DeadheatWarning, stacklevel=2)
        return None


def _complete(stored: Any) -> bool:
    return all(has_keys(scores) for subsets in stored.scores.values() for scores in subsets)


@lru_cache
def _checking_class(base: Any) -> Any:
    return type(base.__name__, (_Checking, base), {})
