"""Explain why a view in FP32 does not change the scores of a model."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from deadheat.integrations.precision.surgery import class_names, clone, is_a, logit_score

if TYPE_CHECKING:
    from torch.nn import Module


def explain_no_effect(view: Any, no_head: str = "") -> list[str]:
    """Return the reason why a view does not change a model's scores; empty if it does.

    Parameters
    ----------
    view
        A view in high precision.
    no_head
        The reason why the regime head cannot be used with this model, if it was tried.
    """
    import torch
    from packaging.version import Version

    source = vars(view)["_deadheat"]
    model, name = source.model, f"this {type(source.model).__name__}"
    same, as_it_is = f"regime={source.layer!r} gives the same scores", "use the model as it is"
    network = model if hasattr(model, "modules") else model.model
    is_cross_encoder = is_a(model, "CrossEncoder")
    no_activation = is_cross_encoder and isinstance(model.activation_fn, torch.nn.Identity)
    if is_cross_encoder and source.logit and (not no_activation or model.num_labels == 2):
        return []
    if has_fp32_weights(network):
        return [f"all weights of {name} are FP32 (outside torch.autocast): {same}; {as_it_is}"]
    if source.layer == "head":
        layers = (view if network is model else view.model).modules()
        replaced = next(layer for layer in layers if "forward" in vars(layer))
        own = type(replaced).forward(replaced, replaced.weight.new_zeros(1, replaced.in_features))
        if torch.finfo(own.dtype).bits < 32:
            return []
        return [f"the last layer of {name} runs in FP32: {same}; {as_it_is}"]
    advice = "regime='head' also computes the last layer in FP32, where it is a plain linear layer"
    if no_head:
        advice = f"finer scores need FP32 weights, since the regime head is refused: {no_head}"
    libraries = {library for library, _ in class_names(model)}
    casts_up = "sentence_transformers" in libraries and (
        Version(version("sentence-transformers")) >= Version("6")
    )
    if is_cross_encoder:
        score = logit_score(model)
        subtracts = score is not None and score.false_token_id is not None  # in the model's dtype
        in_fp32 = (casts_up or no_activation) and not subtracts
    elif libraries & {"FlagEmbedding", "rerankers"}:
        in_fp32 = True
    else:
        in_fp32 = casts_up and not scores_tokens(clone(model, type(model)))
        same = "model.similarity gives the same scores with regime='hps'"
        advice = "for finer embeddings, load the model in FP32: model_kwargs={'dtype': 'float32'}"
    text = f"after its last layer, {name} already scores in FP32: {same}; {advice}"
    return [text] if in_fp32 else []


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
