"""The scoring functions in NumPy: computed in FP32 or wider, rounded to the scoring dtype.

The twin of :mod:`deadheat.scoring.torch_functions` for stored logits where torch is not installed.
In BF16 `sigmoid` is torch's own BF16 operation on every finite input. Elsewhere `sigmoid` and
`softmax` differ from torch in a few of a million scores, those midway between two values of the
format; a `product` in up to a few of a thousand, since FP32 sums depend on their order.

Every result comes in a dtype that holds its values exactly: float32, or int64 for integers.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from deadheat.dtypes import Format, parse_float_format, parse_format
from deadheat.errors import InputError
from deadheat.numbers import is_tensor, tensor_values
from deadheat.scoring.refusals import (
    check_bits,
    check_head,
    check_norms,
    check_pair,
    check_pairs,
    check_product,
    check_range,
    fits_fp32,
    not_eight_bit,
    not_finite,
)

Product = Literal["dot", "cosine", "hamming"]
Floats = npt.NDArray[np.float32]
Array = npt.NDArray[np.generic]
"""Of any type."""


def sigmoid(logits: npt.ArrayLike, dtype: object = "fp32") -> Floats:
    """Score one logit per document: 1 / (1 + exp(−z)).

    Parameters
    ----------
    logits
        Any shape; rounded to `dtype` first, as a cast would.
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
    z = _floats("logits", logits, format)
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
    z = _floats("logits", join_pair(logits), format)
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
        [Q×D] and [N×D]. For ``int8``, 8-bit integers; for ``binary``, see `hamming`.
    dtype
        The scoring dtype: for floats the format of inputs, norms and sums' results alike.
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
    format = parse_format(dtype)
    q, d = as_array("queries", queries), as_array("documents", documents)
    check_product(format, kind, q.shape, d.shape)
    if format.name == "binary":
        return hamming(q, d)
    if format.name == "int8":
        return _exact(_eight_bit("queries", q), _eight_bit("documents", d))
    scores = operand("queries", q, format, kind) @ operand("documents", d, format, kind).T
    check_range("a product", float(np.abs(scores).max()), format)
    return format.round(scores)


def operand(name: str, values: npt.ArrayLike, format: Format, kind: Product) -> Floats:
    """Cast embeddings, and for a cosine bring them to length 1 after that."""
    floats = _floats(name, values, format)
    if kind != "cosine":
        return floats
    with np.errstate(over="ignore"):  # a length that overflows is refused
        norms = np.linalg.norm(floats, axis=-1, keepdims=True)
    check_norms(name, float(norms.min()), float(norms.max()), format)
    return format.round(floats / format.round(norms))


def cast(values: Array, format: Format) -> Floats:
    """Round finite values to a format that holds their range."""
    return format.round(values)


def whole_operand(name: str, values: npt.ArrayLike, kind: Product) -> Array:
    """8-bit integers as floats; bits (`kind` is hamming) as −1 and 1."""
    array = as_array(name, values)
    if kind == "hamming":
        return np.asarray(2 * _bits(name, array) - 1, np.float32)
    wide = np.float32 if fits_fp32(array.dtype, array.shape) else np.float64
    return _eight_bit(name, array).astype(wide)


def hamming(queries: npt.ArrayLike, documents: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Score binary embeddings: minus the number of bits in which they differ.

    Parameters
    ----------
    queries, documents
        [Q×D] and [N×D], both boolean (a bit each) or both packed, eight bits to an (u)int8, as
        sentence-transformers' ``precision="ubinary"`` and ``"binary"`` give them.

    Examples
    --------
    >>> hamming([[True, False, True]], [[True, False, True], [False, True, True]])
    array([[ 0, -2]])
    >>> hamming(np.array([[0b10100000]], np.uint8), np.array([[0b01100000]], np.uint8))
    array([[-2]])
    """
    q, d = as_array("queries", queries), as_array("documents", documents)
    check_product(parse_format("binary"), "hamming", q.shape, d.shape)
    check_bits(q.dtype, d.dtype)
    q, d = _bits("queries", q), _bits("documents", d)
    dots = _exact(2 * q - 1, 2 * d - 1)  # over ±1 vectors, D − 2 × distance
    distances: npt.NDArray[np.int64] = (q.shape[1] - dots) // 2
    return -distances


def head_logits(
    hidden: npt.ArrayLike, weight: npt.ArrayLike, bias: npt.ArrayLike | None = None
) -> Floats:
    """Compute a model's last linear layer in FP32 from its low-precision hidden state.

    Parameters
    ----------
    hidden
        [N×H], the input of the layer in the model's dtype.
    weight, bias
        [C×H] and [C]: the rows that score. For a yes/no reranker the rows of no and yes of the
        output matrix.

    Examples
    --------
    >>> head_logits([[1.0, 2.0]], [[0.5, 0.25], [1.0, 1.0]], [0.0, 1.0])
    array([[1., 4.]], dtype=float32)
    """
    fp32 = parse_format("fp32")
    h, w = _floats("hidden", hidden, fp32), _floats("weight", weight, fp32)
    b = None if bias is None else _floats("bias", bias, fp32)
    check_head(h.shape, w.shape, None if b is None else b.shape)
    logits: Floats = h @ w.T
    return logits if b is None else logits + b


def _floats(name: str, values: object, format: Format) -> Floats:
    array = as_array(name, values)
    if array.dtype.kind in "bcOSUmM":
        raise InputError(f"{name} must be real numbers, not {array.dtype}")
    wide = array if array.dtype == np.float64 else array.astype(np.float32)
    finite = np.isfinite(wide)
    if not finite.all():
        index = np.argwhere(~finite)[0].tolist()
        raise not_finite(name, index, float(wide[tuple(index)]))
    check_range(name, float(np.abs(wide).max()), format)
    return format.round(wide.astype(np.float32))  # torch casts FP64 by way of FP32


def as_array(name: str, values: object) -> Array:
    """Take what NumPy understands, or a tensor, as a non-empty array, or say why not."""
    if is_tensor(values):
        values = tensor_values(name, values)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a rectangular array of numbers: {error}") from error
    if array.size == 0:
        raise InputError(f"{name} is empty (shape {array.shape})")
    return array


def join_pair(logits: object) -> object:
    """Bring a tuple (no, yes) onto the last axis; leave arrays as they are."""
    if not isinstance(logits, tuple):
        return logits
    arrays = [as_array("logits", values) for values in logits]
    check_pair([array.shape for array in arrays])
    return np.stack(arrays, axis=-1)


def _eight_bit(name: str, values: Array) -> Array:
    if values.dtype not in (np.int8, np.uint8):
        raise not_eight_bit(name, values.dtype)
    return values


def _bits(name: str, values: Array) -> npt.NDArray[np.int8]:
    if values.dtype != np.bool_:
        values = np.unpackbits(_eight_bit(name, values).view(np.uint8), axis=-1)
    return values.astype(np.int8)


def _exact(queries: Array, documents: Array) -> npt.NDArray[np.int64]:
    # FP64 holds every sum of 8-bit products exactly, and unlike integers it is multiplied by BLAS.
    scores: npt.NDArray[np.int64] = (
        queries.astype(np.float64) @ documents.astype(np.float64).T
    ).astype(np.int64)
    return scores
