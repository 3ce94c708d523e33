"""Read embeddings from safetensors files, one chunk at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes  # noqa: F401  (safetensors finds bfloat16 by its name in NumPy)
from numpy.typing import NDArray

from deadheat._internal.numbers import check_number
from deadheat._internal.packages import require
from deadheat._internal.remarks import some
from deadheat.errors import InputError, one_line

if TYPE_CHECKING:
    from torch import Tensor

TYPES = ("F32", "F16", "BF16", "I8", "U8", "BOOL")
"""Number types of embeddings, by their names in safetensors."""


@contextmanager
def open_safetensors(path: Path, framework: str = "np") -> Iterator[Any]:
    """Open a safetensors file; inside the block, a damaged or missing file is an `InputError`.

    `framework` is ``np`` for arrays, ``pt`` for torch tensors.
    """
    library = require("safetensors", f"Reading {path.name}")
    try:
        with library.safe_open(path, framework) as file:
            yield file
    except (OSError, library.SafetensorError) as error:
        raise InputError(f"{path} cannot be read as safetensors ({one_line(error)})") from None


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
        """Yield ids and embeddings; only the embeddings of the current chunk are in memory."""
        ids: Sequence[object] = range(self.first, self.first + self.documents)
        if self.has_ids:
            ids = _read_ids(self.path, self.documents)
        shape = [self.documents, self.width]
        for start in range(0, self.documents, self.chunk):
            stop = min(start + self.chunk, self.documents)
            # Opened for each chunk, so that only the pages of one chunk stay in memory.
            with open_safetensors(self.path, "pt" if self.torch else "np") as file:
                stored = file.get_slice(self.tensor)
                if stored.get_shape() != shape:
                    raise InputError(
                        f"{self.path}: {self.tensor} has the shape {stored.get_shape()}, but it "
                        f"had {shape} before: do not change files during an evaluation"
                    )
                rows = stored[start:stop]
            yield ids[start:stop], rows


def _read_ids(path: Path, documents: int) -> list[str]:
    """Return the ids of the documents in a file; raise an error unless there is one for each."""
    names = _ids_path(path)
    try:
        text = names.read_text(encoding="utf-8-sig")  # every kind of line end becomes \n
    except UnicodeDecodeError as error:
        raise InputError(f"{names}: the ids are not UTF-8 text ({error})") from None
    ids = text.removesuffix("\n").split("\n") if text else []
    if len(ids) != documents:
        raise InputError(
            f"{names} has {len(ids):,} ids for the {documents:,} documents of {path.name}: write "
            "one id per line and document"
        )
    if not all(ids):
        raise InputError(f"{names}, line {ids.index('') + 1}: the id of a document is empty")
    return ids


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
        name, documents, width = _find_embeddings(file, tensor)
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


def _find_embeddings(path: Path, name: str | None) -> tuple[str, int, int]:
    """Find the embeddings in a file; return their name, number of documents and width."""
    with open_safetensors(path) as file:
        tensors = {own: file.get_slice(own) for own in file.keys()}  # noqa: SIM118
    tables = [
        own
        for own, tensor in tensors.items()
        if name in (None, own) and len(tensor.get_shape()) == 2
    ]
    if len(tables) == 1 and tensors[tables[0]].get_dtype() in TYPES:
        documents, width = tensors[tables[0]].get_shape()
        if width:
            return tables[0], documents, width
    held = [f"{own!s:.60} {t.get_dtype()} {t.get_shape()}" for own, t in tensors.items()]
    raise InputError(
        f"{path} must have one tensor {'' if name is None else f'{name!r} '}[documents, width] of "
        f"{', '.join(TYPES)}, but has {some(held) or 'none'}: name one with tensor=, or convert it"
    )
