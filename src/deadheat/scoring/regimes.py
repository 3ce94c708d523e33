"""The precision regimes, and scores of stored model outputs under each."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from deadheat._internal.dtypes import Format, parse_float_format, parse_format
from deadheat._internal.numbers import is_tensor
from deadheat._internal.packages import require
from deadheat.errors import InputError
from deadheat.provenance import ScoringProvenance
from deadheat.scoring import functions, torch_functions

if TYPE_CHECKING:
    from torch import Tensor

Regime = Literal["native", "hps", "head", "hps-logit", "head-logit"]
"""Name of a regime: which part of the scoring is done in FP32. See `REGIMES`."""
Scoring = Literal["softmax", "sigmoid", "dot", "cosine", "hamming"]
Backend = Literal["auto", "torch", "numpy"]
Scores = npt.NDArray[np.float32] | npt.NDArray[np.int64]
"""Floats; integers for products of integers."""

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


def score(
    kind: Scoring,
    *,
    regime: str,
    model_dtype: object,
    logits: object = None,
    head_logits: object = None,
    queries: object = None,
    documents: object = None,
    backend: Backend = "auto",
) -> Scores:
    """Score stored logits or embeddings under a regime.

    Parameters
    ----------
    kind
        ``"sigmoid"`` or ``"softmax"`` over logits; ``"dot"``, ``"cosine"`` or ``"hamming"`` over
        embeddings.
    regime
        A name in `REGIMES`, or ``"scored-FORMAT"`` for scoring in another format. Embeddings
        have only ``"native"`` and ``"hps"``.
    model_dtype
        The dtype of the model. All inputs must have values of that dtype.
    logits
        Arrays or tensors; for softmax a last axis (no, yes), or a tuple of two.
    head_logits
        Logits of the last layer in FP32 (`deadheat.scoring.head_logits`), for ``"head"`` and
        ``"head-logit"``.
    queries, documents
        [Q×D] and [N×D] embeddings.
    backend
        ``"auto"`` (default) is torch if it is installed, because only torch runs the real
        low-precision operation. ``"numpy"`` computes in FP32 and rounds.

    Returns
    -------
    numpy.ndarray
        Scores in a dtype that holds them exactly: float32, or int64 for integer products. Under
        ``"hps-logit"`` and ``"head-logit"`` they are log-odds: the difference yes − no for softmax,
        the logit for sigmoid.

    Examples
    --------
    >>> for regime in ("native", "hps"):
    ...     score("sigmoid", regime=regime, model_dtype="bf16", logits=[6.75, 6.78125]).round(5)
    array([1., 1.], dtype=float32)
    array([0.99883, 0.99887], dtype=float32)

    Probabilities reach 1 in FP32, too. The log-odds order documents in the same way and do not:

    >>> for regime in ("hps", "hps-logit"):
    ...     score("softmax", regime=regime, model_dtype="bf16", logits=[[-9, 9], [-9, 9.5]])
    array([1., 1.], dtype=float32)
    array([18. , 18.5], dtype=float32)
    """
    if kind not in get_args(Scoring):
        raise InputError(f"unknown scoring {kind!r}; choose one of {', '.join(get_args(Scoring))}")
    format, dtype = parse_format(model_dtype), scoring_format(regime, model_dtype, kind)
    embedded = kind not in ("sigmoid", "softmax")
    if embedded and (uses_head(regime) or ranks_by_logit(regime)):
        raise InputError(
            f"embeddings have no logits, which {regime} needs: choose the regime native or hps"
        )
    if embedded:
        given = {"queries": queries, "documents": documents}
    else:
        given = {"head_logits": head_logits} if uses_head(regime) else {"logits": logits}
    in_torch = resolve_backend(backend) == "torch"
    inputs: list[Any] = []
    for name, values in given.items():
        if values is None:
            raise InputError(f"{kind} scoring in the regime {regime} needs {name}")
        whole = functions.join_pair(values) if kind == "softmax" else values
        if not uses_head(regime):
            _check_dtype(name, whole, format)
        inputs.append(_to_torch(name, whole) if in_torch else functions.as_array(name, whole))
    twin = torch_functions if in_torch else functions
    if ranks_by_logit(regime):
        scores = functions.log_odds(*inputs, pairs=kind == "softmax")
    elif embedded:
        scores = twin.product(*inputs, dtype, kind)
    else:
        scores = getattr(twin, kind)(*inputs, dtype)
    return cast("Scores", functions.as_array("scores", scores))


def _to_torch(name: str, values: object) -> Tensor:
    if is_tensor(values):
        return cast("Tensor", values)
    array = functions.as_array(name, values)
    if array.dtype.kind == "V":  # the formats of ml_dtypes, unknown to torch
        array = array.astype(np.float32)
    tensor: Tensor = require("torch", "scoring with torch").tensor(array)
    return tensor


def _check_dtype(name: str, values: object, format: Format) -> None:
    """Raise an error for values that are not in the model dtype: rounding them would add ties."""
    array = functions.as_array(name, values)
    if not format.is_float or array.dtype.kind not in "fV":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        alien = np.isfinite(array) & (format.round(array) != array)
    if alien.any():
        index = np.argwhere(alien)[0].tolist()
        raise InputError(
            f"{name}{index} = {array[tuple(index)]!r} is not a {format.name} value: "
            "give the unchanged output of the model, or its real dtype"
        )
