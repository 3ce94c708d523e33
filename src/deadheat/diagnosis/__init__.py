"""From a run to where its ties are, where they come from, and what they cost."""

from deadheat.diagnosis.cuts import cut_lists as cut_lists
from deadheat.diagnosis.diagnose import Diagnosis as Diagnosis, diagnose as diagnose
from deadheat.diagnosis.number_grid import find_grid as find_grid
