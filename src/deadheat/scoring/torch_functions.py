"""The scoring functions on torch tensors, each run in its scoring dtype.

Scoring in BF16 or FP16 runs torch's own operation in that dtype; scoring in FP32 casts the inputs
up before anything else happens to them (HPS). FP8 has no such operations on CPU: inputs are
rounded to FP8, scored in FP32, and the score is rounded. Results are tensors of the scoring dtype.

Equal logits get equal FP32 scores, wherever in a tensor they stand. Products make no such promise:
the last bit of an FP32 sum may depend on the row's place in the matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deadheat._internal.dtypes import Format, parse_float_format, parse_format
from deadheat._internal.numbers import check_tensors
from deadheat.scoring.functions import (
    Product,
    apply_head,
    cast as cast,
    cast_finite,
    check_pairs,
    join_pair,
    multiply,
    operand as operand,
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
    return widened(cast_finite("logits", logits, format), format).sigmoid().to(format.torch)


def softmax(logits: Tensor | tuple[Tensor, Tensor], dtype: object = "fp32") -> Tensor:
    """Score two logits per document, (no, yes) on the last axis or as a tuple: P(yes).

    A plain transformers classifier with two labels scores in high precision by
    ``softmax(model(**inputs).logits, "fp32")``, a causal model by
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
    """Score every query embedding with every document embedding; as the NumPy twin does."""
    check_tensors(queries=queries, documents=documents)
    scores: Tensor = multiply(queries, documents, parse_format(dtype), kind)
    return scores


def head_logits(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute a model's last linear layer in FP32 from its low-precision hidden state."""
    check_tensors(hidden=hidden, weight=weight)
    logits: Tensor = apply_head(hidden, weight, bias)
    return logits


def widened(values: Tensor, format: Format) -> Tensor:
    """Take FP32 to FP64, for a score that is rounded to FP32 once.

    On CPU torch computes the FP32 sigmoid of a tensor's last elements by another path than that of
    the others, and one in twenty differs in its last bit: ties would be broken by position.
    """
    doubles = format.name == "fp32" and values.device.type != "mps"
    return values.double() if doubles else values
