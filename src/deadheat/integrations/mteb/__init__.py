"""MTEB: models in a named regime, tasks that report ties, and stored predictions.

MTEB is imported only when it is needed, so stored predictions can be read without it.
"""

import importlib
from typing import TYPE_CHECKING

from deadheat.integrations.mteb.predictions import (
    DEFAULT_MEASURES as DEFAULT_MEASURES,
    evaluate_predictions as evaluate_predictions,
    predictions_table as predictions_table,
)
from deadheat.integrations.mteb.scores import tie_aware_scores

if TYPE_CHECKING:
    from deadheat.integrations.mteb.running import evaluate, tie_aware, tie_aware_cache, wrap

__all__ = ["evaluate", "tie_aware", "tie_aware_cache", "tie_aware_scores", "wrap"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.running"), name)
