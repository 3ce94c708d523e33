"""The tie-aware evaluator for a MultiVectorEncoder; needs sentence-transformers 6."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from deadheat.errors import MissingPackageError
from deadheat.integrations.base import load_host
from deadheat.integrations.sentence_transformers.evaluators import InformationRetrievalEvaluator

if find_spec("sentence_transformers.multi_vector_encoder") is None:
    _VERSIONS = "sentence-transformers>=6,<7"
    _PURPOSE = "an evaluator of a MultiVectorEncoder"
    raise MissingPackageError(_VERSIONS, f"pip install '{_VERSIONS}'", _PURPOSE)
_host: Any = load_host("sentence_transformers.multi_vector_encoder.evaluation")


class MultiVectorInformationRetrievalEvaluator(
    InformationRetrievalEvaluator,
    _host.MultiVectorInformationRetrievalEvaluator,  # type: ignore[misc]
):
    """Evaluate how a MultiVectorEncoder retrieves, over all orders of tied documents.

    Parameters
    ----------
    args, options
        As for the evaluator of that name in sentence-transformers.
    regime
        ``"hps"``: token embeddings are cast to FP32 before they are multiplied. Default (None):
        the given model, unchanged. `score_functions` are not changed.
    """
