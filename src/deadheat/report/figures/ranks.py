"""Draw systems as the intervals of ranks that ties allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deadheat._internal.remarks import counted
from deadheat.errors import InputError
from deadheat.report.figures import style
from deadheat.report.figures.style import COLOURS, INK, MARKERS, Plot

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

_NEEDED = ("system", "rank", "best_rank", "worst_rank", "oblivious_rank")
_MOST = 500
_SIGNS = {
    "official_rank": ("official", "official rank"),
    "oblivious_rank": ("oblivious", "rank by the oblivious value"),
}
"""Per column of the frame: its text in the legend and in the caption."""
_OTHER = "#888888"
Look = tuple[str, str, str]
"""Of a group: its colour, its marker, and what the legend calls it."""


def rank_intervals(
    ranking: pl.DataFrame,
    *,
    groups: Mapping[str, str] | None = None,
    what: str = "",
    width: str | float = "column",
) -> Plot:
    """Draw every system as the interval of ranks that tie-breaking can give it.

    Parameters
    ----------
    ranking
        A row per system, with the columns `system`, `rank`, `best_rank`, `worst_rank` and
        `oblivious_rank`, like the ranking of a `Comparison` for one measure. With the optional
        column `official_rank`, × is the official instead of the oblivious rank.
    groups
        ``{system: group}``; groups differ in colour and marker.
    what
        Measure and queries, for axis and caption: ``"nDCG@10 of 50 queries"``.
    width
        ``"column"`` or ``"full"`` for a two-column paper, or inches.

    Examples
    --------
    >>> import polars as pl
    >>> columns = {"system": ["a", "b"], "rank": [1, 2], "best_rank": [1, 1]}
    >>> ranking = pl.DataFrame({**columns, "worst_rank": [2, 2], "oblivious_rank": [2, 1]})
    >>> rank_intervals(ranking, what="MRR").save("ranks.pdf")  # doctest: +SKIP
    """
    rows = _rows(ranking, groups)
    known = any(row["official_rank"] is not None for row in rows)
    sign = "official_rank" if known else "oblivious_rank"
    looks = _looks(Counter(row["group"] for row in rows))
    height, size = style.row_of(len(rows))
    with style.styled():
        figure = style.new_figure(width, 0.75 + 0.12 * (1 + len(looks) // 3) + height * len(rows))
        axes = figure.subplots()
        for y, row in enumerate(rows):
            colour, marker, _ = looks[row["group"]]
            ends = [row["best_rank"], row["worst_rank"]]
            bar = axes.plot(ends, [y, y], color=colour, alpha=0.45, zorder=2, lw=36 * height)
            bar[0].set_solid_capstyle("butt")
            axes.plot(row["rank"], y, marker, color=colour, ms=34 * height, zorder=4)
            if row[sign] is not None:
                axes.plot(row[sign], y, "x", color=INK, zorder=3, ms=50 * height, mew=6 * height)
        style.name_rows(axes, [row["system"] for row in rows], width, size)
        for label, row in zip(axes.get_yticklabels(), rows, strict=True):
            label.set_color(looks[row["group"]][0] if len(looks) > 1 else INK)
        axes.set_xlim(0.3, len(rows) + 0.7)
        axes.locator_params(axis="x", nbins=8, integer=True)
        axes.set_xlabel(f"rank by {what}" if what else "rank")
        _draw_legend(figure, looks, _SIGNS[sign][0])
    return Plot(figure, _caption(rows, sign, what))


def _draw_legend(figure: Figure, looks: Mapping[str | None, Look], sign: str) -> None:
    several = len(looks) > 1
    colour = INK if several else next(iter(looks.values()))[0]
    entries = {
        "expected": style.line(colour, "o", ls="none"),
        sign: style.line(INK, "x", ls="none"),
        "possible under ties": style.line(colour, alpha=0.45, lw=4),
    }
    for shade, marker, word in looks.values() if several else ():
        entries[word] = style.line(shade, marker)
    style.legend(figure, entries.values(), style.shorten(list(entries), 40))


def _rows(ranking: pl.DataFrame, groups: Mapping[str, str] | None) -> list[dict[str, Any]]:
    """Return the rows of the frame with group and official rank, the best rank first."""
    if missing := [name for name in _NEEDED if name not in ranking.columns]:
        raise InputError(f"a ranking needs the columns {', '.join(_NEEDED)}; no {missing[0]} here")
    if not 2 <= len(ranking) <= _MOST:
        raise InputError(f"a figure of ranks needs 2 to {_MOST} systems, not {len(ranking)}")
    if ranking["system"].n_unique() < len(ranking):
        raise InputError("a system has several rows: draw the ranks of one measure at a time")
    if unknown := set(groups or ()) - set(ranking["system"]):
        raise InputError(f"{min(unknown)!r} is not among the systems of the ranking")
    ordered = ranking.sort("rank", "best_rank", "worst_rank", maintain_order=True).to_dicts()
    of = groups or {}
    return [{"official_rank": None, **row, "group": of.get(row["system"])} for row in ordered]


def _looks(sizes: Counter[str | None]) -> dict[str | None, Look]:
    """Return the look of each group; the smallest of many, and systems without one, share one."""
    groups = [group for group, _ in sizes.most_common() if group is not None]
    named = groups if len(sizes) <= len(COLOURS) else groups[: len(COLOURS) - 1]
    looks: dict[str | None, Look] = {
        group: (colour, marker, f"{group} ({sizes[group]})")
        for group, colour, marker in zip(named, COLOURS, MARKERS, strict=False)
    }
    rest = {group: n for group, n in sizes.items() if group not in looks}
    shared = (_OTHER, "o", f"others ({sum(rest.values())})") if looks else (COLOURS[0], "o", "")
    return looks | dict.fromkeys(rest, shared)


def _caption(rows: list[dict[str, Any]], sign: str, what: str) -> str:
    moving = [row for row in rows if row["best_rank"] < row["worst_rank"]]
    moved = f"Ties leave {len(moving)} of {counted(len(rows), 'system')} without a certain rank"
    if moving:
        widest = max(moving, key=lambda row: row["worst_rank"] - row["best_rank"])
        best, worst = widest["best_rank"], widest["worst_rank"]
        moved += f", {widest['system']} most: {best} to {worst}"
    by = f" by {what}" if what else ""
    return (
        f"Ranks of {counted(len(rows), 'system')}{by}. Dots: rank by expected value over all "
        f"orders of tied documents; ×: {_SIGNS[sign][1]}; bars: ranks that some order of tied "
        f"documents gives. {moved}."
    )
