"""Lazy import of polars.

The import of polars takes longer than that of all of deadheat. ``pl`` of this module imports polars
when it is first used.
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
        setattr(self, name, value)  # the next access does not call this method
        return value


if TYPE_CHECKING:
    import polars as pl
else:
    pl = _LazyModule("polars")
