"""Scores of stored model outputs under each regime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from deadheat._internal.dtypes import Format, parse_format
from deadheat._internal.numbers import is_tensor
from deadheat._internal.packages import require
from deadheat.errors import InputError
from deadheat.scoring import functions, torch_functions
from deadheat.scoring.products import as_array
from deadheat.scoring.regimes import (
    Backend,
    ranks_by_logit,
    resolve_backend,
    scoring_format,
    uses_head,
)

if TYPE_CHECKING:
    from torch import Tensor

Scoring = Literal["softmax", "sigmoid", "dot", "cosine", "hamming"]
Scores = npt.NDArray[np.float32] | npt.NDArray[np.int64]
"""Floats; integers for products of integers."""


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
        inputs.append(_to_torch(name, whole) if in_torch else as_array(name, whole))
    twin = torch_functions if in_torch else functions
    if ranks_by_logit(regime):
        scores = functions.log_odds(*inputs, pairs=kind == "softmax")
    elif embedded:
        scores = twin.product(*inputs, dtype, kind)
    else:
        scores = getattr(twin, kind)(*inputs, dtype)
    return cast("Scores", as_array("scores", scores))


def _to_torch(name: str, values: object) -> Tensor:
    if is_tensor(values):
        return cast("Tensor", values)
    array = as_array(name, values)
    if array.dtype.kind == "V":  # the formats of ml_dtypes, unknown to torch
        array = array.astype(np.float32)
    tensor: Tensor = require("torch", "scoring with torch").tensor(array)
    return tensor


def _check_dtype(name: str, values: object, format: Format) -> None:
    """Raise an error for values that are not in the model dtype: rounding them would add ties."""
    array = as_array(name, values)
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
