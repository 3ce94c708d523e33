"""Files that are complete or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

DRAFT = ".deadheat."
"""How the name of a file begins that is not complete yet."""


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that appears under its name only when it is complete and on disk.

    Raises what the system raises, and leaves nothing behind then.
    """
    target = path.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=DRAFT)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
        _sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk, too, where a folder can be opened for that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
