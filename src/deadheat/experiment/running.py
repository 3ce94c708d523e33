"""``run_study``: every cell of a study, the missing ones run, all of them evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from deadheat.datasets import RetrievalDataset, load_dataset
from deadheat.errors import DeadheatError
from deadheat.experiment.folder import ExperimentFolder, FolderError
from deadheat.experiment.forward import CellRun, Progress
from deadheat.experiment.study import Cell, DatasetSpec, ModelSpec, Study

if TYPE_CHECKING:
    from deadheat.models import BiEncoder, Reranker

T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """A cell that could not be run, and why."""

    cell: Cell
    error: DeadheatError


def run_study(
    study: Study, folder: str | Path, *, progress: Progress | None = None
) -> list[Failure]:
    """Run the cells of a study that `folder` lacks, and evaluate all of them.

    Parameters
    ----------
    study
        What to run.
    folder
        Where everything is stored, batch by batch. A run that was ended, however it was, is
        continued by the same call, and ends with the same bytes. Other settings make other
        cells; those that are stored stay as they are.
    progress
        Called after every stored part of a forward pass.

    Returns
    -------
    list of Failure
        The cells that could not be run. The others are complete.

    Raises
    ------
    InputError
        The folder is in use, belongs to something else, or cannot be written to.
    """
    experiment = ExperimentFolder(folder, create=True)
    failures = []
    with experiment.lock():
        texts = _remembering(partial(_store_texts, experiment, study))
        for model in study.models:
            for dtype in study.model_dtypes:
                load = _remembering(partial(_load_model, study, model, dtype))
                for spec in study.datasets:
                    cell = Cell(model, dtype, spec)
                    try:
                        dataset, name = texts(spec)
                        CellRun(study, cell, experiment, dataset, name, load, progress).run()
                    except FolderError:  # true of every cell
                        raise
                    except DeadheatError as error:
                        failures.append(Failure(cell, error))
    return failures


def _remembering(make: Callable[..., T]) -> Callable[..., T]:
    """Call a function once for every argument, whether it returns or says why it cannot."""

    @cache
    def outcome(*args: Any) -> tuple[T | None, DeadheatError | None]:
        try:
            return make(*args), None
        except FolderError:
            raise
        except DeadheatError as error:
            return None, error

    def call(*args: Any) -> T:
        value, error = outcome(*args)
        if error is not None:
            raise error
        return cast(T, value)

    return call


def _store_texts(
    experiment: ExperimentFolder, study: Study, spec: DatasetSpec
) -> tuple[RetrievalDataset, str]:
    dataset = load_dataset.quiet(
        spec.name,
        subset=spec.subset,
        split=spec.split,
        revision=spec.revision,
        candidates=study.candidates,  # type: ignore[arg-type]
        depth=None if study.candidates == "full" else study.depth,
        limit=study.limit,
    )
    return dataset, experiment.store_dataset(dataset)


def _load_model(study: Study, spec: ModelSpec, dtype: str) -> Reranker | BiEncoder:
    from deadheat.models import load_model

    return load_model(
        spec.name,
        model_dtype=dtype,
        kind=spec.kind,  # type: ignore[arg-type]
        device=study.device,
        batch_size=study.batch_size,
        max_length=spec.max_length or study.max_length,
        trust_remote_code=study.trust_remote_code,
        revision=spec.revision,
        instruction=spec.instruction,
    )
