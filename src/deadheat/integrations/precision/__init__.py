"""Views of models that score in high, or deliberately low, precision.

A view is an object of the model's own class that shares its weights, but computes the last step
differently. The model itself changes only inside a ``with`` block, which restores it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from deadheat._internal.dtypes import FORMATS, Format, parse_float_format
from deadheat._internal.remarks import emit_warnings
from deadheat.errors import InputError
from deadheat.integrations.precision.effects import explain_no_effect, has_fp32_weights
from deadheat.integrations.precision.sentence_transformers import CrossEncoderView, EncoderView
from deadheat.integrations.precision.surgery import class_names
from deadheat.integrations.precision.transformers import TOKENS, RerankerView, TransformersView
from deadheat.integrations.precision.views import LOGIT, Source, View, build_view, source_of
from deadheat.scoring import SCORED, Regime, parse_regime

Model = TypeVar("Model")
ScoreKind = Literal["probability", "logit"]

KINDS: dict[tuple[str, str], type[View] | None] = {
    ("sentence_transformers", "CrossEncoder"): CrossEncoderView,
    ("sentence_transformers", "SparseEncoder"): None,  # multiplied in FP32 already
    ("sentence_transformers", "SentenceTransformer"): EncoderView,
    ("sentence_transformers", "MultiVectorEncoder"): EncoderView,
    ("transformers", "PreTrainedModel"): TransformersView,
    ("FlagEmbedding", "BaseReranker"): RerankerView,
    ("FlagEmbedding", "BaseLLMReranker"): RerankerView,
    ("rerankers", "TransformerRanker"): RerankerView,
}
"""The library and the class of each kind of model, and its view."""


def high_precision(
    model: Model,
    regime: Regime | None = None,
    *,
    scores: ScoreKind = "probability",
    tokenizer: object = None,
    tokens: Sequence[str | int] | None = None,
) -> Model:
    """Return a view of a model that scores in FP32.

    Parameters
    ----------
    model
        A ``CrossEncoder``, ``SentenceTransformer`` or ``MultiVectorEncoder`` of
        sentence-transformers, PyLate's ``ColBERT``, a sequence classifier or causal language model
        of transformers, ``FlagReranker`` or ``FlagLLMReranker`` of FlagEmbedding, or a
        ``Reranker`` of the package rerankers that runs such a model.
    regime
        ``"head"``: the linear layer that gives the logits runs in FP32, from the model-dtype
        hidden state, and so does all that follows. deadheat finds the layer by running two short
        inputs. ``"hps"``: logits or embeddings are cast to FP32 as they leave the model, before a
        difference yes − no, an activation or a similarity is computed. Default (None): ``"head"``
        if the model has such a layer, otherwise ``"hps"``; ``repr(view)`` and ``view.scoring``
        show the regime.
    scores
        Scores of a CrossEncoder. ``"probability"``: the output of its activation. ``"logit"``: the
        logit of relevance, or the difference of the logits of yes and no. It orders documents in
        the same way, and does not round large values to 1. Other rerankers return logits unless
        you ask them to normalise.
    tokens, tokenizer
        For a causal language model of transformers: the tokens whose logits are compared, such as
        ``("no", "yes")``, and its tokenizer; token ids need no tokenizer. In the regime head, the
        logits of all other tokens are −inf.

    Returns
    -------
    object
        A view, to use in place of the model. The model does not change. As a context manager, the
        view makes the model itself score this way inside the block.

    Warns
    -----
    DeadheatWarning
        The view does not change the scores: the installed library, or an FP32 model, scores in
        FP32 already.

    Examples
    --------
    ::

        model = high_precision(CrossEncoder(name, model_kwargs={"dtype": "bfloat16"}))
        model.predict(pairs)

        with high_precision(model):  # if other code already has the model
            evaluator(model)
    """
    if scores not in ("probability", "logit"):
        raise InputError(f"scores must be 'probability' or 'logit', not {scores!r}")
    if regime is not None and parse_regime(regime) == "native":
        raise InputError("native scoring is not high precision; use low_precision(model)")
    ids = _token_ids(tokenizer, tokens)
    view = _high_view(model, regime, LOGIT if scores == "logit" else "", ids)
    emit_warnings(explain_no_effect(view))
    return view  # type: ignore[no-any-return]


def low_precision(model: Model, dtype: object = None) -> Model:
    """Return a view of a model that scores in low precision, even if its library casts to FP32.

    The difference yes − no of a causal reranker, the activation and softmax of a CrossEncoder, the
    dot product or cosine of a SentenceTransformer run in `dtype`.

    Parameters
    ----------
    model
        A ``CrossEncoder`` or ``SentenceTransformer`` of sentence-transformers.
    dtype
        A floating-point format. Default: the model's own (the regime ``"native"``).

    Returns
    -------
    object
        A view and context manager, like that of `high_precision`.
    """
    view: Model = _low_view(model, dtype)
    source: Source = vars(view)["_deadheat"]
    if source.format.name == "fp32" and has_fp32_weights(source.model):
        text = (
            f"all weights of this {type(model).__name__} are FP32: scoring in fp32 does not lower "
            "its precision; name a dtype, such as low_precision(model, 'bf16')"
        )
        emit_warnings([text])
    return view


def regime_view(model: object, regime: Regime | None) -> Any:
    """Return a view of a model in a regime; do not warn if it does not change scores.

    Default (None): the regime of a view; for a model, the default of `high_precision`.
    """
    if regime is None and source_of(model) is not None:
        return model
    if regime == "native":
        return _low_view(model)
    return _high_view(model, regime)


def regime_of(model: object) -> str | None:
    """Return the regime of a view, or of a model inside a block; None for other objects."""
    source = source_of(model)
    return None if source is None else source.regime


def _high_view(
    model: object, regime: Regime | None, ending: str = "", tokens: tuple[int, ...] = ()
) -> Any:
    if regime is not None:
        return _view(model, regime.removesuffix(ending) + ending, FORMATS["fp32"], tokens)
    try:
        return _high_view(model, "head", ending, tokens)
    except InputError:  # it has no such layer
        return _high_view(model, "hps", ending, tokens)


def _low_view(model: object, dtype: object = None) -> Any:
    parameters = model.parameters() if hasattr(model, "parameters") else ()
    own = next((p.dtype for p in parameters if p.is_floating_point()), "fp32")
    format = parse_float_format(own if dtype is None else dtype)
    return _view(model, "native" if format.torch == own else SCORED + format.name, format)


def _view(model: object, regime: str, format: Format, tokens: tuple[int, ...] = ()) -> Any:
    if source := source_of(model):  # a view of a view is a view of the model
        model = source.model
    kind = next((KINDS[name] for name in class_names(model) if name in KINDS), None)
    if kind is None:
        accepted = ", ".join(f"{library} {name}" for (library, name), view in KINDS.items() if view)
        raise InputError(
            f"cannot change how a {type(model).__name__} scores; give a model of one of these "
            f"classes: {accepted}; or pass its logits to deadheat.scoring.torch_functions"
        )
    if tokens and kind is not TransformersView:
        raise InputError(f"{TOKENS}, not for a {type(model).__name__}")
    return build_view(kind, Source(model, regime, format, tokens))


def _token_ids(tokenizer: object, tokens: Sequence[str | int] | None) -> tuple[int, ...]:
    """Return the ids of tokens that are given as text or as ids."""
    if tokens is None:
        return ()
    convert = getattr(tokenizer, "convert_tokens_to_ids", lambda word: None)
    unknown = (None, getattr(tokenizer, "unk_token_id", None))
    words: Sequence[object] = [] if isinstance(tokens, str) else tokens
    ids: tuple[Any, ...] = tuple(word if isinstance(word, int) else convert(word) for word in words)
    if not ids or any(number in unknown for number in ids):
        raise InputError(
            "tokens must be ids, or words such as ('no', 'yes') that are tokens of the tokenizer "
            f"(tokenizer=…), not {tokens!r}"
        )
    return ids
