"""Files that are complete or not there."""

from __future__ import annotations

import os
import secrets
import stat
from functools import partial
from pathlib import Path

DRAFT = ".deadheat."
"""How the name of a file begins that is not complete yet."""


def utf8(text: str) -> bytes:
    r"""Give the bytes of a text; the name of a file that is no UTF-8 text as JSON escapes it.

    >>> utf8("\udcff")
    b'\\udcff'
    """
    return text.encode(errors="backslashreplace")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that appears under its name only when it is complete and on disk.

    A file that is replaced keeps its mode: nobody reads the new one who could not read the old.
    Raises what the system raises, and leaves nothing behind then.
    """
    target = path.resolve()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    draft = target.with_name(f"{DRAFT}{secrets.token_hex(8)}")
    try:
        # A new file has the mode that the system gives new files.
        opener = partial(os.open, mode=0o666 if mode is None else 0o600)
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


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk, too, where a folder can be opened for that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
