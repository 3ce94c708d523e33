"""Show results: figures, pages, sentences."""

from deadheat.report.citation import (
    citation as citation,
    latex_citation as latex_citation,
)
from deadheat.report.findings import (
    describe_comparison as describe_comparison,
    describe_leaderboard as describe_leaderboard,
    describe_systems as describe_systems,
    most_moved as most_moved,
)
from deadheat.report.writing import write_report as write_report
