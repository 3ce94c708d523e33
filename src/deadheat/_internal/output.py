"""Write files atomically: a file appears under its name only when it is complete."""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path

from deadheat.errors import InputError

_DRAFT = re.compile(r"\.deadheat\.[0-9a-f]{16}")
"""Name of a draft, a file that is not complete yet."""


def utf8(text: str) -> bytes:
    r"""Encode a text as UTF-8; lone surrogates (bytes of file names) are escaped as in JSON.

    >>> utf8("\udcff")
    b'\\udcff'
    """
    return text.encode(errors="backslashreplace")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically: it appears under its name when it is complete and on disk.

    A replaced file keeps its mode, so that the same users can read it. Errors of the system are
    raised, and then no file remains.
    """
    target = path.resolve()
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


def remove_drafts(folder: Path) -> None:
    """Remove the drafts of killed processes from a folder in which no other process writes."""
    for path in folder.iterdir():
        if _DRAFT.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            with suppress(OSError):  # it is gone, or belongs to another user
                path.unlink()


def _sync_folder(folder: Path) -> None:
    """Flush the new name to the disk, if the system can open a folder."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
