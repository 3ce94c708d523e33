"""From a run to where its ties are, where they come from, and what they cost."""

from deadheat.diagnosis.diagnose import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
