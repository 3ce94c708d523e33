"""DIR: what a study leaves on disk, written so that it is whole or not there.

::

    DIR/experiment.json                       marks the folder
    DIR/datasets/DATASET/                     what `datasets.load_dataset` reads, and qrels.txt
    DIR/cells/MODEL.DTYPE.DATASET/
        manifest.json                         every setting the numbers depend on
        logits/ (or queries/, documents/)     the model's output, in parts of a few batches
        scores/REGIME.parquet                 query_id, doc_id, score
        runs/REGIME.txt                       the same as a TREC run
        results/REGIME.json                   what `deadheat.Result.from_json` reads
        seconds.jsonl, seconds.json           time per part, and per regime

A file appears under its name only when it is complete and on disk. The name of a part carries the
SHA-256 of its bytes, so that a damaged one is noticed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deadheat.errors import InputError
from deadheat.experiment.study import Cell, DatasetSpec
from deadheat.output import DRAFT, write_whole

if TYPE_CHECKING:
    import torch

SCHEMA = 2
MARK = "experiment.json"
MAX_PARTS = 1000
PART = re.compile(r"(\d{6})\.([0-9a-f]{16})\.safetensors")


class StoreError(InputError):
    """Something is wrong with the folder or the disk; what was stored before stays valid."""


class Store:
    """The folder of a study.

    Parameters
    ----------
    folder
        Where it is.
    create
        Make it if it does not exist yet.
    """

    def __init__(self, folder: str | Path, *, create: bool = False) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError(f"{folder} is a file: choose a folder")
        mark = self.folder / MARK
        if not mark.is_file():
            if self.folder.is_dir() and any(p.name[0] != "." for p in self.folder.iterdir()):
                raise StoreError(
                    f"{folder} holds other files and no {MARK}, so it is not the folder of an "
                    "experiment: choose a new or empty folder"
                )
            if not create:
                raise StoreError(f"{folder} holds no experiment: there is no {MARK} in it")
            write_json(mark, {"schema": SCHEMA, "what": "deadheat experiment"})
        found = read_json(mark).get("schema")
        if found != SCHEMA:
            raise StoreError(
                f"{mark} is of schema {found!r}, and this version reads {SCHEMA}: use another "
                "folder, or the version of deadheat that wrote it"
            )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from writing; the lock ends with the process that holds it."""
        import fcntl

        with _reporting(self.folder / ".lock"):
            opened = (self.folder / ".lock").open("a+")
        with opened as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                raise StoreError(
                    f"{self.folder} is in use by process {file.read().strip() or '?'}: wait for "
                    "it, or choose another folder (--output)"
                ) from None
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            for left_over in self.folder.rglob(f"{DRAFT}*"):  # of a process that was killed
                left_over.unlink()
            yield

    def dataset_folder(self, spec: DatasetSpec) -> Path:
        """Return the folder of a dataset."""
        parts = (slug(spec.name), spec.subset, spec.split)
        return self.folder / "datasets" / ".".join(slug(part) for part in parts if part)

    def uses(self, dataset: Path) -> bool:
        """Tell whether some cell was begun on the dataset in this folder."""
        return any(cell.manifest["dataset"]["folder"] == dataset.name for cell in self.cells())

    def cell(self, cell: Cell) -> StoredCell:
        """Return the folder of a cell, which need not exist yet."""
        dataset = self.dataset_folder(cell.dataset).name
        model = slug(cell.model.name)
        return StoredCell(self.folder / "cells" / f"{model}.{cell.model_dtype}.{dataset}")

    def cells(self) -> list[StoredCell]:
        """Return the cells that were begun, by name."""
        return [
            StoredCell(path.parent)
            for path in sorted((self.folder / "cells").glob("*/manifest.json"))
        ]


