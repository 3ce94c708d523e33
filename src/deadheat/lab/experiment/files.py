"""Files of an experiment: written atomically, inside their folder, checked with their hash."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Literal, TypeVar

from deadheat._internal.output import utf8, write_whole
from deadheat.errors import InputError
from deadheat.formats import open_safetensors
from deadheat.provenance import Record
from deadheat.ties import Ints

if TYPE_CHECKING:
    import torch

R = TypeVar("R", bound=Record)
T = TypeVar("T")

SUMS = "SHA256SUMS"
"""Name of the file of hashes; ``sha256sum -c`` can read it."""
MAX_PARTS = 1000
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
        hashes = {name: None if data is None else _hash_bytes(data) for name, data in files.items()}
        changed = [name for name in files if _hash_file(self.path / name) != hashes[name]]
        if recorded.keys() & changed:
            self._record({name: own for name, own in recorded.items() if name not in changed})
        for name in changed:
            data = files[name]
            if data is not None:
                write_file(self.path / name, data)
            else:
                with explain_errors(self.path / name, "written"):
                    (self.path / name).unlink(missing_ok=True)
        complete = {name: own for name, own in {**recorded, **hashes}.items() if own is not None}
        if complete != recorded or changed:
            self._record(complete)

    def read(self, name: str, parse: Callable[[bytes], T]) -> T:
        """Read and parse a file; refuse a file that is missing, damaged or cannot be parsed."""
        path = self.path / name
        if not path.is_file():
            raise FileError(path, "missing")
        with explain_errors(path, "read"):
            data = path.read_bytes()
        if self.read_hashes().get(name) not in (None, _hash_bytes(data)):
            raise FileError(path, "damaged")
        try:
            return parse(data)
        except Exception as error:  # parsers raise different exceptions
            raise FolderError(
                f"{path} cannot be read ({error}); delete it and run the same command again"
            ) from None

    def read_record(self, name: str, kind: type[R]) -> R:
        """Read a record from a JSON file."""
        return self.read(name, lambda data: kind.from_dict(json.loads(data)))

    def read_hashes(self) -> dict[str, str]:
        """Return the hashes of the files that are complete."""
        path = self.path / SUMS
        if not path.is_file():
            return {}
        with explain_errors(path, "read"):
            lines = path.read_bytes().decode(errors="replace").splitlines()
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
            found = _hash_file(self.path / name)
            if name not in recorded:
                faults.append(FileError(self.path / name, "unfinished"))
            elif found != recorded[name]:
                faults.append(FileError(self.path / name, "damaged" if found else "missing"))
        return faults

    def _record(self, hashes: Mapping[str, str]) -> None:
        lines = [f"{hashes[name]}  {name}\n" for name in sorted(hashes)]
        write_file(self.path / SUMS, "".join(lines).encode())


class Parts:
    """The output of a stream of batches: numbered files of a few batches each."""

    def __init__(self, cell: HashedFolder, stream: str, batches: int) -> None:
        self._cell = cell
        self.step = max(1, math.ceil(batches / MAX_PARTS))
        """Batches per part."""
        self.names = [
            f"{stream}/{number:06}.safetensors" for number in range(math.ceil(batches / self.step))
        ]

    def missing(self) -> list[int]:
        """Return the numbers of the parts that are missing; refuse a damaged one."""
        faults = self._cell.find_faults(self.names)
        raise_first(fault for fault in faults if fault.what == "damaged")
        missing = {fault.path for fault in faults}
        return [i for i, name in enumerate(self.names) if self._cell.path / name in missing]

    def write(self, number: int, tensors: dict[str, torch.Tensor]) -> None:
        """Store one part: the index of each input, and a row for it in every tensor."""
        from safetensors.torch import save

        self._cell.write({self.names[number]: save(tensors)})

    def read(self) -> dict[str, torch.Tensor]:
        """Read all parts and put their rows in the order of the inputs."""
        import torch
        from safetensors.torch import load

        pieces = [load(path.read_bytes()) for path in self._complete()]
        whole = {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}
        order = whole.pop("index").argsort()
        return {name: rows[order] for name, rows in whole.items()}

    def indices(self) -> Iterator[tuple[Path, Ints]]:
        """Yield the file of each part and the indices of its inputs, without reading the rows."""
        for path in self._complete():
            with open_safetensors(path) as file:
                index = file.get_tensor("index")
            yield path, index

    def _complete(self) -> list[Path]:
        """Return the files of all parts in their order; refuse damaged and missing ones."""
        raise_first(self._cell.find_faults(self.names))
        return [self._cell.path / name for name in self.names]


def raise_first(faults: Iterable[FileError]) -> None:
    """Raise the first fault, if there is one."""
    for fault in faults:
        raise fault


def dump_json(data: object) -> bytes:
    """Return plain values as the bytes of a JSON file."""
    return utf8(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def refuse_outside_links(folder: Path) -> None:
    """Refuse a folder with links that lead out of it: it may be untrusted."""
    inside = folder.resolve()
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(inside):
            raise FolderError(f"{path} is a link out of {folder}; replace it by the files")


def write_file(path: Path, data: bytes) -> None:
    """Write a file atomically: it gets its name when it is complete and on disk."""
    with explain_errors(path, "written"):
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


def _hash_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hash_file(path: Path) -> str | None:
    """Return the SHA-256 of a file in hexadecimal; None if there is no such file."""
    if not path.is_file():
        return None
    with explain_errors(path, "read"), path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
