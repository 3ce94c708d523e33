"""Make a sentence-transformers model score in high, or deliberately low, precision.

A view is an object of the model's own class that shares its weights and tokenizer, but computes the
last step differently. The model itself changes only inside a ``with`` block, which restores it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from deadheat._internal.dtypes import Format, parse_float_format, parse_format
from deadheat._internal.remarks import emit_warnings
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
from deadheat.scoring import SCORED, Regime, describe_regime, parse_regime, torch_functions

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
    view: Model = regime_view(model, regime)
    source: _Source = vars(view)["_deadheat"]
    emit_warnings(explain_no_effect(source.model, regime, vars(view)["_head_dtype"]))
    return view


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
    view: Model = _low_view(model, dtype)
    source: _Source = vars(view)["_deadheat"]
    if source.format.name == "fp32" and has_fp32_weights(source.model):
        emit_warnings(
            [
                f"all weights of this {type(model).__name__} are FP32: scoring in fp32 does not "
                "lower its precision; name a dtype, such as low_precision(model, 'bf16')"
            ]
        )
    return view


def regime_view(model: Any, regime: Regime) -> Any:
    """Return a view of a model in a regime, without a warning where it does not change scores."""
    if regime == "native":
        return _low_view(model)
    return _view(model, regime, parse_format("fp32"))


def _low_view(model: Any, dtype: object = None) -> Any:
    parameters = model.parameters() if hasattr(model, "parameters") else ()
    own = next((p.dtype for p in parameters if p.is_floating_point()), "fp32")
    format = parse_float_format(own if dtype is None else dtype)
    return _view(model, "native" if format.torch == own else SCORED + format.name, format)


class _Source(NamedTuple):
    """The model of a view, and how the view scores."""

    model: Any
    regime: str
    format: Format


class _View:
    """What every view adds to the class of its model."""

    _deadheat: _Source
    _head_dtype: object = None
    """The dtype in which the model itself computes its logits; known in the regime head."""

    @property
    def scoring(self) -> str:
        """The scoring dtype and the regime in words."""
        _, regime, format = self._deadheat
        return f"{format.name}, {regime}: {describe_regime(regime)}"

    def __enter__(self) -> _View:
        model = self._deadheat.model
        _check_outside(model)
        self._before = type(model), vars(model)["_modules"]
        model.__class__ = type(self)
        vars(model).update(_modules=vars(self)["_modules"], _deadheat=self._deadheat)
        return self

    def __exit__(self, *_: object) -> None:
        model = self._deadheat.model
        model.__class__, vars(model)["_modules"] = self._before
        del vars(model)["_deadheat"]

    def __reduce__(self) -> tuple[object, _Source]:
        # A worker process receives the model and builds its own view.
        return _view, self._deadheat


class _CrossEncoderView(_View):
    activation_fn: Any

    def predict(
        self,
        *args: object,
        activation_fn: Any = None,
        apply_softmax: object = False,
        **options: object,
    ) -> object:
        """Score pairs as the model does, activation and softmax in the scoring dtype."""
        import torch

        own, format = self.activation_fn, self._deadheat.format
        activate = activation_fn or own

        def score(logits: Tensor) -> Tensor:
            scores: Tensor = torch_functions.cast(logits, format)
            if hasattr(activate, "state_dict") and not activate.state_dict():  # no FP32 weights
                scores = torch_functions.widened(scores, format)
            scores = torch_functions.cast(activate(scores), format)
            if apply_softmax and scores.ndim > 1 and scores.shape[-1] > 1:
                scores = torch_functions.cast(
                    torch_functions.widened(scores, format).softmax(dim=-1), format
                )
            return scores

        step = torch.nn.Identity()  # before 5.4 it must be a module
        vars(step)["forward"] = score
        try:
            return super().predict(*args, activation_fn=step, **options)  # type: ignore[misc]
        finally:
            self.activation_fn = own  # before 5.4 the argument would stay


class _EncoderView(_View):
    similarity_fn_name: Any

    def forward(self, *args: object, **options: object) -> dict[str, Tensor]:
        """Encode as the model does; in high precision all that follows, norms too, is in FP32."""
        features: dict[str, Tensor] = super().forward(*args, **options)  # type: ignore[misc]
        if self._deadheat.regime == "hps":
            # A late-interaction model has no embedding of a whole text: it scores its tokens.
            for scored in ("sentence_embedding", "token_embeddings"):
                if features.get(scored) is not None:
                    features[scored] = features[scored].float()
                    break
        return features

    def similarity(self, embeddings1: object, embeddings2: object, **options: object) -> Any:
        """Score each of the first embeddings with each of the second."""
        a, b = self._operands(embeddings1, embeddings2)
        if self._deadheat.regime == "hps":
            return super().similarity(a, b, **options)  # type: ignore[misc]
        q, d = (x.unsqueeze(0) if x.ndim == 1 else x for x in (a, b))
        return torch_functions.product(q, d, self._deadheat.format, self.similarity_fn_name)

    def similarity_pairwise(
        self, embeddings1: object, embeddings2: object, **options: object
    ) -> Any:
        """Score each of the first embeddings with the second one at the same index."""
        a, b = self._operands(embeddings1, embeddings2)
        if self._deadheat.regime == "hps":
            return super().similarity_pairwise(a, b, **options)  # type: ignore[misc]
        format = self._deadheat.format
        q, d = torch_functions.operands(a, b, format, self.similarity_fn_name)
        return (q * d).sum(dim=-1).to(format.torch)

    def _operands(self, *embeddings: Any) -> list[Any]:
        """Return embeddings as tensors, in high precision in FP32.

        Those of tokens may be lists of matrices of different lengths.
        """
        if self._deadheat.regime == "hps":
            ragged = scores_tokens(self)
            return [
                [_tensor(each).float() for each in given]
                if ragged and isinstance(given, list | tuple)
                else _tensor(given).float()
                for given in embeddings
            ]
        if self.similarity_fn_name not in ("dot", "cosine"):
            raise InputError(
                f"{self.similarity_fn_name} similarity cannot be scored in low precision: "
                "set the model's similarity_fn_name to dot or cosine"
            )
        return list(map(_tensor, embeddings))


def _view(model: Any, regime: str, format: Format) -> Any:
    """Make a view of a model.

    A further kind of model is a further branch: the class of its view, which changes how outputs
    are scored, and the modules that compute differently.
    """
    if isinstance(model, _View) and model._deadheat.model is not model:
        model = model._deadheat.model  # a view of a view is a view of the model
    _check_outside(model)
    mixin: type[_View]
    head_dtype: object = None
    if is_a(model, "CrossEncoder"):
        mixin = _CrossEncoderView
        if regime == "head":
            modules, head_dtype = with_fp32_head(model)
        else:
            modules = with_cast_logits(model, format)
    elif is_a(model, "MultiVectorEncoder", "SentenceTransformer") and not is_a(
        model, "SparseEncoder"
    ):
        mixin, modules = _EncoderView, model._modules
        if regime == "head":
            raise InputError("a bi-encoder has no scoring head: use the regime hps")
        if regime != "hps" and scores_tokens(clone(model, type(model))):
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
    base: type = type(model)
    view = clone(model, _view_class(mixin, base))
    source = _Source(model, regime, format)
    vars(view).update(_modules=dict(modules), _deadheat=source, _head_dtype=head_dtype)
    return view


@lru_cache
def _view_class(mixin: type[_View], base: type) -> Any:
    names: dict[str, object] = {"__module__": base.__module__}
    worker = getattr(base, "_multi_process_worker", None)
    if worker is not None:  # sent to a worker process by the name of its class: the model's
        names["_multi_process_worker"] = staticmethod(worker)
    return type(base.__name__, (mixin, base), names)


def _check_outside(model: object) -> None:
    if isinstance(model, _View):
        raise InputError("this model is inside a precision block already: leave that block first")


def _tensor(values: Any) -> Tensor:
    import torch

    if isinstance(values, list | tuple):
        return torch.stack([_tensor(each) for each in values])
    return torch.as_tensor(values)
