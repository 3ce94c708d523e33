"""The scoring functions in NumPy: computed in FP32 or wider, rounded to the scoring dtype.

These functions correspond to :mod:`deadheat.scoring.torch_functions`; they are used for stored
logits if torch is not installed. From `multiply` on, functions accept arrays or torch tensors, and
return the same type. In BF16, `sigmoid` equals the BF16 operation of torch for every finite input.
In other formats, `sigmoid` and `softmax` differ from torch in a few of a million scores, those
midway between two values of the format. A `product` differs in up to a few of a thousand, because
FP32 sums depend on their order.

The dtype of a result holds its values exactly: float32, or int64 for integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from deadheat._internal.dtypes import Format, parse_float_format, parse_format
from deadheat._internal.numbers import is_tensor
from deadheat.errors import InputError
from deadheat.scoring.products import (
    Array,
    Floats,
    Product,
    Shape,
    as_array,
    cast_finite,
    check_product,
    check_range,
    convert,
    finish_product,
    operand,
)


def sigmoid(logits: npt.ArrayLike, dtype: object = "fp32") -> Floats:
    """Score one logit per document: 1 / (1 + exp(−z)).

    Parameters
    ----------
    logits
        Logits of any shape. They are first rounded to `dtype`, like a cast.
    dtype
        The scoring dtype. FP32 on the logits of a low-precision model is HPS.

    Examples
    --------
    >>> sigmoid([6.75, 6.78125], "bf16")
    array([1., 1.], dtype=float32)
    >>> sigmoid([6.75, 6.78125], "fp32").round(5)
    array([0.99883, 0.99887], dtype=float32)
    """
    format = parse_float_format(dtype)
    z = cast_finite("logits", as_array("logits", logits), format)
    wide = z.astype(np.float64) if format.name == "fp32" else z
    with np.errstate(over="ignore"):  # exp(−z) may be infinite; its reciprocal is the right 0
        return format.round(1 / (1 + np.exp(-wide)))


def softmax(
    logits: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike], dtype: object = "fp32"
) -> Floats:
    """Score two logits per document, (no, yes): the probability of yes.

    Parameters
    ----------
    logits
        An array whose last axis is (no, yes), or a tuple of two arrays ``(no, yes)``.
    dtype
        The scoring dtype. FP32 on the logits of a low-precision model is HPS.

    Examples
    --------
    >>> softmax([[1.0, 7.75], [1.0, 7.78125]], "bf16")
    array([1., 1.], dtype=float32)
    >>> softmax(([1.0, 1.0], [7.75, 7.78125]), "fp32").round(5)
    array([0.99883, 0.99887], dtype=float32)
    """
    format = parse_float_format(dtype)
    z = cast_finite("logits", as_array("logits", join_pair(logits)), format)
    check_pairs(z.shape)
    # Rounded from FP64, more of the low-precision scores are torch's than from NumPy's FP32 exp.
    powers = np.exp(z.astype(np.float64) - z.max(axis=-1, keepdims=True))
    return format.round((powers[..., 1] / powers.sum(axis=-1)).astype(np.float32))


def product(
    queries: npt.ArrayLike,
    documents: npt.ArrayLike,
    dtype: object = "fp32",
    kind: Product = "dot",
) -> Array:
    """Score every query embedding with every document embedding.

    Parameters
    ----------
    queries, documents
        Embeddings [Q×D] and [N×D]: 8-bit integers for ``int8``; for ``binary``, see `hamming`.
    dtype
        The scoring dtype. For floats, it is the format of inputs, norms and results of sums.
    kind
        ``"dot"``, ``"cosine"``, or for ``binary`` ``"hamming"``.

    Returns
    -------
    numpy.ndarray
        [Q×N]: float32, or int64 (exact, nothing wraps) for ``int8`` and ``binary``.

    Examples
    --------
    >>> product([[0.5, 1.0]], [[0.5, 1.0], [2.0, 0.25]], "fp32")
    array([[1.25, 1.25]], dtype=float32)
    >>> product(np.array([[127, 127]], np.int8), np.array([[127, 127]], np.int8), "int8")
    array([[32258]])
    """
    q, d = as_array("queries", queries), as_array("documents", documents)
    scores: Array = multiply(q, d, parse_format(dtype), kind)
    return scores


def hamming(queries: npt.ArrayLike, documents: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Score binary embeddings: minus the number of bits in which they differ.

    Parameters
    ----------
    queries, documents
        [Q×D] and [N×D]: both boolean, one value per bit, or both packed, eight bits per (u)int8,
        like ``precision="ubinary"`` and ``"binary"`` of sentence-transformers.

    Examples
    --------
    >>> hamming([[True, False, True]], [[True, False, True], [False, True, True]])
    array([[ 0, -2]])
    >>> hamming(np.array([[0b10100000]], np.uint8), np.array([[0b01100000]], np.uint8))
    array([[-2]])
    """
    return product(queries, documents, "binary", "hamming").astype(np.int64, copy=False)


