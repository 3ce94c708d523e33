"""Wrap models so that MTEB runs them unchanged, in a given regime."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from deadheat.errors import InputError
from deadheat.integrations.base import load_host
from deadheat.integrations.precision import regime_of, regime_view
from deadheat.integrations.precision.effects import scores_tokens
from deadheat.integrations.precision.surgery import is_a
from deadheat.scoring import Regime, parse_regime

_models = load_host("mteb.models")
SETTING = "deadheat_regime"
"""The name of the regime in the metadata of a result and in the path of MTEB's cache."""


def wrap(model: object, regime: Regime | None = None) -> Any:
    """Wrap a model for MTEB, so that it scores in the given regime.

    MTEB runs the scoring head of every ``CrossEncoder`` in FP32, by changing the model itself. It
    does not change the model that this function returns, nor the model that you pass in.

    Parameters
    ----------
    model
        A sentence-transformers ``CrossEncoder`` or ``SentenceTransformer``, or MTEB's own wrapper
        of a ``SentenceTransformer`` (from ``mteb.get_model``), whose prompts are kept.
    regime
        ``"native"``: scoring in the model's dtype; ``"hps"``: FP32 scoring of the logits or
        embeddings of the model; ``"head"``: for a CrossEncoder, also its scoring head in FP32.
        Default (None): the regime of a view from `deadheat.high_precision`; for other models
        ``"head"`` if the layer is found, otherwise ``"hps"``.

    Returns
    -------
    object
        A model for ``mteb.evaluate``. Its ``mteb_model_meta.experiment_kwargs`` contain the regime,
        and so does the name of the folder in which MTEB stores its results. Load them by regime:
        ``cache.load_results(experiment_kwargs={"deadheat_regime": "hps"})``. With
        ``load_experiments="match_name"``, MTEB averages the regimes.

    Examples
    --------
    ::

        model = CrossEncoder(name, model_kwargs={"dtype": "bfloat16"})
        mteb.evaluate(wrap(model, regime="native"), tasks)
    """
    regime = None if regime is None else parse_regime(regime)
    if isinstance(model, _models.CrossEncoderWrapper):
        raise InputError(
            "MTEB loaded this CrossEncoder and has changed its scoring head; load it with "
            "sentence-transformers, CrossEncoder(name), and wrap that"
        )
    if isinstance(model, _models.SentenceTransformerEncoderWrapper):
        wrapped = copy.copy(model)
        wrapped.model = view = regime_view(model.model, regime)
    else:
        view = regime_view(model, regime)  # refuses other models
        if is_a(view, "CrossEncoder"):
            wrapped = _wrap_reranker(view)
        elif scores_tokens(view):
            raise InputError(
                f"`wrap` needs a CrossEncoder or a SentenceTransformer, not a model that scores by "
                f"MaxSim; give the {type(model).__name__} to MTEB itself"
            )
        else:
            wrapped = _models.SentenceTransformerEncoderWrapper(view)
    meta = wrapped.mteb_model_meta
    kwargs = {**(meta.experiment_kwargs or {}), SETTING: regime_of(view)}
    wrapped.mteb_model_meta = meta.model_copy(update={"experiment_kwargs": kwargs}, deep=True)
    return wrapped


def _wrap_reranker(view: object) -> Any:
    """Make MTEB's wrapper without its constructor, which would change the model."""
    wrapper_class = _models.CrossEncoderWrapper
    wrapper = object.__new__(wrapper_class)
    for name, parameter in inspect.signature(wrapper_class.__init__).parameters.items():
        if parameter.default is not parameter.empty:
            setattr(wrapper, name, parameter.default)
    wrapper.model = view
    wrapper.mteb_model_meta = _models.ModelMeta.from_cross_encoder(view)
    return wrapper
