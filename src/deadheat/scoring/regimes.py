"""The precision regimes, by name."""

from __future__ import annotations

import importlib.util
from typing import Literal, cast, get_args

from deadheat._internal.dtypes import Format, parse_float_format, parse_format
from deadheat._internal.packages import require
from deadheat.errors import InputError
from deadheat.provenance import ScoringProvenance

Regime = Literal["native", "hps", "head", "hps-logit", "head-logit"]
"""Name of a regime: which part of the scoring is done in FP32. See `REGIMES`."""
Backend = Literal["auto", "torch", "numpy"]

REGIMES: dict[str, str] = {
    "native": "scoring in the model's dtype",
    "hps": "FP32 scoring of model-dtype logits or embeddings",
    "head": "FP32 scoring, and the last linear layer in FP32 from the model-dtype hidden state",
    "hps-logit": "ranking by FP32 log-odds of model-dtype logits, not by their probability",
    "head-logit": "ranking by the log-odds of the last linear layer in FP32",
}
"""The regimes by name, with a description. `native` and `hps` are from the paper."""
SCORED = "scored-"
"""Prefix of the regimes of scoring in another format, such as ``scored-fp16``."""


def parse_regime(name: str) -> Regime:
    """Return the name of a regime; raise `InputError` if it is unknown.

    >>> parse_regime("high")
    Traceback (most recent call last):
    deadheat.errors.InputError: unknown regime 'high'; choose native, hps, head, hps-logit or head-logit
    """  # noqa: E501 (the message is one line)
    if name not in REGIMES:
        *others, last = REGIMES
        raise InputError(f"unknown regime {name!r}; choose {', '.join(others)} or {last}")
    return cast("Regime", name)


def uses_head(regime: str) -> bool:
    """Return whether a regime computes the last layer in FP32."""
    return regime in ("head", "head-logit")


def ranks_by_logit(regime: str) -> bool:
    """Return whether the scores of a regime are log-odds instead of probabilities."""
    return regime in ("hps-logit", "head-logit")


def describe_regime(name: str) -> str:
    """Return a description of a regime.

    >>> describe_regime("scored-fp16")
    'scoring in fp16 of model-dtype logits or embeddings'
    """
    if name.startswith(SCORED):
        dtype = parse_float_format(name.removeprefix(SCORED)).name
        return f"scoring in {dtype} of model-dtype logits or embeddings"
    return REGIMES[parse_regime(name)]


def regime_order(name: str) -> tuple[int, str]:
    """Return the sort key of a regime in tables: first those of `REGIMES`, then other formats."""
    known = list(REGIMES)
    return (known.index(name) if name in known else len(known), name)


def scoring_format(regime: str, model_dtype: object, function: str | None = None) -> Format:
    """Return the scoring dtype of a regime for a model dtype.

    Integer products are exact, so they are integers in every regime; `function` is the scoring
    function.

    >>> scoring_format("hps", "bf16").name, scoring_format("native", "bf16").name
    ('fp32', 'bf16')
    """
    own = parse_format(model_dtype)
    if regime.startswith(SCORED):
        return parse_float_format(regime.removeprefix(SCORED))
    exact = not own.is_float and function != "cosine"
    return own if parse_regime(regime) == "native" or exact else parse_format("fp32")


def scoring_provenance(
    regime: str,
    model_dtype: object,
    function: str | None = None,
    backend: Backend = "auto",
    threads: int | None = None,
) -> ScoringProvenance:
    """Return the provenance of scores that `score` computes with these settings.

    `threads` is the number of torch threads per product. Default: that of torch.

    >>> str(scoring_provenance("hps", "bf16", "sigmoid", "numpy"))
    'model dtype bf16, scoring dtype fp32, regime hps'
    """
    chosen = resolve_backend(backend)
    if chosen == "numpy":
        threads = None
    elif threads is None:
        threads = require("torch", "scoring").get_num_threads()
    return ScoringProvenance(
        regime=regime,
        model_dtype=parse_format(model_dtype).name,
        scoring_dtype=scoring_format(regime, model_dtype, function).name,
        function=function,
        backend=chosen,
        threads=threads,
    )


def resolve_backend(backend: Backend = "auto") -> Literal["torch", "numpy"]:
    """Return the backend: torch if it is installed, else NumPy."""
    if backend == "auto":
        return "torch" if importlib.util.find_spec("torch") else "numpy"
    if backend not in get_args(Backend):
        raise InputError(f"unknown backend {backend!r}; choose auto, torch or numpy")
    return backend
