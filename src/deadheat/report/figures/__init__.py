"""Figures for papers: what ties do to a measure, a list, a comparison; drawn by matplotlib."""

from deadheat.report.figures.comparison import comparison
from deadheat.report.figures.curves import curves
from deadheat.report.figures.ranked_list import ranked_list
from deadheat.report.figures.ranks import rank_intervals
from deadheat.report.figures.style import ENDINGS, WIDTHS, Plot, check_ending
from deadheat.report.figures.tie_sizes import tie_sizes

__all__ = [
    "ENDINGS",
    "WIDTHS",
    "Plot",
    "check_ending",
    "comparison",
    "curves",
    "rank_intervals",
    "ranked_list",
    "tie_sizes",
]
