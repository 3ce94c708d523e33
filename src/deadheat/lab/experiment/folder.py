"""DIR: the folder of a study. Files are written atomically.

::

    DIR/experiment.json                  marks the folder
    DIR/datasets/NAME-HASH/              texts, candidates and judgements in the layout that
                                         `deadheat.lab.datasets` reads; qrels.txt for other tools
        SHA256SUMS                       the hash of every file of the dataset
    DIR/cells/MODEL.DTYPE.DATASET-HASH/
        SHA256SUMS                       the hash of every file of the cell
        manifest.json                    every setting that the numbers depend on
        logits/ (or queries/, documents/)  the model's output, in parts of a few batches
        scores/REGIME.parquet            query_id, doc_id, score
        runs/REGIME.txt                  the same as a TREC run
        results/REGIME.json              what `deadheat.Result.from_json` reads

The hash of a dataset is that of its content, the hash of a cell is that of its settings. Other
settings make another folder, and stored files stay valid. A file gets its name when it is complete
and on disk, and its hash is added to SHA256SUMS. `ExperimentFolder.verify` finds files that have
changed.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from deadheat._internal.lazy import pl
from deadheat._internal.output import remove_drafts, utf8
from deadheat._internal.packages import require
from deadheat.errors import InputError
from deadheat.evaluation import Result
from deadheat.formats import to_parquet, trec_qrels, trec_run
from deadheat.lab.datasets import RetrievalDataset, load_dataset, write_dataset
from deadheat.lab.datasets.write import make_qrels
from deadheat.lab.experiment.files import (
    SUMS,
    FileError,
    FolderError,
    HashedFolder,
    Parts,
    dump_json,
    explain_errors,
    raise_first,
    refuse_outside_links,
    write_file,
)
from deadheat.provenance import DatasetProvenance, InputFacts, ModelProvenance, Record
from deadheat.scoring import regime_order

if TYPE_CHECKING:
    import torch

SCHEMA = 3
MARK = "experiment.json"
STREAMS = ("logits", "queries", "documents")
MANIFEST, DATASET = "manifest.json", "dataset.json"
_OWN_FILES = re.compile(
    r"datasets/[^/]+/((corpus|queries|qrels|top_ranked)\.parquet|qrels\.txt|dataset\.json)"
    r"|cells/[^/]+/(manifest\.json|(logits|queries|documents)/\d{6}\.safetensors"
    r"|scores/[^/]+\.parquet|runs/[^/]+\.txt|results/[^/]+\.json)"
)
"""Names of the files whose hashes are listed when they are complete."""


@dataclass(frozen=True)
class Manifest(Record):
    """All facts about a cell that determine its numbers."""

    settings: Mapping[str, str]
    """Settings of the study and the environment; their hash is part of the cell's folder name."""
    model: ModelProvenance
    function: str
    """Function that computes scores: ``sigmoid``, ``softmax``, ``dot`` or ``cosine``."""
    backend: str
    threads: int
    dataset: DatasetProvenance
    dataset_folder: str
    inputs: Mapping[str, InputFacts] = field(default_factory=dict)
    """Per stream of inputs: ``logits``, or ``queries`` and ``documents``."""
    label: str | None = None
    """The user's name for the model; no number depends on it."""


