"""DIR: what a study leaves on disk, written so that it is whole or not there.

::

    DIR/experiment.json                  marks the folder
    DIR/datasets/NAME-HASH/              texts, candidates and judgements in the layout that
                                         `deadheat.datasets` reads; qrels.txt for other tools
    DIR/cells/MODEL.DTYPE.DATASET-HASH/
        manifest.json                    every setting that the numbers depend on
        logits/ (or queries/, documents/)  the model's output, in parts of a few batches
        scores/REGIME.parquet            query_id, doc_id, score
        runs/REGIME.txt                  the same as a TREC run
        results/REGIME.json              what `deadheat.Result.from_json` reads

The hash of a dataset is that of its content, the hash of a cell that of its settings: whoever
asks for something else gets another folder, and what is stored stays valid. A file appears under
its name only when it is complete and on disk. The name of a part carries the SHA-256 of its
bytes, so that a damaged one is noticed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from deadheat.datasets import RetrievalDataset, load_dataset, write_dataset
from deadheat.datasets.write import qrels_of
from deadheat.errors import InputError
from deadheat.evaluation import Result
from deadheat.formats.files import table_from_file
from deadheat.formats.write import to_parquet, trec_qrels, trec_run
from deadheat.output import DRAFT, write_whole
from deadheat.packages import require
from deadheat.provenance import DatasetProvenance, InputFacts, ModelProvenance, Record
from deadheat.scoring.regimes import regime_order

if TYPE_CHECKING:
    import torch

SCHEMA = 2
MARK = "experiment.json"
MAX_PARTS = 1000
PART = re.compile(r"(\d{6})\.([0-9a-f]{16})\.safetensors")


class FolderError(InputError):
    """Something is wrong with the folder or the disk; what was stored before stays valid."""


@dataclass(frozen=True)
class Manifest(Record):
    """What a cell is, as far as its numbers depend on it."""

    settings: Mapping[str, str]
    """What was asked for and computed with; the cell's folder is named by their hash."""
    model: ModelProvenance
    function: str
    """What makes scores of the model's output: ``sigmoid``, ``softmax``, ``dot``, ``cosine``."""
    backend: str
    threads: int
    dataset: DatasetProvenance
    dataset_folder: str
    inputs: Mapping[str, InputFacts] = field(default_factory=dict)
    """Per stream of inputs: ``logits``, or ``queries`` and ``documents``."""
    label: str | None = None
    """What the user calls the model; no number depends on it."""


