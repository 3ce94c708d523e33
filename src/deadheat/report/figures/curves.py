"""A measure against its cutoff: Figures 2, 4 and 5 of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deadheat.errors import InputError
from deadheat.evaluation import Result
from deadheat.measures import Measure
from deadheat.report.families import LOGARITHMIC, coinciding, cutoff_families
from deadheat.report.figures import inputs, style
from deadheat.report.figures.style import COLOURS, DASHES, INK, MARKERS, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_MARKS = 12
"""With more points than this, not all are marked."""


def curves(
    results: inputs.Results, *, percent: bool = False, width: str | float = "column"
) -> Plot:
    """Draw measures against the cutoff k, a panel per measure and a curve per result.

    The line with dots is the expected value, × the oblivious value, the band [worst, best].

    Parameters
    ----------
    results
        Results with the same measures at several cutoffs, preferably as ``{label: result}``.
    percent
        Whether to show 73.53 instead of 0.7353. Default: False.
    width
        ``"column"`` or ``"full"`` for a two-column paper, or inches.

    Examples
    --------
    >>> import deadheat as dh
    >>> qrels = {"q1": {"d1": 1, "d3": 1}}
    >>> run = {"q1": {"d1": 0.9, "d2": 0.5, "d3": 0.5, "d4": 0.5}}
    >>> result = dh.evaluate(qrels, run, "Recall@1,2,3,4")
    >>> curves({"my system": result}).save("recall.pdf")  # doctest: +SKIP
    """
    labelled = inputs.comparable(results)
    if len(labelled) > len(COLOURS):
        raise InputError(
            f"{len(labelled)} curves cannot be distinguished: choose up to {len(COLOURS)} results, "
            "or draw a comparison at one cutoff"
        )
    families = cutoff_families(next(iter(labelled.values())).views)
    if not families:
        raise InputError(
            "a curve needs one measure at several cutoffs in every result: evaluate for example "
            "nDCG@1,3,5,10 (-m nDCG -k 1,3,5,10)"
        )
    columns = min(len(families), 2 if style.inches(width) < 5 else 4)
    rows = -(-len(families) // columns)
    with style.styled():
        from matplotlib.patches import Patch

        panel = 1.75 if columns == 1 else 1.4
        figure = style.new_figure(width, 0.5 + 0.05 * len(labelled) + panel * rows)
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, (family, measures) in zip(panels, families.items(), strict=False):
            lines = _draw(axes, measures, list(labelled.values()), 100 if percent else 1)
            axes.set_title(f"{family!r}@k" + (" (%)" if percent else ""))
        for axes in panels[len(families) - columns : len(families)]:
            axes.set_xlabel("cutoff k")
        for empty in panels[len(families) :]:
            empty.remove()
        style.legend(figure, lines, style.shorten(list(labelled), 34))
        views = [
            style.line(INK, "o"),
            style.line(INK, "x", ls="none"),
            Patch(facecolor=INK, alpha=0.3),
        ]
        style.legend(figure, views, ["expected", "oblivious", "[worst, best]"], below=True)
    what = f"{', '.join(f'{family!r}@k' for family in families)} against the cutoff k"
    caption = inputs.caption(what, labelled, "Lines with markers", "bands")
    drawn = [measure for members in families.values() for measure in members]
    values = {label: [result[m] for m in drawn] for label, result in labelled.items()}
    return Plot(figure, f"{caption} {coinciding(values)}".rstrip())


def _draw(axes: Axes, measures: list[Measure], results: list[Result], scale: int) -> list[Line2D]:
    """Draw one panel; return the lines of the expected values."""
    lines: list[Line2D] = []
    cutoffs = [measure.cutoff or 0 for measure in measures]
    marked = _marked(axes, cutoffs)
    for i, result in enumerate(results):
        expected, oblivious, worst, best = (
            scale * np.array([getattr(result[measure], view) for measure in measures])
            for view in ("expected", "oblivious", "worst", "best")
        )
        colour, dashes = COLOURS[i], DASHES[i]
        # Curves drawn later are smaller, so that those they coincide with can still be seen.
        size = 1 - 0.5 * i / len(COLOURS)
        axes.fill_between(cutoffs, worst, best, color=colour, alpha=0.15, linewidth=0)
        if (best > worst).any():
            axes.plot(cutoffs, worst, cutoffs, best, color=colour, linestyle=dashes, linewidth=0.5)
        crosses = axes.plot(cutoffs, oblivious, "x", ms=5 * size, mew=0.8)
        dots = axes.plot(cutoffs, expected, MARKERS[i], ms=3.6 * size, mew=0)
        dots[0].set(linestyle=dashes, linewidth=1.1 * size)
        for line in crosses + dots:
            line.set(color=colour, markevery=marked)
        lines += dots
    axes.locator_params(axis="y", nbins=5, min_n_ticks=3)
    axes.grid(axis="y")
    return lines


def _marked(axes: Axes, cutoffs: list[int]) -> list[int]:
    """Scale the axis of cutoffs; return the indices of those that get a marker."""
    n = len(cutoffs)
    if cutoffs[-1] < LOGARITHMIC * cutoffs[0]:
        axes.locator_params(axis="x", nbins=6, integer=True)
        return list(range(0, n, -(-n // _MARKS)))
    axes.set_xscale("log")
    axes.set_xticks([m * 10**e for e in range(7) for m in (1, 2, 5)])
    axes.set_xlim(cutoffs[0] * 0.9, cutoffs[-1] * 1.1)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:.0f}")
    steps = np.geomspace(cutoffs[0], cutoffs[-1], _MARKS)
    return sorted({int(np.abs(np.array(cutoffs) - step).argmin()) for step in steps})
