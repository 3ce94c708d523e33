"""Skip the doctests of integrations without their host library; refuse outdated kernels."""

from __future__ import annotations

import os
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent / "src" / "deadheat"
INTEGRATIONS = PACKAGE / "integrations"
EXTRAS = metadata("deadheat").get_all("Provides-Extra") or []
# pytest expects a module to be loaded from its source file; kernels are loaded from a compiled one.
os.environ.setdefault("PY_IGNORE_IMPORTMISMATCH", "1")


def pytest_configure() -> None:
    """Raise an error if a kernel was changed after it was compiled."""
    for types in PACKAGE.glob("*/*.pxd"):
        source = types.with_suffix(".py")
        changed = max(types.stat().st_mtime, source.stat().st_mtime)
        for compiled in source.parent.glob(f"{source.stem}.*.so"):
            if compiled.stat().st_mtime < changed:
                raise pytest.UsageError(f"{source} is newer than its compiled file: run make test")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Ignore integrations whose host library is not installed."""
    host = collection_path.stem
    is_host = collection_path.parent == INTEGRATIONS and host.replace("_", "-") in EXTRAS
    return (is_host and find_spec(host) is None) or None
