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
    from packaging.specifiers import SpecifierSet

_MODELS = "bm25s datasets filelock gguf huggingface_hub peft safetensors sentence_transformers"
EXTRAS = {
    **dict.fromkeys((*_MODELS.split(), "torch", "transformers"), "models"),
    "ir_datasets": "ir",
    "jinja2": "report",
    "matplotlib": "plots",
    "qdrant_client": "qdrant",
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
    """Convert a polars frame to pandas, without pyarrow."""
    pandas = require("pandas", "to_pandas")
    return pandas.DataFrame(frame.to_dict(as_series=False))


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra, or the package of this name.

    The command does not include deadheat, which may have been installed from any source.
    """
    needed = [f"{name}{limits}" for name, limits in supported_versions(extra).items()]
    return f"pip install {shlex.join(needed or [extra])}"


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
        try:
            installed = version(package)
        except PackageNotFoundError:
            raise MissingPackageError(package, install_command(extra), purpose) from None
        if not limits.contains(installed, prereleases=True):
            raise InputError(
                f"{purpose} supports {package} {limits}, but {installed} is installed: "
                f"{install_command(extra)}"
            )
    return require(module, purpose)


def supported_versions(extra: str) -> dict[str, SpecifierSet]:
    """Return the packages that an extra of deadheat requires, each with its version limits."""
    from packaging.requirements import Requirement

    supported: dict[str, SpecifierSet] = {}
    for requirement in map(Requirement, requires("deadheat") or ()):
        marker = requirement.marker
        if marker is None or not marker.evaluate({"extra": extra}):
            continue
        if requirement.name == "deadheat":
            for included in sorted(requirement.extras):
                supported |= supported_versions(included)
        elif not marker.evaluate({"extra": ""}):
            supported[requirement.name] = requirement.specifier
    return supported
