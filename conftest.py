"""Doctests of an integration run where its host library is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from deadheat.packages import EXTRAS

INTEGRATIONS = Path(__file__).parent / "src" / "deadheat" / "integrations"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the integrations of absent hosts."""
    host = collection_path.stem
    absent = collection_path.parent == INTEGRATIONS and host in EXTRAS and find_spec(host) is None
    return absent or None
