"""One ranked list with its tie groups: Figure 1 of the paper, for any query."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.numbers import FloatArray
from deadheat.errors import InputError
from deadheat.evaluation import RankedQuery
from deadheat.report.figures import style
from deadheat.report.figures.comparison import draw_intervals
from deadheat.report.figures.inputs import tie_rule
from deadheat.report.figures.style import COLOURS, INK, Plot
from deadheat.tables import number
from deadheat.ties import RankedLists

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches: height of a row and of the values below, and margins of the blocks.
_ROW, _VALUES, _LEFT, _RIGHT = 0.19, 0.74, 0.78, 1.02
Flags = NDArray[np.bool_]
_VIEWS = {"expected": "• expected", "worst": "worst", "best": "best", "oblivious": "× oblivious"}


def ranked_list(ranked: RankedQuery, *, rows: int = 24, width: str | float = "column") -> Plot:
    """Draw the ranked list of a query, its tie groups, and their effect on a measure.

    A box contains documents that can be in any order; they are listed in the order of the tie
    rule. Relevant documents have a star, and their grade if grades differ.

    Parameters
    ----------
    ranked
        Result of `deadheat.evaluation.rank_query`: the list of a query, and a measure whose values
        are printed below it and whose cutoff is drawn as a line.
    rows
        A longer list is shortened to about this many rows, around its top, the cutoff and its end;
        a line shows the number of omitted documents.
    width
        As for `curves`.
    """
    if rows < 5:
        raise InputError(f"a ranked list needs at least 5 rows, not {rows}")
    measure, result = ranked.measure, ranked.result
    summary = result[measure]
    documents = ranked.documents
    grades, rel = np.nan_to_num(documents.grades), getattr(measure, "rel", None)
    relevant = grades > 0 if rel is None else grades >= rel
    shown = shown_rows(len(relevant), measure.cutoff, rows)
    inches = style.inches(width)
    values = {view: number(getattr(summary, view)) for view in _VIEWS}
    with style.styled():
        height = _ROW * len(shown) + _VALUES
        figure = style.new_figure(width, height)
        figure.set_layout_engine("none")  # the places of all parts are given
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, inches), ylim=(height - 0.06, -0.06))
        axes.set_axis_off()
        _draw_blocks(axes, documents, relevant, shown, inches)
        _draw_groups(axes, documents, relevant, shown, measure.cutoff, inches)
        for i, (view, words) in enumerate(_VIEWS.items()):
            x = inches * (i + 0.5) / len(_VIEWS)
            axes.text(x, height - 0.23, words, ha="center")
            axes.text(x, height - 0.11, values[view], ha="center")
        scale = figure.add_axes((_LEFT / inches, 0.47 / height, 1 - 1.1 / inches, 0.1 / height))
        draw_intervals(scale, [summary])
        scale.set(yticks=[0], yticklabels=[repr(measure)], ylim=(0.6, -0.6))
        scale.set_xlim(0, max(1, summary.best))
        scale.tick_params(axis="y", length=0)
        scale.spines["left"].set_visible(False)
    caption = (
        f"Ranked list of query {ranked.query} by {result.name}: {len(relevant)} "
        f"documents, {relevant.sum()} of them relevant (stars). Boxes are tie "
        f"groups, listed in the order of the tie rule. {measure!r}: expected "
        f"{values['expected']}, between {values['worst']} and {values['best']} depending on the "
        f"tie-break, oblivious {values['oblivious']} ({tie_rule({ranked.query: result})})."
    )
    return Plot(figure, caption)


def _as_text(scores: FloatArray) -> list[str]:
    """Return scores with as many digits as are needed to see which are equal."""
    for digits in range(3, 18):
        texts = [f"{score:.{digits}g}" for score in scores]
        if len(set(texts)) >= len(np.unique(scores)):
            break
    return texts


def shown_rows(n: int, cutoff: int | None, rows: int) -> list[range]:
    """Return the rows of the figure: one document each, or the range of documents left out."""
    place = np.arange(n)
    far = np.minimum(place, 4.0 * (n - 1 - place))
    if cutoff is not None and cutoff < n:
        far = np.minimum(far, np.abs(place - cutoff + 0.5))
    out: list[range] = []
    for i in [*np.sort(np.argsort(far, kind="stable")[:rows]).tolist(), n]:
        gap = range(out[-1].stop if out else 0, i)
        out += [places for places in (gap, range(i, min(i + 1, n))) if places]
    return out


def _draw_blocks(
    axes: Axes, documents: RankedLists, relevant: Flags, shown: list[range], width: float
) -> None:
    """Draw a block per document, and a line of text for those that are left out."""
    from matplotlib.patches import Rectangle

    right = width - _RIGHT
    graded = len(np.unique(documents.grades[documents.grades > 0])) > 1
    scores = _as_text(documents.scores)
    indent = _LEFT + (0.28 if graded else 0.2)
    letters = int((right - indent) / 0.056) - max(map(len, scores))
    ids = style.shorten(documents.doc_ids, max(6, letters))
    for row, places in enumerate(shown):
        y, i = _ROW * (row + 0.5), places.start
        if len(places) > 1:
            words = f"⋮  {len(places):,} more, {relevant[i : places.stop].sum():,} relevant"
            axes.text(_LEFT + 0.08, y, words, va="center", size=6, color=INK)
            continue
        face = "#CFE3F1" if relevant[i] else "white"
        corner, block = (_LEFT, y - 0.42 * _ROW), (right - _LEFT, 0.84 * _ROW)
        axes.add_patch(Rectangle(corner, *block, facecolor=face, edgecolor=INK, linewidth=0.5))
        if relevant[i]:
            axes.plot(_LEFT + 0.1, y, "*", color=INK, markersize=5, markeredgewidth=0)
            grade = f"{documents.grades[i]:g}" if graded else ""
            axes.text(_LEFT + 0.16, y, grade, va="center", size=5)
        axes.text(indent, y, ids[i], va="center_baseline", size=6.5)
        axes.text(right - 0.05, y, scores[i], va="center_baseline", ha="right", size=6, color=INK)


def _draw_groups(
    axes: Axes,
    documents: RankedLists,
    relevant: Flags,
    shown: list[range],
    cutoff: int | None,
    width: float,
) -> None:
    """Draw a box around each tie group, and the cutoff as a line."""
    from matplotlib.patches import FancyBboxPatch

    left, right = _LEFT - 0.05, width - _RIGHT + 0.05
    # A rule that sees coarser scores can part a group: each piece of it gets a box.
    pieces = np.flatnonzero(np.diff(documents.above, prepend=-1)).tolist()
    for begin, end in pairwise([*pieces, len(relevant)]):
        above, size = int(documents.above[begin]), int(documents.size[begin])
        stop, found = above + size, int(relevant[documents.above == above].sum())
        held = [r for r, places in enumerate(shown) if places.start < end and places.stop > begin]
        first, last = shown[held[0]], shown[held[-1]]
        if len(held) == 1 and (first.start < begin or first.stop > end):
            continue  # among others that were left out
        # A group that is partly left out reaches into the row that stands for it.
        top = _ROW * (held[0] + (0 if first.start >= begin else 0.82))
        bottom = _ROW * (held[-1] + (1 if last.stop <= end else 0.18))
        y = (top + bottom) / 2
        place = f"{stop}" if size == 1 else f"{above + 1}–{stop}"
        label = axes.text(left - 0.05, y, place, ha="right", va="center", size=6, color=INK)
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.6})  # above the cutoff
        if size == 1:
            continue
        words = f"{size:,} tied, {found:,} relevant"
        axes.text(right + 0.04, y, words, va="center", size=6, color=INK)
        decisive = cutoff is not None and above < cutoff < stop and 0 < found < size
        colour, line = (COLOURS[1], 1.5) if decisive else (COLOURS[7], 0.9)
        rounded = "round,pad=0,rounding_size=0.05"
        box = FancyBboxPatch((left, top), right - left, bottom - top, boxstyle=rounded)
        box.set(facecolor="none", edgecolor=colour, linewidth=line)
        axes.add_patch(box)
    if cutoff is not None:
        y = _ROW * sum(places.start < cutoff for places in shown)
        axes.plot([0.4, right + 0.02], [y, y], color=INK, linewidth=1, linestyle=(0, (3, 1.5)))
        axes.text(0.37, y, f"k = {cutoff}", ha="right", va="center", size=6.5)
