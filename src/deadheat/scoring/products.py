"""Score queries with documents that arrive in blocks.

Most functions accept arrays or torch tensors, and return the same type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from deadheat._internal.dtypes import FORMATS, Format
from deadheat._internal.numbers import check_tensors, is_tensor, tensor_values
from deadheat._internal.packages import available_cores, require
from deadheat.errors import InputError
from deadheat.provenance import ScoringProvenance
from deadheat.scoring.regimes import scoring_format

if TYPE_CHECKING:
    from torch import Tensor

Product = Literal["dot", "cosine", "hamming"]
Floats = npt.NDArray[np.float32]
Shape = Sequence[int]
Array = npt.NDArray[np.generic]
"""Of any type."""
Matrix: TypeAlias = "npt.NDArray[Any] | Tensor"
"""An array or a torch tensor of two dimensions."""
_NUMBERS = {format.dtype.name: format for format in FORMATS.values() if format.name != "binary"}
_NUMBERS["uint8"] = FORMATS["int8"]
"""The formats of embeddings of numbers by the type that they are stored as."""


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
    dtype: str
    """The stored dtype of the queries; binary ones may be packed."""
    format: Format
    """The scoring dtype."""
    provenance: ScoringProvenance
    """Provenance of the scores; each product uses one thread."""

    @classmethod
    def of(cls, queries: Any, kind: Product, regime: str) -> Products:
        """Prepare queries: an array or a torch tensor, ``[queries, width]``."""
        if kind not in get_args(Product):
            raise InputError(f"unknown similarity {kind!r}; choose dot, cosine or hamming")
        in_torch = is_tensor(queries)
        if in_torch:
            check_tensors(queries=queries)
            with _torch_lock:  # the first torch call of a thread stores the number of threads again
                require("torch", "a product of tensors").get_num_threads()
            asked = queries.detach()
        else:
            asked = as_array("queries", queries)
        dtype = dtype_name(asked)
        given = FORMATS["binary"] if kind == "hamming" else _NUMBERS.get(dtype)
        if given is None:
            raise InputError(
                f"queries are {dtype}, which {kind} cannot score: cast them to floats of up to 32 "
                "bits or 8-bit integers; bits need the similarity 'hamming'"
            )
        format = scoring_format(regime, given, kind)
        check_product(format, kind, asked.shape, asked.shape)
        ready = operand("queries", asked, format, kind)
        n_queries, width = asked.shape
        if n_queries == 1:
            # The last bits of the product of one vector with a matrix depend on the memory address
            # of the matrix; with two vectors they do not.
            ready = ready[[0, 0]]
        origin = ScoringProvenance(
            regime=regime,
            model_dtype=given.name,
            scoring_dtype=format.name,
            function=kind,
            backend="torch" if in_torch else "numpy",
            threads=1 if in_torch else None,
        )
        return cls(ready, n_queries, width, kind, dtype, format, origin)

    @property
    def noise(self) -> float:
        """Largest rounding error of a score, relative to the largest score."""
        bits = self.format.mantissa
        return 0.0 if bits is None else 2.0 ** (2 - min(bits, 12))

    def __call__(self, documents: Matrix) -> Matrix:
        """Score every query with a block of documents: ``[queries, documents]``."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.kind == "dot" and self.format.is_float:
                ready = cast(documents, self.format)  # checked below, if a product is not finite
            else:
                ready = operand("documents", documents, self.format, self.kind)
            scores = self.multiply(ready)[: self.n_queries]
        try:
            finished: Matrix = finish_product(scores, self.queries.shape[1], self.format, self.kind)
        except InputError:
            cast_finite("documents", documents, self.format)  # names the value, if it is the cause
            raise
        return finished

    def multiply(self, documents: Matrix) -> Matrix:
        """Multiply the queries with documents in the scoring dtype."""
        queries = self.queries
        if not isinstance(queries, np.ndarray):
            product: Matrix = queries @ documents.T
            return product
        shape = (len(queries), len(documents))
        # Sums of whole numbers are exact in any order.
        tile = _find_tile(*shape, self.width) if self.format.is_float else shape
        return _multiply_tiles(queries, np.asarray(documents), tile)

    def check(self, documents: Matrix) -> None:
        """Raise an error if the documents do not have the type and width of the queries."""

        def describe(values: Matrix, width: int, dtype: str) -> str:
            is_array = isinstance(values, np.ndarray)
            place = "arrays" if is_array else f"torch tensors on {values.device}"
            return f"{place} of {dtype} and width {width}"

        dtype = dtype_name(documents)
        if self.format.is_float and dtype in ("int8", "uint8"):
            dtype = self.dtype  # quantised documents may be scored with float queries
        own = describe(documents, documents.shape[1], dtype)
        expected = describe(self.queries, self.width, self.dtype)
        if own != expected:
            raise InputError(
                f"the documents are {own} and the queries {expected}: embed both in the same way "
                "(int8 documents may be scored with float queries)"
            )


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


_blas_lock = RLock()
"""Lock for the number of BLAS threads, which is a setting of the process."""
_torch_lock = Lock()
"""Held while the number of torch threads of new threads is 1."""


