"""Models: a checkpoint and texts in; logits or embeddings in the model's own dtype out.

No scores are made here: softmax, sigmoid and product belong to ``deadheat.scoring``.
"""

from deadheat.models.batching import Batches
from deadheat.models.biencoders import BiEncoder
from deadheat.models.loading import load_model
from deadheat.models.outputs import Embeddings, Head, ModelOutput
from deadheat.models.presets import PRESETS, PairPrompt, Preset, TextPrompt, find_preset
from deadheat.models.rerankers import ClassifierReranker, Reranker, YesNoReranker

__all__ = [
    "PRESETS",
    "Batches",
    "BiEncoder",
    "ClassifierReranker",
    "Embeddings",
    "Head",
    "ModelOutput",
    "PairPrompt",
    "Preset",
    "Reranker",
    "TextPrompt",
    "YesNoReranker",
    "find_preset",
    "load_model",
]
