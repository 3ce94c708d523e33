"""One ranked list with its tie groups: Figure 1 of the paper, for any query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.evaluation import evaluate
from deadheat.formats import Judgements, Run, read_qrels, read_run
from deadheat.formats.columns import run_from_columns
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measure
from deadheat.report.figures import style
from deadheat.report.figures.comparison import draw_intervals
from deadheat.report.figures.inputs import tie_rule
from deadheat.report.figures.style import COLOURS, INK, Plot
from deadheat.ties.build import Lists
from deadheat.ties.groups import reaches
from deadheat.ties.rules import ranks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches: height of a row and of the values below, and what stands beside the blocks.
_ROW, _VALUES, _LEFT, _RIGHT = 0.19, 0.74, 0.78, 1.02
_VIEWS = {"expected": "• expected", "worst": "worst", "best": "best", "oblivious": "× oblivious"}


def ranked_list(
    qrels: Any,
    run: Any,
    query: str,
    measure: str | Measure = "Recall@10",
    *,
    tie_break: str = "input",
    rows: int = 24,
    width: str | float = "column",
) -> Plot:
    """Draw the ranked list of a query, its tie groups, and what they do to a measure.

    A box holds documents that could stand in any order; they are listed in that of the tie
    rule. Relevant documents carry a star, and their grade where grades differ.

    Parameters
    ----------
    qrels, run, tie_break
        As for `deadheat.evaluate`.
    query
        The id of the query.
    measure
        The measure whose values stand below the list; its cutoff is drawn as a line.
    rows
        A longer list is shortened to about this many rows, around its top, the cutoff and
        its end; what is left out is counted.
    width
        As for `curves`.
    """
    if rows < 5:
        raise InputError(f"a ranked list needs at least 5 rows, not {rows}")
    wanted = measure if isinstance(measure, Measure) else parse_measure(measure)
    query = str(query)
    judged = _judged(read_qrels(qrels), query)
    listed = _retrieved(read_run(run, with_ranks=tie_break == "rank"), query)
    result = evaluate({query: judged}, listed, wanted, tie_break=tie_break, queries="all")
    documents = _documents(judged, listed, getattr(wanted, "rel", None), tie_break)
    shown = _shown(len(documents), wanted.cutoff, rows)
    inches = style.inches(width)
    values = {view: f"{getattr(result[wanted], view):.4f}" for view in _VIEWS}
    with style.styled():
        height = _ROW * len(shown) + _VALUES
        figure = style.new_figure(width, height, layout=None)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, inches), ylim=(height - 0.06, -0.06))
        axes.set_axis_off()
        _draw_blocks(axes, documents, shown, inches)
        _draw_groups(axes, documents, shown, wanted.cutoff, inches)
        for i, (view, words) in enumerate(_VIEWS.items()):
            place: dict[str, Any] = {"x": inches * (i + 0.5) / len(_VIEWS), "ha": "center"}
            axes.text(y=height - 0.23, s=words, **place)
            axes.text(y=height - 0.11, s=values[view], **place)
        scale = figure.add_axes((_LEFT / inches, 0.47 / height, 1 - 1.1 / inches, 0.1 / height))
        draw_intervals(scale, [result[wanted]])
        scale.set(yticks=[0], yticklabels=[repr(wanted)], xlim=(0, max(1, result[wanted].best)))
        scale.spines["left"].set_visible(False)
    caption = (
        f"Ranked list of query {query} by {Path(result.name).name}: {len(documents)} documents, "
        f"{documents['relevant'].sum()} of them relevant (stars). Boxes are tie groups, listed "
        f"in the order of the tie rule. {wanted!r}: expected {values['expected']}, between "
        f"{values['worst']} and {values['best']} depending on the tie-break, oblivious "
        f"{values['oblivious']} ({tie_rule({query: result})})."
    )
    return Plot(figure, caption)


def _judged(judgements: Judgements, query: str) -> dict[str, float]:
    if query not in judgements.query_ids:
        raise InputError(f"{judgements.source}: query {query!r} is not judged in it")
    first, last = judgements.offsets[judgements.query_ids.index(query) :][:2].tolist()
    grades = judgements.grades[first:last].tolist()
    return dict(zip(judgements.doc_ids[first:last].to_list(), grades, strict=True))


def _retrieved(run: Run, query: str) -> Run:
    if query not in run.query_index:
        raise InputError(f"{run.source}: query {query!r} is not in it")
    rows = np.arange(*run.offsets[run.query_index[query] :][:2])
    name = pl.Series([query]).new_from_index(0, len(rows))
    column = None if run.ranks is None else run.ranks[rows]
    return run_from_columns(run.source, name, run.documents.ids(rows), run.scores[rows], column)


def _documents(
    judged: dict[str, float], run: Run, rel: float | None, tie_break: str
) -> pl.DataFrame:
    """Documents from the first rank to the last, each with what is above and in its group."""
    n = len(run.scores)
    bounds = (np.array([0]), np.array([n]))
    ids = run.documents.ids(np.arange(n))
    grade = np.array([judged.get(each, 0.0) for each in ids])
    none: Any = ([], [])
    lists = Lists(run.scores, bounds, np.zeros(n, np.int64), np.arange(n), grade, none)
    counter = lists.count(run.scores)
    columns = {
        "id": ids.gather(counter.position),
        "score": run.scores[counter.position],
        "grade": counter.grade,
        "relevant": reaches(counter.grade, rel),
        "above": counter.above,
        "size": counter.equal,
        "rank": ranks(tie_break, counter, run.scores, bounds, run.documents.ids, run.ranks),
    }
    return pl.DataFrame(columns).sort("above", "rank")


def _as_text(scores: NDArray[Any]) -> list[str]:
    """Scores with as many digits as it takes to see which are equal."""
    for digits in range(3, 18):
        texts = [f"{score:.{digits}g}" for score in scores]
        if len(set(texts)) >= len(np.unique(scores)):
            break
    return texts


def _shown(n: int, cutoff: int | None, rows: int) -> list[range]:
    """Rows of the figure: each one document, or the documents that it stands for."""
    place = np.arange(n)
    far = np.minimum(place, 4.0 * (n - 1 - place))
    if cutoff is not None and cutoff < n:
        far = np.minimum(far, np.abs(place - cutoff + 0.5))
    out: list[range] = []
    for i in [*np.sort(np.argsort(far, kind="stable")[:rows]).tolist(), n]:
        gap = range(out[-1].stop if out else 0, i)
        out += [each for each in (gap, range(i, min(i + 1, n))) if each]
    return out


def _draw_blocks(axes: Axes, documents: pl.DataFrame, shown: list[range], width: float) -> None:
    from matplotlib.patches import Rectangle

    right = width - _RIGHT
    graded = documents.filter(pl.col("grade") > 0)["grade"].n_unique() > 1
    scores = _as_text(documents["score"].to_numpy())
    indent = _LEFT + (0.28 if graded else 0.2)
    letters = int((right - indent) / 0.056) - max(map(len, scores))
    ids = style.shorten(documents["id"].to_list(), max(6, letters))
    for row, places in enumerate(shown):
        y, i = _ROW * (row + 0.5), places.start
        relevant = documents["relevant"][i : places.stop].sum()
        if len(places) > 1:
            words = f"⋮  {len(places):,} more, {relevant:,} relevant"
            axes.text(_LEFT + 0.08, y, words, va="center", size=6, color=INK)
            continue
        face = "#CFE3F1" if relevant else "white"
        corner, block = (_LEFT, y - 0.42 * _ROW), (right - _LEFT, 0.84 * _ROW)
        axes.add_patch(Rectangle(corner, *block, facecolor=face, edgecolor=INK, linewidth=0.5))
        if relevant:
            axes.plot(_LEFT + 0.1, y, "*", color=INK, markersize=5, markeredgewidth=0)
            grade = f"{documents['grade'][i]:g}" if graded else ""
            axes.text(_LEFT + 0.16, y, grade, va="center", size=5)
        axes.text(indent, y, ids[i], va="center_baseline", size=6.5)
        axes.text(right - 0.05, y, scores[i], va="center_baseline", ha="right", size=6, color=INK)


def _draw_groups(
    axes: Axes, documents: pl.DataFrame, shown: list[range], cutoff: int | None, width: float
) -> None:
    from matplotlib.patches import FancyBboxPatch

    left, right = _LEFT - 0.05, width - _RIGHT + 0.05
    groups = documents.group_by("above", "size", maintain_order=True).agg(pl.sum("relevant"))
    for above, size, relevant in groups.iter_rows():
        stop = above + size
        held = [r for r, places in enumerate(shown) if places.start < stop and places.stop > above]
        first, last = shown[held[0]], shown[held[-1]]
        if len(held) == 1 and (first.start < above or first.stop > stop):
            continue  # among others that were left out
        # A group that is partly left out reaches into the row that stands for it.
        top = _ROW * (held[0] + (0 if first.start >= above else 0.82))
        bottom = _ROW * (held[-1] + (1 if last.stop <= stop else 0.18))
        look: dict[str, Any] = {"va": "center", "size": 6, "color": INK}
        place = f"{stop}" if size == 1 else f"{above + 1}–{stop}"
        around = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # above the cutoff line
        axes.text(left - 0.05, (top + bottom) / 2, place, ha="right", bbox=around, **look)
        if size == 1:
            continue
        words = f"{size:,} tied, {relevant:,} relevant"
        axes.text(right + 0.04, (top + bottom) / 2, words, **look)
        decisive = cutoff is not None and above < cutoff < stop and 0 < relevant < size
        box: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=0.05", "facecolor": "none"}
        box |= {"edgecolor": COLOURS[1 if decisive else 7], "linewidth": 1.5 if decisive else 0.9}
        axes.add_patch(FancyBboxPatch((left, top), right - left, bottom - top, **box))
    if cutoff is not None:
        y = _ROW * sum(places.start < cutoff for places in shown)
        axes.plot([0.4, right + 0.02], [y, y], color=INK, linewidth=1, linestyle=(0, (3, 1.5)))
        axes.text(0.37, y, f"k = {cutoff}", ha="right", va="center", size=6.5)
