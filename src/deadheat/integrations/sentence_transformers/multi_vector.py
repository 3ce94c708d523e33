"""The tie-aware evaluator for a MultiVectorEncoder; needs sentence-transformers 6."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from deadheat.errors import MissingPackageError
from deadheat.integrations.sentence_transformers.evaluators import CorpusSearch, TieAware
from deadheat.packages import require_host

_PURPOSE = "an evaluator of a MultiVectorEncoder"
if find_spec("sentence_transformers.multi_vector_encoder") is None:
    _VERSIONS = "sentence-transformers>=6,<7"
    raise MissingPackageError(_VERSIONS, f"pip install '{_VERSIONS}'", _PURPOSE)
_multi_vector: Any = require_host(
    "sentence_transformers.multi_vector_encoder.evaluation", "sentence-transformers", _PURPOSE
)


class MultiVectorInformationRetrievalEvaluator(
    TieAware,
    _multi_vector.MultiVectorInformationRetrievalEvaluator,  # type: ignore[misc]
    CorpusSearch,
):
    """Evaluate how a MultiVectorEncoder retrieves, over all orders of tied documents.

    Parameters
    ----------
    args, options
        As for the evaluator of that name in sentence-transformers.
    regime
        ``"hps"``: token embeddings are cast to FP32 before they are multiplied; None is the model
        as it is given. `score_functions` score as they do.
    """
