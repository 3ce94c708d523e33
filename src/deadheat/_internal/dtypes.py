"""The number formats of scores, by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from deadheat._internal.numbers import round_to_odd
from deadheat._internal.packages import require
from deadheat.errors import InputError, suggest


@dataclass(frozen=True)
class Format:
    """A number format; NumPy and torch have the same name for it."""

    name: str
    scalar: type[np.generic]
    mantissa: int | None
    """Stored fraction bits; None for formats that are not floating point."""
    aliases: tuple[str, ...] = ()

    @cached_property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype."""
        return np.dtype(self.scalar)

    @property
    def is_float(self) -> bool:
        """Whether the format is floating point."""
        return self.mantissa is not None

    @cached_property
    def largest(self) -> float:
        """The largest finite value."""
        return float(ml_dtypes.finfo(self.dtype).max)  # type: ignore[no-untyped-call]

    @cached_property
    def smallest(self) -> float:
        """The smallest positive value with full precision."""
        return float(ml_dtypes.finfo(self.dtype).smallest_normal)  # type: ignore[no-untyped-call]

    @property
    def torch(self) -> Any:
        """The ``torch.dtype``; imports torch."""
        return getattr(require("torch", f"the torch dtype of {self.name}"), self.dtype.name)

    def round(self, values: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Round once to the nearest value of the format; return it exactly, as float32.

        Numbers of any precision are rounded from their exact value; midpoints are rounded to even.

        >>> parse_format("bf16").round([0.9988305, 0.34864515])
        array([1.        , 0.34960938], dtype=float32)
        """
        array = np.asarray(values)
        if array.dtype.kind == "O" or (array.dtype.kind in "iu" and array.itemsize > 4):
            array = round_to_odd(array.astype(object), np.float64)
        if self.name != "fp32":
            array = round_to_odd(array, np.float32).astype(self.dtype)
        return array.astype(np.float32, copy=False)


_FP8 = ("fp8", "float8", "e4m3", "float8_e4m3")
_TABLE = (
    Format("fp32", np.float32, 23, ("f32", "float")),
    Format("bf16", ml_dtypes.bfloat16, 7),
    Format("fp16", np.float16, 10, ("f16", "half")),
    Format("fp8_e4m3", ml_dtypes.float8_e4m3fn, 3, _FP8),
    Format("fp8_e5m2", ml_dtypes.float8_e5m2, 2, ("e5m2",)),
    Format("int8", np.int8, None),
    Format("binary", np.bool_, None),  # a bit per dimension, for Hamming distance
)

FORMATS: dict[str, Format] = {format.name: format for format in _TABLE}
"""Every format by its name, finest first."""

_NAMES = {
    alias: format
    for format in _TABLE
    for alias in (format.name, format.dtype.name, *format.aliases)
}


def parse_format(name: object) -> Format:
    """Return a format by its name, an alias, or a NumPy or torch dtype.

    Parameters
    ----------
    name
        ``"bf16"``, ``"bfloat16"``, ``"torch.bfloat16"``, ``torch.bfloat16``, ``np.float16``, …

    Examples
    --------
    >>> parse_format("torch.bfloat16").name
    'bf16'
    >>> parse_format(np.float16).mantissa
    10
    >>> parse_format("bf61")
    Traceback (most recent call last):
    deadheat.errors.InputError: unknown number format 'bf61'; did you mean 'bf16'?
    """
    if isinstance(name, Format):
        return name
    if isinstance(name, type) and issubclass(name, np.generic):
        name = np.dtype(name)
    key = str(name).strip().lower().removeprefix("torch.").replace("-", "_")
    if key in _NAMES:
        return _NAMES[key]
    hint = suggest(key, _NAMES) or f"; known formats: {', '.join(FORMATS)}"
    raise InputError(f"unknown number format {str(name)!r}{hint}")


def parse_float_format(name: object) -> Format:
    """Return a floating-point format; raise an error for integers and bits."""
    format = parse_format(name)
    if not format.is_float:
        floats = ", ".join(f.name for f in FORMATS.values() if f.is_float)
        raise InputError(f"{format.name} has no sigmoid or softmax; choose one of {floats}")
    return format