def head_logits(
    hidden: npt.ArrayLike, weight: npt.ArrayLike, bias: npt.ArrayLike | None = None
) -> Floats:
    """Compute a model's last linear layer in FP32 from its low-precision hidden state.

    Parameters
    ----------
    hidden
        [N×H], the input of the layer in the model's dtype.
    weight, bias
        [C×H] and [C]: the rows of the logits. For a yes/no reranker, the rows of no and yes of
        the output matrix.

    Examples
    --------
    >>> head_logits([[1.0, 2.0]], [[0.5, 0.25], [1.0, 1.0]], [0.0, 1.0])
    array([[1., 4.]], dtype=float32)
    """
    own_bias = None if bias is None else as_array("bias", bias)
    logits: Floats = apply_head(as_array("hidden", hidden), as_array("weight", weight), own_bias)
    return logits


def join_pair(logits: Any) -> Any:
    """Stack a tuple (no, yes) of arrays or tensors on the last axis; return others unchanged."""
    if not isinstance(logits, tuple):
        return logits
    if not all(map(is_tensor, logits)):
        logits = tuple(as_array("logits", values) for values in logits)
    shapes = [tuple(values.shape) for values in logits]
    if len(shapes) != 2 or shapes[0] != shapes[1]:
        raise InputError(f"softmax needs (no, yes) of one shape, not {shapes}")
    if isinstance(logits[0], np.ndarray):
        return np.stack(logits, -1)
    import torch

    return torch.stack(logits, -1)


def multiply(queries: Any, documents: Any, format: Format, kind: Product) -> Any:
    """Score every query with every document: arrays give an array, tensors a tensor."""
    check_product(format, kind, queries.shape, documents.shape)
    if not format.is_float and queries.dtype != documents.dtype:
        raise InputError(  # bits packed into int8 are uint8 minus 128
            f"queries and documents must have one dtype, not {queries.dtype} and {documents.dtype}"
        )
    q, d = operand("queries", queries, format, kind), operand("documents", documents, format, kind)
    scores = finish_product(q @ d.T, q.shape[1], format, kind)
    return scores if format.is_float else convert(scores, "int64")


def apply_head(hidden: Any, weight: Any, bias: Any) -> Any:
    """Compute a linear layer in FP32."""
    bias_shape = None if bias is None else tuple(bias.shape)
    fits = hidden.ndim == weight.ndim == 2 and hidden.shape[1] == weight.shape[1]
    if not fits or bias_shape not in (None, tuple(weight.shape[:1])):
        raise InputError(
            "a head needs hidden [N×H], weight [C×H] and bias [C], not "
            f"{tuple(hidden.shape)}, {tuple(weight.shape)}, {bias_shape}"
        )
    fp32 = parse_format("fp32")
    logits = cast_finite("hidden", hidden, fp32) @ cast_finite("weight", weight, fp32).T
    return logits if bias is None else logits + cast_finite("bias", bias, fp32)


def log_odds(logits: Any, *, pairs: bool) -> Any:
    """Return the log-odds of relevance in FP32, which give the same order as probabilities.

    Parameters
    ----------
    logits
        An array or a tensor. With `pairs`, the last axis is (no, yes), and the result is yes − no.
        Otherwise there is one logit per document, which is returned in FP32.
    """
    fp32 = parse_format("fp32")
    z = cast_finite("logits", logits, fp32)
    if not pairs:
        return z
    check_pairs(z.shape)
    with np.errstate(over="ignore"):  # a difference that overflows is refused
        odds = z[..., 1] - z[..., 0]
    check_range("a difference of logits", float(abs(odds).max()), fp32)
    return odds


def check_pairs(shape: Shape) -> None:
    """Raise an error unless the last axis is (no, yes)."""
    if len(shape) == 0 or shape[-1] != 2:
        raise InputError(
            f"softmax needs logits with a last axis (no, yes) of 2, not shape {tuple(shape)}"
        )
