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

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from deadheat._internal.dtypes import Format, parse_float_format, parse_format
from deadheat._internal.numbers import is_tensor, tensor_values
from deadheat.errors import InputError

Product = Literal["dot", "cosine", "hamming"]
Floats = npt.NDArray[np.float32]
Shape = Sequence[int]
Array = npt.NDArray[np.generic]
"""Of any type."""


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


def as_array(name: str, values: object) -> Array:
    """Return values or a tensor as a non-empty array; raise `InputError` if that is impossible."""
    if is_tensor(values):
        values = tensor_values(name, values)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a rectangular array of numbers: {error}") from error
    if array.size == 0:
        raise InputError(f"{name} is empty (shape {array.shape})")
    return array


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
    if format.is_float:
        q = operand("queries", queries, format, kind)
        scores = q @ operand("documents", documents, format, kind).T
        check_range("a product", float(abs(scores).max()), format)
        return scores.to(format.torch) if is_tensor(scores) else format.round(scores)
    check_bits(queries.dtype, documents.dtype)
    q = whole_operand("queries", queries, kind)
    dots = q @ whole_operand("documents", documents, kind).T
    return _convert((dots - q.shape[1]) / 2 if kind == "hamming" else dots, "int64")


def operand(name: str, values: Any, format: Format, kind: Product) -> Any:
    """Cast embeddings; for a cosine, normalise them to length 1 after that."""
    floats = cast_finite(name, values, format)
    if kind != "cosine":
        return floats
    if is_tensor(floats):
        norms = floats.norm(dim=-1, keepdim=True)
    else:
        with np.errstate(over="ignore"):  # a length that overflows is refused
            norms = np.linalg.norm(floats, axis=-1, keepdims=True)
    if norms.min() < format.smallest:
        raise InputError(
            f"{name} have a vector of length {norms.min():g}, which has no cosine: remove it"
        )
    check_range(f"{name}: a length", float(norms.max()), format)
    return cast(floats / cast(norms, format), format)


def whole_operand(name: str, values: Any, kind: Product) -> Any:
    """Return 8-bit integers, or bits (`kind` is hamming) as −1 and 1, as floats.

    The floats hold every sum of products exactly. BLAS multiplies floats, unlike integers, and
    CUDA has no product of integers.
    """
    if kind == "hamming":  # dot products are D − 2 × distance
        return _convert(2 * _unpack_bits(name, values) - 1, "float32")
    largest = 1 << (14 if _check_eight_bit(name, values) == "int8" else 16)
    return _convert(values, "float32" if values.shape[-1] * largest <= 1 << 24 else "float64")


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


def cast_finite(name: str, values: Any, format: Format) -> Any:
    """Cast real numbers to a format; raise an error if they are not finite or too large."""
    if 0 in values.shape:
        raise InputError(f"{name} is empty (shape {tuple(values.shape)})")
    if not re.match("b?float|u?int", dtype_name(values)):
        raise InputError(f"{name} must be real numbers, not {values.dtype}")
    if is_tensor(values):
        # FP8 has no isfinite, int8 no absolute value of −128
        wide = values.float() if values.element_size() == 1 else values
        finite = wide.isfinite()
    else:
        wide = values if values.dtype == np.float64 else values.astype(np.float32)
        finite = np.isfinite(wide)
    if not finite.all():
        mask = np.asarray(finite.cpu() if is_tensor(finite) else finite)
        index = np.argwhere(~mask)[0].tolist()
        raise InputError(
            f"{name}{index} is {float(wide[tuple(index)])}: scores need finite values (an FP16 "
            "model overflows beyond 65504; run it in bf16 or fp32)"
        )
    check_range(name, float(abs(wide).max()), format)
    return cast(wide, format)


def cast(values: Any, format: Format) -> Any:
    """Cast to the dtype in which operations of a format run; for FP8 this is FP32.

    Arrays are float32, rounded to the format. FP64 is first cast to FP32, as in torch.
    """
    if isinstance(values, np.ndarray):
        floats = values.astype(np.float32, copy=False)
        return floats if format.name == "fp32" else format.round(floats)
    values = values.to(format.torch)
    return values.float() if format.name.startswith("fp8") else values


def dtype_name(values: Any) -> str:
    """Return the name of the dtype of an array or tensor: ``"bfloat16"`` for both."""
    return str(values.dtype).removeprefix("torch.")


def _check_eight_bit(name: str, values: Any) -> str:
    """Return the name of the dtype; raise an error unless it is int8 or uint8."""
    dtype = dtype_name(values)
    if dtype not in ("int8", "uint8"):
        raise InputError(f"{name} must be int8 or uint8, not {values.dtype}: quantise them first")
    return dtype


def _unpack_bits(name: str, values: Any) -> Any:
    """Return booleans, or bits packed into 8-bit integers, as signed integers 0 and 1."""
    if dtype_name(values) == "bool":
        return values.long() if is_tensor(values) else values.astype(np.int8)
    _check_eight_bit(name, values)
    if not is_tensor(values):
        return np.unpackbits(values.view(np.uint8), axis=-1).astype(np.int8)
    import torch

    shifts = torch.arange(7, -1, -1, device=values.device)
    return ((values.view(torch.uint8).long().unsqueeze(-1) >> shifts) & 1).flatten(-2)


def _convert(values: Any, dtype: str) -> Any:
    if not is_tensor(values):
        return values.astype(dtype)
    import torch

    return values.to(getattr(torch, dtype))


def check_pairs(shape: Shape) -> None:
    """Raise an error unless the last axis is (no, yes)."""
    if len(shape) == 0 or shape[-1] != 2:
        raise InputError(
            f"softmax needs logits with a last axis (no, yes) of 2, not shape {tuple(shape)}"
        )


def check_product(format: Format, kind: str, queries: Shape, documents: Shape) -> None:
    """Raise an error unless the widths are equal and the format has this product."""
    kinds = {"binary": ("hamming",), "int8": ("dot",)}.get(format.name, ("dot", "cosine"))
    if kind not in kinds:
        raise InputError(f"no {kind} product of {format.name}: choose {' or '.join(kinds)}")
    if len(queries) != 2 or len(documents) != 2 or queries[1] != documents[1]:
        raise InputError(
            f"a product needs [Q×D] and [N×D] embeddings, not {tuple(queries)}, {tuple(documents)}"
        )


def check_bits(queries: object, documents: object) -> None:
    """Raise an error unless both dtypes are equal. Bits packed into int8 are uint8 minus 128."""
    if str(queries) != str(documents):
        raise InputError(
            f"queries and documents must have one dtype, not {queries} and {documents}: store "
            "binary and integer embeddings in the same way"
        )


def check_range(name: str, largest: float, format: Format) -> None:
    """Raise an error for values that would overflow or saturate in a format."""
    if largest > format.largest:
        wide = format.name in ("bf16", "fp32")
        raise InputError(
            f"{name} of {largest:g} does not fit {format.name} (up to {format.largest:g}): "
            + ("scale the values" if wide else "score in bf16 or fp32")
        )
