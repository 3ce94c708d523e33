"""Packages that every installation has, and that wait until they are used.

Importing polars takes longer than all of deadheat: ``from deadheat.late import pl`` costs
nothing, and the first use of ``pl`` imports it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pl"]


class _Late:
    """Stands for a module, and imports it when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name == "_module":
            self._module = import_module(self._name)
            return self._module
        return getattr(self._module, name)


if TYPE_CHECKING:
    import polars as pl
else:
    pl = _Late("polars")
