"""Optional packages, imported at the moment they are needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from deadheat.errors import MissingPackageError


def require(package: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say which extra brings it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingPackageError(package, extra, purpose) from error
