"""Where logits and embeddings come from, in a form that is stored beside them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from importlib.metadata import distributions
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

PACKAGES = ("torch", "transformers", "sentence-transformers", "tokenizers", "deadheat")


@dataclass(frozen=True)
class Provenance:
    """Everything besides the texts that a logit or an embedding depends on.

    Attributes
    ----------
    model
        Hub id or path, as given.
    revision
        Commit of the hub, or ``sha256:…`` of the weight files of a local checkpoint.
    kind
        ``cross-encoder``, ``yes-no`` or ``bi-encoder``.
    outputs
        Names of the logits in the order of their columns; empty for a bi-encoder.
    model_dtype
        ``fp32``, ``bf16`` or ``fp16``.
    batch_size, max_length
        As used; low-precision results depend on both.
    attn_implementation
        The attention kernel family that transformers chose or was told to use.
    prompt
        The texts put around queries and documents; None where there are none.
    pooling
        Modules between the token states and the embedding; None for a reranker.
    inputs, truncated
        How many inputs the run had, and how many of them were cut at ``max_length``.
    halved
        Batches that did not fit into memory: batch number → size they were run at.
    versions
        Installed versions of the libraries involved.
    """

    model: str
    revision: str
    kind: str
    outputs: tuple[str, ...]
    model_dtype: str
    device: str
    batch_size: int
    max_length: int
    attn_implementation: str
    trust_remote_code: bool
    prompt: dict[str, str] | None = None
    pooling: str | None = None
    inputs: int = 0
    truncated: int = 0
    halved: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that survive a round trip through JSON."""
        return {**asdict(self), "outputs": list(self.outputs)}


def installed_versions() -> dict[str, str]:
    """Return the versions of the packages that logits and embeddings pass through."""
    installed = {str(d.name).lower().replace("_", "-"): d.version for d in distributions()}
    return {name: installed[name] for name in PACKAGES if name in installed}


@dataclass(frozen=True)
class ModelOutput:
    """Logits ``[n, 1]`` or ``[n, 2]`` in the order (no, yes), in the model's dtype, on the CPU.

    ``hidden`` is the input ``[n, d]`` of the last linear layer, where it was asked for.
    """

    logits: torch.Tensor
    hidden: torch.Tensor | None
    provenance: Provenance


@dataclass(frozen=True)
class Embeddings:
    """Vectors ``[n, d]`` in the model's dtype, on the CPU."""

    vectors: torch.Tensor
    provenance: Provenance


@dataclass(frozen=True)
class Head:
    """The rows of the last linear layer that make the logits: ``hidden @ weight.T + bias``.

    In the model's dtype; cast both to FP32 to recompute the logits in FP32.
    """

    weight: torch.Tensor
    bias: torch.Tensor | None
