"""Diagnose the ties of a run: where they are, their causes, their effect, and the remedy."""

from deadheat.diagnosis.check import (
    REMEDIES as REMEDIES,
    Check as Check,
    CheckedRegime as CheckedRegime,
    check_regimes as check_regimes,
    choose_regime as choose_regime,
    hang as hang,
)
from deadheat.diagnosis.diagnose import (
    Diagnosis as Diagnosis,
    check_run as check_run,
    diagnose as diagnose,
)
from deadheat.diagnosis.number_grid import find_grid as find_grid