@dataclass(frozen=True)
class StoredCell:
    """What one model in one dtype left for one dataset."""

    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        """Every setting the numbers depend on; empty for a cell that was not begun."""
        path = self.folder / "manifest.json"
        return read_json(path) if path.is_file() else {}

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Store the settings."""
        write_json(self.folder / "manifest.json", manifest)

    def parts(self, stream: str, inputs: int, batch_size: int) -> Parts:
        """Return the parts of one stream of inputs: ``logits``, ``queries`` or ``documents``."""
        return Parts(self.folder / stream, math.ceil(inputs / batch_size))

    def outputs(self) -> dict[str, torch.Tensor]:
        """Read what the model gave, in the order of the inputs: logits or embeddings."""
        streams = self._streams().values()
        return {name: rows for parts in streams for name, rows in parts.read().items()}

    def halved(self) -> dict[str, dict[str, int]]:
        """Return the batches of each stream that did not fit into memory, and their size."""
        each = {stream: parts.halved() for stream, parts in self._streams().items()}
        return {stream: halved for stream, halved in each.items() if halved}

    def _streams(self) -> dict[str, Parts]:
        manifest = self.manifest
        size = manifest["model"]["batch_size"]
        return {
            stream: self.parts(stream, facts["count"], size)
            for stream, facts in manifest["inputs"].items()
        }

    def log(self, **facts: Any) -> None:
        """Add a line on how long a part took."""
        path = self.folder / "seconds.jsonl"
        with _reporting(path), path.open("a") as file:
            file.write("\n" + json.dumps(facts))

    def logged(self) -> dict[str, float]:
        """Add up the seconds of all parts: of the forward pass, and of the FP32 head."""
        path = self.folder / "seconds.jsonl"
        last = {}
        for line in path.read_text().splitlines() if path.is_file() else ():
            with suppress(ValueError):  # a killed process may have left half a line
                facts = json.loads(line)
                last[facts["stream"], facts["part"]] = facts
        return {name: sum(facts[name] for facts in last.values()) for name in ("forward", "head")}


class Parts:
    """The output of a stream of batches, in numbered files of a few batches each."""

    def __init__(self, folder: Path, batches: int) -> None:
        self.folder = folder
        self.batches = batches
        self.step = max(1, math.ceil(batches / MAX_PARTS))
        """Batches per part."""
        self.count = math.ceil(batches / self.step)

    def gaps(self) -> list[range]:
        """Return the parts that are missing, neighbours together; refuse a damaged one."""
        stored = self._paths()
        for number, path in stored.items():
            if number >= self.count:
                raise StoreError(f"{path} belongs to another run: delete it and run again")
            self._bytes(path)
        gaps: list[range] = []
        for number in range(self.count):
            if number in stored:
                continue
            if gaps and gaps[-1].stop == number:
                gaps[-1] = range(gaps[-1].start, number + 1)
            else:
                gaps.append(range(number, number + 1))
        return gaps

    def write(self, number: int, tensors: dict[str, torch.Tensor], halved: dict[str, int]) -> None:
        """Store one part: the index of each input, and a row for it in every tensor."""
        from safetensors.torch import save

        # One entry at most: the order of several is not fixed, and equal parts have equal bytes.
        data = save(tensors, {"halved": json.dumps(halved)} if halved else None)
        write_file(self.folder / f"{number:06}.{_digest(data)}.safetensors", data)

    def read(self) -> dict[str, torch.Tensor]:
        """Read all parts and put their rows in the order of the inputs."""
        import torch
        from safetensors.torch import load

        stored = self._paths()
        pieces = [load(self._bytes(stored[number])) for number in range(self.count)]
        whole = {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}
        order = whole.pop("index").argsort()
        return {name: rows[order] for name, rows in whole.items()}

    def halved(self) -> dict[str, int]:
        """Return the batches that did not fit into memory, and the size they were run at."""
        from safetensors import safe_open

        found: dict[str, int] = {}
        for path in self._paths().values():
            with safe_open(path, "pt") as file:
                found.update(json.loads((file.metadata() or {}).get("halved", "{}")))
        return found

    def _paths(self) -> dict[int, Path]:
        found: dict[int, Path] = {}
        for path in sorted(self.folder.glob("*.safetensors")):
            match = PART.fullmatch(path.name)
            if match is None or int(match[1]) in found:
                raise StoreError(f"{path} was not written by deadheat: delete it and run again")
            found[int(match[1])] = path
        return found

    def _bytes(self, path: Path) -> bytes:
        data = path.read_bytes()
        if f".{_digest(data)}." not in path.name:
            raise StoreError(
                f"{path} is damaged (its content does not match the hash in its name): delete it "
                "and run the same command again"
            )
        return data


def check_settings(where: Path, stored: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse to mix numbers that were made under different settings."""
    old, new = _flat(stored), _flat(asked)
    changed = [name for name in {**new, **old} if old.get(name) != new.get(name)]
    if changed:
        each = [f"{name} is {old.get(name)!r} there and {new.get(name)!r} now" for name in changed]
        more = f", and {len(each) - 3} more" if len(each) > 3 else ""
        raise StoreError(
            f"{where} was stored with other settings: {'; '.join(each[:3])}{more}. Use the "
            "settings it was stored with, or another folder (--output)"
        )


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def slug(name: str) -> str:
    """Make a folder name: of a hub id its words, of a path its last part and a hash.

    >>> slug("BAAI/bge-reranker-v2-m3")
    'BAAI--bge-reranker-v2-m3'
    """
    if re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", name) and not Path(name).exists():
        return name.replace("/", "--")
    path = Path(name).expanduser().resolve()
    plain = re.sub(r"[^\w.-]+", "-", path.name)[-60:]
    return f"{plain}-{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


def write_json(path: Path, data: Any) -> None:
    """Write JSON, whole or not at all."""
    write_file(path, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that this package wrote."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path} cannot be read ({error}): delete the folder {path.parent} and run again"
        ) from None
    if not isinstance(data, dict):
        raise StoreError(f"{path} holds no JSON object: delete {path.parent} and run again")
    return data


def write_file(path: Path, data: bytes) -> None:
    """Write a file that appears under its name only when it is complete and on disk."""
    with _reporting(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    """Turn what the system says about a file that cannot be written into one sentence."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise StoreError(
            f"{path} cannot be written ({error.strerror}): "
            + ("free some space" if full else "mend that")
            + " and run the same command again; what was stored before stays valid"
        ) from None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
