"""Experiments: model × model dtype × dataset in, stored and resumable results out."""

from deadheat.experiment.run import Failure, run_study
from deadheat.experiment.store import Store, StoredCell
from deadheat.experiment.stored import StoredResult, load_results
from deadheat.experiment.study import (
    Cell,
    DatasetSpec,
    ModelSpec,
    Study,
    paper_study,
    read_study,
)

__all__ = [
    "Cell",
    "DatasetSpec",
    "Failure",
    "ModelSpec",
    "Store",
    "StoredCell",
    "StoredResult",
    "Study",
    "load_results",
    "paper_study",
    "read_study",
    "run_study",
]
