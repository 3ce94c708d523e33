"""Packages that every installation has, and that wait until they are used.

Importing polars takes longer than all of deadheat: ``from deadheat.late import pl`` costs
nothing, and the first use of ``pl`` imports it.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["pl"]


class _Late(ModuleType):
    """Stands for a module, and imports it when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)  # the next time it is there
        return value


if TYPE_CHECKING:
    import polars as pl
else:
    pl = _Late("polars")
