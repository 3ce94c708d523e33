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

from deadheat.errors import InputError

_DRAFT = re.compile(r"\.deadheat\.[0-9a-f]{16}")
"""Name of a draft, a file that is not complete yet."""
_OLD = 3600.0
"""Age in seconds from which a draft is considered to be left by a killed process."""


def utf8(text: str) -> bytes:
    r"""Encode a text as UTF-8; lone surrogates (bytes of file names) are escaped as in JSON.

    >>> utf8("\udcff")
    b'\\udcff'
    """
    return text.encode(errors="backslashreplace")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically: it appears under its name when it is complete and on disk.

    A replaced file keeps its mode, so that the same users can read it. Errors of the system are
    raised, and then no file remains. Drafts of killed processes in the same folder are removed.
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


def write_output(path: str | os.PathLike[str], data: bytes, *, force: bool) -> Path:
    """Write a file that a user asked for, as `write_whole` does; every failure is an `InputError`.

    An existing file is replaced only with `force`.
    """
    target = Path(path)
    if not force and target.exists():
        raise InputError(f"{path}: exists already; use force=True (--force) to overwrite it")
    try:
        write_whole(target, data)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    return target


def remove_drafts(folder: Path, age: float = _OLD) -> None:
    """Remove drafts in a folder that were not written to for `age` seconds."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _DRAFT.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # it is gone, or belongs to another user
                    if time.time() - entry.stat().st_mtime >= age:
                        Path(entry.path).unlink()


def _sync_folder(folder: Path) -> None:
    """Flush the new name to the disk, if the system can open a folder."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
