"""Write files atomically: a file appears under its name only when it is complete."""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

_DRAFT = re.compile(r"\.deadheat\.[0-9a-f]{16}")
"""The name of a file that is not complete yet."""
_OLD = 3600.0
"""Seconds after the last write to a draft until it belongs to a process that was killed."""


def utf8(text: str) -> bytes:
    r"""Encode a text as UTF-8; lone surrogates (bytes of file names) are escaped as in JSON.

    >>> utf8("\udcff")
    b'\\udcff'
    """
    return text.encode(errors="backslashreplace")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that appears under its name only when it is complete and on disk.

    A file that is replaced keeps its mode, so that no other users can read it than before. Raises
    the errors of the system, and then leaves no file behind. Drafts that killed processes left in
    the same folder are removed.
    """
    target = path.resolve()
    remove_drafts(target.parent)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    draft = target.parent / f".deadheat.{secrets.token_hex(8)}"
    opener = partial(os.open, mode=0o666 if mode is None else 0o600)
    try:
        with open(draft, "xb", opener=opener) as file:
            file.write(data)
            file.flush()
            if mode is not None:
                draft.chmod(mode)
            os.fsync(file.fileno())
        draft.replace(target)
        _sync_folder(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def remove_drafts(folder: Path, age: float = _OLD) -> None:
    """Remove drafts in a folder that nobody wrote to for some seconds."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _DRAFT.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # it is gone, or belongs to another user
                    if time.time() - entry.stat().st_mtime >= age:
                        Path(entry.path).unlink()


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk, too, where a folder can be opened for that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
