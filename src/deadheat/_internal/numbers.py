"""Parse numbers, and convert them to floats with the same order and ties."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError

LARGEST_GRADE = 1e100
"""Larger grades are an error, because sums of squares of grades would overflow."""
LARGEST_WHOLE = 2**53
"""float64 can hold every whole number up to this one."""
SPACE = " \t\n\r\x0b\x0c"
"""ASCII white space, around a number and between the fields of a TREC file."""

Number: TypeAlias = int | float | Fraction
Numbers: TypeAlias = NDArray[np.generic]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
ExactScores: TypeAlias = tuple[FloatArray, NDArray[np.object_] | None]
"""Floats; and the exact numbers if float64 cannot hold them. The floats then have their order."""
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.A | re.I)
_WHOLE = re.compile(r"[+-]?\d+", re.A)


def number(value: object) -> Number:
    """Return the exact value as a Python number; raise a TypeError or ValueError for anything else.

    All formats use this definition of a number. Text must be a number in the notation of C or
    Fortran, with ASCII digits: neither ``1_000`` nor full-width digits. It becomes the nearest
    float64, as in other tools, but a whole number beyond 2**53 stays a whole number. Numbers of
    Python and NumPy keep their value; ``True`` is 1, and None is not a number.

    >>> number("1e3"), number("9007199254740993"), number(np.float32(0.5))
    (1000.0, 9007199254740993, 0.5)
    """
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, bytes):
        raise TypeError("bytes are not a number")
    if isinstance(value, np.longdouble):
        return Fraction(*value.as_integer_ratio()) if np.isfinite(value) else float(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, Decimal) and value.is_finite():
        return Fraction(value)
    return value if isinstance(value, Fraction) else float(value)  # type: ignore[arg-type]


def _from_text(value: str) -> int | float:
    text = value.strip(SPACE)
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r:.60} is not a number")
    nearest = float(text)
    if abs(nearest) < LARGEST_WHOLE or not _WHOLE.fullmatch(text):
        return nearest
    return int(text)


def exact_floats(scores: object, *, by_place: bool = True) -> FloatArray:
    """Return scores as a float32 or float64 array with the same order and the same ties.

    Types of up to 16 bits (float16, bfloat16, float8, int8 …) become float32, and longer integers
    float64, which is exact. If float64 cannot hold the numbers (integers beyond 2**53, long
    doubles, decimal numbers that differ in late digits), they are replaced by their index among
    the distinct numbers. With `by_place` false they are an error instead, because the array is a
    part of a larger one. Torch tensors are accepted; torch is not imported.

    >>> exact_floats(np.array([1, 255], np.uint8))
    array([  1., 255.], dtype=float32)
    >>> exact_floats(np.array([2**60, 2**60 + 1]))
    array([0., 1.])
    """
    floats, values = exact_scores(scores)
    if values is not None and not by_place:
        raise InputError(
            "scores that float64 cannot hold (such as whole numbers beyond 2**53) cannot be "
            "compared across pieces: scale or round them first"
        )
    return floats


def exact_scores(scores: object) -> ExactScores:
    """Return floats like `exact_floats`; and the exact numbers if float64 cannot hold them.

    The exact numbers are Python integers and fractions in an array of objects.
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
    if array.dtype.kind == "f":
        is_exact = np.array_equal(floats, array, equal_nan=True)
    else:  # Python compares whole numbers and floats exactly
        small = np.abs(floats).max(initial=0) < LARGEST_WHOLE
        is_exact = small or floats.tolist() == array.tolist()
    if is_exact:
        return floats, None
    places = np.unique(array, return_inverse=True)[1].reshape(array.shape).astype(np.float64)
    exact = np.fromiter(map(number, array.ravel()), object, array.size)
    return np.where(np.isnan(floats), np.nan, places), exact.reshape(array.shape)


def _exact_objects(array: Numbers) -> ExactScores:
    """Return the numbers of an array of objects or texts like `exact_scores`."""
    values = [number(x) for x in array.ravel().tolist()]
    floats = rounded(values)
    distinct = {x: _nearest(x) for x in values if x == x}
    whole_held = all(x == nearest for x, nearest in distinct.items() if isinstance(x, int))
    if whole_held and len(set(distinct.values())) == len(distinct):
        return floats.reshape(array.shape), None
    place = {x: i for i, x in enumerate(sorted(distinct))}
    places = np.array([place.get(x, math.nan) for x in values], np.float64)
    exact = np.fromiter(values, object, len(values))
    return places.reshape(array.shape), exact.reshape(array.shape)


