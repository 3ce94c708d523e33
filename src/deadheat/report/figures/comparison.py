"""Systems as intervals: which of them can be told apart whatever the tie-break."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deadheat.errors import InputError
from deadheat.evaluation import Result, Summary
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measure
from deadheat.report.figures import inputs, style
from deadheat.report.figures.style import COLOURS, INK, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 200
_ROW, _LANE = 0.155, 0.075  # inches


def comparison(
    results: inputs.Results,
    measure: str | Measure | None = None,
    *,
    percent: bool = False,
    width: str | float = "column",
) -> Plot:
    """Draw every system as its interval [worst, best], sorted by expected value.

    A line at the right joins systems whose intervals share a value: no order of them holds
    whatever the tie-break.

    Parameters
    ----------
    results
        Results, best by label, that hold the measure.
    measure
        The measure to compare by; may be left out where the results have only one in common.
    percent, width
        As for `curves`.
    """
    labelled = inputs.comparable(results)
    if not 2 <= len(labelled) <= _MOST:
        raise InputError(f"a comparison needs 2 to {_MOST} systems, not {len(labelled)}")
    chosen = _choose(labelled, measure)
    order = sorted(labelled, key=lambda label: -labelled[label][chosen].expected)
    ranked = [labelled[label][chosen] for label in order]
    lanes = lanes_of(overlapping(ranked))
    inches = style.inches(width)
    with style.styled():
        from matplotlib.lines import Line2D

        figure = style.new_figure(width, 0.85 + _ROW * len(order))
        ratio = min(_LANE * max(len(lanes), 0.2), 0.24 * inches) / (0.6 * inches)
        axes, side = figure.subplots(1, 2, sharey=True, width_ratios=[1, ratio])
        draw_intervals(axes, ranked, 100 if percent else 1)
        axes.set_yticks(range(len(order)), style.shorten(order, int(inches * 7)), parse_math=False)
        axes.set_xlabel(repr(chosen) + (" (%)" if percent else ""))
        axes.grid(axis="both")
        side.set_axis_off()
        side.set_xlim(-0.6, max(len(lanes), 1) - 0.4)
        handles, words = axes.get_legend_handles_labels()
        for x, lane in enumerate(lanes):
            for rows in lane:
                side.plot([x] * len(rows), rows, color=INK, linewidth=0.9, marker=0, markersize=2)
        if lanes:
            handles += [Line2D([], [], color=INK, linestyle="none", marker="|", markersize=7)]
            words += ["intervals overlap"]
        style.legend(figure, handles, words)
    what = f"{chosen!r} of {len(order)} systems, by expected value"
    caption = inputs.caption(what, {label: labelled[label] for label in order}, "Dots", "bars")
    joined = (
        "A line joins systems whose bars overlap: no order of them holds whatever the tie-break."
    )
    apart = "No two bars overlap: the order of the systems holds whatever the tie-break."
    return Plot(figure, f"{caption} {joined if lanes else apart}")


def draw_intervals(axes: Axes, systems: list[Summary], scale: int = 1) -> None:
    """Draw [worst, best], expected and oblivious value of each system in a row of its own."""
    worst, best, expected, oblivious = (
        scale * np.array([getattr(system, view) for system in systems])
        for view in ("worst", "best", "expected", "oblivious")
    )
    rows = np.arange(len(systems))
    front: dict[str, Any] = {"zorder": 3, "clip_on": False}
    axes.plot(expected, rows, "o", color=COLOURS[0], markersize=3.4, label="expected", **front)
    axes.hlines(rows, worst, best, COLOURS[5], linewidth=3.2, label="[worst, best]", zorder=2)
    axes.plot(oblivious, rows, "x", color=COLOURS[1], markersize=4.2, label="oblivious", **front)
    axes.set_ylim(len(systems) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=5)


def _choose(results: dict[str, Result], measure: str | Measure | None) -> Measure:
    measures = inputs.common_measures(results)
    if measure is None and len(measures) == 1:
        return measures[0]
    chosen = parse_measure(measure) if isinstance(measure, str) else measure
    if chosen not in measures:
        names = ", ".join(map(repr, measures))
        raise InputError(f"choose one measure that every result has ({names}), not {measure}")
    return chosen


def overlapping(systems: list[Summary]) -> list[list[int]]:
    """Largest sets of systems whose intervals all share a value, two or more of them.

    Intervals that overlap pairwise have a point in common, and one such point is where one
    of them begins: it is enough to look at those.
    """
    worst = np.array([system.worst for system in systems])
    best = np.array([system.best for system in systems])
    sets = {
        frozenset(np.flatnonzero((worst <= point) & (point <= best)).tolist()) for point in worst
    }
    largest = [s for s in sets if len(s) > 1 and not any(s < other for other in sets)]
    return sorted(map(sorted, largest))


def lanes_of(joined: list[list[int]]) -> list[list[list[int]]]:
    """Share the joining lines out to as few lanes as keep them apart."""
    lanes: list[list[list[int]]] = []
    for members in joined:
        free = [lane for lane in lanes if lane[-1][-1] < members[0]]
        if free:
            free[0].append(members)
        else:
            lanes.append([members])
    return lanes
