"""Comparisons as tables: the pairs with their verdicts, and the ranking."""

from __future__ import annotations

from typing import Any

from rich.console import Group

from deadheat.comparison import Comparison
from deadheat.report.grid import Grid, counted_queries, number


def render(comparison: Comparison, style: str, *, percent: bool = False) -> str:
    """Write a comparison in one of `grid.STYLES`; csv holds the pairs only."""
    if style == "json":
        return comparison.to_json()
    if style == "csv":
        return comparison.to_csv()
    ranking, pairs = _grids(comparison, percent=percent)
    return f"{ranking.render(style)}\n\n{pairs.render(style)}"


def rich_tables(comparison: Comparison, *, percent: bool = False) -> Group:
    """Build both tables for a terminal."""
    return Group(*(grid.rich() for grid in _grids(comparison, percent=percent)))


def _grids(comparison: Comparison, *, percent: bool) -> tuple[Grid, Grid]:
    """Give the ranking, and the pairs: first what ties leave open, then what queries do."""

    def value(x: float | None) -> str:
        return number(x, percent=percent)

    def signed(x: float | None) -> str:
        return number(x, percent=percent, signed=True)

    def interval(low: float | None, high: float | None) -> str:
        return "–" if low is None else f"[{signed(low)}, {signed(high)}]"

    ranking = [
        [
            *(row["measure"], row["system"], str(row["rank"])),
            "–".join(dict.fromkeys((str(row["best_rank"]), str(row["worst_rank"])))),
            str(row["oblivious_rank"]),
            *(value(row[view]) for view in ("expected", "std", "worst", "best", "oblivious")),
        ]
        for row in comparison.ranking.iter_rows(named=True)
    ]
    pairs = [
        [
            *(row["a"], row["b"], row["measure"], signed(row["difference"]), value(row["std"])),
            interval(row["lowest"], row["highest"]),
            _probability(row),
            signed(row["oblivious_difference"]),
            interval(row["interval_low"], row["interval_high"]),
            _share(row["p_holm"]),
            row["verdict"],
        ]
        for row in comparison.pairs.iter_rows(named=True)
    ]
    by_rank = ("rank", "under ties", "oblivious rank")
    by_value = ("expected", "± tie std", "worst", "best", "oblivious")
    by_ties = ("A − B", "± tie std", "tie interval", "A wins", "oblivious A − B")
    by_queries = ("query interval", "p (Holm)")
    title = f"Ranking · {counted_queries(comparison.settings['queries'])}"
    return (
        Grid(("measure", "system", *by_rank, *by_value), ranking, title, grouped=1),
        Grid(
            ("A", "B", "measure", *by_ties, *by_queries, "verdict"),
            pairs,
            "A against B",
            comparison.notes,
            grouped=2,
        ),
    )


def _probability(row: dict[str, Any]) -> str:
    """Tell a certain 0 or 1 from one that rounding made, and exact from approximate."""
    method = row["probability_method"]
    if method == "certain":
        return f"{row['a_wins']:.0f}"
    share = _share(row["a_wins"])
    return share if method == "exact" or share[0] in "<>" else f"≈{share}"


def _share(p: float | None) -> str:
    if p is None:
        return "–"
    return "<0.0005" if p < 0.0005 else ">0.9995" if 0.9995 < p < 1 else f"{p:.3f}"