class ExperimentFolder:
    """The folder of a study.

    Parameters
    ----------
    path
        Where it is.
    create
        Make it if it does not exist yet.
    """

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise FolderError(f"{path} is a file: choose a folder")
        mark = self.path / MARK
        if not mark.is_file():
            if not create:
                raise FolderError(
                    f"{path} is not the folder of an experiment (there is no {MARK} in it): give "
                    "the folder that deadheat run wrote; run files go to deadheat eval, or to "
                    "deadheat report with --qrels"
                )
            if self.path.is_dir() and any(p.name[0] != "." for p in self.path.iterdir()):
                raise FolderError(
                    f"{path} holds other files and no {MARK}, so it is not the folder of an "
                    "experiment: choose a new or empty folder"
                )
            write_json(mark, {"schema": SCHEMA, "what": "deadheat experiment"})
        schema = read_json(mark).get("schema")
        if schema != SCHEMA:
            raise FolderError(
                f"{mark} is of schema {schema!r}, and this version reads {SCHEMA}: use another "
                "folder, or the version of deadheat that wrote it"
            )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from writing; the lock ends with the process that holds it."""
        filelock = require("filelock", "Running a study")
        owner = self.path / ".owner"
        with reporting(self.path / ".lock"):
            lock = filelock.FileLock(self.path / ".lock", timeout=0)
            try:
                lock.acquire()
            except filelock.Timeout:
                process = owner.read_text().strip() if owner.is_file() else "?"
                raise FolderError(
                    f"{self.path} is in use by process {process}: wait for it, or choose another "
                    "folder (--output)"
                ) from None
        try:
            owner.write_text(f"{os.getpid()}\n")
            for left_over in self.path.rglob(f"{DRAFT}*"):  # of a process that was killed
                left_over.unlink()
            yield
        finally:
            lock.release()

    def store_dataset(self, dataset: RetrievalDataset) -> str:
        """Store a dataset unless it is stored already; give the name of its folder."""
        name = f"{slug(str(dataset.provenance()))}-{dataset.content_hash[:8]}"
        folder = self.path / "datasets" / name
        mark = folder / "dataset.json"
        if not mark.is_file():  # written last
            write_dataset(dataset, lambda file, data: write_file(folder / file, data))
            write_file(folder / "qrels.txt", trec_qrels(qrels_of(dataset)))
            write_json(mark, dataset.provenance().to_dict())
        return name

    def dataset(self, name: str) -> RetrievalDataset:
        """Read a stored dataset."""
        folder = self.path / "datasets" / name
        origin = DatasetProvenance.from_dict(read_json(folder / "dataset.json"))
        lists = (folder / "top_ranked.parquet").is_file()
        try:
            dataset = load_dataset.quiet(folder, candidates="given" if lists else "full")
        except InputError as error:
            raise FolderError(f"{folder} is damaged ({error}): delete it and run again") from None
        return replace(
            dataset,
            name=origin.name,
            subset=origin.subset,
            split=origin.split,
            revision=origin.revision,
            left_out=origin.left_out,
            candidate_rule=origin.candidates or dataset.candidate_rule,
        )

    def cell(self, model: str, model_dtype: str, dataset: str, settings: Any) -> CellFolder:
        """Return the folder of a cell, which need not exist yet."""
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        name = f"{slug(model)}.{model_dtype}.{dataset.rpartition('-')[0]}-{digest[:8]}"
        return CellFolder(self.path / "cells" / name)

    def cells(self) -> list[CellFolder]:
        """Return the cells that were begun, by name."""
        begun = sorted((self.path / "cells").glob("*/manifest.json"))
        return [CellFolder(manifest.parent) for manifest in begun]


@dataclass(frozen=True)
class CellFolder:
    """What one model in one dtype left for one dataset."""

    path: Path

    @property
    def manifest(self) -> Manifest | None:
        """What the cell is; None for one that was not begun."""
        path = self.path / "manifest.json"
        if not path.is_file():
            return None
        try:
            return Manifest.from_dict(read_json(path))
        except InputError as error:
            raise FolderError(
                f"{path} cannot be read ({error}): delete the folder {self.path} and run again"
            ) from None

    def write_manifest(self, manifest: Manifest) -> None:
        """Store what the cell is."""
        write_json(self.path / "manifest.json", manifest.to_dict())

    def parts(self, stream: str, inputs: int, batch_size: int) -> Parts:
        """Return the parts of one stream of inputs: ``logits``, ``queries`` or ``documents``."""
        return Parts(self.path / stream, math.ceil(inputs / batch_size))

    def streams(self) -> dict[str, Parts]:
        """Return the parts of every stream of a cell that was begun."""
        manifest = self.manifest
        if manifest is None:
            return {}
        size = manifest.model.batch_size
        return {
            stream: self.parts(stream, facts.count, size)
            for stream, facts in manifest.inputs.items()
        }

    def outputs(self) -> dict[str, torch.Tensor]:
        """Read what the model gave, in the order of the inputs: logits or embeddings."""
        streams = self.streams().values()
        return {name: rows for parts in streams for name, rows in parts.read().items()}

    def regimes(self) -> list[str]:
        """Return the regimes that the cell was evaluated under, as tables list them."""
        return sorted((path.stem for path in self._results.glob("*.json")), key=regime_order)

    def write_scores(self, regime: str, scores: pl.DataFrame) -> None:
        """Store scores as Parquet and as a TREC run."""
        write_file(self._scores(regime), to_parquet(scores))
        run = trec_run(scores, f"{self.path.name}.{regime}")
        write_file(self.path / "runs" / f"{regime}.txt", run)

    def scores(self, regime: str) -> pl.DataFrame:
        """Read query_id, doc_id and score, candidates in their order."""
        path = self._scores(regime)
        if not path.is_file():
            raise InputError(f"{path} does not exist: the full corpus was too long to be stored")
        return table_from_file(path)

    def write_result(self, regime: str, result: Result) -> None:
        """Store a result."""
        write_file(self._results / f"{regime}.json", result.to_json().encode())

    def result(self, regime: str) -> Result:
        """Read a result."""
        path = self._results / f"{regime}.json"
        try:
            return Result.from_json(path.read_text(encoding="utf-8"))
        except (OSError, InputError) as error:
            raise InputError(f"{path}: {error}; delete it and run again") from None

    @property
    def _results(self) -> Path:
        return self.path / "results"

    def _scores(self, regime: str) -> Path:
        return self.path / "scores" / f"{regime}.parquet"


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
                raise FolderError(f"{path} belongs to another run: delete it and run again")
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
        from safetensors.torch import load

        stored = self._paths()
        pieces = [load(self._bytes(stored[number])) for number in range(self.count)]
        whole = {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}
        order = whole.pop("index").argsort()
        return {name: rows[order] for name, rows in whole.items()}

    def halved(self) -> dict[str, int]:
        """Return the batches that did not fit into memory, and the size they were run at."""
        from safetensors import safe_open

        halved: dict[str, int] = {}
        for path in self._paths().values():
            with safe_open(path, "pt") as file:
                halved.update(json.loads((file.metadata() or {}).get("halved", "{}")))
        return halved

    def _paths(self) -> dict[int, Path]:
        paths: dict[int, Path] = {}
        for path in sorted(self.folder.glob("*.safetensors")):
            match = PART.fullmatch(path.name)
            if match is None or int(match[1]) in paths:
                raise FolderError(f"{path} was not written by deadheat: delete it and run again")
            paths[int(match[1])] = path
        return paths

    def _bytes(self, path: Path) -> bytes:
        data = path.read_bytes()
        if f".{_digest(data)}." not in path.name:
            raise FolderError(
                f"{path} is damaged (its content does not match the hash in its name): delete it "
                "and run the same command again"
            )
        return data


def slug(name: str) -> str:
    """Make a folder name: of a hub id its words, of a path its last part.

    >>> slug("BAAI/bge-reranker-v2-m3"), slug("/models/my model")
    ('BAAI--bge-reranker-v2-m3', 'my-model')
    """
    hub_id = re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name)
    return name.replace("/", "--") if hub_id else re.sub(r"[^\w.-]+", "-", Path(name).name)[-60:]


def write_json(path: Path, data: Any) -> None:
    """Write JSON, whole or not at all."""
    write_file(path, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that this package wrote."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FolderError(
            f"{path} cannot be read ({error}): delete the folder {path.parent} and run again"
        ) from None
    if not isinstance(data, dict):
        raise FolderError(f"{path} holds no JSON object: delete {path.parent} and run again")
    return data


def write_file(path: Path, data: bytes) -> None:
    """Write a file that appears under its name only when it is complete and on disk."""
    with reporting(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turn what the system says about a file that cannot be written into one sentence."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise FolderError(
            f"{path} cannot be written ({error.strerror}): "
            + ("free some space" if full else "mend that")
            + " and run the same command again; what was stored before stays valid"
        ) from None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
