"""Optional packages, imported at the moment they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from deadheat.errors import MissingPackageError

EXTRAS = {
    "bm25s": "models",
    "datasets": "models",
    "filelock": "models",
    "gguf": "models",
    "huggingface_hub": "models",
    "ir_datasets": "ir",
    "jinja2": "report",
    "matplotlib": "plots",
    "plotly": "report",
    "ray": "ray",
    "safetensors": "models",
    "scipy": "leaderboard",
    "sentence_transformers": "models",
    "torch": "models",
    "transformers": "models",
}
"""The extra of deadheat that brings each optional package."""


def own_version() -> str:
    """Version of deadheat."""
    from importlib.metadata import version

    return version("deadheat")


def require(module: str, purpose: str) -> Any:
    """Import a module of an optional package, or say which extra brings what is missing.

    Parameters
    ----------
    module
        ``torch``, ``plotly.offline``, …; its package is one of `EXTRAS`.
    purpose
        What needs it, in words that can begin a sentence.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or module).partition(".")[0]
        raise MissingPackageError(missing, EXTRAS.get(missing, EXTRAS[package]), purpose) from error
