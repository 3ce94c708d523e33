"""sentence-transformers: tie-aware evaluators, and models in high or low precision.

The evaluators have the names of those that they replace, and are imported on first use.
"""

import importlib
from typing import TYPE_CHECKING

from deadheat.integrations.precision import high_precision, low_precision
from deadheat.integrations.sentence_transformers.quantised import quantised

if TYPE_CHECKING:
    from deadheat.integrations.sentence_transformers.evaluators import (
        CrossEncoderRerankingEvaluator,
        InformationRetrievalEvaluator,
        NanoBEIREvaluator,
        RerankingEvaluator,
        SparseInformationRetrievalEvaluator,
    )
    from deadheat.integrations.sentence_transformers.multi_vector import (
        MultiVectorInformationRetrievalEvaluator,
    )

__all__ = [
    "CrossEncoderRerankingEvaluator",
    "InformationRetrievalEvaluator",
    "MultiVectorInformationRetrievalEvaluator",
    "NanoBEIREvaluator",
    "RerankingEvaluator",
    "SparseInformationRetrievalEvaluator",
    "high_precision",
    "low_precision",
    "quantised",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "multi_vector" if name.startswith("MultiVector") else "evaluators"
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
