"""Draw the sizes of the tie groups of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deadheat.errors import InputError
from deadheat.report.figures import style
from deadheat.report.figures.style import COLOURS, DASHES, Plot
from deadheat.ties import GroupSizes

_LINEAR = 16
"""Up to this size the axis of sizes is linear, and every size is a bin of its own."""


def tie_sizes(runs: Mapping[str, GroupSizes], *, width: str | float = "column") -> Plot:
    """Draw the number of tie groups of each size, and the number of their documents.

    Left: tie groups by size, large sizes in bins 1, 2, 3–4, 5–8 … Right: documents in groups of
    size s or more; the drop between 1 and 2 is the number of documents that are not tied.

    Parameters
    ----------
    runs
        Tie groups of runs by label, from `deadheat.ties.sizes.run_sizes`.
    width
        As for `curves`.
    """
    if not 1 <= len(runs) <= len(COLOURS):
        raise InputError(f"a figure of tie groups needs 1 to {len(COLOURS)} runs, not {len(runs)}")
    sizes = {label: groups.size for label, groups in runs.items()}
    largest = max(int(size.max()) for size in sizes.values())
    scale, bins, edges = "linear", "", np.arange(largest + 1) + 0.5
    if largest > _LINEAR:
        scale, bins = "log", " (bins 1, 2, 3–4, 5–8 and so on)"
        edges = np.append(0.5, 2 ** np.arange(np.ceil(np.log2(largest)) + 1) + 0.5)
    with style.styled():
        figure = style.new_figure(width, 1.85 + 0.05 * len(runs))
        panels = figure.subplots(1, 2)
        for size, colour, dashes in zip(sizes.values(), COLOURS, DASHES, strict=False):
            at, groups = np.unique(size, return_counts=True)
            documents = np.cumsum((at * groups)[::-1])[::-1]
            line: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 1.1}
            panels[0].stairs(np.histogram(size, edges)[0], edges, fill=len(sizes) == 1, **line)
            panels[1].stairs(documents, np.append(0.5, at + 0.5), baseline=None, **line)
        for axes, title in zip(
            panels, ("tie groups of size s", "documents, size ≥ s"), strict=True
        ):
            heights = np.concatenate([stairs.get_data().values for stairs in axes.patches])
            positive = heights[heights > 0]
            logarithmic = positive.max() > 50 * positive.min()
            axes.set(title=title, xlabel="size s", xscale=scale)
            axes.set_yscale("log" if logarithmic else "linear")
            axes.set_ylim(bottom=positive.min() / 2 if logarithmic else 0)
            axes.set_xlim(left=0.5)
            axes.minorticks_off()
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:,.0f}")
                if axis.get_scale() == "linear":
                    axis.get_major_locator().set_params(integer=True, min_n_ticks=1)
            axes.grid(axis="y")
        style.legend(figure, panels[int(len(sizes) > 1)].patches, style.shorten(list(sizes), 34))
    described = "; ".join(
        f"{label}: {size.sum():,} documents of {len(np.unique(runs[label].query)):,} queries, "
        f"{size[size > 1].sum() / size.sum():.1%} of them tied, largest group {size.max():,}"
        for label, size in sizes.items()
    )
    caption = (
        "Sizes s of tie groups: documents of one query with exactly equal scores. Left: number "
        f"of groups{bins}; right: number of documents in groups of at least s. {described}."
    )
    return Plot(figure, caption)
