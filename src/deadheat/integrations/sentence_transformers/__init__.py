"""sentence-transformers: models in high or deliberately low precision, tie-aware evaluators.

The evaluators have the names of those whose places they take, and are made when asked for.
"""

from typing import TYPE_CHECKING, Any

from deadheat.integrations.sentence_transformers.quantised import quantised
from deadheat.integrations.sentence_transformers.views import high_precision, low_precision

if TYPE_CHECKING:
    from deadheat.integrations.sentence_transformers.evaluators import (
        CrossEncoderRerankingEvaluator,
        InformationRetrievalEvaluator,
        NanoBEIREvaluator,
        RerankingEvaluator,
    )

__all__ = [
    "CrossEncoderRerankingEvaluator",
    "InformationRetrievalEvaluator",
    "NanoBEIREvaluator",
    "RerankingEvaluator",
    "high_precision",
    "low_precision",
    "quantised",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from deadheat.integrations.sentence_transformers import evaluators

    return getattr(evaluators, name)