class ExperimentFolder:
    """The folder of a study.

    Parameters
    ----------
    path
        Path of the folder.
    create
        Whether to create the folder if it does not exist. Default: False.
    """

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise FolderError(f"{path} is a file; choose a folder")
        mark = self.path / MARK
        if not mark.is_file():
            if not create:
                raise FolderError(
                    f"{path} is not the folder of an experiment (there is no {MARK} in it); give "
                    "the folder of deadheat run; for run files, use deadheat eval, or deadheat "
                    "report with --qrels"
                )
            if self.path.is_dir() and any(p.name[0] != "." for p in self.path.iterdir()):
                raise FolderError(
                    f"{path} contains other files and no {MARK}, so it is not the folder of an "
                    "experiment; choose a new or empty folder"
                )
            write_file(mark, dump_json({"schema": SCHEMA, "what": "deadheat experiment"}))
        schema = HashedFolder(self.path).read(MARK, lambda data: json.loads(data).get("schema"))
        if schema != SCHEMA:
            raise FolderError(
                f"{mark} has schema {schema!r}, but this version reads {SCHEMA}; use another "
                "folder, or the version of deadheat that wrote it"
            )
        refuse_outside_links(self.path)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder for writing; the lock ends with this process at the latest."""
        filelock = require("filelock", "Running a study")
        with explain_errors(self.path / ".lock", "written"):
            lock = filelock.FileLock(self.path / ".lock", timeout=0)
            try:
                lock.acquire()
            except filelock.Timeout:
                raise FolderError(
                    f"{self.path} is in use by another process; wait for it, or choose another "
                    "folder (--output)"
                ) from None
        try:
            for folder in (self.path, *filter(Path.is_dir, self.path.rglob("*"))):
                remove_drafts(folder)
            yield
        finally:
            lock.release()

    def store_dataset(self, dataset: RetrievalDataset) -> str:
        """Store a dataset unless it is stored already; return the name of its folder."""
        name = f"{slug(str(dataset.provenance()))}-{dataset.content_hash[:8]}"
        stored = HashedFolder(self.path / "datasets" / name)
        faults = stored.find_faults()
        raise_first(fault for fault in faults if fault.what == "damaged")
        if faults or DATASET not in stored.read_hashes():
            files: dict[str, bytes | None] = {}
            write_dataset(dataset, files.__setitem__)
            files["qrels.txt"] = trec_qrels(make_qrels(dataset))
            files[DATASET] = dump_json(dataset.provenance().to_dict())
            stored.write(files)
        return name

    def dataset(self, name: str) -> RetrievalDataset:
        """Read a stored dataset."""
        if Path(name).name != name:  # a manifest may be untrusted
            raise FolderError(f"{name!r} is not the name of a dataset in {self.path}")
        folder = self.path / "datasets" / name
        raise_first(HashedFolder(folder).find_faults())
        origin = HashedFolder(folder).read_record(DATASET, DatasetProvenance)
        lists = (folder / "top_ranked.parquet").is_file()
        dataset = load_dataset(folder, candidates="given" if lists else "full")
        return replace(
            dataset,
            name=origin.name,
            subset=origin.subset,
            split=origin.split,
            revision=origin.revision,
            left_out=origin.left_out,
            candidate_rule=origin.candidates or dataset.candidate_rule,
        )

    def cell(
        self, model: str, model_dtype: str, dataset: str, settings: Mapping[str, str]
    ) -> CellFolder:
        """Return the folder of a cell; it may not exist yet."""
        name = f"{slug(model)}.{model_dtype}.{dataset.rpartition('-')[0]}-{hash_short(settings)}"
        return CellFolder(self.path / "cells" / name)

    def cells(self) -> list[CellFolder]:
        """Return the folders of all started cells, sorted by name."""
        cells = self.path / "cells"
        begun = {file.parent for name in (MANIFEST, SUMS) for file in cells.glob(f"*/{name}")}
        return [CellFolder(path) for path in sorted(begun)]

    def verify(self) -> tuple[int, list[FileError]]:
        """Compare every file with its hash.

        Returns
        -------
        tuple
            The number of unchanged files, and the faults: files that are damaged, missing,
            foreign or, after an interrupted run, unfinished.
        """
        known: dict[Path, FileError | None] = {self.path / MARK: None}
        for path in sorted([*self.path.glob("datasets/*/"), *self.path.glob("cells/*/")]):
            folder = CellFolder(path)
            known |= dict.fromkeys([path / name for name in folder.read_hashes()])
            known |= {fault.path: fault for fault in folder.find_faults()}
            known |= dict.fromkeys(path.glob(SUMS))
            with suppress(FolderError):  # no cell, or a fault of its manifest
                for stream, parts in folder.streams().items():
                    if not known.keys() >= {path / name for name in parts.names}:
                        known[path / stream] = FileError(path / stream, "unfinished")
        for path in sorted(self.path.rglob("*")):
            name = path.relative_to(self.path)
            hidden = any(part.startswith(".") for part in name.parts)
            if path.is_file() and not hidden and path not in known:
                own = _OWN_FILES.fullmatch(name.as_posix())
                known[path] = FileError(path, "unfinished" if own else "foreign")
        faults = [fault for fault in known.values() if fault is not None]
        return len(known) - len(faults), faults


class CellFolder(HashedFolder):
    """The folder of one cell: one model in one dtype on one dataset."""

    @property
    def manifest(self) -> Manifest:
        """The manifest of the cell."""
        manifest = self.read_record(MANIFEST, Manifest)
        sizes = [manifest.model.batch_size, *(facts.count for facts in manifest.inputs.values())]
        if not manifest.inputs.keys() <= set(STREAMS) or min(sizes) < 1:
            raise FolderError(
                f"{self.path / MANIFEST} cannot be read (its inputs are not those of a model); "
                "delete it and run the same command again"
            )
        return manifest

    def write_manifest(self, manifest: Manifest) -> None:
        """Store the manifest of the cell."""
        self.write({MANIFEST: dump_json(manifest.to_dict())})

    def streams(self) -> dict[str, Parts]:
        """Return the parts of every stream of inputs."""
        manifest = self.manifest
        size = manifest.model.batch_size
        return {
            stream: Parts(self, stream, math.ceil(facts.count / size))
            for stream, facts in manifest.inputs.items()
        }

    def outputs(self) -> dict[str, torch.Tensor]:
        """Read the output of the model in the order of the inputs: logits or embeddings."""
        streams = self.streams().values()
        return {name: rows for parts in streams for name, rows in parts.read().items()}

    def regimes(self) -> list[str]:
        """Return the regimes of the cell's results, in the order of tables."""
        listed = [name for name in self.read_hashes() if name.startswith("results/")]
        paths = [*map(Path, listed), *(self.path / "results").glob("*.json")]
        return sorted({path.stem for path in paths}, key=regime_order)

    def write_result(self, regime: str, result: Result, scores: pl.DataFrame | None) -> None:
        """Store a result and its scores (Parquet and a TREC run); None removes older scores."""
        run = None if scores is None else trec_run(scores, f"{self.path.name}.{regime}")
        self.write(
            {
                _scores_file(regime): None if scores is None else to_parquet(scores),
                f"runs/{regime}.txt": run,
                f"results/{regime}.json": utf8(result.to_json()),
            }
        )

    def has_scores(self, regime: str) -> bool:
        """Return whether scores were stored; those of a full corpus may be too many."""
        name = _scores_file(regime)
        return (self.path / name).is_file() or name in self.read_hashes()

    def scores(self, regime: str) -> pl.DataFrame:
        """Read query_id, doc_id and score, in the order of the candidates."""
        name = _scores_file(regime)
        if not self.has_scores(regime):
            raise InputError(
                f"{self.path / name} does not exist: the full corpus was too long to be stored"
            )
        return self.read(name, lambda data: pl.read_parquet(BytesIO(data)))

    def result(self, regime: str) -> Result:
        """Read a result."""
        name = f"results/{regime}.json"
        return self.read(name, lambda data: Result.from_json(data.decode()))


def slug(name: str) -> str:
    """Return a folder name: the words of a hub id, or the last part of a path.

    >>> slug("BAAI/bge-reranker-v2-m3"), slug("/models/my model")
    ('BAAI--bge-reranker-v2-m3', 'my-model')
    """
    hub_id = re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name)
    word = name.replace("/", "--") if hub_id else re.sub(r"[^\w.-]+", "-", Path(name).name)
    short = word.encode()[-80:].decode(errors="ignore")  # file names have at most 255 bytes
    return short.lstrip(".") or "unnamed"


def hash_short(data: object) -> str:
    """Return eight hexadecimal digits of the hash of plain values."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]


def _scores_file(regime: str) -> str:
    return f"scores/{regime}.parquet"
