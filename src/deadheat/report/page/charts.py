"""Plots of a page: intervals of systems, and curves over the cutoff, as SVG coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from deadheat._internal.lazy import pl
from deadheat.comparison import Comparison
from deadheat.evaluation import Summary
from deadheat.measures import Measure
from deadheat.report.families import LOGARITHMIC, coinciding
from deadheat.report.page.cells import Axis, Texts, page_table, texts
from deadheat.report.page.leading import Summaries
from deadheat.tables import Column, Table

COLOURS = 8
MOST_CURVES = 12
"""Largest number of curves that are drawn; the table has the numbers of all."""
LEFT, RIGHT, TOP, BOTTOM = 52, 704, 12, 278
"""Ends of the axes of curves in an SVG of 720 by 320."""


def interval_plot(
    systems: Summaries, measure: str, comparison: Comparison | None
) -> dict[str, Any]:
    """Return (name, summary, colour) of each system, the highest expected value first, and axes."""
    rows = [
        (name, s[measure], i % COLOURS)
        for i, (name, s) in enumerate(systems.items())
        if measure in s
    ]
    rows.sort(key=lambda row: -row[1].expected)
    ranks = {}
    if comparison is not None:
        ranking = comparison.ranking.filter(measure=measure)
        places = ranking.select("system", "best_rank", "worst_rank").iter_rows()
        ranks = {system: texts("ranks", *ends).fraction for system, *ends in places}
    axis = _axis(summary for _, summary, _ in rows)
    ticks = _ticks(axis)
    grid = [axis.place(value) for value, _ in ticks]
    return {"rows": rows, "axis": axis, "ticks": ticks, "grid": grid, "ranks": ranks}


def curve_plot(systems: Summaries, measures: Sequence[Measure]) -> dict[str, Any]:
    """Return the curves of a measure at several cutoffs, the axes and a table of the numbers."""
    names = {repr(measure): measure.cutoff or 0 for measure in measures}
    shown = {
        system: {name: own[name] for name in names if name in own}
        for system, own in systems.items()
        if not own.keys().isdisjoint(names)
    }
    drawn = dict(list(shown.items())[:MOST_CURVES])
    axis = _axis(summary for own in drawn.values() for summary in own.values())
    cutoffs = list(names.values())
    places = np.log(cutoffs) if cutoffs[-1] >= LOGARITHMIC * cutoffs[0] else np.array(cutoffs)
    x = np.interp(places, [places[0], places[-1]], [LEFT + 8, RIGHT - 8]).round(1).tolist()
    values = {
        name: [own[name].expected if name in own else None for own in shown.values()]
        for name in names
    }
    frame = pl.DataFrame({"system": list(shown), **values})
    return {
        "family": repr(measures[0](cutoff=None)),
        "axis": axis,
        "ticks": _ticks(axis),
        "cutoffs": list(zip(x, names, cutoffs, strict=True)),
        "curves": drawn,
        "left_out": len(shown) - len(drawn),
        "coinciding": coinciding(drawn),
        "numbers": page_table(Table(frame, [Column("system", "name"), *map(Column, names)])),
    }


def height(axis: Axis, value: float) -> float:
    """Return the y coordinate of a value in the SVG of curves."""
    return round(BOTTOM - axis.place(value) / 100 * (BOTTOM - TOP), 1)


def _axis(summaries: Iterable[Summary]) -> Axis:
    """Return an axis a little longer than the values, within the range of measures."""
    values = [x for s in summaries for x in (s.worst, s.best, s.oblivious)] or [0.0, 1.0]
    low, high = min(values), max(values)
    room = max(0.06 * (high - low), 0.01)
    return Axis(
        max(0.0, low - room) if low >= 0 else low - room,
        min(1.0, high + room) if high <= 1 else high + room,
    )


def _ticks(axis: Axis) -> list[tuple[float, Texts]]:
    """Return about five round values of an axis, and their texts."""
    least = (axis.high - axis.low) / 5
    power = 10.0 ** math.floor(math.log10(least))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= 0.7 * least)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
    return [
        (step * n, Texts(f"{step * n:.{digits}f}", f"{100 * step * n:.{max(0, digits - 2)}f}"))
        for n in range(first, last + 1)
    ]
