"""Embeddings in files: the shards of a corpus that is read a chunk at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError, one_line
from deadheat.packages import require
from deadheat.ties.checks import check_number

TYPES: dict[str, Any] = {
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
"""What embeddings are stored in, as safetensors names it."""
LONGEST_HEADER = 100_000_000
"""Bytes; safetensors itself refuses longer ones."""
IDS = ".ids.txt"
"""How the file of the ids of ``part.safetensors`` is called: ``part.ids.txt``."""


@dataclass(frozen=True)
class StoredShard:
    """The embeddings of one file; called, it gives them chunk by chunk."""

    path: Path
    tensor: str
    documents: int
    width: int
    first: int
    """Documents in the files before it."""
    chunk: int
    torch: bool
    named: bool
    """Whether the ids of the documents stand in a file beside it."""
    stays: ClassVar[bool] = True
    """Every chunk is mapped into memory anew."""

    def __call__(self) -> Iterator[tuple[Sequence[Any], Any]]:
        """Give ids and embeddings; nothing but the present chunk is in memory."""
        bounds = [
            (start, min(start + self.chunk, self.documents))
            for start in range(0, self.documents, self.chunk)
        ]
        stored = _tensor(self.path, self.tensor)
        for (start, stop), ids in zip(bounds, self._ids(bounds), strict=True):
            yield ids, self._rows(stored, start, stop)

    def between(self, first: int, last: int) -> Iterator[tuple[range, Any]]:
        """Give the numbers and embeddings of documents from `first` to before `last`, if any.

        Numbers are counted from 0 on through all files, whatever the ids are.
        """
        start, stop = max(0, first - self.first), min(last - self.first, self.documents)
        if start < stop:
            stored = _tensor(self.path, self.tensor)
            yield range(self.first + start, self.first + stop), self._rows(stored, start, stop)

    def _rows(self, stored: _Stored, start: int, stop: int) -> Any:
        # Mapped anew for each chunk, so that memory holds the pages of one; nothing is read before
        # it is used.
        rows = stored.rows(self.path, start, stop)
        return _as_tensor(rows) if self.torch else rows

    def _ids(self, bounds: Sequence[tuple[int, int]]) -> Iterator[Sequence[Any]]:
        """Give the ids of one chunk after the other."""
        names = _names(self.path)
        if not self.named:
            for start, stop in bounds:
                yield range(self.first + start, self.first + stop)
            return
        with names.open(encoding="utf-8") as file:
            for start, stop in bounds:
                ids = [line.rstrip("\n") for line in islice(file, stop - start)]
                if len(ids) < stop - start:
                    raise InputError(
                        f"{names} names {start + len(ids):,} documents, and {self.path.name} has "
                        f"{self.documents:,}"
                    )
                yield ids
            if file.read(1):
                raise InputError(f"{names} names more than the {self.documents:,} documents")


def stored_shards(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    tensor: str | None = None,
    chunk: int = 1 << 16,
    torch: bool = False,
) -> list[StoredShard]:
    """Take embeddings in safetensors files as the shards of a corpus.

    The files are mapped into memory and read a chunk at a time, so that a corpus of any size can
    be evaluated on a machine of any size: here, or, where the same paths lead to the files on
    other machines, by an engine.

    Parameters
    ----------
    path
        A folder, whose ``*.safetensors`` files are taken in the order of their names; one file;
        or several in their order. Each holds a tensor ``[documents, width]``. The ids of the
        documents of ``part.safetensors`` are the lines of ``part.ids.txt`` beside it. Where no
        part has such a file, documents are named by their numbers, from 0 on through all files.
    tensor
        Name of the tensor; not needed where a file holds one of two dimensions only.
    chunk
        How many documents are read at once.
    torch
        Give torch tensors instead of arrays.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import deadheat as dh
    >>> from safetensors.numpy import save_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part, vectors in enumerate(np.eye(4, dtype=np.float32).reshape(2, 2, 4)):
    ...         save_file({"embeddings": vectors}, f"{folder}/part-{part}.safetensors")
    ...     shards = dh.stored_shards(folder)
    ...     query = np.array([[1, 2, 3, 4]], np.float32)
    ...     dh.evaluate_corpus((["q"], query), shards, {"q": {"3": 1}}, ["MRR"])["MRR"].expected
    1.0
    """
    size = check_number("chunk", chunk, least=1)
    shards: list[StoredShard] = []
    before = 0
    for file in _files(path):
        stored = _tensor(file, tensor)
        documents, width = stored.shape
        if shards and width != shards[0].width:
            raise InputError(
                f"{file} holds embeddings of the width {width}, and {shards[0].path} of "
                f"{shards[0].width}: they are not of one corpus"
            )
        named = _names(file).is_file()
        shards.append(StoredShard(file, stored.name, documents, width, before, size, torch, named))
        before += documents
    _check_names([shard for shard in shards if shard.documents])
    return shards


def _check_names(shards: Sequence[StoredShard]) -> None:
    """Refuse parts some of which have ids, and others none."""
    having = [shard.path for shard in shards if shard.named]
    lacking = [shard.path for shard in shards if not shard.named]
    if having and lacking:
        raise InputError(
            f"{lacking[0]} has no {_names(lacking[0]).name} beside it, and {having[0].name} has "
            "its ids: write ids for every part, or for none"
        )


def _names(path: Path) -> Path:
    """Where the ids of a part are, if it has any."""
    return path.with_name(path.name.removesuffix(".safetensors") + IDS)


def _files(path: Any) -> list[Path]:
    if not isinstance(path, (str, os.PathLike)):
        return [Path(file).absolute() for file in path]
    given = Path(path).absolute()
    files = sorted(given.glob("*.safetensors")) if given.is_dir() else [given]
    if not files:
        raise InputError(f"{path} holds no *.safetensors file")
    return files


@dataclass(frozen=True)
class _Stored:
    """A table of a safetensors file."""

    name: str
    type: np.dtype[Any]
    shape: tuple[int, int]
    start: int
    """Byte of the file at which it begins."""

    def rows(self, path: Path, first: int, last: int) -> NDArray[Any]:
        """Map some rows into memory."""
        start = self.start + first * self.shape[1] * self.type.itemsize
        try:
            # Copied when written to, which nobody does; torch wants no array that cannot be.
            return np.memmap(path, self.type, "c", start, (last - first, self.shape[1]))
        except ValueError as error:
            raise _unreadable(path, error) from None


def safetensors_header(path: Path) -> tuple[dict[str, Any], int]:
    """Read what a safetensors file says of its tensors, and where they begin."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > LONGEST_HEADER:
            raise ValueError("its header is too long")
        header: dict[str, Any] = json.loads(file.read(length))
    return header, 8 + length


