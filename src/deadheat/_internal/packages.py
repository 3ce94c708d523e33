"""Import optional packages when they are needed."""

from __future__ import annotations

import importlib
import json
import os
import shlex
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distributions, requires, version
from platform import python_version
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from deadheat.errors import InputError, MissingPackageError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
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
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise MissingPackageError("pandas", "pip install pandas", "to_pandas") from error
    return pd.DataFrame(frame.to_dict(as_series=False))


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from the origin of the installed deadheat.

    The command never uses the name alone, because the package index may have another package of
    that name.
    """
    from urllib.request import url2pathname

    # A checkout on the path is a second record of deadheat, without its origin.
    origins = (own.read_text("direct_url.json") for own in distributions(name="deadheat"))
    recorded = json.loads(next(filter(None, origins), "{}"))
    url = recorded.get("url", "")
    if "dir_info" in recorded:
        editable = " -e" if recorded["dir_info"].get("editable") else ""
        folder = shlex.quote(url2pathname(urlparse(url).path))
        return f"cd {folder} && pip install{editable} '.[{extra}]'"
    if "vcs_info" in recorded:
        origin = recorded["vcs_info"]
        revision = origin.get("requested_revision") or origin["commit_id"]
        return f"pip install 'deadheat[{extra}] @ {origin['vcs']}+{url}@{revision}'"
    if url:
        return f"pip install 'deadheat[{extra}] @ {url}'"
    needed = [f"{name}{limits}" for name, limits in supported_versions(extra).items()]
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
    from packaging.requirements import Requirement

    supported = {}
    for requirement in map(Requirement, requires("deadheat") or ()):
        marker = requirement.marker
        if requirement.name == "deadheat" or marker is None:
            continue
        if marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            supported[requirement.name] = requirement.specifier
    return supported
