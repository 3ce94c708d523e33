"""One forward pass per model, model dtype and dataset; scores and results follow from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from deadheat.engines import Engine, Pool, Progress
from deadheat.errors import InputError
from deadheat.lab.datasets import RetrievalDataset
from deadheat.lab.experiment.derive import evaluate_cell, group_texts
from deadheat.lab.experiment.folder import CellFolder, ExperimentFolder, Manifest
from deadheat.lab.experiment.parts import Parts
from deadheat.lab.experiment.study import Study, StudyCell
from deadheat.lab.experiment.worker import (
    Environment,
    ForwardFacts,
    ForwardPass,
    PartTask,
    use_threads,
)
from deadheat.provenance import flatten
from deadheat.scoring.regimes import SCORED

if TYPE_CHECKING:
    from deadheat.lab.models import BiEncoder, Reranker


@dataclass(frozen=True)
class CellRun:
    """Runs one cell of a study, from texts to results."""

    study: Study
    cell: StudyCell
    folder: ExperimentFolder
    dataset: RetrievalDataset
    dataset_folder: str
    environment: Environment
    """Of the machines that run the model."""
    load: Callable[[], Reranker | BiEncoder]
    """Loads the model, once for all cells that need it."""
    engine: Engine
    progress: Progress | None

    def run(self) -> None:
        """Run what is missing of the forward pass, then score and evaluate."""
        before = use_threads(self.environment.threads)
        try:
            self._run()
        finally:
            use_threads(before)

    def _run(self) -> None:
        manifest = self.stored.manifest
        if manifest is None or any(parts.missing() for parts in self.stored.streams().values()):
            manifest = self._forward()
        if self.cell.model.label not in (None, manifest.label):
            manifest = replace(manifest, label=self.cell.model.label)
        self.stored.write_manifest(manifest)  # its label may be new, and its hash missing
        regimes = dict.fromkeys([*self._regimes(manifest), *self.stored.regimes()])
        depth = self.study.depth if self.dataset.candidates is None else None
        measures = self.study.all_measures
        evaluate_cell(
            self.stored,
            manifest,
            self.dataset,
            list(regimes),
            measures,
            depth,
            self.engine,
            None if self.progress is None else self._report_progress,
        )

    @cached_property
    def settings(self) -> dict[str, str]:
        """All settings that the outputs depend on, known before the model is loaded."""
        study, model = self.study, self.cell.model
        asked = {
            name: value for name, value in asdict(model).items() if name not in ("name", "label")
        }
        texts = json.dumps([list(self.dataset.queries.items()), list(self.dataset.corpus)])
        settings = {
            **asked,
            **asdict(self.environment),
            "max_length": model.max_length or study.max_length,
            "batch_size": self.cell.compute.batch_size,
            "attention": self.cell.compute.attention,
            "trust_remote_code": study.trust_remote_code,
            "content": self.dataset.content_hash,
            "order": hashlib.sha256(texts.encode()).hexdigest(),
            "repeated_texts": self._repeated_texts() or None,
        }
        return {name: str(value) for name, value in flatten(settings) if value is not None}

    def _repeated_texts(self) -> int:
        """Count the documents whose text an earlier one has: each text is encoded once."""
        documents = group_texts(self.dataset).values()
        return sum(len(having) - 1 for having in documents)

    @cached_property
    def stored(self) -> CellFolder:
        """Where the outputs of these settings are, or will be."""
        return self.folder.cell(
            self.cell.model.name, self.cell.model_dtype, self.dataset_folder, self.settings
        )

    def _regimes(self, manifest: Manifest) -> list[str]:
        """Return the regimes that this cell can have; in FP32 they are all the same."""
        asked = list(self.study.regimes)
        if self.cell.model_dtype == "fp32" and asked:
            asked = ["native"]
        elif manifest.model.kind == "bi-encoder":
            asked = [regime for regime in asked if regime != "head"]
        regimes = asked + [SCORED + dtype for dtype in self.study.scoring_dtypes]
        if not regimes:
            raise InputError("a bi-encoder has no scoring head: choose the regime native or hps")
        return regimes

    def _forward(self) -> Manifest:
        """Run and store the missing parts of every stream of inputs."""
        whole = ForwardPass(self.study, self.cell, self.dataset, self.environment, self.load)
        with self.engine.pool(whole) as pool:
            [(_, facts)] = pool.results([None])
            manifest = self._manifest(facts)
            self.stored.write_manifest(manifest)
            for stream, parts in self.stored.streams().items():
                self._run_stream(stream, facts.inputs[stream].count, parts, pool)
        return manifest

    def _manifest(self, facts: ForwardFacts) -> Manifest:
        return Manifest(
            settings=self.settings,
            model=facts.model,
            function=facts.function,
            backend=self.environment.backend,
            threads=self.environment.threads,
            dataset=self.dataset.provenance(),
            dataset_folder=self.dataset_folder,
            inputs=facts.inputs,
            label=self.cell.model.label,
        )

    def _run_stream(self, stream: str, inputs: int, parts: Parts, pool: Pool) -> None:
        """Run and store the missing parts of one stream of inputs."""
        missing = [PartTask(stream, number, parts.step) for number in parts.missing()]
        done = parts.count - len(missing)
        size = parts.step * self.cell.compute.batch_size
        if missing:
            self._report_progress(stream, done * size, inputs)
        for part, output in pool.results(missing):
            parts.write(part.number, output.tensors, output.halved)
            done += 1
            self._report_progress(stream, min(done * size, inputs), inputs)

    def _report_progress(self, stream: str, done: int, total: int) -> None:
        if self.progress is not None:
            cell = self.cell
            name = f"{cell.model.short_name} {cell.model_dtype} {Path(cell.dataset.name).name}"
            ways = f", {cell.compute}" if len(self.study.computes) > 1 else ""
            self.progress(f"{name}{ways}: {stream}", done, total)
