"""sentence-transformers: tie-aware evaluators, and models in high or low precision.

The evaluators have the names of the library's evaluators that they replace. They are imported
lazily.
"""

import importlib
from typing import TYPE_CHECKING

from deadheat.integrations.precision import (
    high_precision as high_precision,
    low_precision as low_precision,
)
from deadheat.integrations.sentence_transformers.quantised import quantised as quantised

if TYPE_CHECKING:
    from deadheat.integrations.sentence_transformers.evaluators import (
        CrossEncoderRerankingEvaluator as CrossEncoderRerankingEvaluator,
        InformationRetrievalEvaluator as InformationRetrievalEvaluator,
        NanoBEIREvaluator as NanoBEIREvaluator,
        RerankingEvaluator as RerankingEvaluator,
        SparseInformationRetrievalEvaluator as SparseInformationRetrievalEvaluator,
    )
    from deadheat.integrations.sentence_transformers.multi_vector import (
        MultiVectorInformationRetrievalEvaluator as MultiVectorInformationRetrievalEvaluator,
    )


def __getattr__(name: str) -> object:
    if not name.endswith("Evaluator"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "multi_vector" if name.startswith("MultiVector") else "evaluators"
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
