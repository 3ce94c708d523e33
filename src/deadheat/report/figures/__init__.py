"""Figures for papers: the effect of ties on a measure, a list, a comparison (matplotlib)."""

from deadheat.report.figures.comparison import comparison as comparison
from deadheat.report.figures.curves import curves as curves
from deadheat.report.figures.ranked_list import ranked_list as ranked_list
from deadheat.report.figures.ranks import rank_intervals as rank_intervals
from deadheat.report.figures.style import (
    ENDINGS as ENDINGS,
    WIDTHS as WIDTHS,
    Plot as Plot,
    check_ending as check_ending,
)
from deadheat.report.figures.tie_sizes import tie_sizes as tie_sizes
