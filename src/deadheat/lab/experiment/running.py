"""``run_study``: run the missing cells of a study, and evaluate all of them."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path

from deadheat.engines import Engine, LocalEngine, Progress
from deadheat.errors import DeadheatError, DeadheatWarning, InputError
from deadheat.lab.datasets import RetrievalDataset, load_dataset
from deadheat.lab.experiment.derive import evaluate_cell, group_texts
from deadheat.lab.experiment.files import FolderError
from deadheat.lab.experiment.folder import MANIFEST, CellFolder, ExperimentFolder, Manifest
from deadheat.lab.experiment.forward import (
    ForwardPass,
    PartTask,
    find_environment,
    forget_model,
    use_threads,
)
from deadheat.lab.experiment.study import DatasetSpec, Study, StudyCell
from deadheat.provenance import flatten
from deadheat.scoring import SCORED, ranks_by_logit, uses_head


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
    workplace = engine or LocalEngine()
    store = cache(partial(_store_dataset, experiment, study))
    find = cache(lambda model: workplace.ask(partial(find_environment, model, study.device)))
    failures = []
    with experiment.lock(), ExitStack() as at_end:
        at_end.callback(forget_model)
        for cell in study.cells:
            try:
                dataset, name = store(cell.dataset)
                where = find(cell.model)
                where = replace(where, threads=cell.compute.threads or where.threads)
                whole = ForwardPass(study, cell, dataset, where)
                _run_cell(whole, experiment, name, workplace, progress)
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
    whole: ForwardPass,
    experiment: ExperimentFolder,
    dataset_folder: str,
    engine: Engine,
    progress: Progress | None,
) -> None:
    """Run the missing parts of the forward pass, then score and evaluate."""
    study, cell, dataset = whole.study, whole.cell, whole.dataset
    settings = _list_settings(whole)
    stored = experiment.cell(cell.model.name, cell.model_dtype, dataset_folder, settings)

    def report(what: str, done: int, total: int) -> None:
        if progress is not None:
            name = f"{cell.model.short_name} {cell.model_dtype} {Path(cell.dataset.name).name}"
            way = f", {cell.compute}" if len(study.computes) > 1 else ""
            progress(f"{name}{way}: {what}", done, total)

    before = use_threads(whole.environment.threads)
    try:
        manifest = stored.manifest if (stored.path / MANIFEST).is_file() else None
        if manifest is None or any(parts.missing() for parts in stored.streams().values()):
            manifest = _run_forward(whole, stored, dataset_folder, settings, engine, report)
        if cell.model.label not in (None, manifest.label):
            manifest = replace(manifest, label=cell.model.label)
        stored.write_manifest(manifest)  # its label may be new, and its hash missing
        evaluate_cell(
            stored,
            manifest,
            dataset,
            list(dict.fromkeys([*_list_regimes(study, manifest), *stored.regimes()])),
            study.all_measures,
            study.depth if dataset.candidates is None else None,
            engine,
            report,
        )
    finally:
        use_threads(before)


def _list_settings(whole: ForwardPass) -> dict[str, str]:
    """Return all settings that determine the outputs and are known before the model is loaded."""
    study, model, dataset = whole.study, whole.cell.model, whole.dataset
    asked = {name: value for name, value in asdict(model).items() if name not in ("name", "label")}
    texts = json.dumps([list(dataset.queries.items()), list(dataset.corpus)])
    # Each text is encoded once.
    repeated = sum(len(documents) - 1 for documents in group_texts(dataset).values())
    settings = {
        **asked,
        **asdict(whole.environment),
        "max_length": model.max_length or study.max_length,
        "batch_size": whole.cell.compute.batch_size,
        "attention": whole.cell.compute.attention,
        "trust_remote_code": study.trust_remote_code,
        "content": dataset.content_hash,
        "order": hashlib.sha256(texts.encode()).hexdigest(),
        "repeated_texts": repeated or None,
    }
    return {name: str(value) for name, value in flatten(settings) if value is not None}


def _list_regimes(study: Study, manifest: Manifest) -> list[str]:
    """Return the regimes of a cell; in FP32 several regimes are the same."""
    asked = list(study.regimes)
    if manifest.model.kind == "bi-encoder":
        asked = [r for r in asked if not uses_head(r) and not ranks_by_logit(r)]
    if manifest.model.model_dtype == "fp32" and study.regimes:
        by_logit = any(map(ranks_by_logit, asked))
        asked = ["native", "hps-logit"] if by_logit else ["native"]
    regimes = asked + [SCORED + dtype for dtype in study.scoring_dtypes]
    if not regimes:
        raise InputError("a bi-encoder has no scoring head; choose the regime native or hps")
    return regimes


def _run_forward(
    whole: ForwardPass,
    stored: CellFolder,
    dataset_folder: str,
    settings: Mapping[str, str],
    engine: Engine,
    report: Progress,
) -> Manifest:
    """Run and store the missing parts of every stream of inputs."""
    with engine.pool(whole) as pool:
        [(_, facts)] = pool.results([None])
        manifest = Manifest(
            settings=settings,
            model=facts.model,
            function=facts.function,
            backend=whole.environment.backend,
            threads=whole.environment.threads,
            dataset=whole.dataset.provenance(),
            dataset_folder=dataset_folder,
            inputs=facts.inputs,
            label=whole.cell.model.label,
        )
        stored.write_manifest(manifest)
        for stream, parts in stored.streams().items():
            inputs = facts.inputs[stream].count
            missing = [PartTask(stream, number, parts.step) for number in parts.missing()]
            done = len(parts.names) - len(missing)
            size = parts.step * whole.cell.compute.batch_size
            if missing:
                report(stream, done * size, inputs)
            for part, tensors in pool.results(missing):
                parts.write(part.number, tensors)
                done += 1
                report(stream, min(done * size, inputs), inputs)
    return manifest
