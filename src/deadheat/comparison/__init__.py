"""From results to decisions: which system is better, and what leaves it undecided."""

from deadheat.comparison.statistics import METHODS, VERDICTS, verdict
from deadheat.comparison.systems import COLUMNS, Comparison, compare, compared

__all__ = ["COLUMNS", "METHODS", "VERDICTS", "Comparison", "compare", "compared", "verdict"]
