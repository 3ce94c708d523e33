"""The output of models: tensors on the CPU in the model's own dtype, and their provenance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadheat.provenance import InputFacts, ModelProvenance

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ModelOutput:
    """Logits of a reranker."""

    logits: torch.Tensor
    """``[n, 1]``, or ``[n, 2]`` in the order (no, yes)."""
    hidden: torch.Tensor | None
    """``[n, d]``: the input of the head; None unless requested."""
    provenance: ModelProvenance
    inputs: InputFacts


@dataclass(frozen=True)
class Embeddings:
    """Vectors of a bi-encoder."""

    vectors: torch.Tensor
    """``[n, d]``."""
    provenance: ModelProvenance
    inputs: InputFacts


@dataclass(frozen=True)
class Head:
    """The rows of the last linear layer that compute the logits: ``hidden @ weight.T + bias``.

    Cast all three to FP32 to recompute the logits in FP32.
    """

    weight: torch.Tensor
    bias: torch.Tensor | None
