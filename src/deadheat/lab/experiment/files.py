"""Files of an experiment: written atomically, inside their folder, checked with their hash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Literal, TypeVar

from deadheat._internal.output import utf8, write_whole
from deadheat.errors import InputError

T = TypeVar("T")

SUMS = "SHA256SUMS"
"""Name of the file of hashes; ``sha256sum -c`` can read it."""
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")

What = Literal["damaged", "missing", "foreign", "unfinished"]
ADVICE: dict[What, str] = {
    "damaged": "is damaged (its content does not match its hash): delete it and run the same "
    "command again",
    "missing": "is missing: run the same command again",
    "foreign": "was not written by deadheat: delete it and run again",
    "unfinished": "is not complete, because a run was interrupted: run the same command again",
}
"""Faults of a file, and the remedy of each."""


class FolderError(InputError):
    """The folder or the disk cannot be used; files that are already stored stay valid."""


class FileError(FolderError):
    """A file is damaged, missing, foreign or unfinished; the message contains the remedy."""

    def __init__(self, path: Path, what: What) -> None:
        super().__init__(f"{path} {ADVICE[what]}")
        self.path, self.what = path, what


@dataclass(frozen=True)
class HashedFolder:
    """A folder whose files are listed with their hashes in ``SHA256SUMS``.

    Before a file changes, its hash is removed from the list; the new hash is added after the write.
    So even if a run is killed, every listed hash is correct, and a file without a hash is not
    complete.
    """

    path: Path

    def write(self, files: Mapping[str, bytes | None]) -> None:
        """Store files, in this order, and their hashes; an unchanged file is not written.

        A file without content (None) is removed.
        """
        recorded = self.read_hashes()
        hashes = {name: _hash(data) for name, data in files.items()}
        changed = [name for name in files if _hash(read_file(self.path / name)) != hashes[name]]
        if recorded.keys() & changed:
            self._record({name: own for name, own in recorded.items() if name not in changed})
        for name in changed:
            write_file(self.path / name, files[name])
        complete = {name: own for name, own in {**recorded, **hashes}.items() if own is not None}
        if complete != recorded or changed:
            self._record(complete)

    def read(self, name: str, parse: Callable[[bytes], T]) -> T:
        """Read and parse a file; refuse a file that is missing, damaged or cannot be parsed."""
        path = self.path / name
        data = read_file(path)
        if data is None:
            raise FileError(path, "missing")
        if self.read_hashes().get(name) not in (None, _hash(data)):
            raise FileError(path, "damaged")
        try:
            return parse(data)
        except Exception as error:  # parsers raise different exceptions
            raise FolderError(
                f"{path} cannot be read ({error}); delete it and run the same command again"
            ) from None

    def read_hashes(self) -> dict[str, str]:
        """Return the hashes of the files that are complete."""
        path = self.path / SUMS
        lines = (read_file(path) or b"").decode(errors="replace").splitlines()
        found = [_LINE.fullmatch(line) for line in lines]
        # A Windows path, because it recognises the separators and drives of every system.
        names = [PureWindowsPath(line[2]) for line in found if line]
        if None in found or any(name.anchor or ".." in name.parts for name in names):
            raise FolderError(f"{path} is damaged; delete it and run the same command again")
        return {line[2]: line[1] for line in found if line}

    def find_faults(self, names: Iterable[str] | None = None) -> list[FileError]:
        """Return the files, of all listed or of some names, that are not as they were written."""
        recorded, faults = self.read_hashes(), []
        for name in recorded if names is None else names:
            found = _hash(read_file(self.path / name))
            if name not in recorded:
                faults.append(FileError(self.path / name, "unfinished"))
            elif found != recorded[name]:
                faults.append(FileError(self.path / name, "damaged" if found else "missing"))
        return faults

    def check_files(self, names: Iterable[str] | None = None) -> None:
        """Refuse files, of all listed or of some names, that are not as they were written."""
        for fault in self.find_faults(names):
            raise fault

    def find_missing(self, names: Iterable[str] | None = None) -> set[Path]:
        """Return the files that are missing or not complete; refuse a damaged one."""
        faults = self.find_faults(names)
        for fault in faults:
            if fault.what == "damaged":
                raise fault
        return {fault.path for fault in faults}

    def _record(self, hashes: Mapping[str, str]) -> None:
        lines = [f"{hashes[name]}  {name}\n" for name in sorted(hashes)]
        write_file(self.path / SUMS, "".join(lines).encode())


def dump_json(data: object) -> bytes:
    """Return plain values as the bytes of a JSON file."""
    return utf8(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def refuse_outside_links(folder: Path) -> None:
    """Refuse a folder with links that lead out of it: it may be untrusted."""
    inside = folder.resolve()
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(inside):
            raise FolderError(f"{path} is a link out of {folder}; replace it by the files")


def read_file(path: Path) -> bytes | None:
    """Read a file; return None if there is no such file."""
    with explain_errors(path, "read"):
        return path.read_bytes() if path.is_file() else None


def write_file(path: Path, data: bytes | None) -> None:
    """Write a file atomically: it gets its name when it is complete and on disk.

    None removes the file.
    """
    with explain_errors(path, "written"):
        if data is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data)


@contextmanager
def explain_errors(path: Path, action: Literal["read", "written"]) -> Iterator[None]:
    """Turn an OSError about a file into a `FolderError` with advice."""
    try:
        yield
    except OSError as error:
        raise FolderError(
            f"{path} cannot be {action} ({error.strerror}); check its permissions and the space on "
            "the disk, and run the same command again; files that are already stored stay valid"
        ) from None


def _hash(data: bytes | None) -> str | None:
    """Return the SHA-256 of the content of a file in hexadecimal; None if there is no file."""
    return None if data is None else hashlib.sha256(data).hexdigest()
