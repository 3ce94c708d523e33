"""Import optional packages when they are needed."""

from __future__ import annotations

import importlib
import os
import shlex
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from platform import python_version
from types import ModuleType
from typing import TYPE_CHECKING

from deadheat.errors import InputError, MissingPackageError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

EXTRAS = {
    "bm25s": "models",
    "datasets": "models",
    "filelock": "models",
    "gguf": "models",
    "huggingface_hub": "models",
    "ir_datasets": "ir",
    "jinja2": "report",
    "matplotlib": "plots",
    "peft": "models",
    "qdrant_client": "qdrant",
    "safetensors": "models",
    "sentence_transformers": "models",
    "torch": "models",
    "transformers": "models",
}
"""The extra of deadheat that installs each optional package. Default: the name of the package."""


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def find_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of the packages; packages that are not installed are left out."""
    versions = {}
    for name in names:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def own_version() -> str:
    """Return the version of deadheat."""
    return version("deadheat")


def require(module: str, purpose: str) -> ModuleType:
    """Import a module of an optional package; the error has the command that installs it.

    Parameters
    ----------
    module
        ``torch``, ``matplotlib.style``, …
    purpose
        What needs it, in words that can begin a sentence.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or module).partition(".")[0]
        own = EXTRAS.get(package, package.replace("_", "-"))
        command = install_command(EXTRAS.get(missing, own))
        raise MissingPackageError(missing, command, purpose) from error


def pandas_frame(frame: pl.DataFrame) -> pd.DataFrame:
    """Convert a polars frame to a pandas frame; pyarrow is not needed."""
    pandas = require("pandas", "to_pandas")
    converted: pd.DataFrame = pandas.DataFrame(frame.to_dict(as_series=False))
    return converted


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra of deadheat, or another package.

    The command names these packages, because the package index may have another package that is
    called deadheat.
    """
    needed = list(map(str, _requirements(extra))) or [extra]
    return f"pip install {shlex.join(needed)}"


def require_host(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a module of a host library, in a version that deadheat's extra for it allows.

    Parameters
    ----------
    module
        A module of the host: ``mteb``, ``sentence_transformers.util``, …
    extra
        The extra of deadheat with the host and its supported versions.
    purpose
        What needs it, in words that can begin a sentence.
    """
    supported = supported_versions(extra)
    if not supported:  # markers of the extra exclude this Python
        raise InputError(f"{purpose} needs a newer Python than {python_version()}")
    for package, limits in supported.items():
        installed = find_versions([package]).get(package)
        if installed is None:
            raise MissingPackageError(package, install_command(extra), purpose)
        if not limits.contains(installed, prereleases=True):
            raise InputError(
                f"{purpose} supports {package} {limits}, but {installed} is installed: "
                f"{install_command(extra)}"
            )
    return require(module, purpose)


def supported_versions(extra: str) -> dict[str, SpecifierSet]:
    """Return the packages that an extra of deadheat requires, each with its version limits.

    Other extras of deadheat that the extra includes are left out.
    """
    return {requirement.name: requirement.specifier for requirement in _requirements(extra)}


def _requirements(extra: str) -> list[Requirement]:
    """Return the requirements of an extra on this Python, without their markers."""
    from packaging.requirements import Requirement

    found = []
    for requirement in map(Requirement, requires("deadheat") or ()):
        marker, requirement.marker = requirement.marker, None
        if requirement.name == "deadheat" or marker is None:
            continue
        if marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            found.append(requirement)
    return found
