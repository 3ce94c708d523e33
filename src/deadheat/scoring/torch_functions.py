"""The scoring functions on torch tensors, each run in its scoring dtype.

Scoring in BF16 or FP16 runs torch's own operation in that dtype; scoring in FP32 casts the inputs
up before anything else happens to them (HPS). FP8 has no such operations on CPU: inputs are
rounded to FP8, scored in FP32, and the score is rounded. Results are tensors of the scoring dtype.

Equal logits get equal FP32 scores, wherever in a tensor they stand. Products make no such promise:
the last bit of an FP32 sum may depend on the row's place in the matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deadheat.dtypes import Format, parse_float_format, parse_format
from deadheat.errors import InputError
from deadheat.numbers import check_tensors
from deadheat.scoring.functions import Product
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

if TYPE_CHECKING:
    from torch import Tensor


def sigmoid(logits: Tensor, dtype: object = "fp32") -> Tensor:
    """Score one logit per document: 1 / (1 + exp(−z)).

    A plain transformers classifier with one label scores in high precision by
    ``sigmoid(model(**inputs).logits.squeeze(-1), "fp32")``.
    """
    format = parse_float_format(dtype)
    check_tensors(logits=logits)
    return widened(_checked("logits", logits, format), format).sigmoid().to(format.torch)


def softmax(logits: Tensor | tuple[Tensor, Tensor], dtype: object = "fp32") -> Tensor:
    """Score two logits per document, (no, yes) on the last axis or as a tuple: P(yes).

    A plain transformers classifier with two labels scores in high precision by
    ``softmax(model(**inputs).logits, "fp32")``, a causal model by
    ``softmax(model(**inputs).logits[:, -1, [no_id, yes_id]], "fp32")``.
    """
    import torch

    format = parse_float_format(dtype)
    if isinstance(logits, tuple):
        for values in logits:
            check_tensors(logits=values)
        check_pair([values.shape for values in logits])
        logits = torch.stack(logits, dim=-1)
    check_tensors(logits=logits)
    check_pairs(logits.shape)
    z = widened(_checked("logits", logits, format), format)
    return z.softmax(dim=-1)[..., 1].to(format.torch)


def product(
    queries: Tensor, documents: Tensor, dtype: object = "fp32", kind: Product = "dot"
) -> Tensor:
    """Score every query embedding with every document embedding; as the NumPy twin does."""
    format = parse_format(dtype)
    check_tensors(queries=queries, documents=documents)
    check_product(format, kind, queries.shape, documents.shape)
    if format.name == "binary":
        check_bits(queries.dtype, documents.dtype)
        q, d = _bits("queries", queries), _bits("documents", documents)
        dots = _exact(2 * q - 1, 2 * d - 1)  # over ±1 vectors, D − 2 × distance
        return -((q.shape[1] - dots) >> 1)
    if format.name == "int8":
        return _exact(_eight_bit("queries", queries), _eight_bit("documents", documents))
    q, d = operands(queries, documents, format, kind)
    scores = q @ d.T
    check_range("a product", float(scores.abs().max()), format)
    return scores.to(format.torch)


def operands(
    queries: Tensor, documents: Tensor, format: Format, kind: Product
) -> tuple[Tensor, Tensor]:
    """Cast embeddings, and for a cosine bring them to length 1 after that."""
    return (
        operand("queries", queries, format, kind),
        operand("documents", documents, format, kind),
    )


def operand(name: str, values: Tensor, format: Format, kind: Product) -> Tensor:
    """Cast embeddings, and for a cosine bring them to length 1 after that."""
    floats = _checked(name, values, format)
    if kind != "cosine":
        return floats
    norms = floats.norm(dim=-1, keepdim=True)
    check_norms(name, float(norms.min()), float(norms.max()), format)
    return cast(floats / cast(norms, format), format)


def whole_operand(name: str, values: Tensor, kind: Product) -> Tensor:
    """8-bit integers as floats; bits (`kind` is hamming) as −1 and 1."""
    if kind == "hamming":
        return (2 * _bits(name, values) - 1).float()
    eight = _eight_bit(name, values)
    return eight.float() if fits_fp32(eight.dtype, eight.shape) else eight.double()


def head_logits(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute a model's last linear layer in FP32 from its low-precision hidden state."""
    check_tensors(hidden=hidden, weight=weight)
    check_head(hidden.shape, weight.shape, None if bias is None else bias.shape)
    fp32 = parse_format("fp32")
    logits = _checked("hidden", hidden, fp32) @ _checked("weight", weight, fp32).T
    return logits if bias is None else logits + _checked("bias", bias, fp32)


def cast(values: Tensor, format: Format) -> Tensor:
    """Cast to the dtype that operations of a format run in: FP8 values are computed in FP32."""
    values = values.to(format.torch)
    return values.float() if format.name.startswith("fp8") else values


def widened(values: Tensor, format: Format) -> Tensor:
    """Take FP32 to FP64, for a score that is rounded to FP32 once.

    On CPU torch computes the FP32 sigmoid of a tensor's last elements by another path than that of
    the others, and one in twenty differs in its last bit: ties would be broken by position.
    """
    doubles = format.name == "fp32" and values.device.type != "mps"
    return values.double() if doubles else values


def _checked(name: str, values: Tensor, format: Format) -> Tensor:
    if values.is_complex() or str(values.dtype) == "torch.bool":
        raise InputError(f"{name} must be real numbers, not {values.dtype}")
    if values.numel() == 0:
        raise InputError(f"{name} is empty (shape {tuple(values.shape)})")
    if values.element_size() == 1:  # FP8 has no isfinite, int8 no absolute value of −128
        values = values.float()
    finite = values.isfinite()
    if not finite.all():
        index = (~finite).nonzero()[0].tolist()
        raise not_finite(name, index, float(values[tuple(index)]))
    check_range(name, float(values.abs().max()), format)
    return cast(values, format)


def _eight_bit(name: str, values: Tensor) -> Tensor:
    if str(values.dtype) not in ("torch.int8", "torch.uint8"):
        raise not_eight_bit(name, values.dtype)
    return values


def _bits(name: str, values: Tensor) -> Tensor:
    import torch

    if values.dtype == torch.bool:
        return values.long()
    packed = _eight_bit(name, values).view(torch.uint8).long()
    shifts = torch.arange(7, -1, -1, device=values.device)
    return ((packed.unsqueeze(-1) >> shifts) & 1).flatten(-2)


def _exact(queries: Tensor, documents: Tensor) -> Tensor:
    # FP64 holds every sum of 8-bit products exactly; CUDA has no integer matmul.
    return (queries.double() @ documents.double().T).long()
