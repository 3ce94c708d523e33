"""Leaderboards as one web page: sortable, searchable, an interval of values and ranks per run."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from deadheat.comparison.leaderboard import Leaderboard
from deadheat.comparison.leaderboard.summary import FIRST_METHODS
from deadheat.errors import InputError
from deadheat.late import pl
from deadheat.packages import own_version, require
from deadheat.tables import number
from deadheat.tables.cells import cell

FACETS = 40
"""Up to so many distinct words, a column of a board can be chosen from."""
COLOURS = 8
"""So many groups get a colour of their own."""


def render_leaderboards(boards: Sequence[Leaderboard], *, title: str | None = None) -> str:
    """Write the page; it needs no network, and its tables no JavaScript."""
    jinja2 = require("jinja2", "a report page")
    if not boards:
        raise InputError("there is no leaderboard to report")
    own = files(__package__)
    script = (own / "leaderboard.js").read_text(encoding="utf-8")
    styles = [(own / name).read_text(encoding="utf-8") for name in ("page.css", "leaderboard.css")]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters["number"] = number
    environment.filters["probability"] = lambda p, method: cell(
        "probability", [p, method], percent=False
    )
    template = environment.from_string((own / "leaderboard.html").read_text(encoding="utf-8"))
    page: str = template.render(
        title=title or " · ".join(board.name for board in boards[:3]),
        boards=[_board(board, i) for i, board in enumerate(boards)],
        version=own_version(),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        css="\n".join(styles),
        script=script,
    )
    return re.sub("[\ud800-\udfff]", "\ufffd", page)  # half a character cannot be written


def _board(board: Leaderboard, index: int) -> dict[str, Any]:
    """What the template writes of one board."""
    facets = _facets(board)
    group = _shown(board, list(facets))
    colours = _colours(board, group)
    return {
        "id": f"board-{index}",
        "name": board.name,
        "runs": len(board.entries),
        "alpha": board.alpha,
        "rules": [str(rule) for rule in board.rules],
        "warnings": board.warnings,
        "notes": board.notes,
        "summary": board.summary.to_dicts(),
        "has_tau": bool(board.summary["tau_official_expected"].is_not_null().any()),
        "winners": [winner for winner in board.winners if winner.contested],
        "methods": FIRST_METHODS,
        "group": board.group,
        "facets": facets,
        "shown": group,
        "colours": colours,
        "measures": [
            _measure(board, repr(m), list(facets), group, colours) for m in board.measures
        ],
    }


def _facets(board: Leaderboard) -> dict[str, list[str]]:
    """Columns of words that tell runs apart, but not every run from all others."""
    rows = board.ranking()
    words = {name: rows[name].drop_nulls().unique().sort().to_list() for name in board.words}
    return {
        name: values
        for name, values in words.items()
        if 1 < len(values) <= FACETS and (len(values) < len(rows) or name == board.group)
    }


def _shown(board: Leaderboard, facets: list[str]) -> str | None:
    """The column of words that has a place in the table."""
    return board.group if board.group in facets else facets[0] if facets else None


def _colours(board: Leaderboard, group: str | None) -> dict[str, int]:
    """Number of the colour of every group, in the official order; none without groups."""
    if group is None or board.group is None:
        return {}
    names = board.ranking()[group].drop_nulls().unique(maintain_order=True).to_list()
    return {name: i % COLOURS for i, name in enumerate(names)}


def _measure(
    board: Leaderboard, measure: str, facets: list[str], group: str | None, colours: dict[str, int]
) -> dict[str, Any]:
    """Rows of one measure, with the places of their marks on the scales of the table."""
    rows = board.rows.filter(measure=measure)
    low, high = _ends(rows)
    width = high - low or 1.0
    last = max([len(rows), *rows["published_rank"].drop_nulls().to_list()])

    def at(value: float | None) -> float | None:
        return None if value is None else round(100 * (value - low) / width, 3)

    def place(rank: int | None) -> float | None:
        return None if rank is None else round(100 * (rank - 0.5) / last, 3)

    marked = [
        {
            **row,
            "words": [row[name] or "" for name in facets],
            "official_at": at(row["oblivious"] if row["published"] is None else row["published"]),
            "expected_at": at(row["expected"]),
            "worst_at": at(row["worst"]),
            "best_at": at(row["best"]),
            "rank_at": place(row["rank"]),
            "published_rank_at": place(row["published_rank"]),
            "best_rank_at": place(row["best_rank"]),
            "worst_rank_at": place(row["worst_rank"]),
            "ranks": cell("ranks", [row["best_rank"], row["worst_rank"]], percent=False),
            "colour": colours.get(row[group], 0) if group else 0,
        }
        for row in rows.to_dicts()
    ]
    return {
        "name": measure,
        "rows": marked,
        "low": low,
        "high": high,
        "published": bool(rows["published"].is_not_null().any()),
    }


def _ends(rows: pl.DataFrame) -> tuple[float, float]:
    """The lowest and the highest value of a measure on the board."""
    values = rows.select("worst", "best", "published").unpivot()["value"].drop_nulls().to_list()
    return min(values), max(values)
