"""``run_study``: run the missing cells of a study, and evaluate all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from deadheat.engines import Engine, LocalEngine, Progress
from deadheat.errors import DeadheatError
from deadheat.lab.datasets import RetrievalDataset, read_dataset
from deadheat.lab.experiment.budget import compare_variants
from deadheat.lab.experiment.files import FolderError
from deadheat.lab.experiment.folder import ExperimentFolder
from deadheat.lab.experiment.forward import CellRun
from deadheat.lab.experiment.study import Compute, DatasetSpec, ModelSpec, Study, StudyCell
from deadheat.lab.experiment.worker import find_environment

if TYPE_CHECKING:
    from deadheat.lab.models import BiEncoder, Reranker

T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """A cell that could not be run, and why."""

    cell: StudyCell
    error: DeadheatError


def run_study(
    study: Study,
    folder: str | Path,
    *,
    progress: Progress | None = None,
    engine: Engine | None = None,
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
        Called after every stored part of a forward pass, and while a full corpus is counted.
    engine
        Where models are run; this process unless given. The scores are the same anywhere.

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
    workplace = engine or LocalEngine()
    failures = []
    ran: dict[Path, RetrievalDataset] = {}
    with experiment.lock():
        texts = CachedCall(partial(_store_texts, experiment, study))
        for model in study.models:
            find = partial(find_environment, model, study.device)
            environment = CachedCall(partial(workplace.ask, find))
            for dtype, compute in product(study.model_dtypes, study.computes):
                load = CachedCall(partial(_load_model, study, model, dtype, compute))
                for spec in study.datasets:
                    cell = StudyCell(model, dtype, spec, compute)
                    try:
                        dataset, name = texts(spec)
                        where = environment()
                        one = CellRun(
                            study=study,
                            cell=cell,
                            folder=experiment,
                            dataset=dataset,
                            dataset_folder=name,
                            environment=replace(where, threads=compute.threads or where.threads),
                            load=load,
                            engine=workplace,
                            progress=progress,
                        )
                        one.run()
                        ran[one.stored.path] = dataset
                    except FolderError:  # it concerns every cell
                        raise
                    except DeadheatError as error:
                        failures.append(Failure(cell, error))
        if ran:
            compare_variants(experiment, ran, workplace, progress)
    return failures


class CachedCall(Generic[T]):
    """Calls a function once for every argument; results and errors are cached."""

    def __init__(self, make: Callable[..., T]) -> None:
        self._make = make
        self._outcomes: dict[tuple[Any, ...], T | DeadheatError] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the cache."""
        return CachedCall, (self._make,)

    def __call__(self, *args: Any) -> T:
        """Return what the function returned, or raise what it raised."""
        if args not in self._outcomes:
            try:
                self._outcomes[args] = self._make(*args)
            except FolderError:
                raise
            except DeadheatError as error:
                self._outcomes[args] = error
        outcome = self._outcomes[args]
        if isinstance(outcome, DeadheatError):
            raise outcome
        return outcome


def _store_texts(
    experiment: ExperimentFolder, study: Study, spec: DatasetSpec
) -> tuple[RetrievalDataset, str]:
    dataset = read_dataset(
        spec.name,
        subset=spec.subset,
        split=spec.split,
        revision=spec.revision,
        candidates=study.candidates,
        depth=None if study.candidates == "full" else study.depth,
        limit=study.limit,
    )
    return dataset, experiment.store_dataset(dataset)


def _load_model(
    study: Study, spec: ModelSpec, dtype: str, compute: Compute
) -> Reranker | BiEncoder:
    from deadheat.lab.models import load_model

    return load_model(
        spec.name,
        model_dtype=dtype,
        kind=spec.kind,
        device=study.device,
        batch_size=compute.batch_size,
        attn_implementation=compute.attention,
        max_length=spec.max_length or study.max_length,
        trust_remote_code=study.trust_remote_code,
        revision=spec.revision,
        instruction=spec.instruction,
    )
