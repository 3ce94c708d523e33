"""Write files atomically: a file appears under its name only when it is complete."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

_DRAFT = re.compile(r"\.deadheat\.[0-9a-f]{16}")
"""The name of a file that is not complete yet."""
_OLD = 60.0
"""Seconds after which a closed draft on Windows belongs to a process that was killed."""


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
    draft, file = _new_draft(target.parent, private=mode is not None)
    try:
        with file:
            file.write(data)
            file.flush()
            if mode is not None:
                draft.chmod(mode)
            os.fsync(file.fileno())
            if sys.platform != "win32":  # while it is locked; Windows renames closed files only
                draft.replace(target)
        if sys.platform == "win32":
            draft.replace(target)
        _sync_folder(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def remove_drafts(folder: Path) -> None:
    """Remove the drafts in a folder whose processes have ended, however they ended.

    A process locks its draft while it writes, and the system ends the lock with the process. On
    Windows an open file cannot be removed, and a draft is open until just before it is renamed.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _DRAFT.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # it is in use, or belongs to another user
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(draft: Path) -> None:
    if sys.platform == "win32":
        if time.time() - draft.stat().st_mtime > _OLD:
            draft.unlink()
    else:
        handle = os.open(draft, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink()
        finally:
            os.close(handle)


def _new_draft(folder: Path, *, private: bool) -> tuple[Path, BinaryIO]:
    """Open and lock a new file; unless it is private it has the mode of new files."""
    opener = partial(os.open, mode=0o600 if private else 0o666)
    while True:
        draft = folder / f".deadheat.{secrets.token_hex(8)}"
        file = open(draft, "xb", opener=opener)  # noqa: SIM115
        if sys.platform != "win32":
            with suppress(OSError):  # a file system without locks, where nobody removes drafts
                fcntl.flock(file, fcntl.LOCK_EX)
        if draft.exists():
            return draft, file
        file.close()  # another process took it for abandoned before it was locked


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk, too, where a folder can be opened for that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
