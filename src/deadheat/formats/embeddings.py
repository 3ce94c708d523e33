"""Read embeddings from safetensors files, one chunk at a time."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from deadheat._internal.numbers import check_number
from deadheat._internal.packages import require
from deadheat.errors import InputError, one_line

if TYPE_CHECKING:
    from torch import Tensor

TYPES: dict[str, type[np.generic]] = {
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
"""Number types of embeddings, by their names in safetensors."""


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a safetensors file, from the header of the file."""

    dtype: str
    """Name of the number type in safetensors, such as ``F32``."""
    shape: tuple[int, ...]
    start: int
    """Byte offset of its first value in the file."""
    stop: int


def read_safetensors_header(path: Path) -> tuple[dict[str, StoredTensor], dict[str, str]]:
    """Return the tensors of a safetensors file by name, and its metadata.

    Every entry is checked: types, sizes, and that the values are inside the file.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            length = int.from_bytes(file.read(8), "little")
            if 8 + length > size:
                raise ValueError("it is truncated")
            header = json.loads(file.read(length))
        if not isinstance(header, dict):
            raise ValueError("its header is not a JSON object")
        metadata = header.pop("__metadata__", {})
        tensors = {
            name: _read_entry(name, entry, 8 + length, size) for name, entry in header.items()
        }
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as safetensors ({one_line(error)})") from None
    return tensors, metadata if isinstance(metadata, dict) else {}


def _read_entry(name: str, entry: object, data: int, size: int) -> StoredTensor:
    """Check the entry of a tensor. The data of all tensors are the bytes from `data` to `size`."""
    match entry:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [start, stop]} if all(
            type(number) is int and 0 <= number < 1 << 63 for number in (*shape, start, stop)
        ):
            if not start <= stop <= size - data:
                raise ValueError(f"it is truncated, or {name!r:.60} ends before it begins")
            if (
                dtype in TYPES
                and stop - start != math.prod(shape) * np.dtype(TYPES[dtype]).itemsize
            ):
                raise ValueError(f"the size of {name!r:.60} does not match its shape")
            return StoredTensor(dtype, tuple(shape), data + start, data + stop)
    raise ValueError(f"its header does not describe {name!r:.60} by dtype, shape and offsets")


@dataclass(frozen=True)
class StoredShard:
    """The embeddings of one file; calling it returns an iterator of chunks."""

    path: Path
    tensor: str
    documents: int
    width: int
    first: int
    """Number of documents in the files before it."""
    chunk: int
    torch: bool
    has_ids: bool
    """Whether a file in the same folder has the ids of the documents."""

    def __call__(self) -> Iterator[tuple[Sequence[object], NDArray[Any] | Tensor]]:
        """Yield ids and embeddings; only the current chunk is in memory."""
        _, stored = _find_embeddings(self.path, self.tensor)
        if stored.shape != (self.documents, self.width):
            raise InputError(
                f"{self.path}: {self.tensor} has the shape {list(stored.shape)}, but it had "
                f"{[self.documents, self.width]} before: do not change files during an evaluation"
            )
        ids = _read_ids(self.path, self.documents, self.chunk) if self.has_ids else None
        dtype = np.dtype(TYPES[stored.dtype])
        for start in range(0, self.documents, self.chunk):
            stop = min(start + self.chunk, self.documents)
            # A new map per chunk keeps only the pages of one chunk in memory. Nothing is read
            # before it is used. Mode "c" is copy on write: torch warns about read-only arrays.
            offset = stored.start + start * self.width * dtype.itemsize
            rows = np.memmap(self.path, dtype, "c", offset, (stop - start, self.width))
            numbers = range(self.first + start, self.first + stop)
            yield numbers if ids is None else next(ids), _as_tensor(rows) if self.torch else rows


def _read_ids(path: Path, documents: int, chunk: int) -> Iterator[list[str]]:
    """Yield the ids chunk by chunk; raise an error unless there are as many as documents."""
    names = _ids_path(path)
    with names.open(encoding="utf-8-sig", newline="\n") as file:
        for start in range(0, documents, chunk):
            n = min(chunk, documents - start)
            try:
                ids = [line.rstrip("\r\n") for line in islice(file, n)]
                is_last = start + n == documents
                fault = "fewer" if len(ids) < n else "more" if is_last and next(file, "") else ""
            except UnicodeDecodeError as error:
                raise InputError(f"{names}: the ids are not UTF-8 text ({error})") from None
            if fault:
                raise InputError(
                    f"{names} has {fault} ids than the {documents:,} documents of {path.name}: "
                    "write one id per line and document"
                )
            if not all(ids):
                line = start + ids.index("") + 1
                raise InputError(f"{names}, line {line}: the id of a document is empty")
            yield ids


def stored_shards(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    tensor: str | None = None,
    chunk: int = 1 << 16,
    torch: bool = False,
) -> list[StoredShard]:
    """Return the shards of a corpus whose embeddings are in safetensors files.

    The files are mapped into memory and read one chunk at a time, so the corpus need not fit in
    memory. An engine can evaluate the shards if the files have the same paths on all machines.

    Parameters
    ----------
    path
        A folder, whose ``*.safetensors`` files are read in the order of their names; one file;
        or a sequence of files. Each has a tensor ``[documents, width]``. The ids of the documents
        of ``part.safetensors`` are the lines of ``part.ids.txt`` in the same folder, in UTF-8. If
        no part has such a file, ids are numbers, from 0 through all files.
    tensor
        Name of the tensor; optional if each file has only one tensor of two dimensions.
    chunk
        Number of documents that are read at once.
    torch
        Return torch tensors instead of arrays. Default: False.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import deadheat as dh
    >>> from safetensors.numpy import save_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part, vectors in enumerate(np.eye(4, dtype=np.float32).reshape(2, 2, 4)):
    ...         save_file({"embeddings": vectors}, f"{folder}/part-{part}.safetensors")
    ...     shards = dh.evaluation.stored_shards(folder)
    ...     query = np.array([[1, 2, 3, 4]], np.float32)
    ...     dh.evaluate_corpus({"q": {"3": 1}}, (["q"], query), shards, ["MRR"])["MRR"].expected
    1.0
    """
    size = check_number("chunk", chunk, least=1)
    shards: list[StoredShard] = []
    before = 0
    for file in _list_files(path):
        name, stored = _find_embeddings(file, tensor)
        documents, width = stored.shape
        if shards and width != shards[0].width:
            raise InputError(
                f"{file} has embeddings of width {width}, but {shards[0].path} has width "
                f"{shards[0].width}: give files of one corpus"
            )
        has_ids = _ids_path(file).is_file()
        shards.append(StoredShard(file, name, documents, width, before, size, torch, has_ids))
        before += documents
    lacking = [shard.path for shard in shards if shard.documents and not shard.has_ids]
    if lacking and any(shard.has_ids for shard in shards if shard.documents):
        raise InputError(
            f"{lacking[0]} has no file {_ids_path(lacking[0]).name}, but other parts have ids: "
            "write ids for every part, or for none"
        )
    return shards


def _ids_path(path: Path) -> Path:
    """Return the path of the ids of a part; the file may be missing."""
    return path.with_name(path.name.removesuffix(".safetensors") + ".ids.txt")


def _list_files(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> list[Path]:
    """Return the files of a folder, or the given files."""
    try:
        if not isinstance(path, (str, os.PathLike)):
            return [Path(file).absolute() for file in path]
    except TypeError:
        raise InputError(f"path must be a path or a sequence of paths, not {path!r:.60}") from None
    given = Path(path).absolute()
    files = sorted(given.glob("*.safetensors")) if given.is_dir() else [given]
    if not files:
        raise InputError(f"{path} has no *.safetensors file")
    return files


def _find_embeddings(path: Path, name: str | None) -> tuple[str, StoredTensor]:
    """Find the embeddings in a file: a tensor [documents, width]; return its name, too."""
    tensors, _ = read_safetensors_header(path)
    tables = [
        (own, tensor)
        for own, tensor in tensors.items()
        if name in (None, own) and len(tensor.shape) == 2
    ]
    [(found, tensor)] = tables if len(tables) == 1 else [("", None)]
    if tensor is None or tensor.dtype not in TYPES or not tensor.shape[1]:
        held = [f"{own!s:.60} {t.dtype} {list(t.shape)}" for own, t in tensors.items()]
        more = f" and {len(held) - 5} more" if len(held) > 5 else ""
        raise InputError(
            f"{path} must have one tensor {'' if name is None else f'{name!r} '}[documents, width] "
            f"of {', '.join(TYPES)}, but has {', '.join(held[:5]) or 'none'}{more}: name one with "
            "tensor=, or convert it"
        )
    return found, tensor


def _as_tensor(rows: NDArray[Any]) -> Tensor:
    """Return mapped rows as a torch tensor that shares their memory."""
    torch = require("torch", "Embeddings as tensors")
    is_bf16 = rows.dtype == ml_dtypes.bfloat16
    tensor: Tensor = torch.from_numpy(rows.view(np.int16) if is_bf16 else rows)
    return tensor.view(torch.bfloat16) if is_bf16 else tensor
