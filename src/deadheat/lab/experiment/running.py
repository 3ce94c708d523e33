"""``run_study``: run the missing cells of a study, and evaluate all of them."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import cast

from deadheat.engines import Engine, LocalEngine, Progress
from deadheat.errors import DeadheatError, DeadheatWarning
from deadheat.lab.datasets import RetrievalDataset, load_dataset
from deadheat.lab.experiment.derive import evaluate_cell
from deadheat.lab.experiment.files import FolderError
from deadheat.lab.experiment.folder import MANIFEST, CellFolder, ExperimentFolder, Manifest
from deadheat.lab.experiment.forward import (
    ForwardPass,
    find_environment,
    forget_model,
    use_threads,
)
from deadheat.lab.experiment.study import COMPUTE_SETTINGS, DatasetSpec, Study, StudyCell


@dataclass(frozen=True)
class Failure:
    """A cell that could not be run, and the reason."""

    cell: StudyCell
    error: DeadheatError


def run_study(
    study: Study,
    folder: str | Path,
    *,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> list[Failure]:
    """Run the cells of a study that are not in `folder` yet, and evaluate all cells.

    Parameters
    ----------
    study
        The cells to run.
    folder
        Folder to store everything in, batch by batch. The same call continues an interrupted run
        and gives the same bytes. Other settings make other cells; stored cells do not change.
    progress
        Callback after every stored part of a forward pass, and while a full corpus is counted.
    engine
        Where models are run. The scores do not depend on it. Default: this process.

    Returns
    -------
    list of Failure
        The cells that could not be run. All other cells are complete.

    Raises
    ------
    InputError
        The folder is in use, belongs to something else, or cannot be written to.
    """
    experiment = ExperimentFolder(folder, create=True)
    engine = engine or LocalEngine()
    store = cache(partial(_store_dataset, experiment, study))
    find = cache(lambda model: engine.ask(partial(find_environment, model, study.device)))
    failures = []
    with experiment.lock(), ExitStack() as at_end:
        at_end.callback(forget_model)
        for cell in study.cells:
            try:
                dataset, name = store(cell.dataset)
                found = find(cell.model)
                environment = replace(found, threads=cell.threads or found.threads)
                forward = ForwardPass(study, cell, dataset, name, environment)
                _run_cell(forward, experiment, engine, progress)
            except FolderError:  # affects every cell
                raise
            except DeadheatError as error:
                failures.append(Failure(cell, error))
    return failures


def _store_dataset(
    experiment: ExperimentFolder, study: Study, spec: DatasetSpec
) -> tuple[RetrievalDataset, str]:
    """Read a dataset, and store it; return it with the name of its folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeadheatWarning)  # dropped data is in its provenance
        dataset = load_dataset(
            spec.name,
            subset=spec.subset,
            split=spec.split,
            revision=spec.revision,
            candidates=study.candidates,
            depth=None if study.candidates == "full" else study.depth,
            limit=study.limit,
        )
    return dataset, experiment.store_dataset(dataset)


def _run_cell(
    forward: ForwardPass, experiment: ExperimentFolder, engine: Engine, progress: Progress | None
) -> None:
    """Run the missing parts of the forward pass, then score and evaluate."""
    study, cell = forward.study, forward.cell
    stored = experiment.cell(
        cell.model.name, cell.model_dtype, forward.dataset_folder, forward.settings
    )

    def report(what: str, done: int, total: int) -> None:
        if progress is not None:
            name = f"{cell.model.short_name} {cell.model_dtype} {Path(cell.dataset.name).name}"
            for setting in COMPUTE_SETTINGS:
                if len(getattr(study, setting)) > 1:
                    name += f", {setting} {getattr(cell, setting)}"
            progress(f"{name}: {what}", done, total)

    before = use_threads(forward.environment.threads)
    try:
        manifest = stored.manifest if (stored.path / MANIFEST).is_file() else None
        if manifest is None or any(map(stored.missing_parts, stored.streams().values())):
            manifest = _run_forward(forward, stored, engine, report)
        if cell.model.label not in (None, manifest.label):
            manifest = replace(manifest, label=cell.model.label)
        stored.write_manifest(manifest)  # its label may be new, and its hash missing
        evaluate_cell(forward, stored, manifest, engine, report)
    finally:
        use_threads(before)


def _run_forward(
    forward: ForwardPass, stored: CellFolder, engine: Engine, report: Progress
) -> Manifest:
    """Run and store the missing parts of every stream of inputs."""
    with engine.pool(forward) as pool:
        [(_, manifest)] = pool.results([None])
        stored.write_manifest(manifest)
        for stream, parts in stored.streams().items():
            inputs, size = manifest.inputs[stream].count, manifest.model.batch_size
            missing = stored.missing_parts(parts)
            done = sum(len(part.batches) for part in parts if part not in missing)
            if missing:
                report(stream, done * size, inputs)
            for part, output in pool.results(missing):
                stored.write_part(part, output)
                done += len(part.batches)
                report(stream, min(done * size, inputs), inputs)
    return cast("Manifest", manifest)
