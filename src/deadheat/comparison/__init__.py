"""From results to decisions: which system is better, and what leaves it undecided."""

from deadheat.comparison.comparison import COLUMNS, TESTS, Comparison
from deadheat.comparison.statistics import METHODS, VERDICTS, verdict
from deadheat.comparison.systems import compare, compared, ranking

__all__ = [
    "COLUMNS",
    "METHODS",
    "TESTS",
    "VERDICTS",
    "Comparison",
    "compare",
    "compared",
    "ranking",
    "verdict",
]
