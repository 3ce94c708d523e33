"""Experiments: run models × model dtypes × datasets, with stored and resumable results."""

from deadheat.lab.experiment.budget import (
    error_budget as error_budget,
    is_computed_twice as is_computed_twice,
)
from deadheat.lab.experiment.derive import (
    list_regimes as list_regimes,
    score_lists as score_lists,
)
from deadheat.lab.experiment.files import ADVICE as ADVICE
from deadheat.lab.experiment.folder import (
    ExperimentFolder as ExperimentFolder,
    join_parts as join_parts,
)
from deadheat.lab.experiment.forward import (
    group_texts as group_texts,
    list_pairs as list_pairs,
    plan_streams as plan_streams,
    run_batches as run_batches,
    scoring_function as scoring_function,
)
from deadheat.lab.experiment.paper_table import against_paper as against_paper
from deadheat.lab.experiment.results import (
    StoredResult as StoredResult,
    load_results as load_results,
)
from deadheat.lab.experiment.running import Failure as Failure, run_study as run_study
from deadheat.lab.experiment.study import (
    CANDIDATES as CANDIDATES,
    DEFAULT_REGIMES as DEFAULT_REGIMES,
    DatasetSpec as DatasetSpec,
    ModelSpec as ModelSpec,
    Study as Study,
    StudyCell as StudyCell,
    paper_study as paper_study,
    read_study as read_study,
)
from deadheat.lab.experiment.table1 import (
    every_measure as every_measure,
    table1 as table1,
    ties_table as ties_table,
)
