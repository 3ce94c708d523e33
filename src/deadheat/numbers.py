"""Numbers as they come in: what is one, floats that compare exactly as they do, and grades."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError

LARGEST_GRADE = 1e100
"""A grade beyond this is refused as an error: sums of squares of grades would overflow."""
LARGEST_WHOLE = 2**53
"""Up to here float64 holds every whole number."""
SPACE = " \t\n\r\x0b\x0c"
"""White space around a number, and between the fields of a TREC file: that of ASCII."""
LONGEST_TEXT = 4300
"""A number of more characters is refused: reading it takes time that grows with their square."""

_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.A | re.I)
_WHOLE = re.compile(r"[+-]?\d+", re.A)


def number(value: Any) -> Any:
    """Give a value as a Python number, exactly, or raise a TypeError or ValueError.

    This is what a number is in every format. Text is a number as C and Fortran write it, in ASCII
    digits: neither ``1_000`` nor full-width digits. It becomes the nearest float64, as in every
    other tool, but a whole number beyond 2**53 stays whole. Numbers of Python and NumPy are what
    they are; ``True`` is 1, and None is no number.

    >>> number("1e3"), number("9007199254740993"), number(np.float32(0.5))
    (1000.0, 9007199254740993, 0.5)
    """
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, bytes):
        raise TypeError("bytes are no number")
    if isinstance(value, np.longdouble):
        return Fraction(*value.as_integer_ratio()) if np.isfinite(value) else float(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, Decimal) and value.is_finite():
        if abs(value.adjusted()) > LONGEST_TEXT:
            raise ValueError(f"{value!r:.60} is too large or too small to be compared")
        return Fraction(value)
    return value if isinstance(value, Fraction) else float(value)


def _from_text(value: str) -> int | float:
    text = value.strip(SPACE)
    if len(text) > LONGEST_TEXT or not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r:.60} is no number")
    nearest = float(text)
    if abs(nearest) < LARGEST_WHOLE or not _WHOLE.fullmatch(text):
        return nearest
    return int(text)


def exact_floats(scores: Any, *, by_place: bool = True) -> NDArray[Any]:
    """Give scores as a float32 or float64 array with the same order and the same ties.

    Types of 16 bits and fewer (float16, bfloat16, float8, int8 …) become float32 and longer
    integers float64, which hold each of their values. Where float64 cannot (integers beyond
    2**53, long doubles, decimal numbers that differ in late digits), numbers are replaced by their
    place among the distinct ones, or refused where places mean nothing (`by_place` false: the
    array is a piece of something larger). Torch tensors are taken without importing torch.

    >>> exact_floats(np.array([1, 255], np.uint8))
    array([  1., 255.], dtype=float32)
    >>> exact_floats(np.array([2**60, 2**60 + 1]))
    array([0., 1.])
    """
    floats, values = exact_scores(scores)
    if values is not None and not by_place:
        raise InputError(
            "scores that float64 cannot hold (whole numbers beyond 2**53, say) cannot be compared "
            "across pieces: scale or round them first"
        )
    return floats


def exact_scores(scores: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Give floats as `exact_floats` does; and, where these are only places, the exact numbers.

    The exact numbers are Python's whole numbers and fractions in an array of objects.
    """
    if is_tensor(scores):
        scores = tensor_values("scores", scores)
    try:
        array = real_numbers(scores)
        if array.dtype.char in "fd":  # float32 and float64
            return array, None
        if array.dtype.kind in "OUS":
            return _exact_objects(array)
        if array.dtype.itemsize <= 2 or array.dtype.kind == "b":
            return array.astype(np.float32), None
        floats = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"scores must be numbers ({str(error).strip()[:200]})") from None
    if _holds(floats, array):
        return floats, None
    places = np.unique(array, return_inverse=True)[1].reshape(array.shape).astype(np.float64)
    values = as_array([number(x) for x in array.ravel()]).reshape(array.shape)
    return np.where(np.isnan(floats), np.nan, places), values


