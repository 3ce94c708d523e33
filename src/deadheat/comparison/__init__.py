"""From results to decisions: which system is better, and what leaves it undecided."""

from deadheat.comparison.comparison import COLUMNS, TESTS, Comparison
from deadheat.comparison.statistics import METHODS, VERDICTS, verdict
from deadheat.comparison.systems import compare, compare_if_possible, compare_results, ranking

__all__ = [
    "COLUMNS",
    "METHODS",
    "TESTS",
    "VERDICTS",
    "Comparison",
    "compare",
    "compare_if_possible",
    "compare_results",
    "ranking",
    "verdict",
]
