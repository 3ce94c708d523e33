"""Inputs that no backend scores, and the words in which both refuse them."""

from __future__ import annotations

from collections.abc import Sequence

from deadheat._internal.dtypes import Format
from deadheat.errors import InputError

Shape = Sequence[int]


def check_pairs(shape: Shape) -> None:
    """Require (no, yes) on the last axis."""
    if len(shape) == 0 or shape[-1] != 2:
        raise InputError(
            f"softmax needs logits with a last axis (no, yes) of 2, not shape {tuple(shape)}"
        )


def check_product(format: Format, kind: str, queries: Shape, documents: Shape) -> None:
    """Require matrices of one width, and a product that their format has."""
    kinds = {"binary": ("hamming",), "int8": ("dot",)}.get(format.name, ("dot", "cosine"))
    if kind not in kinds:
        raise InputError(f"no {kind} product of {format.name}: choose {' or '.join(kinds)}")
    if len(queries) != 2 or len(documents) != 2 or queries[1] != documents[1]:
        raise InputError(
            f"a product needs [Q×D] and [N×D] embeddings, not {tuple(queries)}, {tuple(documents)}"
        )


def check_bits(queries: object, documents: object) -> None:
    """Require bits stored alike; packed into int8 they are those of uint8 less 128."""
    if str(queries) != str(documents):
        raise InputError(
            f"binary and integer embeddings of one dtype compare, not {queries} with {documents}"
        )


def check_range(name: str, largest: float, format: Format) -> None:
    """Refuse what would overflow or saturate on its way into a format."""
    if largest > format.largest:
        wide = format.name in ("bf16", "fp32")
        raise InputError(
            f"{name} of {largest:g} does not fit {format.name} (up to {format.largest:g}): "
            + ("scale what is scored" if wide else "score in bf16 or fp32")
        )


def fits_fp32(dtype: object, shape: Shape) -> bool:
    """Whether FP32 holds every sum of products of two such vectors of 8-bit integers."""
    signed = str(dtype).endswith("int8") and not str(dtype).endswith("uint8")
    return shape[-1] * (1 << (14 if signed else 16)) <= 1 << 24
