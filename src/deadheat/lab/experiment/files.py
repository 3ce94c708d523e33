"""Files of an experiment: written atomically, inside their folder, checked by their hash."""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from deadheat.errors import InputError
from deadheat.output import write_whole

SUMS = "SHA256SUMS"
"""Name of the file of hashes, which ``sha256sum -c`` reads, too."""
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")

What = Literal["damaged", "missing", "foreign", "unfinished"]
ADVICE: dict[What, str] = {
    "damaged": "is damaged (its content does not match its hash): delete it and run the same "
    "command again",
    "missing": "is missing: run the same command again",
    "foreign": "was not written by deadheat: delete it and run again",
    "unfinished": "is not complete, because a run was interrupted: run the same command again",
}
"""What can be wrong with a file, and what to do about it."""


class FolderError(InputError):
    """Something is wrong with the folder or the disk; what was stored before stays valid."""


@dataclass(frozen=True)
class Fault:
    """A file that is not what was written."""

    path: Path
    what: What

    @property
    def error(self) -> FolderError:
        """The fault as an error."""
        return FolderError(f"{self.path} {ADVICE[self.what]}")


@dataclass(frozen=True)
class HashedFolder:
    """A folder whose files are listed with their hashes in ``SHA256SUMS``.

    The hash of a file that is to change is taken off the list before, and put on it after: however
    a run ends, no hash is ever that of other bytes, and a file without one is not complete.
    """

    path: Path

    def write(self, files: Mapping[str, bytes]) -> None:
        """Store files, in this order, and their hashes; an unchanged file is not written."""
        recorded = self.read_hashes()
        hashes = {name: sha256(data) for name, data in files.items()}
        changed = [name for name in files if self._hash(name) != hashes[name]]
        if recorded.keys() & changed:
            self._record({name: own for name, own in recorded.items() if name not in changed})
        for name in changed:
            write_file(self.path / name, files[name])
        if {**recorded, **hashes} != recorded or changed:
            self._record({**recorded, **hashes})

    def remove(self, *names: str) -> None:
        """Remove files from the list, then from the folder."""
        recorded = self.read_hashes()
        kept = {name: own for name, own in recorded.items() if name not in names}
        if kept != recorded:
            self._record(kept)
        for name in names:
            with explain_write_errors(self.path / name):
                (self.path / name).unlink(missing_ok=True)

    def read(self, name: str) -> bytes:
        """Read a file; refuse one that is missing or damaged."""
        path = self.path / name
        if not path.is_file():
            raise Fault(path, "missing").error
        with explain_read_errors(path):
            data = path.read_bytes()
        if self.read_hashes().get(name) not in (None, sha256(data)):
            raise Fault(path, "damaged").error
        return data

    def read_hashes(self) -> dict[str, str]:
        """Return the hashes of the files that are complete."""
        path = self.path / SUMS
        if not path.is_file():
            return {}
        with explain_read_errors(path):
            lines = path.read_bytes().decode(errors="replace").splitlines()
        found = [_LINE.fullmatch(line) for line in lines]
        names = [PurePosixPath(line[2]) for line in found if line]
        if None in found or any(name.is_absolute() or ".." in name.parts for name in names):
            raise FolderError(f"{path} is damaged: delete it and run the same command again")
        return {line[2]: line[1] for line in found if line}

    def find_faults(self) -> list[Fault]:
        """Return the files that are complete according to the list, and are not."""
        faults = []
        for name, recorded in self.read_hashes().items():
            found = self._hash(name)
            if found != recorded:
                faults.append(Fault(self.path / name, "damaged" if found else "missing"))
        return faults

    def _record(self, hashes: Mapping[str, str]) -> None:
        lines = [f"{hashes[name]}  {name}\n" for name in sorted(hashes)]
        write_file(self.path / SUMS, "".join(lines).encode())

    def _hash(self, name: str) -> str | None:
        path = self.path / name
        if not path.is_file():
            return None
        with explain_read_errors(path), path.open("rb") as file:
            digest = hashlib.sha256()
            while block := file.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()


def raise_first(faults: Iterable[Fault]) -> None:
    """Raise the first fault, if there is one."""
    for fault in faults:
        raise fault.error


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def refuse_outside_links(folder: Path) -> None:
    """Refuse a folder with links that lead out of it: it may be untrusted."""
    inside = folder.resolve()
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(inside):
            raise FolderError(f"{path} leads out of {folder}: put the files themselves there")


def write_file(path: Path, data: bytes) -> None:
    """Write a file that appears under its name only when it is complete and on disk."""
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError while a file is written into a `FolderError` that says what to do."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise FolderError(
            f"{path} cannot be written ({error.strerror}): "
            + ("free some space" if full else "fix that")
            + " and run the same command again; what was stored before stays valid"
        ) from None


@contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Turn an OSError while a file is read into a `FolderError`."""
    try:
        yield
    except OSError as error:
        raise FolderError(
            f"{path} cannot be read ({error.strerror}): check its permissions and the disk"
        ) from None