def as_array(numbers: list[Number]) -> NDArray[np.float64] | NDArray[np.object_]:
    """Return Python numbers as an array, without rounding: of floats if possible."""
    if all(type(x) is float or (type(x) is int and abs(x) <= LARGEST_WHOLE) for x in numbers):
        return np.array(numbers, np.float64)
    return np.fromiter(numbers, object, len(numbers))


def rounded(values: Iterable[Number]) -> NDArray[np.float64]:
    """Return Python numbers as the nearest float64; infinite beyond its range."""
    return np.array([_nearest(value) for value in values], np.float64)


def _nearest(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def round_to_odd(values: NDArray[Any], dtype: type[np.float32 | np.float64]) -> FloatArray:
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
        nearest: FloatArray = floats.astype(dtype, copy=False)
    if values.dtype.kind in "fV" and values.itemsize <= nearest.itemsize:
        return nearest
    compared = nearest.astype(object) if objects else nearest
    above, below = values > compared, values < compared
    even = nearest.view(f"u{nearest.itemsize}") % 2 == 0
    toward = np.where(above, np.inf, -np.inf).astype(dtype)
    return np.where((above | below) & even, np.nextafter(nearest, toward), nearest)


def check_number(name: str, number: object, *, least: int) -> int:
    """Return a whole number; raise `InputError` for anything else and for numbers below `least`."""
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < least:
        raise InputError(f"{name} must be a whole number, {least} or more, not {number!r}")
    return int(number)


def is_tensor(values: object) -> TypeGuard[Any]:
    """Return whether values are a torch tensor, without importing torch."""
    return hasattr(values, "detach")


def tensor_values(name: str, tensor: Any) -> NDArray[np.generic]:
    """Return the values of a torch tensor as an array, exactly."""
    check_tensors(**{name: tensor})
    # Exact, because float32 holds every floating-point type of torch except float64.
    narrow = tensor.is_floating_point() and tensor.element_size() < 4
    array: NDArray[np.generic] = (tensor.float() if narrow else tensor).numpy(force=True)
    return array


def half_floats(values: Any) -> NDArray[np.generic] | None:
    """Return float16 or bfloat16 values of an array or a tensor unchanged; None for other types."""
    dtype = str(values.dtype).removeprefix("torch.")
    if dtype not in ("float16", "bfloat16"):
        return None
    if not is_tensor(values):
        return np.asarray(values)
    import ml_dtypes
    import torch

    check_tensors(values=values)
    bits: NDArray[np.generic] = values.detach().view(torch.int16).numpy(force=True)
    return bits.view(np.float16 if dtype == "float16" else ml_dtypes.bfloat16)


def check_tensors(**tensors: Any) -> None:
    """Raise an error for tensors without plain values; the keywords are used in messages."""
    for name, tensor in tensors.items():
        is_dense = str(tensor.layout) == "torch.strided" and not tensor.is_nested
        if tensor.is_meta or tensor.is_quantized or not is_dense:
            raise InputError(
                f"{name} must be a dense tensor with values, not sparse, nested, quantised or on "
                "the meta device: pass to_dense(), a list of rows, dequantize(), or load the values"
            )


def real_numbers(values: object) -> NDArray[Any]:
    """Return values as an array of real numbers; raise the error of NumPy if that is impossible."""
    if np.ma.isMaskedArray(values):
        raise TypeError("a masked array has no value where it is masked: use lists of lists")
    array = np.asarray(values)
    if array.dtype.kind in "cmM" or array.dtype.names:
        raise TypeError(f"{array.dtype} is not a type of real numbers")
    if not isinstance(values, (list, tuple)) or array.dtype != np.float64:
        return array
    # NumPy may have rounded whole numbers that float64 cannot hold.
    is_rounded = ((np.abs(array) >= LARGEST_WHOLE) & np.isfinite(array)).any()
    return np.array(values, object) if is_rounded else array
