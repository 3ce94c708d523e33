"""Models: a checkpoint and texts in; logits or embeddings in the model's own dtype out.

No scores are made here: softmax, sigmoid and product belong to ``deadheat.scoring``.
"""

from deadheat.lab.models.biencoders import BiEncoder
from deadheat.lab.models.loading import load_model
from deadheat.lab.models.presets import PRESETS, PairPrompt, TextPrompt, find_preset
from deadheat.lab.models.rerankers import ClassifierReranker, Reranker, YesNoReranker

__all__ = [
    "PRESETS",
    "BiEncoder",
    "ClassifierReranker",
    "PairPrompt",
    "Reranker",
    "TextPrompt",
    "YesNoReranker",
    "find_preset",
    "load_model",
]
