"""The scoring functions on torch tensors, each run in its scoring dtype.

Scoring in BF16 or FP16 runs the torch operation in that dtype. Scoring in FP32 first casts the
inputs to FP32 (HPS). FP8 has no such operations on the CPU: inputs are rounded to FP8, scored in
FP32, and the score is rounded. Results are tensors of the scoring dtype.

Equal logits get equal FP32 scores at any position of a tensor. Products do not guarantee this: the
last bit of an FP32 sum may depend on the position of the row in the matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deadheat._internal.dtypes import Format, parse_float_format, parse_format
from deadheat._internal.numbers import check_tensors
from deadheat.scoring.functions import apply_head, check_pairs, join_pair, multiply
from deadheat.scoring.products import Product, cast as cast, cast_finite, operand as operand

if TYPE_CHECKING:
    from torch import Tensor


def sigmoid(logits: Tensor, dtype: object = "fp32") -> Tensor:
    """Score one logit per document: 1 / (1 + exp(−z)).

    For a transformers classifier with one label, score in high precision with
    ``sigmoid(model(**inputs).logits.squeeze(-1), "fp32")``.
    """
    format = parse_float_format(dtype)
    check_tensors(logits=logits)
    return widened(cast_finite("logits", logits, format), format).sigmoid().to(format.torch)


def softmax(logits: Tensor | tuple[Tensor, Tensor], dtype: object = "fp32") -> Tensor:
    """Score two logits per document, (no, yes) on the last axis or as a tuple: P(yes).

    For a transformers classifier with two labels, score in high precision with
    ``softmax(model(**inputs).logits, "fp32")``; for a causal model, with
    ``softmax(model(**inputs).logits[:, -1, [no_id, yes_id]], "fp32")``.
    """
    format = parse_float_format(dtype)
    for values in logits if isinstance(logits, tuple) else (logits,):
        check_tensors(logits=values)
    joined = join_pair(logits)
    check_pairs(joined.shape)
    z = widened(cast_finite("logits", joined, format), format)
    return z.softmax(dim=-1)[..., 1].to(format.torch)


def product(
    queries: Tensor, documents: Tensor, dtype: object = "fp32", kind: Product = "dot"
) -> Tensor:
    """Score every query embedding with every document embedding, like the NumPy function."""
    check_tensors(queries=queries, documents=documents)
    scores: Tensor = multiply(queries, documents, parse_format(dtype), kind)
    return scores


def head_logits(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute a model's last linear layer in FP32 from its low-precision hidden state."""
    check_tensors(hidden=hidden, weight=weight)
    logits: Tensor = apply_head(hidden, weight, bias)
    return logits


def widened(values: Tensor, format: Format) -> Tensor:
    """Return FP32 values as FP64, so that the score is computed in FP64 and rounded once.

    On the CPU, torch computes the FP32 sigmoid of the last elements of a tensor differently. One in
    twenty differs in its last bit, which would break ties by position.
    """
    doubles = format.name == "fp32" and values.device.type != "mps"
    return values.double() if doubles else values
