"""All runs of a board in one measure: their rows, and how ties affect ranks, pairs and winners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import cast

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import Remark, some, warning
from deadheat.comparison.leaderboard.entries import Entry
from deadheat.comparison.leaderboard.published import PublishedColumn, is_met, select_rows
from deadheat.comparison.leaderboard.rules import describe, is_known
from deadheat.comparison.statistics import (
    CLOSE,
    TOLERANCE,
    Outcomes,
    duel,
    first_places,
    keeps_order,
    rank_columns,
    rank_intervals,
    ranks,
    sign,
)
from deadheat.evaluation import VIEWS, Floats, cut_lists
from deadheat.measures import Measure
from deadheat.settings import EvalSettings
from deadheat.ties import TieGroups

COLUMNS = (
    *("measure", "run", "published", "unit", "reproduced", "published_rank", *VIEWS),
    *("rank", "best_rank", "worst_rank", "cut_lists", "grid", "queries"),
)
"""The columns of `Leaderboard.rows`, without the columns of words."""

MOVED = (0.0, 0.001, 0.01)
"""Ranges above which a run is counted as moved by its ties."""


@dataclass(frozen=True)
class DecisionError:
    """Two runs whose official order is the reverse of the order of their expected values."""

    measure: str
    above: str
    """The run with the higher official value and the lower expected value."""
    below: str
    official: tuple[float, float]
    """Their official values."""
    expected: tuple[float, float]
    """Their means over all orders of tied documents."""
    rank: int
    """Rank of the upper run by official value, among the evaluated runs."""
    published: bool
    """Whether the official values were published; otherwise they are the oblivious values."""

    def __str__(self) -> str:
        high, low = format_apart(*self.official)
        mean, other = format_apart(*self.expected)
        verb, kind = ("is published above", "") if self.published else ("is above", "oblivious ")
        return (
            f"{self.above} {verb} {self.below} in {self.measure} ({kind}{high} > {low}), but its "
            f"mean over all tie orders is lower ({mean} < {other})"
        )


def format_apart(one: float, other: float) -> tuple[str, str]:
    """Write two values with four decimals, or with more if they would look equal.

    >>> format_apart(0.702, 0.6968), format_apart(0.70201, 0.70203)
    (('0.7020', '0.6968'), ('0.70201', '0.70203'))
    """
    for digits in range(4, 17):
        texts = f"{one:.{digits}f}", f"{other:.{digits}f}"
        if texts[0] != texts[1]:
            break
    return texts


@dataclass(frozen=True)
class Winner:
    """The first run in a measure, on the whole board or inside a group."""

    measure: str
    group: str | None
    """Name of the group; None for the whole board."""
    official: list[str]
    """First runs by published value, or by oblivious value without a board. Runs with equal values
    are all first. Empty if the published value of a first run is not reproduced."""
    expected: str
    """First run by expected value."""
    probability: float
    """Probability that the expected winner comes first under random tie-breaking."""
    method: str
    """One of `deadheat.comparison.METHODS`."""
    contenders: dict[str, float]
    """Runs that some tie order puts first, and the probability of each to come first."""
    error: float = 0.0
    """Largest distance of these probabilities from the true ones."""

    @property
    def contested(self) -> bool:
        """Whether ties can change which run comes first."""
        return self.method != "certain"


class Standing:
    """All runs of a board in one measure.

    Parameters
    ----------
    rows
        Per run: its row in the published board; None if there is none.
    words
        Columns of words of the board, in the order of the runs.
    column
        The published column of the measure.
    """

    def __init__(
        self,
        measure: Measure,
        entries: Mapping[str, Entry],
        rows: Sequence[int | None],
        words: pl.DataFrame,
        column: PublishedColumn | None,
    ) -> None:
        results = [entry.results[measure] for entry in entries.values()]
        views = rank_columns([result[measure] for result in results])
        groups = [cast(TieGroups, result.groups) for result in results]
        types = {"published": pl.Float64, "unit": pl.Float64, "published_rank": pl.Int64}
        if column is None:
            numbers = pl.DataFrame(dict.fromkeys(types, [None] * len(rows)), schema=types)
        else:
            numbers = select_rows(column.numbers, rows)
        computed = {
            **views,
            "cut_lists": [int(cut_lists(own, measure).sum()) for own in groups],
            "grid": [entry.grid for entry in entries.values()],
            "queries": [len(result.query_ids) for result in results],
        }
        self.measure = measure
        self.column = column
        self.views = views
        self.runs = (
            pl.DataFrame({"measure": repr(measure), "run": list(entries)})
            .hstack(words)
            .hstack(numbers)
            .hstack(pl.DataFrame(computed, nan_to_null=True))
            .with_columns(reproduced=is_met(*map(pl.col, ("oblivious", "published", "unit"))))
            .select(*COLUMNS[:2], *words.columns, *COLUMNS[2:])
        )
        """A row per run: the columns of `Leaderboard.rows`."""
        met = self.runs["reproduced"].fill_null(False).to_numpy()
        self.known = column is None or is_known(int(met.sum()), self.runs["published"].count())
        """Whether the definition of the published values is known: more than half of them are
        reproduced."""
        self.official = self.runs["oblivious" if column is None else "published"].to_numpy()
        """The official values: the published ones, NaN if missing; else the oblivious values."""
        self.comparable = self.official
        """The official values that deadheat reproduces; NaN for others. A value that is not
        reproduced may differ from the expected value for other reasons than ties."""
        if column is not None:
            self.comparable = np.where(met & self.known, self.official, np.nan)
        self.outcomes = [Outcomes(result, measure) for result in results]
        """The distribution of the value of each run under random tie-breaking."""
        places = np.array([np.inf if row is None else row for row in rows])
        order = np.lexsort((-views["expected"], places, -self.official))
        self.rows = self.runs[order.tolist()]
        """The rows of the runs in the official order."""

    def describe_missed(self, setting: EvalSettings) -> list[Remark]:
        """Return a warning about published numbers that are not reproduced, if there are any."""
        missed = self.runs.filter(pl.col("reproduced").not_())
        if self.column is None or missed.is_empty():
            return []
        gap = (missed["oblivious"] - missed["published"]).abs().max()
        if self.known:
            runs = some(missed["run"].to_list())
            so = f"left out of reversed pairs, errors and τ: {runs}"
        else:
            so = "their definition is unknown, so their published order is not compared"
        text = (
            f"{self.column.name}: {len(missed)} of {self.runs['published'].count()} published "
            f"numbers are not met by {self.measure}, {describe(setting)} (the largest gap is "
            f"{gap:.4f}); {so}"
        )
        return [warning(text)]

    def summarise(self, alpha: float) -> tuple[dict[str, object], list[DecisionError]]:
        """Count runs and pairs that ties affect, and compare the orders of a board.

        ``reversed``: pairs whose official order is not that of their expected values.
        ``overlapping``: pairs that some tie order reverses. ``undecided``: pairs whose order of
        expected values has a probability below ``1 − alpha`` under random tie-breaking.
        ``decision_errors``: reversed pairs that are not undecided.

        If the definition of the published values is unknown, their order may have other causes
        than ties: ``reversed``, ``decision_errors`` and the τ of the official order are None.
        Kendall's τ-b compares the official order with the orders by expected, best and worst
        values. With a published board, it uses only runs whose numbers are reproduced.
        """
        expected, comparable = self.views["expected"], self.comparable
        i, j = np.triu_indices(len(expected), 1)
        order = sign(expected[i] - expected[j])
        odds = [duel(a, b, alpha, close=CLOSE) for a, b in combinations(self.outcomes, 2)]
        kept = [keeps_order(*pair, alpha) for pair in zip(order, odds, strict=True)]
        decided = np.array(kept, np.bool_)
        is_reversed = order * np.nan_to_num(comparable[i] - comparable[j]) < -TOLERANCE
        wrong = np.where(order < 0, (i, j), (j, i)).T[is_reversed & decided]
        names, official, means = self.runs["run"], self.official.tolist(), expected.tolist()
        official_ranks, is_published = ranks(self.official).tolist(), self.column is not None
        errors = [
            DecisionError(
                repr(self.measure),
                names[above],
                names[below],
                (official[above], official[below]),
                (means[above], means[below]),
                official_ranks[above],
                is_published,
            )
            for above, below in wrong.tolist()
        ]
        used, width = ~np.isnan(comparable), self.views["range"]
        facts: dict[str, object] = {
            "measure": repr(self.measure),
            "runs": len(expected),
            "official": ("published" if is_published else "oblivious") if self.known else None,
            "published": self.runs["published"].count() if is_published else None,
            "met": self.runs["reproduced"].sum() if is_published else None,
            **{f"range_above_{x:g}": int((width > max(x, TOLERANCE)).sum()) for x in MOVED},
            "pairs": len(order),
            "reversed": int(is_reversed.sum()) if self.known else None,
            "overlapping": sum(each.method != "certain" for each in odds),
            "undecided": int((~decided).sum()),
            "decision_errors": len(errors) if self.known else None,
            **{
                f"tau_official_{view}": _kendall_tau(comparable[used], self.views[view][used])
                for view in ("expected", "best", "worst")
            },
        }
        # Pairs at the top of the board first, then pairs with a wide gap.
        errors.sort(key=lambda error: (error.rank, error.expected[0] - error.expected[1]))
        return facts, errors

    def winners(self, group: str | None) -> list[Winner]:
        """Return the winner of the board, and of each group of two or more runs.

        Parameters
        ----------
        group
            The column of `runs` with the name of each run's group; None for no groups.
        """
        winners = [self._winner(range(len(self.runs)), None)]
        members: dict[str, list[int]] = {}
        for i, word in enumerate([] if group is None else self.runs[group].to_list()):
            if word:
                members.setdefault(word, []).append(i)
        return winners + [self._winner(own, w) for w, own in members.items() if len(own) > 1]

    def _winner(self, members: Sequence[int], group: str | None) -> Winner:
        """Return the winner among some runs, and its probability to be first."""
        own = np.array(members)
        worst, best = self.views["worst"][own], self.views["best"][own]
        leader = int(own[np.argmax(self.views["expected"][own])])
        possible = rank_intervals(worst, best)[0] == 1
        first = own[possible].tolist()
        if len(first) == 1 or (best - worst)[possible].max() <= TOLERANCE:  # equal values share it
            odds, method, error = [1.0 / len(first)] * len(first), "certain", 0.0
        else:
            odds, method, error = first_places([self.outcomes[i] for i in first])
        values = np.nan_to_num(self.official[own], nan=-np.inf)
        official = own[(values >= values.max() - TOLERANCE) & np.isfinite(values)]
        if np.isnan(self.comparable[official]).any():
            official = []
        names = self.runs["run"]
        return Winner(
            repr(self.measure),
            group,
            [names[int(i)] for i in official],
            names[leader],
            odds[first.index(leader)],
            method,
            {names[i]: p for i, p in zip(first, odds, strict=True)},
            error,
        )


def _kendall_tau(one: Floats, other: Floats) -> float | None:
    """Return Kendall's τ-b of two orders; None if all values of one of them are equal."""
    a, b = sign(np.subtract.outer(one, one)), sign(np.subtract.outer(other, other))
    pairs = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / pairs) if pairs else None