def _exact_objects(array: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Give the numbers of an array of objects or texts as `exact_scores` does."""
    values = [number(x) for x in array.ravel().tolist()]
    floats = rounded(values)
    distinct = {x: _nearest(x) for x in values if x == x}
    whole_held = all(x == nearest for x, nearest in distinct.items() if isinstance(x, int))
    if whole_held and len(set(distinct.values())) == len(distinct):
        return floats.reshape(array.shape), None
    place = {x: i for i, x in enumerate(sorted(distinct))}
    places = np.array([place.get(x, math.nan) for x in values], np.float64)
    return places.reshape(array.shape), as_array(values).reshape(array.shape)


def as_array(numbers: list[Any]) -> NDArray[Any]:
    """Give Python numbers as an array that leaves them as they are: of floats if it can be."""
    types = set(map(type, numbers))
    if types == {float}:
        return np.array(numbers, np.float64)
    if types <= {float, int} and all(abs(x) <= LARGEST_WHOLE for x in numbers if type(x) is int):
        return np.array(numbers, np.float64)
    array = np.empty(len(numbers), object)
    array[:] = numbers
    return array


def rounded(values: Iterable[Any]) -> NDArray[np.float64]:
    """Give Python numbers as the nearest float64; beyond its range, infinite."""
    return np.array([_nearest(value) for value in values], np.float64)


def _nearest(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def round_to_odd(values: NDArray[Any], dtype: type[np.floating[Any]]) -> NDArray[Any]:
    """Round to float32 or float64: a value between two floats to the one with an odd last bit.

    Rounding the result to nearest in a format of at least two bits less is then the same as
    rounding the value itself, which rounding to nearest twice is not. `values` are floats of any
    type, integers of up to 32 bits, or Python numbers in an array of objects.

    >>> float(round_to_odd(np.array([1 + 2**-40]), np.float32)[0]) == 1 + 2**-23
    True
    """
    objects = values.dtype.kind == "O"
    with np.errstate(over="ignore"):
        floats = rounded(values.ravel()).reshape(values.shape) if objects else values
        nearest = floats.astype(dtype, copy=False)
    if values.dtype.kind in "fV" and values.itemsize <= nearest.itemsize:
        return nearest
    compared = nearest.astype(object) if objects else nearest
    above, below = values > compared, values < compared
    even = nearest.view(f"u{nearest.itemsize}") % 2 == 0
    toward = np.where(above, np.inf, -np.inf).astype(dtype)
    return np.where((above | below) & even, np.nextafter(nearest, toward), nearest)


def _holds(floats: NDArray[np.float64], array: NDArray[Any]) -> bool:
    """Whether float64 holds every number of an array: a round trip changes nothing."""
    if array.dtype.kind == "f":
        return np.array_equal(floats, array, equal_nan=True)
    if not array.size or np.abs(floats).max() < LARGEST_WHOLE:
        return True
    limits = np.iinfo(array.dtype)
    inside = (floats >= float(limits.min)) & (floats < float(limits.max))
    return bool(inside.all()) and np.array_equal(floats.astype(array.dtype), array)


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


def half_floats(values: Any) -> NDArray[Any] | None:
    """Give float16 or bfloat16 values, of an array or a tensor, as they are; None for others."""
    dtype = str(values.dtype).removeprefix("torch.")
    if dtype not in ("float16", "bfloat16"):
        return None
    if not is_tensor(values):
        return np.asarray(values)
    import ml_dtypes
    import torch

    check_tensors(values=values)
    bits: NDArray[Any] = values.detach().view(torch.int16).numpy(force=True)
    return bits.view(np.float16 if dtype == "float16" else ml_dtypes.bfloat16)


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
    if isinstance(values, (list, tuple)) and _may_be_rounded(array):
        return np.array(values, object)
    return array


def _may_be_rounded(array: NDArray[Any]) -> bool:
    """Whether NumPy may have made floats of whole numbers that float64 cannot hold."""
    if array.dtype != np.float64:
        return False
    return bool(((np.abs(array) >= LARGEST_WHOLE) & np.isfinite(array)).any())
