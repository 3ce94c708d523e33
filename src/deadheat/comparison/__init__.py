"""Compare results: pairs of systems, verdicts, ranks, leaderboards."""

from deadheat.comparison.align import (
    align_systems as align_systems,
    check_origins as check_origins,
    check_result as check_result,
    name_systems as name_systems,
)
from deadheat.comparison.comparison import (
    TESTS as TESTS,
    Comparison as Comparison,
)
from deadheat.comparison.leaderboard import Leaderboard as Leaderboard, leaderboards as leaderboards
from deadheat.comparison.statistics import (
    METHODS as METHODS,
    VERDICTS as VERDICTS,
    verdict as verdict,
)
from deadheat.comparison.systems import (
    compare as compare,
    compare_if_possible as compare_if_possible,
    compare_results as compare_results,
    ranking as ranking,
)
