"""Optional packages, imported at the moment they are needed."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from deadheat.errors import InputError, MissingPackageError

EXTRAS = {
    "bm25s": "models",
    "datasets": "models",
    "filelock": "models",
    "gguf": "models",
    "huggingface_hub": "models",
    "ir_datasets": "ir",
    "jinja2": "report",
    "matplotlib": "plots",
    "mteb": "mteb",
    "plotly": "report",
    "ray": "ray",
    "safetensors": "models",
    "sentence_transformers": "models",
    "torch": "models",
    "transformers": "models",
}
"""The extra of deadheat that brings each optional package."""
_REQUIREMENT = re.compile(
    r"(?P<package>[\w.-]+)\s*(?P<limits>[<>=\d.,]*)\s*;.*extra == ['\"](?P<extra>.+?)['\"]"
)
_LIMIT = re.compile(r"[<>]=?[\d.]+")


def own_version() -> str:
    """Version of deadheat."""
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


def require_host(module: str, extra: str, purpose: str) -> Any:
    """Import a module of a host library, in a version that deadheat's extra for it allows.

    Parameters
    ----------
    module
        A module of the host: ``mteb``, ``sentence_transformers.util``, …
    extra
        The extra of deadheat that names the host and the range of versions that is supported.
    purpose
        What needs it, in words that can begin a sentence.
    """
    for package, limits in supported_versions(extra).items():
        try:
            installed = version(package)
        except PackageNotFoundError:
            raise MissingPackageError(package, extra, purpose) from None
        if not all(_holds(installed, limit) for limit in limits):
            raise InputError(
                f"{purpose} supports {package} {','.join(limits)}, but {installed} is installed: "
                f"pip install 'deadheat[{extra}]'"
            )
    return require(module, purpose)


def supported_versions(extra: str) -> dict[str, list[str]]:
    """Give the packages an extra of deadheat names, each with its limits (``>=2.18``, ``<3``)."""
    supported = {}
    for requirement in requires("deadheat") or ():
        named = _REQUIREMENT.match(requirement)
        if named and named["extra"] == extra:
            supported[named["package"]] = _LIMIT.findall(named["limits"])
    return supported


def _holds(installed: str, limit: str) -> bool:
    """Whether a version keeps a limit.

    >>> _holds("2.26.24", ">=2.18"), _holds("3.0.0rc1", "<3")
    (True, False)
    """
    sign, bound = re.fullmatch(r"([<>]=?)([\d.]+)", limit).groups()  # type: ignore[union-attr]
    have, other = _release(installed), _release(bound)
    length = max(len(have), len(other))
    have, other = (numbers + (0,) * (length - len(numbers)) for numbers in (have, other))
    return {">=": have >= other, "<": have < other, ">": have > other, "<=": have <= other}[sign]


def _release(text: str) -> tuple[int, ...]:
    """Give the numbers of a version, without what marks a candidate or a build."""
    return tuple(int(n) for n in re.match(r"\d+(\.\d+)*", text)[0].split("."))  # type: ignore[index]
