"""The rows of a leaderboard: every run in every measure, beside what was published of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from deadheat._lazy import pl
from deadheat.comparison.leaderboard.entries import Entry
from deadheat.comparison.leaderboard.published import PublishedBoard, PublishedColumn
from deadheat.comparison.leaderboard.rules import describe, is_known
from deadheat.comparison.leaderboard.summary import Standing, Winner, winner_of
from deadheat.comparison.statistics import ranks
from deadheat.measures import Measure
from deadheat.remarks import Remark, some, warning
from deadheat.settings import EvalSettings

ROWS = {
    "measure": "what the row is about",
    "run": "name of the run",
    "published": "the published value",
    "unit": "one in the last digit of the published value, as it was printed",
    "reproduced": "whether the oblivious value rounds to it, in the digits it was printed with",
    "published_rank": "rank by the published value, among all runs of the board",
    "expected": "mean over all orders of tied documents",
    "std": "tie std: standard deviation of the mean under random tie-breaking",
    "worst": "value with ties broken against the run",
    "best": "value with ties broken in favour of it",
    "range": "best − worst",
    "oblivious": "value under the tie rule",
    "bias": "oblivious − expected",
    "rank": "rank in expectation; equal values share the better rank",
    "best_rank": "rank with its ties broken for it and those of all others against them",
    "worst_rank": "rank with its ties broken against it and those of all others for them",
    "cut_lists": "lists cut inside a tie group that can move the digits of the measure",
    "grid": "the number grid of its scores",
    "queries": "how many queries were averaged",
}
"""The columns of `Leaderboard.rows`; those of words that a published board has come after `run`."""


def standing_of(
    measure: Measure,
    entries: Mapping[str, Entry],
    rows: Mapping[str, str],
    column: PublishedColumn | None,
) -> Standing:
    """All runs in one measure, with their official values."""
    results = [entry.results[measure] for entry in entries.values()]
    oblivious = [result[measure].oblivious for result in results]
    if column is None:
        return Standing(measure, list(entries), results, np.array(oblivious, np.float64))
    cells = [column.cells.get(rows.get(name, "")) for name in entries]
    official = np.array([np.nan if cell is None else cell.value for cell in cells], np.float64)
    met = [c is not None and c.met_by(value) for c, value in zip(cells, oblivious, strict=True)]
    known = is_known(sum(met), len(cells) - cells.count(None))
    return Standing(
        measure, list(entries), results, official, published=True, met=np.array(met), known=known
    )


def unmet_remarks(
    standing: Standing, column: PublishedColumn, setting: EvalSettings, *, searched: bool
) -> list[Remark]:
    """Warn of published numbers that are not met, and say what follows from that.

    Parameters
    ----------
    searched
        Whether `setting` is the one that meets most numbers of all that were tried.
    """
    if standing.met is None:
        return []
    missed = ~standing.met & ~np.isnan(standing.official)
    if not missed.any():
        return []
    gap = np.abs(standing.of("oblivious") - standing.official)[missed].max()
    values: dict[str, int | str] = {
        "column": column.name,
        "missed": int(missed.sum()),
        "of": int((~np.isnan(standing.official)).sum()),
        "rule": f"{standing.measure}, {describe(setting)}",
        "gap": f"{gap:.4f}",
        "most": "no rule that was tried meets more" if searched else "as given, no rule was tried",
    }
    if standing.known:
        values["runs"] = some([standing.names[i] for i in np.flatnonzero(missed)])
        pattern = (
            "{column}: {missed} of {of} published numbers are not met by {rule} ({most}; the "
            "largest gap is {gap}); these runs take no part in reversed pairs, errors and τ: {runs}"
        )
    else:
        pattern = (
            "{column}: the definition of these numbers is unknown: {missed} of {of} are not met by "
            "{rule} ({most}; the largest gap is {gap}); nothing is said about their published order"
        )
    return [warning(pattern, **values)]


def rows_of(
    standing: Standing,
    entries: Mapping[str, Entry],
    board: PublishedBoard | None,
    rows: Mapping[str, str],
    column: PublishedColumn | None,
) -> pl.DataFrame:
    """Rows of one measure in the official order."""
    measure = standing.measure
    cells = [None if column is None else column.cells.get(rows.get(n, "")) for n in standing.names]
    oblivious = standing.of("oblivious")
    best_rank, worst_rank = standing.rank_interval
    published_rank = _published_ranks(column)
    places = [board.names.index(rows[n]) if board and n in rows else None for n in standing.names]
    frame = pl.DataFrame(
        {
            "measure": [repr(measure)] * len(standing.names),
            "run": standing.names,
            **_word_columns(board, places),
            "published": pl.Series([c and c.value for c in cells], dtype=pl.Float64),
            "unit": pl.Series([c and c.unit for c in cells], dtype=pl.Float64),
            "reproduced": pl.Series(
                [c and c.met_by(value) for c, value in zip(cells, oblivious, strict=True)],
                dtype=pl.Boolean,
            ),
            "published_rank": pl.Series(
                [published_rank.get(rows.get(n, "")) for n in standing.names], dtype=pl.Int64
            ),
            "expected": standing.expected,
            "std": pl.Series(standing.of("std"), nan_to_null=True),
            "worst": standing.worst,
            "best": standing.best,
            "range": standing.best - standing.worst,
            "oblivious": oblivious,
            "bias": oblivious - standing.expected,
            "rank": standing.rank,
            "best_rank": best_rank,
            "worst_rank": worst_rank,
            "cut_lists": [entries[name].cut[measure] for name in standing.names],
            "grid": [entries[name].grid for name in standing.names],
            "queries": [len(result.query_ids) for result in standing.results],
        }
    )
    official = pl.Series(standing.official, nan_to_null=True)
    order = frame.with_columns(official=official, place=pl.Series(places, dtype=pl.Int64)).select(
        pl.arg_sort_by(
            "official",
            "place",
            "expected",
            descending=[True, False, True],
            nulls_last=True,
            maintain_order=True,
        )
    )
    return frame[order.to_series()]


def _published_ranks(column: PublishedColumn | None) -> dict[str, int]:
    """Rank of every published number in its column."""
    if column is None:
        return {}
    values = np.array([cell.value for cell in column.cells.values()])
    return dict(zip(column.cells, ranks(values).tolist(), strict=True))


def words_of(board: PublishedBoard | None) -> dict[str, str]:
    """Columns of words by the names they have here."""
    headings = {} if board is None else board.words
    return {f"{h} (board)" if h in ROWS else h: h for h in headings}


def _word_columns(
    board: PublishedBoard | None, places: Sequence[int | None]
) -> dict[str, pl.Series]:
    if board is None:
        return {}
    return {
        name: pl.Series(
            [None if place is None else board.words[heading][place] for place in places],
            dtype=pl.String,
        )
        for name, heading in words_of(board).items()
    }


def winners_of(
    standing: Standing, board: PublishedBoard | None, rows: Mapping[str, str], group: str | None
) -> list[Winner]:
    """Who comes first, and who inside each group of two runs or more."""
    winners = [winner_of(standing)]
    if board is None or group is None:
        return winners
    members: dict[str, list[int]] = {}
    for i, name in enumerate(standing.names):
        if name in rows and (word := board.words[group][board.names.index(rows[name])]):
            members.setdefault(word, []).append(i)
    of_groups = [
        winner_of(standing.part(own), word) for word, own in members.items() if len(own) > 1
    ]
    return winners + of_groups
