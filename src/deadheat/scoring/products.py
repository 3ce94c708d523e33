"""Scores of the same queries with documents that come in blocks."""

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
from deadheat.scoring import functions, torch_functions
from deadheat.scoring.functions import Floats, Product
from deadheat.scoring.refusals import check_bits, check_product, check_range
from deadheat.scoring.regimes import Backend, scoring_format, scoring_provenance

if TYPE_CHECKING:
    from torch import Tensor

Matrix: TypeAlias = "NDArray[Any] | Tensor"
"""An array or a torch tensor of two dimensions."""


@dataclass(frozen=True)
class Products:
    """Queries, prepared once, to be multiplied with one block of documents after another.

    The scores are those of `deadheat.scoring.score`: floats in the scoring dtype (16 bits stay 16
    bits in torch; NumPy, which does not compute in them, gives their values as float32), and the
    whole numbers of int8 and binary embeddings as floats that hold them exactly.
    """

    queries: Matrix
    """Cast to the scoring dtype, for a cosine brought to length 1; a single one twice."""
    n_queries: int
    width: int
    kind: Product
    regime: str
    given: Format
    """Of the queries as they were given."""
    format: Format
    """The scoring dtype."""
    dtype: str
    """What the queries were stored as; binary ones may be packed."""
    safe_length: float
    """No product with a shorter document can overflow, where all its values are finite."""
    is_torch: bool
    """Whether the embeddings are torch tensors; otherwise they are arrays."""

    @classmethod
    def of(cls, queries: Any, kind: Product, regime: str) -> Products:
        """Prepare queries: an array or a torch tensor, ``[queries, width]``."""
        if kind not in ("dot", "cosine", "hamming"):
            raise InputError(f"unknown similarity {kind!r}; choose dot, cosine or hamming")
        is_torch = is_tensor(queries)
        twin: Any = torch_functions if is_torch else functions
        if is_torch:
            check_tensors(queries=queries)
            asked = queries.detach()
        else:
            asked = functions.as_array("queries", queries)
        given = _embedding_format("queries", _type(asked), kind)
        format = scoring_format(regime, given, kind)
        check_product(format, kind, asked.shape, asked.shape)
        if format.is_float:
            ready = twin.operand("queries", asked, format, kind)
        else:
            ready = twin.whole_operand("queries", asked, kind)
        n_queries, width = asked.shape
        is_dot = kind == "dot" and format.is_float
        safe = format.largest / 2 / max(1.0, _longest(ready)) if is_dot else 0.0
        if n_queries == 1:
            # The product of one vector with a matrix has last bits that depend on where in memory
            # the matrix begins; that of two has not.
            ready = ready[[0, 0]]
        return cls(
            ready, n_queries, width, kind, regime, given, format, _type(asked), safe, is_torch
        )

    @property
    def noise(self) -> float:
        """How far rounding may move a score, in parts of the largest; more is another score."""
        return 0.0 if self.format.mantissa is None else 2.0 ** (2 - min(self.format.mantissa, 12))

    def __call__(self, documents: Matrix) -> Matrix:
        """Score every query with a block of documents: ``[queries, documents]``."""
        twin: Any = torch_functions if self.is_torch else functions
        if not self.format.is_float:
            scores = self.multiply(twin.whole_operand("documents", documents, self.kind))
            if self.kind == "hamming":
                scores -= self.queries.shape[1]
                scores /= 2
            return scores[: self.n_queries]
        if self.safe_length and _longest(documents) < self.safe_length:
            scores = self.multiply(twin.cast(documents, self.format))
        else:
            ready = twin.operand("documents", documents, self.format, self.kind)
            with np.errstate(over="ignore", invalid="ignore"):
                scores = self.multiply(ready)
                largest = max(float(scores.max()), -float(scores.min()))
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
        out = np.empty(shape, queries.dtype)
        # Sums of whole numbers are exact in any order.
        tile = _find_tile(*shape, self.width) if self.format.is_float else shape
        _multiply_tiles(queries, np.asarray(documents), tile, out)
        return out

    def check(self, documents: Matrix) -> None:
        """Refuse a block of documents that are not embedded as the queries are."""
        if is_tensor(documents) != self.is_torch:
            words = ("torch tensors", "arrays")
            here, there = words if is_tensor(documents) else words[::-1]
            raise InputError(f"the documents are {here} and the queries {there}: give both alike")
        if documents.ndim != 2 or documents.shape[1] != self.width:
            raise InputError(
                f"embeddings of the shape {list(documents.shape)} do not fit queries of the width "
                f"{self.width}"
            )
        if not self.format.is_float:
            check_bits(self.dtype, _type(documents))
            return
        given = _embedding_format("documents", _type(documents), self.kind)
        if given.name not in (self.given.name, "int8"):
            raise InputError(
                f"the documents are {given.name} and the queries {self.given.name}: embed both in "
                "one dtype (int8 documents may be scored with float queries)"
            )
        if self.is_torch and documents.device != self.queries.device:
            raise InputError(
                f"the documents are on {documents.device} and the queries on "
                f"{self.queries.device}: move them together"
            )

    def provenance(self) -> ScoringProvenance:
        """Return how the scores are computed: each product in one thread."""
        backend: Backend = "torch" if self.is_torch else "numpy"
        return scoring_provenance(self.regime, self.given, self.kind, backend, threads=1)


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
            f"{name} are {dtype}, which no model computes in: cast them, for example to float32"
        ) from None
    if format.name == "binary":
        raise InputError(f"{name} are bits: their similarity is hamming")
    return format


def _type(values: Matrix) -> str:
    return str(values.dtype).removeprefix("torch.")


def _longest(vectors: Matrix) -> float:
    """Length of the longest vector; inf or NaN where a value is, or where it overflows FP32."""
    if not isinstance(vectors, np.ndarray):
        tensor = vectors.float() if vectors.element_size() == 1 else vectors
        return float(tensor.norm(dim=-1).max())
    wide = vectors if vectors.dtype == np.float32 else vectors.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sqrt(np.einsum("nd,nd->n", wide, wide).max()))


@cache
def _find_tile(n_queries: int, n_documents: int, width: int) -> tuple[int, int] | None:
    """Find how many queries and documents to multiply at once so that equal documents tie.

    With some kernels of BLAS libraries (those of OpenBLAS for AVX2, for example) the last bits of
    a product depend on where in the matrix the document stands. So a block of equal documents is
    multiplied first, as a whole, then in tiles, which take about twice the time. None stands for
    a product without BLAS.
    """
    rng = np.random.default_rng(0)
    queries = rng.standard_normal((n_queries, width), np.float32)
    documents = np.tile(rng.standard_normal(width, np.float32), (n_documents, 1))
    scores = np.empty((n_queries, n_documents), np.float32)
    for tile in ((n_queries, n_documents), (8, 256), (4, n_documents)):
        _multiply_tiles(queries, documents, tile, scores)
        if (scores == scores[:, :1]).all():
            return tile
    return None


def _multiply_tiles(
    queries: Floats, documents: Floats, tile: tuple[int, int] | None, out: Floats
) -> None:
    """Multiply some queries with some documents at a time; every tile has all its queries."""
    if tile is None:
        np.einsum("qw,dw->qd", queries, documents, out=out)
        return
    last = max(0, len(queries) - tile[0])
    for column in range(0, len(documents), tile[1]):
        columns = slice(column, column + tile[1])
        for row in (*range(0, last, tile[0]), last):
            rows = slice(row, row + tile[0])
            np.matmul(queries[rows], documents[columns].T, out=out[rows, columns])
