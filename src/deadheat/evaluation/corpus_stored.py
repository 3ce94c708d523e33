"""Embeddings in files: the shards of a corpus that is read a chunk at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from deadheat.errors import InputError, one_line
from deadheat.packages import require
from deadheat.ties.checks import check_number

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
    framework: str
    """Of safetensors: ``np`` or ``pt``."""

    def __call__(self) -> Iterator[tuple[Sequence[Any], Any]]:
        """Give ids and embeddings; nothing but the present chunk is in memory."""
        bounds = [
            (start, min(start + self.chunk, self.documents))
            for start in range(0, self.documents, self.chunk)
        ]
        with _opened(self.path, self.framework) as file:
            rows = file.get_slice(self.tensor)
            for (start, stop), ids in zip(bounds, self._ids(bounds), strict=True):
                yield ids, rows[start:stop]

    def _ids(self, bounds: Sequence[tuple[int, int]]) -> Iterator[Sequence[Any]]:
        """Give the ids of one chunk after the other."""
        names = self.path.with_name(self.path.name.removesuffix(".safetensors") + IDS)
        if not names.is_file():
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
        documents of ``part.safetensors`` are the lines of ``part.ids.txt`` beside it. Where there
        is no such file, documents are named by their numbers, from 0 on through all files.
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
    size, framework = check_number("chunk", chunk, least=1), "pt" if torch else "np"
    shards: list[StoredShard] = []
    for file in _files(path):
        name, (documents, width) = _table(file, tensor)
        if shards and width != shards[0].width:
            raise InputError(
                f"{file} holds embeddings of the width {width}, and {shards[0].path} of "
                f"{shards[0].width}: they are not of one corpus"
            )
        before = sum(shard.documents for shard in shards)
        shards.append(StoredShard(file, name, documents, width, before, size, framework))
    return shards


def _files(path: Any) -> list[Path]:
    if not isinstance(path, (str, os.PathLike)):
        return [Path(file).absolute() for file in path]
    given = Path(path).absolute()
    files = sorted(given.glob("*.safetensors")) if given.is_dir() else [given]
    if not files:
        raise InputError(f"{path} holds no *.safetensors file")
    return files


def _opened(path: Path, framework: str) -> Any:
    """Open a file of safetensors, or say why not."""
    safetensors = require("safetensors", "Reading stored embeddings")
    try:
        return safetensors.safe_open(path, framework)
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"{path} cannot be read as safetensors ({one_line(error)})") from None


def _table(path: Path, tensor: str | None) -> tuple[str, tuple[int, int]]:
    """Find the embeddings of a file: their name and shape."""
    with _opened(path, "np") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if tensor is None and len(tables) != 1:
        held = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items()) or "nothing"
        raise InputError(
            f"{path} must hold one tensor [documents, width], and holds {held}: say which with "
            "tensor="
        )
    name = tables[0] if tensor is None else tensor
    if name not in tables:
        raise InputError(f"{path} holds no tensor {name!r} [documents, width]")
    return name, shapes[name]
