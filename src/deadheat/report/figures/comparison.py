"""Draw systems as intervals from worst to best, and which of them overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deadheat.errors import InputError
from deadheat.evaluation import Result, Summary
from deadheat.measures import Measure, parse_measures
from deadheat.report.figures import inputs, style
from deadheat.report.figures.style import COLOURS, INK, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 200
_LANE = 0.075  # inches


def comparison(
    results: inputs.Results,
    measure: str | Measure | None = None,
    *,
    percent: bool = False,
    width: str | float = "column",
) -> Plot:
    """Draw every system as its interval [worst, best], sorted by expected value.

    A line at the right joins systems whose intervals overlap: their order depends on tie-breaking.

    Parameters
    ----------
    results
        Results with the measure, preferably as ``{label: result}``.
    measure
        The measure to compare. Default: the only measure that all results share.
    percent, width
        As for `curves`.
    """
    labelled = inputs.comparable(results)
    if not 2 <= len(labelled) <= _MOST:
        raise InputError(f"a comparison needs 2 to {_MOST} systems, not {len(labelled)}")
    chosen = _choose(labelled, measure)
    order = sorted(labelled, key=lambda label: -labelled[label][chosen].expected)
    ranked = [labelled[label][chosen] for label in order]
    joined = overlapping(ranked)
    lanes = lanes_of(joined)
    inches = style.inches(width)
    height, size = style.row_of(len(order))
    with style.styled():
        figure = style.new_figure(width, 0.85 + height * len(order))
        wide = min(_LANE * max(len(lanes), 0.2), 0.24 * inches)
        axes, side = figure.subplots(1, 2, sharey=True, width_ratios=[1, wide / (0.6 * inches)])
        draw_intervals(axes, ranked, 100 if percent else 1, height)
        style.name_rows(axes, order, width, size)
        axes.set_xlabel(repr(chosen) + (" (%)" if percent else ""))
        side.set_axis_off()
        draw_lanes(side, lanes)
        handles, words = axes.get_legend_handles_labels()
        if joined:
            handles += side.plot([], [], "|", color=INK, ms=7)
            words.append("intervals overlap")
        style.legend(figure, handles, words)
    what = f"{chosen!r} of {len(order)} systems, by expected value"
    caption = inputs.caption(what, {label: labelled[label] for label in order}, "Dots", "bars")
    if joined:
        caption += " A line joins systems whose bars overlap: ties decide their order."
    else:
        caption += " No two bars overlap: ties cannot change the order of the systems."
    return Plot(figure, caption)


def draw_lanes(axes: Axes, lanes: list[list[list[int]]]) -> None:
    """Join the systems of each set by a line."""
    axes.set_xlim(-0.6, max(len(lanes), 1) - 0.4)
    for x, lane in enumerate(lanes):
        for rows in lane:
            axes.plot([x] * len(rows), rows, color=INK, linewidth=0.9, marker=0, markersize=2)


def draw_intervals(
    axes: Axes, systems: list[Summary], scale: int = 1, height: float = 0.155
) -> None:
    """Draw [worst, best], expected and oblivious value of each system in a row of its own."""
    worst, best, expected, oblivious = (
        scale * np.array([getattr(system, view) for system in systems])
        for view in ("worst", "best", "expected", "oblivious")
    )
    rows = np.arange(len(systems))
    dots = axes.plot(expected, rows, "o", color=COLOURS[0], ms=22 * height, label="expected")
    axes.hlines(
        rows, worst, best, COLOURS[5], linewidth=20.6 * height, label="[worst, best]", zorder=2
    )
    crosses = axes.plot(oblivious, rows, "x", color=COLOURS[1], ms=27 * height, label="oblivious")
    for line in dots + crosses:
        line.set(zorder=3, clip_on=False)
    axes.locator_params(axis="x", nbins=5)


def _choose(results: dict[str, Result], measure: str | Measure | None) -> Measure:
    measures = list(next(iter(results.values())).views)
    asked = measures if measure is None else parse_measures(measure)
    if len(asked) != 1 or asked[0] not in measures:
        names = ", ".join(map(repr, measures))
        raise InputError(f"choose one measure that every result has ({names}), not {measure}")
    return asked[0]


def overlapping(systems: list[Summary]) -> list[list[int]]:
    """Return the largest sets of two or more systems whose intervals all share a value.

    Intervals that overlap pairwise have a common point, and the start of one of them is such a
    point. So it is enough to test the starts.
    """
    sets = {
        frozenset(i for i, own in enumerate(systems) if own.worst <= start.worst <= own.best)
        for start in systems
    }
    largest = [s for s in sets if len(s) > 1 and not any(s < other for other in sets)]
    return sorted(map(sorted, largest))


def lanes_of(joined: list[list[int]]) -> list[list[list[int]]]:
    """Put the joining lines into as few lanes as possible, without overlaps."""
    lanes: list[list[list[int]]] = []
    for members in joined:
        free = next((lane for lane in lanes if lane[-1][-1] < members[0]), None)
        if free is None:
            lanes.append(free := [])
        free.append(members)
    return lanes
