"""The three precision regimes, and scores under each from what one forward pass left behind."""

from __future__ import annotations

import importlib.util
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from deadheat.errors import InputError
from deadheat.packages import require
from deadheat.scoring import functions, torch_functions
from deadheat.scoring.dtypes import Format, parse_format

Regime = Literal["native", "hps", "head"]
Scoring = Literal["softmax", "sigmoid", "dot", "cosine", "hamming"]
Backend = Literal["auto", "torch", "numpy"]

REGIMES: dict[str, str] = {
    "native": "scoring in the model's dtype",
    "hps": "FP32 scoring of model-dtype logits or embeddings",
    "head": "FP32 scoring, and the last linear layer in FP32 from the model-dtype hidden state",
}
"""The name of each regime and what it means."""


def parse_regime(name: str) -> Regime:
    """Check the name of a regime.

    >>> parse_regime("high")
    Traceback (most recent call last):
    deadheat.errors.InputError: unknown regime 'high'; choose native, hps or head
    """
    if name not in REGIMES:
        raise InputError(f"unknown regime {name!r}; choose native, hps or head")
    return name  # type: ignore[return-value]


def resolve_backend(backend: Backend = "auto") -> Literal["torch", "numpy"]:
    """Say which backend scores: torch where it is installed, else NumPy."""
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
    logits: Any = None,
    head_logits: Any = None,
    queries: Any = None,
    documents: Any = None,
    backend: Backend = "auto",
) -> npt.NDArray[Any]:
    """Score stored logits or embeddings under a regime.

    Parameters
    ----------
    kind
        ``"sigmoid"`` or ``"softmax"`` over logits; ``"dot"``, ``"cosine"`` or ``"hamming"`` over
        embeddings.
    regime
        ``"native"``, ``"hps"`` or ``"head"``.
    model_dtype
        The dtype the model ran in. What is given must consist of values of that dtype.
    logits
        Arrays or tensors; for softmax a last axis (no, yes), or a tuple of two.
    head_logits
        The same from the last layer in FP32 (`deadheat.scoring.head_logits`); used by ``"head"``.
    queries, documents
        [Q×D] and [N×D] embeddings.
    backend
        ``"auto"`` is torch where installed, since only torch runs the real low-precision
        operation; ``"numpy"`` computes in FP32 and rounds.

    Returns
    -------
    numpy.ndarray
        Scores in a dtype that holds them exactly: float32, or int64 for integer products.

    Examples
    --------
    >>> for regime in ("native", "hps"):
    ...     score("sigmoid", regime=regime, model_dtype="bf16", logits=[6.75, 6.78125]).round(5)
    array([1., 1.], dtype=float32)
    array([0.99883, 0.99887], dtype=float32)
    """
    if kind not in get_args(Scoring):
        raise InputError(f"unknown scoring {kind!r}; choose one of {', '.join(get_args(Scoring))}")
    regime, format = parse_regime(regime), parse_format(model_dtype)
    embedded = kind not in ("sigmoid", "softmax")
    if embedded and regime == "head":
        raise InputError("embeddings have no scoring head: choose the regime native or hps")
    exact = not format.is_float and kind != "cosine"  # integer products have nothing to gain
    dtype = format if regime == "native" or exact else parse_format("fp32")
    if embedded:
        given = {"queries": queries, "documents": documents}
    else:
        given = {"head_logits": head_logits} if regime == "head" else {"logits": logits}
    for name, values in given.items():
        if values is None:
            raise InputError(f"{kind} scoring in the regime {regime} needs {name}")
        if kind == "softmax" and isinstance(values, tuple):
            given[name] = values = functions.paired(tuple(_to_numpy(v) for v in values))
        if regime != "head":
            _check_dtype(name, values, format)
    if resolve_backend(backend) == "numpy":
        twin: Any = functions
        inputs = [_to_numpy(values) for values in given.values()]
    else:
        twin = torch_functions
        inputs = [_to_torch(name, values) for name, values in given.items()]
    scores = twin.product(*inputs, dtype, kind) if embedded else getattr(twin, kind)(*inputs, dtype)
    array: npt.NDArray[Any] = _to_numpy(scores)
    return array


def _to_torch(name: str, values: Any) -> Any:
    torch = require("torch", "scoring with torch")
    if isinstance(values, torch.Tensor):
        return values
    array = functions.as_array(name, values)
    if array.dtype.kind == "V":  # the formats of ml_dtypes, unknown to torch
        array = array.astype(np.float32)
    return torch.tensor(array)


def _to_numpy(values: Any) -> Any:
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    narrow = values.is_floating_point() and values.element_size() < 4
    return (values.float() if narrow else values).numpy()


def _check_dtype(name: str, values: Any, format: Format) -> None:
    """Refuse values the model cannot have produced: rounding them would add ties of our own."""
    array = functions.as_array(name, _to_numpy(values))
    if not format.is_float or array.dtype.kind not in "fV":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        alien = np.isfinite(array) & (format.round(array) != array)
    if alien.any():
        index = np.argwhere(alien)[0].tolist()
        raise InputError(
            f"{name}{index} = {array[tuple(index)]!r} is not a {format.name} value: "
            "give the model's own output, or its real dtype"
        )
