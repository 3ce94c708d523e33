"""Make a sentence-transformers model score in high, or deliberately low, precision.

A view is an object of the model's own class that shares its weights and tokenizer, but computes the
last step differently. The model itself changes only inside a ``with`` block, which restores it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from deadheat.dtypes import Format, parse_float_format, parse_format
from deadheat.errors import InputError
from deadheat.integrations.sentence_transformers.effects import (
    explain_no_effect,
    has_fp32_weights,
    scores_tokens,
)
from deadheat.integrations.sentence_transformers.surgery import (
    clone,
    is_a,
    with_cast_logits,
    with_fp32_head,
)
from deadheat.packages import require
from deadheat.remarks import emit_warnings
from deadheat.scoring.regimes import SCORED, Regime, describe_regime, parse_regime
from deadheat.scoring.torch_functions import cast, operands, product, widened

if TYPE_CHECKING:
    from torch import Tensor

Model = TypeVar("Model")


def high_precision(model: Model, regime: Regime = "hps") -> Model:
    """Return a view of a model that scores in FP32.

    Parameters
    ----------
    model
        A sentence-transformers ``CrossEncoder`` (any activation; also a causal yes/no reranker) or
        ``SentenceTransformer``, version 5 or 6, ``MultiVectorEncoder``, or PyLate's ``ColBERT``.
        For a plain transformers model, pass its logits to ``sigmoid`` or ``softmax`` of
        `deadheat.scoring.torch_functions` instead.
    regime
        ``"hps"``: logits or embeddings are cast to FP32 as they leave the model, before a
        difference yes − no, an activation or a similarity is taken. ``"head"``, for a
        CrossEncoder: the linear layer that gives its logits runs in FP32 too, from the model-dtype
        hidden state; of a causal model only the rows of no and yes are computed. deadheat finds
        the layer by running two short pairs; a model without such a layer is an error.

    Returns
    -------
    object
        A view, to use in place of the model, which stays as it is. As a context manager it makes
        the model itself score this way too, for as long as the block runs.

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

        with high_precision(model):  # where something else already holds the model
            evaluator(model)
    """
    regime = parse_regime(regime)
    if regime == "native":
        raise InputError("native scoring is not high precision: use low_precision(model)")
    view = regime_view(model, regime)
    emit_warnings(explain_no_effect(view._deadheat[0], regime, view._head_dtype))
    same: Model = view  # of a class derived from that of the model
    return same


def low_precision(model: Model, dtype: object = None) -> Model:
    """Return a view of a model that scores in low precision, where its library would cast up.

    The difference yes − no of a causal reranker, the activation and softmax of a CrossEncoder, the
    dot product or cosine of a SentenceTransformer run in `dtype`.

    Parameters
    ----------
    model
        A ``CrossEncoder`` or ``SentenceTransformer``, as for `high_precision`.
    dtype
        A floating-point format; None is the model's own: the regime ``"native"``.

    Returns
    -------
    object
        A view and context manager, as `high_precision` gives.
    """
    view = _low_view(model, dtype)
    if view._deadheat[1].format.name == "fp32" and has_fp32_weights(view):
        emit_warnings(
            [
                f"all weights of this {type(model).__name__} are FP32: scoring in fp32 does not "
                "lower its precision; name a dtype, such as low_precision(model, 'bf16')"
            ]
        )
    same: Model = view
    return same


def regime_view(model: Any, regime: Regime) -> Any:
    """Return a view of a model in a regime, without a warning where it does not change scores."""
    if regime == "native":
        return _low_view(model)
    return _view(model, _Setting(regime, parse_format("fp32")))


def _low_view(model: Any, dtype: object = None) -> Any:
    parameters = model.parameters() if hasattr(model, "parameters") else ()
    own = next((p.dtype for p in parameters if p.is_floating_point()), "fp32")
    format = parse_float_format(own if dtype is None else dtype)
    return _view(model, _Setting("native" if format.torch == own else SCORED + format.name, format))


@dataclass(frozen=True)
class _Setting:
    regime: str
    format: Format


class _View:
    """What every view adds to the class of its model."""

    _deadheat: tuple[Any, _Setting]
    _head_dtype: Any = None
    """The dtype in which the model itself computes its logits; known in the regime head."""

    @property
    def scoring(self) -> str:
        """The scoring dtype and the regime in words."""
        setting = self._deadheat[1]
        return f"{setting.format.name}, {setting.regime}: {describe_regime(setting.regime)}"

    def __enter__(self) -> Any:
        model = self._deadheat[0]
        _check_outside(model)
        self._before = type(model), vars(model)["_modules"]
        model.__class__ = type(self)
        vars(model).update(_modules=vars(self)["_modules"], _deadheat=self._deadheat)
        return self

    def __exit__(self, *_: object) -> None:
        model = self._deadheat[0]
        model.__class__, vars(model)["_modules"] = self._before
        del vars(model)["_deadheat"]

    def __reduce__(self) -> Any:  # a worker process receives the model and builds its own view
        return _view, self._deadheat


class _CrossEncoderView(_View):
    activation_fn: Any

    def predict(
        self, *args: Any, activation_fn: Any = None, apply_softmax: Any = False, **options: Any
    ) -> Any:
        """Score pairs as the model does, activation and softmax in the scoring dtype."""
        upstream: Any = super()
        own, format = self.activation_fn, self._deadheat[1].format
        step = require("torch", "a precision view").nn.Identity()  # before 5.4 it must be a module
        step.forward = partial(_activate, activation_fn or own, bool(apply_softmax), format)
        try:
            return upstream.predict(*args, activation_fn=step, **options)
        finally:
            self.activation_fn = own  # before 5.4 the argument would stay


class _EncoderView(_View):
    similarity_fn_name: Any

    def forward(self, *args: Any, **options: Any) -> Any:
        """Encode as the model does; in high precision all that follows, norms too, is in FP32."""
        upstream: Any = super()
        features = upstream.forward(*args, **options)
        if self._deadheat[1].regime == "hps":
            # A late-interaction model has no embedding of a whole text: it scores its tokens.
            for scored in ("sentence_embedding", "token_embeddings"):
                if features.get(scored) is not None:
                    features[scored] = features[scored].float()
                    break
        return features

    def similarity(self, embeddings1: Any, embeddings2: Any, **options: Any) -> Tensor:
        """Score each of the first embeddings with each of the second."""
        setting = self._deadheat[1]
        if setting.regime == "hps":
            upstream: Any = super()
            scores: Tensor = upstream.similarity(*self._fp32(embeddings1, embeddings2), **options)
            return scores
        self._check_product()
        a, b = _tensor(embeddings1), _tensor(embeddings2)
        q, d = (x.unsqueeze(0) if x.ndim == 1 else x for x in (a, b))
        return product(q, d, setting.format, self.similarity_fn_name)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any, **options: Any) -> Tensor:
        """Score each of the first embeddings with the second one at the same index."""
        setting = self._deadheat[1]
        if setting.regime == "hps":
            upstream: Any = super()
            both = self._fp32(embeddings1, embeddings2)
            scores: Tensor = upstream.similarity_pairwise(*both, **options)
            return scores
        self._check_product()
        a, b = _tensor(embeddings1), _tensor(embeddings2)
        q, d = operands(a, b, setting.format, self.similarity_fn_name)
        return (q * d).sum(dim=-1).to(setting.format.torch)

    def _fp32(self, *embeddings: Any) -> list[Any]:
        """Cast embeddings; those of tokens may be lists of matrices of different lengths."""
        ragged = scores_tokens(self)
        return [
            [_tensor(each).float() for each in given]
            if ragged and isinstance(given, list | tuple)
            else _tensor(given).float()
            for given in embeddings
        ]

    def _check_product(self) -> None:
        if self.similarity_fn_name not in ("dot", "cosine"):
            raise InputError(
                f"{self.similarity_fn_name} similarity cannot be scored in low precision: "
                "set the model's similarity_fn_name to dot or cosine"
            )


def _view(model: Any, setting: _Setting) -> Any:
    if isinstance(model, _View) and model._deadheat[0] is not model:
        model = model._deadheat[0]  # a view of a view is a view of the model
    _check_outside(model)
    mixin: type[_View]
    head_dtype: Any = None
    if is_a(model, "CrossEncoder"):
        mixin = _CrossEncoderView
        if setting.regime == "head":
            modules, head_dtype = with_fp32_head(model)
        else:
            modules = with_cast_logits(model, setting.format)
    elif is_a(model, "MultiVectorEncoder", "SentenceTransformer") and not is_a(
        model, "SparseEncoder"
    ):
        mixin, modules = _EncoderView, vars(model)["_modules"].copy()
        if setting.regime == "head":
            raise InputError("a bi-encoder has no scoring head: use the regime hps")
        if setting.regime != "hps" and scores_tokens(clone(model, type(model))):
            raise InputError(
                f"cannot score a {type(model).__name__} in low precision: low_precision takes "
                "models that score by a dot product or cosine, not by MaxSim"
            )
    else:
        raise InputError(
            f"cannot change how a {type(model).__name__} scores: give a sentence-transformers "
            "CrossEncoder, SentenceTransformer or MultiVectorEncoder, or pass a transformers "
            "model's logits to deadheat.scoring.torch_functions"
        )
    base: Any = type(model)
    view = clone(model, _view_class(mixin, base))
    vars(view).update(_modules=modules, _deadheat=(model, setting), _head_dtype=head_dtype)
    return view


@lru_cache
def _view_class(mixin: Any, base: Any) -> type:
    names: dict[str, Any] = {"__module__": base.__module__}
    worker = getattr(base, "_multi_process_worker", None)
    if worker is not None:  # sent to a worker process by the name of its class: the model's
        names["_multi_process_worker"] = staticmethod(worker)
    return type(base.__name__, (mixin, base), names)


def _check_outside(model: Any) -> None:
    if isinstance(model, _View):
        raise InputError("this model is inside a precision block already: leave that block first")


def _activate(inner: Any, softmax: bool, format: Format, scores: Tensor) -> Tensor:
    scores = cast(scores, format)
    if hasattr(inner, "state_dict") and not inner.state_dict():  # no weights that are in FP32
        scores = widened(scores, format)
    scores = cast(inner(scores), format)
    if softmax and scores.ndim > 1 and scores.shape[-1] > 1:
        scores = cast(widened(scores, format).softmax(dim=-1), format)
    return scores


def _tensor(values: Any) -> Tensor:
    torch = require("torch", "a precision view")
    many = isinstance(values, list | tuple)
    tensor: Tensor = torch.stack([_tensor(v) for v in values]) if many else torch.as_tensor(values)
    return tensor
