"""Experiments: model × model dtype × dataset in, stored and resumable results out."""

from deadheat.lab.experiment.budget import error_budget, is_computed_twice
from deadheat.lab.experiment.results import StoredResult, load_results
from deadheat.lab.experiment.running import Failure, run_study
from deadheat.lab.experiment.study import (
    DatasetSpec,
    ModelSpec,
    Study,
    StudyCell,
    paper_study,
    read_study,
)
from deadheat.lab.experiment.table1 import every_measure, table1, ties_table

__all__ = [
    "DatasetSpec",
    "Failure",
    "ModelSpec",
    "StoredResult",
    "Study",
    "StudyCell",
    "error_budget",
    "every_measure",
    "is_computed_twice",
    "load_results",
    "paper_study",
    "read_study",
    "run_study",
    "table1",
    "ties_table",
]
