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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
    dump_json,
    explain_errors,
    refuse_outside_links,
    write_file,
)
from deadheat.provenance import DatasetProvenance, InputFacts, ModelProvenance, Record
from deadheat.scoring import regime_order

if TYPE_CHECKING:
    import torch

PartOutput = dict[str, "torch.Tensor"]
"""Tensors with a row per input: ``index`` (its number) and the outputs of the model."""

SCHEMA = 3
MAX_PARTS = 1000
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
        mark = self.path / MARK
        if not mark.is_file():
            visible = self.path.is_dir() and any(p.name[0] != "." for p in self.path.iterdir())
            if not create or visible or self.path.is_file():
                raise FolderError(
                    f"{path} is not the folder of an experiment (there is no {MARK} in it); give "
                    "the folder of deadheat run (a new run needs a new or empty folder); for run "
                    "files, use deadheat eval, or deadheat report with --qrels"
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
            try:
                lock = filelock.FileLock(self.path / ".lock", timeout=0).acquire()
            except filelock.Timeout:
                raise FolderError(
                    f"{self.path} is in use by another process; wait for it, or choose another "
                    "folder (--output)"
                ) from None
        with lock:
            for folder in (self.path, *filter(Path.is_dir, self.path.rglob("*"))):
                remove_drafts(folder)
            yield

    def store_dataset(self, dataset: RetrievalDataset) -> str:
        """Store a dataset unless it is stored already; return the name of its folder."""
        name = f"{slug(str(dataset.provenance()))}-{dataset.content_hash[:8]}"
        stored = HashedFolder(self.path / "datasets" / name)
        if stored.find_missing() or DATASET not in stored.read_hashes():
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
        stored = HashedFolder(self.path / "datasets" / name)
        stored.check_files()
        origin = stored.read(DATASET, lambda data: DatasetProvenance.from_dict(json.loads(data)))
        lists = (stored.path / "top_ranked.parquet").is_file()
        dataset = load_dataset(stored.path, candidates="given" if lists else "full")
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
        settings_hash = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        name = f"{slug(model)}.{model_dtype}.{dataset.rpartition('-')[0]}-{settings_hash[:8]}"
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
        complete, faults = {self.path / MARK}, []
        for path in sorted([*self.path.glob("datasets/*/"), *self.path.glob("cells/*/")]):
            folder = CellFolder(path)
            listed = {path / name for name in folder.read_hashes()}
            complete |= {path / SUMS, *listed}
            faults += folder.find_faults()
            with suppress(FolderError):  # no cell, or a fault of its manifest
                for stream, parts in folder.streams().items():
                    if not listed.issuperset(path / part.file for part in parts):
                        faults.append(FileError(path / stream, "unfinished"))
        for path in sorted(self.path.rglob("*")):
            name = path.relative_to(self.path)
            hidden = any(part.startswith(".") for part in name.parts)
            if path.is_file() and not hidden and path not in complete:
                own = _OWN_FILES.fullmatch(name.as_posix())
                faults.append(FileError(path, "unfinished" if own else "foreign"))
        complete -= {fault.path for fault in faults}
        return sum(path.is_file() for path in complete), faults


class Part(NamedTuple):
    """Some consecutive batches of a stream of inputs, which are run and stored together."""

    stream: str
    """``logits``, or ``queries`` or ``documents``."""
    number: int
    batches: range
    """Numbers of the batches."""

    @property
    def file(self) -> str:
        """The name of its file in the folder of the cell."""
        return f"{self.stream}/{self.number:06}.safetensors"


def list_parts(stream: str, batches: int) -> list[Part]:
    """Divide the batches of a stream into at most `MAX_PARTS` parts."""
    step = max(1, math.ceil(batches / MAX_PARTS))
    starts = range(0, batches, step)
    return [Part(stream, i, range(batches)[start : start + step]) for i, start in enumerate(starts)]


def join_parts(parts: Iterable[PartOutput]) -> PartOutput:
    """Return the rows of all parts in the order of the inputs."""
    import torch

    pieces = list(parts)
    whole = {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}
    order = whole.pop("index").argsort()
    return {name: rows[order] for name, rows in whole.items()}


class CellFolder(HashedFolder):
    """The folder of one cell: one model in one dtype on one dataset."""

    @property
    def manifest(self) -> Manifest:
        """The manifest of the cell."""

        def parse(data: bytes) -> Manifest:
            manifest = Manifest.from_dict(json.loads(data))
            counts = [manifest.model.batch_size, *(own.count for own in manifest.inputs.values())]
            if not manifest.inputs.keys() <= set(STREAMS) or min(counts) < 1:
                raise InputError("its inputs are not those of a model")
            return manifest

        return self.read(MANIFEST, parse)

    def write_manifest(self, manifest: Manifest) -> None:
        """Store the manifest of the cell."""
        self.write({MANIFEST: dump_json(manifest.to_dict())})

    def streams(self) -> dict[str, list[Part]]:
        """Return the parts of every stream of inputs."""
        manifest = self.manifest
        size = manifest.model.batch_size
        return {
            stream: list_parts(stream, math.ceil(facts.count / size))
            for stream, facts in manifest.inputs.items()
        }

    def missing_parts(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts that are missing; refuse a damaged one."""
        missing = self.find_missing(part.file for part in parts)
        return [part for part in parts if self.path / part.file in missing]

    def write_part(self, part: Part, output: PartOutput) -> None:
        """Store the output of a part."""
        from safetensors.torch import save

        self.write({part.file: save(output)})

    def part_files(self, parts: Sequence[Part]) -> list[Path]:
        """Return the files of parts; refuse damaged and missing ones."""
        self.check_files(part.file for part in parts)
        return [self.path / part.file for part in parts]

    def read_parts(self, parts: Sequence[Part]) -> PartOutput:
        """Read parts, and put their rows in the order of the inputs."""
        from safetensors.torch import load

        return join_parts(load(path.read_bytes()) for path in self.part_files(parts))

    def outputs(self) -> PartOutput:
        """Read the output of the model in the order of the inputs: logits or embeddings."""
        streams = self.streams().values()
        return {name: rows for parts in streams for name, rows in self.read_parts(parts).items()}

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
                f"scores/{regime}.parquet": None if scores is None else to_parquet(scores),
                f"runs/{regime}.txt": run,
                f"results/{regime}.json": utf8(result.to_json()),
            }
        )

    def scores(self, regime: str) -> pl.DataFrame:
        """Read query_id, doc_id and score, in the order of the candidates."""
        name = f"scores/{regime}.parquet"
        if not (self.path / name).is_file() and name not in self.read_hashes():
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
