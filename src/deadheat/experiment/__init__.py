"""Experiments: model × model dtype × dataset in, stored and resumable results out."""

from deadheat.experiment.budget import error_budget, is_computed_twice
from deadheat.experiment.results import StoredResult, load_results
from deadheat.experiment.running import Failure, run_study
from deadheat.experiment.study import (
    Cell,
    DatasetSpec,
    ModelSpec,
    Study,
    paper_study,
    read_study,
)
from deadheat.experiment.table1 import every_measure, table1, ties_table

__all__ = [
    "Cell",
    "DatasetSpec",
    "Failure",
    "ModelSpec",
    "StoredResult",
    "Study",
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
