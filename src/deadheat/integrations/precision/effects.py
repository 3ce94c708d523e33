"""Whether a view in FP32 can change the scores of a model, and why not."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from deadheat.integrations.precision.surgery import clone, is_a, logit_score
from deadheat.integrations.precision.views import class_names

if TYPE_CHECKING:
    from torch.nn import Module


def explain_no_effect(view: Any, no_head: str = "") -> list[str]:
    """Return the reason why a view does not change a model's scores; nothing where it does.

    Parameters
    ----------
    view
        A view in high precision.
    no_head
        Why the regime head cannot be used with this model, where that was tried.
    """
    import torch

    source = vars(view)["_deadheat"]
    model, name = source.model, f"this {type(source.model).__name__}"
    same = f"regime={source.layer!r} gives the same scores"
    is_cross_encoder = is_a(model, "CrossEncoder")
    if is_cross_encoder and source.logit:
        returns_logits = isinstance(model.activation_fn, torch.nn.Identity)
        if not returns_logits or model.num_labels == 2:
            return []
    if has_fp32_weights(model if hasattr(model, "parameters") else model.model):
        return [
            f"all weights of {name} are FP32, and so are its scores (outside torch.autocast): "
            f"{same}; use the model as it is"
        ]
    if source.layer == "head":
        if torch.finfo(vars(view)["_head_dtype"]).bits < 32:
            return []
        return [f"the last layer of {name} runs in FP32: {same}; use the model as it is"]
    finer = "regime='head' also computes the last layer in FP32, where it is a plain linear layer"
    if no_head:
        finer = f"finer scores need FP32 weights, since the regime head is refused: {no_head}"
    if is_cross_encoder:
        return _explain_cross_encoder(model, same, finer)
    libraries = {library for library, _ in class_names(model)} & {"FlagEmbedding", "rerankers"}
    if libraries:
        return [f"{libraries.pop()} already casts logits to FP32: {same}; {finer}"]
    if not is_a(model, "SentenceTransformer", "MultiVectorEncoder"):
        return []
    if not _casts_up() or scores_tokens(clone(model, type(model))):
        return []
    return [
        f"sentence-transformers {version('sentence-transformers')} already casts embeddings to "
        f"FP32 before a similarity: model.similarity gives the same scores with regime='hps', "
        "which only changes what encode returns (FP32, normalised in FP32); for finer embeddings, "
        "load the model in FP32: model_kwargs={'dtype': 'float32'}"
    ]


def _explain_cross_encoder(model: Any, same: str, finer: str) -> list[str]:
    import torch

    score = logit_score(model)
    if score is not None and score.false_token_id is not None:
        return []  # the library subtracts the two logits in the model's dtype
    if _casts_up():
        return [
            f"sentence-transformers {version('sentence-transformers')} already computes the "
            f"activation in FP32: {same}, up to the last bit; {finer}"
        ]
    if isinstance(model.activation_fn, torch.nn.Identity):
        return [
            f"this {type(model).__name__} has no activation, its scores are its logits: {same} "
            f"unless predict is called with an activation_fn or apply_softmax; {finer}"
        ]
    return []


def _casts_up() -> bool:
    """Tell whether the installed sentence-transformers casts logits and embeddings to FP32."""
    from packaging.version import Version

    return Version(version("sentence-transformers")) >= Version("6")


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
