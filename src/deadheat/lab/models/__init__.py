"""Models: compute logits or embeddings of texts in the model's own dtype.

Scores (softmax, sigmoid, product) are computed in ``deadheat.scoring``.
"""

from deadheat.lab.models.biencoders import BiEncoder as BiEncoder
from deadheat.lab.models.device import MODEL_DTYPES as MODEL_DTYPES
from deadheat.lab.models.loading import load_model as load_model
from deadheat.lab.models.presets import (
    PRESETS as PRESETS,
    PairPrompt as PairPrompt,
    TextPrompt as TextPrompt,
    find_preset as find_preset,
)
from deadheat.lab.models.rerankers import (
    ClassifierReranker as ClassifierReranker,
    Reranker as Reranker,
    YesNoReranker as YesNoReranker,
)
