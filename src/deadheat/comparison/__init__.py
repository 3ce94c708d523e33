"""From results to decisions: which system is better, and what leaves it undecided."""

from deadheat.comparison.align import align_systems, check_result, name_systems
from deadheat.comparison.comparison import COLUMNS, TESTS, Comparison
from deadheat.comparison.statistics import METHODS, VERDICTS, verdict
from deadheat.comparison.systems import compare, compare_if_possible, compare_results, ranking

__all__ = [
    "COLUMNS",
    "METHODS",
    "TESTS",
    "VERDICTS",
    "Comparison",
    "align_systems",
    "check_result",
    "compare",
    "compare_if_possible",
    "compare_results",
    "name_systems",
    "ranking",
    "verdict",
]
