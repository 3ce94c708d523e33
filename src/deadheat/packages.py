"""Optional packages, imported at the moment they are needed."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from deadheat.errors import MissingPackageError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

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
        command = install_command(EXTRAS.get(missing, EXTRAS[package]))
        raise MissingPackageError(missing, command, purpose) from error


def pandas_frame(frame: pl.DataFrame) -> pd.DataFrame:
    """Give a polars frame as one of pandas; needs pandas, and nothing else."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise MissingPackageError("pandas", "pip install pandas", "to_pandas") from error
    return pd.DataFrame(frame.to_dict(as_series=False))


def install_command(extra: str) -> str:
    """Give the command that brings an extra, from where deadheat itself was installed from.

    Never by its name alone: the package index may have something else under it.
    """
    from importlib.metadata import distribution

    own = distribution("deadheat")
    recorded = json.loads(own.read_text("direct_url.json") or "{}")
    url = recorded.get("url", "")
    if "dir_info" in recorded:
        editable = " -e" if recorded["dir_info"].get("editable") else ""
        folder = shlex.quote(url2pathname(urlparse(url).path))
        return f"cd {folder} && pip install{editable} '.[{extra}]'"
    if "vcs_info" in recorded:
        version = recorded["vcs_info"]
        revision = version.get("requested_revision") or version["commit_id"]
        return f"pip install 'deadheat[{extra}] @ {version['vcs']}+{url}@{revision}'"
    if url:
        return f"pip install 'deadheat[{extra}] @ {url}'"
    wanted = re.compile(rf"""extra\s*==\s*['"]{re.escape(extra)}['"]""")
    needed = [r.partition(";")[0].strip() for r in own.requires or [] if wanted.search(r)]
    return f"pip install {shlex.join(needed)}"
