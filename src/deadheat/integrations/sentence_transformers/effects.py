"""Whether a view in FP32 can change the scores of a model, and why not."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from deadheat.integrations.sentence_transformers.surgery import clone, is_a, logit_score

if TYPE_CHECKING:
    from torch import dtype
    from torch.nn import Module


def explain_no_effect(model: Any, regime: str, head_dtype: dtype | None) -> list[str]:
    """Return the reason why a view does not change a model's scores; nothing where it does.

    Parameters
    ----------
    model
        The model itself, not the view.
    regime
        ``"hps"`` or ``"head"``.
    head_dtype
        The dtype in which the model itself computes its logits; needed for ``"head"``.
    """
    import torch
    from packaging.version import Version

    name, same = type(model).__name__, f"regime={regime!r} gives the same scores"
    if has_fp32_weights(model):
        return [
            f"all weights of this {name} are FP32, and so are its scores (outside torch.autocast): "
            f"{same}; use the model as it is"
        ]
    if head_dtype is not None:
        if torch.finfo(head_dtype).bits < 32:
            return []
        return [f"the last layer of this {name} runs in FP32: {same}; use the model as it is"]
    installed = version("sentence-transformers")
    casts = Version(installed) >= Version("6")  # logits and embeddings, to FP32
    if not is_a(model, "CrossEncoder"):
        if not casts or scores_tokens(clone(model, type(model))):
            return []
        return [
            f"sentence-transformers {installed} already casts embeddings to FP32 before a "
            f"similarity: model.similarity gives the same scores with regime={regime!r}, which "
            "only changes what encode returns (FP32, normalised in FP32); for finer embeddings, "
            "load the model in FP32: model_kwargs={'dtype': 'float32'}"
        ]
    score = logit_score(model)
    if score is not None and score.false_token_id is not None:
        return []  # the library subtracts the two logits in the model's dtype
    finer = "regime='head' also computes the last layer in FP32, where it is a plain linear layer"
    if casts:
        return [
            f"sentence-transformers {installed} already computes the activation in FP32: {same}, "
            f"up to the last bit; {finer}"
        ]
    if isinstance(model.activation_fn, torch.nn.Identity):
        return [
            f"this {name} has no activation, its scores are its logits: {same} unless predict is "
            f"called with an activation_fn or apply_softmax; {finer}"
        ]
    return []


def has_fp32_weights(model: Module) -> bool:
    """Tell whether all parameters of a model are FP32 or wider; False where there are none."""
    import torch

    dtypes = {parameter.dtype for parameter in model.parameters()}
    return bool(dtypes) and all(t.is_floating_point and torch.finfo(t).bits >= 32 for t in dtypes)


def scores_tokens(model: Any) -> bool:
    """Tell whether a bi-encoder scores the embeddings of tokens, by a variant of MaxSim.

    Asking a model may set its similarity to the library's default.
    """
    return "maxsim" in str(model.similarity_fn_name).lower()
