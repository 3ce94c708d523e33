"""Lazy import of polars.

The import of polars takes longer than that of all of deadheat. ``pl`` of this module imports polars
when it is first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from deadheat._internal.fork_guard import allow_polars

__all__ = ["pl"]


class _LazyPolars:
    """Polars, imported when one of its attributes is first used."""

    def __getattr__(self, name: str) -> object:
        if "polars" not in sys.modules:
            allow_polars()
        value = getattr(import_module("polars"), name)
        setattr(self, name, value)  # the next access does not call this method
        return value


if TYPE_CHECKING:
    import polars as pl
else:
    pl = _LazyPolars()