@contextmanager
def single_thread_blas(operand: Matrix) -> Iterator[tuple[int, Callable[[], object]]]:
    """Limit every product to one thread inside the block.

    Yields the number of threads that the library would use for one product, and a function that
    each thread must call before its first product.

    Several threads that each multiply and count are faster than multi-threaded products whose
    results one thread counts. The last bits of a product also do not depend on the number of
    threads.

    Parameters
    ----------
    operand
        A matrix of the product; its type determines the library. Tensors that are not on the CPU
        are multiplied one after the other.
    """
    if not isinstance(operand, np.ndarray):
        torch = require("torch", "a product of tensors")
        with _torch_lock:  # another thread may have set the number to 1 when this one started
            threads = _call_in_new_thread(torch.get_num_threads)
        is_cpu = operand.device.type == "cpu"
        yield threads if is_cpu else 1, partial(_begin_torch, torch, threads)
        return
    with _blas_lock:
        blas = _blas()
        known = [library.num_threads for library in blas.lib_controllers]
        limit = partial(blas.limit, limits=1)
        with limit():
            # In some BLAS libraries this is a setting of the thread.
            yield max(known) if known else available_cores(), limit


def _begin_torch(torch: Any, threads: int) -> None:
    """Set the number of torch threads of this thread to 1, and disable gradients.

    In torch every thread has its own number of threads, and new threads get the number set last. So
    a temporary thread resets it.
    """
    with _torch_lock:
        torch.get_num_threads()  # from now on this thread has its own number
        torch.set_num_threads(1)
        _call_in_new_thread(torch.set_num_threads, threads)
    torch.set_grad_enabled(False)


def _call_in_new_thread(function: Callable[..., Any], *arguments: object) -> Any:
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # slow: searches all libraries of the process

    return ThreadpoolController().select(user_api="blas")


def as_array(name: str, values: object) -> Array:
    """Return values or a tensor as a non-empty array; raise `InputError` if that is impossible."""
    if not isinstance(values, np.ndarray) and is_tensor(values):
        values = tensor_values(name, values)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a rectangular array of numbers: {error}") from error
    if array.size == 0:
        raise InputError(f"{name} is empty (shape {array.shape})")
    return array


def operand(name: str, values: Any, format: Format, kind: Product) -> Any:
    """Cast embeddings to a format; for a cosine, normalise them to length 1 after that.

    8-bit integers, and bits as −1 and 1, become floats that hold every sum of products exactly.
    BLAS multiplies floats, unlike integers, and CUDA has no product of integers.
    """
    if kind == "hamming":  # dot products are D − 2 × distance
        return convert(2 * _unpack_bits(name, values) - 1, "float32")
    if not format.is_float:
        largest = 1 << (14 if _check_eight_bit(name, values) == "int8" else 16)
        return convert(values, "float32" if values.shape[-1] * largest <= 1 << 24 else "float64")
    floats = cast_finite(name, values, format)
    if kind != "cosine":
        return floats
    if isinstance(floats, np.ndarray):
        with np.errstate(over="ignore"):  # a length that overflows is refused
            norms = np.linalg.norm(floats, axis=-1, keepdims=True)
    else:
        norms = floats.norm(dim=-1, keepdim=True)
    if norms.min() < format.smallest:
        raise InputError(
            f"{name} have a vector of length {norms.min():g}, which has no cosine: remove it"
        )
    check_range(f"{name}: a length", float(norms.max()), format)
    return cast(floats / cast(norms, format), format)


def cast_finite(name: str, values: Any, format: Format) -> Any:
    """Cast real numbers to a format; raise an error if they are not finite or too large."""
    if 0 in values.shape:
        raise InputError(f"{name} is empty (shape {tuple(values.shape)})")
    if not re.match("b?float|u?int", dtype_name(values)):
        raise InputError(f"{name} must be real numbers, not {values.dtype}")
    if isinstance(values, np.ndarray):
        wide = values if values.dtype == np.float64 else values.astype(np.float32)
        finite = np.isfinite(wide)
    else:
        # FP8 has no isfinite, int8 no absolute value of −128
        wide = values.float() if values.element_size() == 1 else values
        finite = wide.isfinite()
    if not finite.all():
        index = np.argwhere(np.logical_not(as_array(name, finite)))[0].tolist()
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


def convert(values: Any, dtype: str) -> Any:
    """Cast an array or a tensor to a type of that name."""
    if isinstance(values, np.ndarray):
        return values.astype(dtype)
    import torch

    return values.to(getattr(torch, dtype))


def finish_product(scores: Any, width: int, format: Format, kind: Product) -> Any:
    """Return the scores of products of operands of this width; may overwrite them.

    Products of floats are rounded to the format; raise an error if one does not fit it.
    """
    if format.is_float:
        check_range("a product", max(float(scores.max()), -float(scores.min())), format)
        return scores.to(format.torch) if is_tensor(scores) else format.round(scores)
    if kind == "hamming":
        scores -= width
        scores /= 2
    return scores


def check_product(format: Format, kind: str, queries: Shape, documents: Shape) -> None:
    """Raise an error unless the widths are equal and the format has this product."""
    kinds = {"binary": ("hamming",), "int8": ("dot",)}.get(format.name, ("dot", "cosine"))
    if kind not in kinds:
        raise InputError(f"no {kind} product of {format.name}: choose {' or '.join(kinds)}")
    if len(queries) != 2 or len(documents) != 2 or queries[1] != documents[1]:
        raise InputError(
            f"a product needs [Q×D] and [N×D] embeddings, not {tuple(queries)}, {tuple(documents)}"
        )


def check_range(name: str, largest: float, format: Format) -> None:
    """Raise an error for values that would overflow or saturate in a format."""
    if not largest <= format.largest:  # NaN, too
        wide = format.name in ("bf16", "fp32")
        raise InputError(
            f"{name} of {largest:g} does not fit {format.name} (up to {format.largest:g}): "
            + ("scale the values" if wide else "score in bf16 or fp32")
        )
