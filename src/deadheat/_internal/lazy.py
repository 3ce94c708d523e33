"""Lazy import of polars.

Importing polars takes longer than importing all of deadheat. Importing ``pl`` from this module does
not import it; the first use of ``pl`` does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["pl"]


class _LazyModule:
    """A module that is imported when one of its attributes is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)  # found without this method the next time
        return value


if TYPE_CHECKING:
    import polars as pl
else:
    pl = _LazyModule("polars")