def _tensor(path: Path, name: str | None) -> _Stored:
    """Find the embeddings in a file."""
    try:
        header, start = safetensors_header(path)
        header.pop("__metadata__", None)
        tables = [name for name, facts in header.items() if len(facts["shape"]) == 2]
        if name is None and len(tables) != 1:
            held = ", ".join(f"{name} {facts['shape']}" for name, facts in header.items())
            raise InputError(
                f"{path} must hold one tensor [documents, width], and holds {held or 'none'}: say "
                "which with tensor="
            )
        if name is not None and name not in tables:
            raise InputError(f"{path} holds no tensor {name!r} [documents, width]")
        found = name or tables[0]
        facts = header[found]
        if facts["dtype"] not in TYPES:
            raise InputError(f"{path}: {found} is {facts['dtype']}, and not {', '.join(TYPES)}")
        (documents, width), (first, last) = facts["shape"], facts["data_offsets"]
        stored = _Stored(found, np.dtype(TYPES[facts["dtype"]]), (documents, width), start + first)
        if last - first != documents * width * stored.type.itemsize:
            raise ValueError(f"{found} has another size than its shape")
        if start + last > path.stat().st_size:
            raise ValueError("it is cut")
    except InputError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _unreadable(path, error) from None
    return stored


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be read as safetensors ({one_line(error)})")


def _as_tensor(rows: NDArray[Any]) -> Any:
    """Give mapped rows as a torch tensor that shares their memory."""
    torch = require("torch", "Embeddings as tensors")
    if rows.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(rows.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(rows)
