"""Explain why a view in FP32 does not change the scores of a model."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from deadheat.integrations.precision.surgery import class_names, clone, is_a
from deadheat.scoring import logit_rows

if TYPE_CHECKING:
    from torch.nn import Module


def explain_no_effect(view: Any) -> list[str]:
    """Return the reason why a view in FP32 does not change scores; empty if it does."""
    import torch

    source = vars(view)["_deadheat"]
    model, name = source.model, f"this {type(source.model).__name__}"
    network = model if hasattr(model, "modules") else model.model
    same = f"regime={source.layer!r} gives the same scores"
    is_cross_encoder = is_a(model, "CrossEncoder")
    returns_logit = not is_cross_encoder or (_has_no_activation(model) and model.num_labels == 1)
    if source.logit and not returns_logit:
        return []
    if has_fp32_weights(network):
        reason = f"all weights of {name} are FP32 (outside torch.autocast)"
        return [f"{reason}: {same}; use the model as it is"]
    if source.layer == "head":
        layers = (view if network is model else view.model).modules()
        replaced = next(layer for layer in layers if "forward" in vars(layer))
        own = type(replaced).forward(replaced, replaced.weight.new_zeros(1, replaced.in_features))
        if torch.finfo(own.dtype).bits < 32:
            return []
        return [f"the last layer of {name} runs in FP32: {same}; use the model as it is"]
    if not _scores_in_fp32(model):
        return []
    advice = "finer scores need FP32 weights"
    if isinstance(model, torch.nn.Module) and not is_cross_encoder:
        same = f"model.similarity gives the same scores with regime={source.layer!r}"
    else:
        advice += ", or regime='head' if the last layer is a plain linear layer"
    return [f"after its last layer, {name} already scores in FP32: {same}; {advice}"]


def _has_no_activation(model: Any) -> bool:
    import torch

    return isinstance(model.activation_fn, torch.nn.Identity)


def _scores_in_fp32(model: Any) -> bool:
    """Return whether the library of a model computes all steps after its last layer in FP32."""
    from packaging.version import Version

    libraries = {library for library, _ in class_names(model)}
    if "sentence_transformers" not in libraries:
        return bool(libraries & {"FlagEmbedding", "rerankers"})
    casts_up = Version(version("sentence-transformers")).major >= 6
    if is_a(model, "CrossEncoder"):
        _, subtracts = logit_rows(model)  # in the model's dtype
        return (casts_up or _has_no_activation(model)) and not subtracts
    return casts_up and not scores_tokens(clone(model, type(model)))


def has_fp32_weights(model: Module) -> bool:
    """Return whether all parameters of a model are FP32 or wider; False if there are none."""
    import torch

    dtypes = {parameter.dtype for parameter in model.parameters()}
    return bool(dtypes) and all(t.is_floating_point and torch.finfo(t).bits >= 32 for t in dtypes)


def scores_tokens(model: Any) -> bool:
    """Return whether a bi-encoder scores token embeddings, with a variant of MaxSim.

    This may set the model's similarity to the library's default.
    """
    return "maxsim" in str(model.similarity_fn_name).lower()
