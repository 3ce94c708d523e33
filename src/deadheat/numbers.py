"""Numbers as they come in: floats that compare exactly as the numbers they came as, and grades."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError

LARGEST_GRADE = 1e100
"""A grade beyond this is refused as an error: sums of squares of grades would overflow."""


def exact_floats(scores: Any, *, by_place: bool = True) -> NDArray[Any]:
    """Give scores as a float32 or float64 array with the same order and the same ties.

    Types of 16 bits and fewer (float16, bfloat16, float8, int8 …) become float32 and longer
    integers float64, which hold each of their values; what float64 cannot hold (integers
    beyond 2**53, long doubles) is replaced by its place among the distinct values, or refused
    where places mean nothing (`by_place` false: the array is a piece of something larger).
    Torch tensors are taken without importing torch.

    >>> exact_floats(np.array([1, 255], np.uint8))
    array([  1., 255.], dtype=float32)
    >>> exact_floats(np.array([2**60, 2**60 + 1]))
    array([0., 1.])
    """
    if is_tensor(scores):
        scores = tensor_values("scores", scores)
    try:
        array = real_numbers(scores)
        if array.dtype in (np.float32, np.float64):
            return array
        if array.dtype.kind != "O" and (array.dtype.itemsize <= 2 or array.dtype.kind == "b"):
            return array.astype(np.float32)
        floats = _floats(array)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"scores must be numbers ({str(error).strip()})") from None
    # Compared in the array's own type: a round trip through float64 must change nothing.
    if floats is None or not _is_exact(array, floats):
        if not by_place:
            raise InputError(
                f"scores of type {array.dtype} that float64 cannot hold cannot be compared across "
                "pieces: scale or round them first"
            )
        places = np.unique(array, return_inverse=True)[1].reshape(array.shape).astype(np.float64)
        return places if floats is None else np.where(np.isnan(floats), np.nan, places)
    return floats


def is_tensor(values: Any) -> bool:
    """Tell whether values are a torch tensor, without importing torch."""
    return hasattr(values, "detach")


def tensor_values(name: str, tensor: Any) -> NDArray[Any]:
    """Give a torch tensor as an array that holds each of its values."""
    check_tensors(**{name: tensor})
    # Exact: every floating-point type of torch but float64 is contained in float32.
    narrow = tensor.is_floating_point() and tensor.element_size() < 4
    array: NDArray[Any] = (tensor.float() if narrow else tensor).numpy(force=True)
    return array


def check_tensors(**tensors: Any) -> None:
    """Refuse torch tensors whose values cannot be read as they are, by the names they are given."""
    for name, tensor in tensors.items():
        if tensor.is_meta:
            raise InputError(f"{name} is a tensor without values, on the meta device: load them")
        if tensor.is_nested:
            raise InputError(f"{name} is a nested tensor: pass a list of its rows, or pad them")
        if tensor.is_quantized:
            raise InputError(f"{name} is a quantised tensor: pass it as {name}.dequantize()")
        if str(tensor.layout) != "torch.strided":
            layout = str(tensor.layout).removeprefix("torch.")
            raise InputError(f"{name} is a {layout} tensor: pass it as {name}.to_dense()")


def real_numbers(values: Any) -> NDArray[Any]:
    """Give values as an array of real numbers, or raise what NumPy raises; drop nothing."""
    if np.ma.isMaskedArray(values):
        raise TypeError("a masked array has no value where it is masked: use lists of lists")
    array = np.asarray(values)
    if array.dtype.kind in "cmM" or array.dtype.names:
        raise TypeError(f"{array.dtype} is no type of real numbers")
    if isinstance(values, (list, tuple)) and _is_beyond(array):
        # NumPy makes floats of integers that no one of its integer types holds together.
        objects = np.array(values, object)
        if all(isinstance(x, (int, np.integer)) for x in objects.ravel()):
            return objects
    return array


def _is_beyond(array: NDArray[Any]) -> bool:
    return array.dtype == np.float64 and bool((np.abs(array) >= 2.0**53).any())


def _floats(array: NDArray[Any]) -> NDArray[np.float64] | None:
    """Round to float64; None for Python integers, which have no bounds."""
    if array.dtype.kind != "O":
        return array.astype(np.float64)
    values = array.ravel()
    if all(isinstance(x, (int, np.integer)) for x in values):
        return None
    return np.asarray([float(x) for x in values]).reshape(array.shape)


def _is_exact(array: NDArray[Any], floats: NDArray[np.float64]) -> bool:
    if array.dtype.kind in "iu":
        return not array.size or not (np.abs(floats) > 2.0**53).any()
    return array.dtype.kind != "f" or np.array_equal(floats, array, equal_nan=True)
