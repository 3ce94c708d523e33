"""Score queries with documents that arrive in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.dtypes import Format, parse_format
from deadheat._internal.numbers import check_tensors, is_tensor
from deadheat.errors import InputError
from deadheat.provenance import ScoringProvenance
from deadheat.scoring.functions import (
    Floats,
    Product,
    as_array,
    cast,
    cast_finite,
    check_bits,
    check_product,
    check_range,
    dtype_name,
    operand,
    whole_operand,
)
from deadheat.scoring.regimes import scoring_format

if TYPE_CHECKING:
    from torch import Tensor

Matrix: TypeAlias = "NDArray[Any] | Tensor"
"""An array or a torch tensor of two dimensions."""


@dataclass(frozen=True)
class Products:
    """Prepared queries that are multiplied with one block of documents after another.

    The scores equal those of `deadheat.scoring.score`. For float embeddings they are in the scoring
    dtype; NumPy returns 16-bit values as float32, because it does not compute in 16 bits. For int8
    and binary embeddings they are whole numbers, as floats that hold them exactly.
    """

    queries: Matrix
    """Queries in the scoring dtype; for a cosine of length 1. A single query is repeated."""
    n_queries: int
    width: int
    kind: Product
    regime: str
    dtype: str
    """The stored dtype of the queries; binary ones may be packed."""
    given: Format
    """The number format of the queries."""
    format: Format
    """The scoring dtype."""
    limit: float
    """The largest score."""

    @classmethod
    def of(cls, queries: Any, kind: Product, regime: str) -> Products:
        """Prepare queries: an array or a torch tensor, ``[queries, width]``."""
        if kind not in ("dot", "cosine", "hamming"):
            raise InputError(f"unknown similarity {kind!r}; choose dot, cosine or hamming")
        if is_tensor(queries):
            check_tensors(queries=queries)
            asked = queries.detach()
        else:
            asked = as_array("queries", queries)
        dtype = dtype_name(asked)
        given = _embedding_format("queries", dtype, kind)
        format = scoring_format(regime, given, kind)
        check_product(format, kind, asked.shape, asked.shape)
        if format.is_float:
            ready, limit = operand("queries", asked, format, kind), format.largest
        else:
            ready, limit = whole_operand("queries", asked, kind), np.inf
        n_queries, width = asked.shape
        if n_queries == 1:
            # The last bits of the product of one vector with a matrix depend on the memory address
            # of the matrix; with two vectors they do not.
            ready = ready[[0, 0]]
        return cls(ready, n_queries, width, kind, regime, dtype, given, format, limit)

    @property
    def noise(self) -> float:
        """Largest rounding error of a score, relative to the largest score."""
        return 0.0 if self.format.mantissa is None else 2.0 ** (2 - min(self.format.mantissa, 12))

    def __call__(self, documents: Matrix) -> Matrix:
        """Score every query with a block of documents: ``[queries, documents]``."""
        if self.format.mantissa is None:
            scores = self.multiply(whole_operand("documents", documents, self.kind))
            if self.kind == "hamming":
                scores -= self.queries.shape[1]
                scores /= 2
            return scores[: self.n_queries]
        with np.errstate(over="ignore", invalid="ignore"):
            if self.kind == "dot":
                ready = cast(documents, self.format)
            else:
                ready = operand("documents", documents, self.format, self.kind)
            scores = self.multiply(ready)
            largest = max(float(scores.max()), -float(scores.min()))
        if not largest <= self.limit:  # NaN, too
            cast_finite("documents", documents, self.format)
            check_range("a product", np.inf if np.isnan(largest) else largest, self.format)
        scores = scores[: self.n_queries]
        if not isinstance(scores, np.ndarray):
            return scores.to(self.format.torch)
        return scores if self.format.name == "fp32" else self.format.round(scores)

    def multiply(self, documents: Matrix) -> Matrix:
        """Multiply the queries with documents in the scoring dtype."""
        queries = self.queries
        if not isinstance(queries, np.ndarray):
            product: Matrix = queries @ documents.T
            return product
        shape = (len(queries), len(documents))
        # Sums of whole numbers are exact in any order.
        is_exact = self.format.mantissa is None
        tile = shape if is_exact else _find_tile(*shape, self.width)
        return _multiply_tiles(queries, np.asarray(documents), tile)

    def check(self, documents: Matrix) -> None:
        """Raise an error if the documents do not have the type and width of the queries."""
        is_array = isinstance(documents, np.ndarray)
        if is_array != isinstance(self.queries, np.ndarray):
            words = ("arrays", "torch tensors")
            here, there = words if is_array else words[::-1]
            raise InputError(
                f"the documents are {here} and the queries {there}: use one type for both"
            )
        if documents.ndim != 2 or documents.shape[1] != self.width:
            raise InputError(
                f"embeddings of the shape {list(documents.shape)} do not match queries of the "
                f"width {self.width}"
            )
        dtype = dtype_name(documents)
        if self.format.mantissa is None:
            check_bits(self.dtype, dtype)
            return
        given = _embedding_format("documents", dtype, self.kind)
        if given.name not in (self.given.name, "int8"):
            raise InputError(
                f"the documents are {given.name} and the queries {self.given.name}: embed both in "
                "one dtype (int8 documents may be scored with float queries)"
            )
        if not is_array and documents.device != self.queries.device:
            raise InputError(
                f"the documents are on {documents.device} and the queries on "
                f"{self.queries.device}: move both to one device"
            )

    def provenance(self) -> ScoringProvenance:
        """Return the provenance of the scores; each product uses one thread."""
        is_array = isinstance(self.queries, np.ndarray)
        return ScoringProvenance(
            regime=self.regime,
            model_dtype=self.given.name,
            scoring_dtype=self.format.name,
            function=self.kind,
            backend="numpy" if is_array else "torch",
            threads=None if is_array else 1,
        )


@cache
def _embedding_format(name: str, dtype: str, kind: Product) -> Format:
    """Return the format of embeddings, by the type that they are stored as."""
    if kind == "hamming":
        if dtype not in ("bool", "int8", "uint8"):
            raise InputError(
                f"{name} are {dtype}: Hamming distances need bits, boolean or packed into (u)int8"
            )
        return parse_format("binary")
    try:
        format = parse_format("int8" if dtype == "uint8" else dtype)
    except InputError:
        raise InputError(
            f"{name} are {dtype}, which is not supported: cast them, for example to float32"
        ) from None
    if format.name == "binary":
        raise InputError(f"{name} are bits: use the similarity hamming")
    return format


@cache
def _find_tile(n_queries: int, n_documents: int, width: int) -> tuple[int, int] | None:
    """Return the numbers of queries and documents to multiply at once so that equal documents tie.

    With some BLAS kernels (for example those of OpenBLAS for AVX2) the last bits of a product
    depend on the position of the document in the matrix. So a block of equal documents is
    multiplied as a test, first as a whole, then in tiles, which take about twice the time. None
    means a product without BLAS.
    """
    rng = np.random.default_rng(0)
    queries = rng.standard_normal((n_queries, width), np.float32)
    documents = np.tile(rng.standard_normal(width, np.float32), (n_documents, 1))
    for tile in ((n_queries, n_documents), (8, 256), (4, n_documents)):
        scores = _multiply_tiles(queries, documents, tile)
        if (scores == scores[:, :1]).all():
            return tile
    return None


def _multiply_tiles(queries: Floats, documents: Floats, tile: tuple[int, int] | None) -> Floats:
    """Multiply queries and documents tile by tile; every tile is full."""
    out: Floats = np.empty((len(queries), len(documents)), queries.dtype)
    if tile is None:
        return np.einsum("qw,dw->qd", queries, documents, out=out)
    last = max(0, len(queries) - tile[0])
    for column in range(0, len(documents), tile[1]):
        columns = slice(column, column + tile[1])
        for row in (*range(0, last, tile[0]), last):
            rows = slice(row, row + tile[0])
            np.matmul(queries[rows], documents[columns].T, out=out[rows, columns])
    return out
