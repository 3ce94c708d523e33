"""Datasets on the Hugging Face hub, through the ``datasets`` package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from deadheat._lazy import pl
from deadheat.errors import InputError
from deadheat.formats.frames import is_known, with_names
from deadheat.lab.datasets.folders import FolderSource
from deadheat.lab.datasets.sources import TableSource
from deadheat.packages import require

_PURPOSE = "Reading a dataset from the hub"
_TIMEOUT = 30.0


def open_hub(name: str, revision: str | None) -> TableSource:
    """Open a hub dataset; without a connection, its downloaded copy.

    Offline, ``datasets`` alone would list no configs and take any cached revision.
    """
    hub: Any = require("huggingface_hub", _PURPOSE)
    at = f" at revision {revision!r}" if revision else ""
    try:
        info = hub.HfApi().dataset_info(name, revision=revision, timeout=_TIMEOUT)
    except (hub.errors.RepositoryNotFoundError, hub.errors.RevisionNotFoundError) as error:
        raise InputError(
            f"the hub shows no dataset {name!r}{at}, and no folder has that name; check the "
            "spelling, or log in with `hf auth login` if it is private or gated"
        ) from error
    except Exception as error:  # several HTTP libraries' errors, depending on version and cause
        try:
            copy = hub.snapshot_download(
                name, repo_type="dataset", revision=revision, local_files_only=True
            )
        except Exception:
            raise _unreadable(f"{name}{at}", error) from error
        source = FolderSource(Path(copy))
        source.location, source.revision = name, Path(copy).name
        return source
    return HubSource(name, revision, commit=info.sha)


class HubSource:
    """The configs of a hub dataset as tables.

    Parameters
    ----------
    name
        ``owner/name`` on the hub.
    revision
        Branch, tag or commit to read. It is passed on as it was given: asking for a branch
        by its commit would leave a download that cannot be found by the branch's name.
    commit
        The commit ``revision`` stands for, if known.
    """

    def __init__(self, name: str, revision: str | None, commit: str | None = None) -> None:
        self._library: Any = require("datasets", _PURPOSE)
        self.location = name
        self.revision = commit or revision
        self._asked = revision

    def tables(self) -> list[str]:
        """Names of the configs."""
        return list(self._ask("get_dataset_config_names"))

    def splits(self, table: str) -> list[str]:
        """Return the splits of a config."""
        return list(self._ask("get_dataset_split_names", table))

    def read(self, table: str, split: str) -> pl.DataFrame:
        """Read one split of a config."""
        data = self._ask("load_dataset", table, split=split)
        known = [name for name in data.column_names if is_known(name)]
        return with_names(data.select_columns(known).to_polars(), data.column_names)

    def _ask(self, function: str, *arguments: str, **options: str) -> Any:
        call = getattr(self._library, function)
        try:
            return call(self.location, *arguments, revision=self._asked, **options)
        except Exception as error:  # the network may fail, or the files, in any library below
            raise _unreadable(self.location, error) from error


def _unreadable(name: str, error: Exception) -> InputError:
    reason = re.split(r"\.?\n|\. ", str(error))[0] or type(error).__name__
    return InputError(
        f"dataset {name} could not be read from the hub ({reason}), and no folder has that name; "
        "check the connection, or download it elsewhere and give the path of its folder"
    )
