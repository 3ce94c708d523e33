"""The stored output of a model: numbered files of a few batches, named with their hash."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deadheat.evaluation.corpus.stored import read_safetensors_header
from deadheat.lab.experiment.files import (
    Fault,
    explain_read_errors,
    raise_first,
    sha256,
    write_file,
)
from deadheat.ties.groups import Ints

if TYPE_CHECKING:
    import torch

MAX_PARTS = 1000
PART = re.compile(r"(\d{6})\.([0-9a-f]{16})\.safetensors")


class Parts:
    """The output of a stream of batches, in numbered files of a few batches each."""

    def __init__(self, folder: Path, batches: int) -> None:
        self.folder = folder
        self.batches = batches
        self.step = max(1, math.ceil(batches / MAX_PARTS))
        """Batches per part."""
        self.count = math.ceil(batches / self.step)

    def missing(self) -> list[int]:
        """Return the numbers of the parts that are missing; refuse a damaged one."""
        raise_first(fault for fault in self.find_faults() if fault.what != "unfinished")
        stored = self._paths()
        return [number for number in range(self.count) if number not in stored]

    def write(
        self, number: int, tensors: dict[str, torch.Tensor], halved: Mapping[str, int]
    ) -> None:
        """Store one part: the index of each input, and a row for it in every tensor."""
        from safetensors.torch import save

        # One entry at most: the order of several is not fixed, and equal parts have equal bytes.
        data = save(tensors, {"halved": json.dumps(halved)} if halved else None)
        write_file(self.folder / f"{number:06}.{_digest(data)}.safetensors", data)

    def read(self) -> dict[str, torch.Tensor]:
        """Read all parts and put their rows in the order of the inputs."""
        import torch

        pieces = list(self.pieces())
        whole = {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}
        order = whole.pop("index").argsort()
        return {name: rows[order] for name, rows in whole.items()}

    def pieces(self) -> Iterator[dict[str, torch.Tensor]]:
        """Read one part after the other; the rows of a part are those of its `index`."""
        from safetensors.torch import load

        raise_first(self.find_faults())
        stored = self._paths()
        for number in range(self.count):
            yield load(stored[number].read_bytes())

    def indices(self) -> Iterator[tuple[Path, Ints]]:
        """Yield the file of each part and the inputs it has rows for, without the rows."""
        raise_first(self.find_faults())
        stored = self._paths()
        for number in range(self.count):
            tensors, _ = read_safetensors_header(stored[number])
            index = tensors["index"]
            count = (index.stop - index.start) // 8
            yield stored[number], np.fromfile(stored[number], "<i8", count, offset=index.start)

    def halved(self) -> dict[str, int]:
        """Return the batches that did not fit into memory, and the size they were run at."""
        halved: dict[str, int] = {}
        for path in self._paths().values():
            # safetensors itself takes no path but UTF-8
            _, metadata = read_safetensors_header(path)
            halved.update(json.loads(metadata.get("halved", "{}")))
        return halved

    def find_faults(self) -> list[Fault]:
        """Return parts that are damaged or foreign, and the folder if parts are missing."""
        paths, faults = self._paths(), []
        for path in sorted(self.folder.glob("*.safetensors")):
            if path not in paths.values():
                faults.append(Fault(path, "foreign"))
                continue
            with explain_read_errors(path):
                data = path.read_bytes()
            if f".{_digest(data)}." not in path.name:
                faults.append(Fault(path, "damaged"))
        return faults + ([Fault(self.folder, "unfinished")] if len(paths) < self.count else [])

    def _paths(self) -> dict[int, Path]:
        """Return the parts by their numbers."""
        paths: dict[int, Path] = {}
        for path in sorted(self.folder.glob("*.safetensors")):
            match = PART.fullmatch(path.name)
            if match and int(match[1]) < self.count:
                paths.setdefault(int(match[1]), path)
        return paths


def _digest(data: bytes) -> str:
    return sha256(data)[:16]
