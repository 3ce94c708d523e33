"""All runs of a board in one measure: their rows, and how ties affect ranks, pairs and winners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import Remark, some, warning
from deadheat.comparison.leaderboard.entries import Entry
from deadheat.comparison.leaderboard.published import PublishedBoard, PublishedColumn
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
    sign,
)
from deadheat.evaluation import VIEWS, Floats
from deadheat.measures import Measure
from deadheat.settings import EvalSettings

ROWS = {
    "measure": "name of the measure",
    "run": "name of the run",
    "published": "the published value",
    "unit": "one unit of the last printed digit of the published value",
    "reproduced": "whether the oblivious value rounds to the published value",
    "published_rank": "rank by the published value, among all runs of the board",
    "expected": "mean over all orders of tied documents",
    "std": "tie std: standard deviation of the mean under random tie-breaking",
    "worst": "value with all ties broken against the run",
    "best": "value with all ties broken for the run",
    "range": "best − worst",
    "oblivious": "value under the tie rule",
    "bias": "oblivious − expected",
    "rank": "rank by expected value; equal values share the better rank",
    "best_rank": "rank with ties broken for this run and against all other runs",
    "worst_rank": "rank with ties broken against this run and for all other runs",
    "cut_lists": "lists cut inside a tie group that can change the digits of the measure",
    "grid": "the number grid of its scores",
    "queries": "number of queries that were averaged",
}
"""The columns of `Leaderboard.rows`; columns of words of a published board follow after `run`."""
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
        verb = "is published above" if self.published else "is above"
        values = f"{high} > {low}" if self.published else f"oblivious {high} > {low}"
        return (
            f"{self.above} {verb} {self.below} in {self.measure} ({values}), but its mean over all "
            f"tie orders is lower ({mean} < {other})"
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
    """First runs by published value, or by oblivious value without a board; runs with equal values
    share the place. Empty if the published value of the first run is not reproduced."""
    expected: str
    """First runs by expected value."""
    probability: float
    """Probability that the expected winner comes first under random tie-breaking."""
    method: str
    """One of `deadheat.comparison.METHODS`."""
    contenders: dict[str, float]
    """Other runs that some tie order puts first, with the probability of that."""
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
        A dict from the names of the runs to their names in the board.
    column
        The published column of the measure.
    """

    def __init__(
        self,
        measure: Measure,
        entries: Mapping[str, Entry],
        board: PublishedBoard | None,
        rows: Mapping[str, str],
        column: PublishedColumn | None,
    ) -> None:
        results = [entry.results[measure] for entry in entries.values()]
        views = rank_columns([result[measure] for result in results], VIEWS)
        published = {} if column is None else column.cells
        listed = [rows.get(name, "") for name in entries]
        cells = [published.get(name) for name in listed]
        met = [c and c.met_by(x) for c, x in zip(cells, views["oblivious"].tolist(), strict=True)]
        names, words = ([], {}) if board is None else (board.names, board.words)
        columns = {
            "measure": [repr(measure)] * len(entries),
            "run": list(entries),
            **{word: [own.get(name) for name in listed] for word, own in words.items()},
            "published": [c and c.value for c in cells],
            "unit": [c and c.unit for c in cells],
            "reproduced": met,
            "published_rank": [c and c.rank(published.values()) for c in cells],
            **views,
            "cut_lists": [entry.cut[measure] for entry in entries.values()],
            "grid": [entry.grid for entry in entries.values()],
            "queries": [len(result.query_ids) for result in results],
        }
        types = {"published_rank": pl.Int64, "reproduced": pl.Boolean}
        types |= {"published": pl.Float64, "unit": pl.Float64} | dict.fromkeys(words, pl.String)
        self.measure = measure
        self.column = column
        self.views = views
        self.runs = pl.DataFrame(columns, schema_overrides=types, nan_to_null=True)
        """A row per run: the columns of `ROWS` and the columns of words."""
        self.known = column is None or is_known(met.count(True), len(met) - met.count(None))
        """Whether the definition of the published values is known: more than half of them are
        reproduced."""
        self.official: Floats = views["oblivious"]
        """The official values: the published ones, NaN if missing; else the oblivious values."""
        self.comparable = self.official
        """The official values that deadheat reproduces; NaN for others. A value that is not
        reproduced may differ from the expected value for other reasons than ties."""
        if column is not None:
            self.official = np.array([c.value if c else np.nan for c in cells])
            self.comparable = np.where([bool(m) and self.known for m in met], self.official, np.nan)
        self.outcomes = [Outcomes.of(result, measure) for result in results]
        """The distribution of the value of each run under random tie-breaking."""
        places = np.array([names.index(name) if name in names else np.nan for name in listed])
        order = np.lexsort((-views["expected"], places, -self.official))
        self.rows = self.runs[order.tolist()]
        """The rows of the runs in the official order."""

    def unmet_remarks(self, setting: EvalSettings, *, searched: bool) -> list[Remark]:
        """Return warnings about published numbers that are not reproduced, and the consequence.

        Parameters
        ----------
        searched
            Whether `setting` is the result of a search for the setting that reproduces most
            numbers.
        """
        missed = self.runs.filter(pl.col("reproduced").not_())
        if self.column is None or missed.is_empty():
            return []
        gap = (missed["oblivious"] - missed["published"]).abs().max()
        tried = "no rule that was tried meets more" if searched else "as given, no rule was tried"
        n = f"{len(missed)} of {self.runs['published'].count()}"
        rule = f"{self.measure}, {describe(setting)} ({tried}; the largest gap is {gap:.4f})"
        if self.known:
            runs = some(missed["run"].to_list())
            text = (
                f"{n} published numbers are not met by {rule}; these runs take no part in reversed "
                f"pairs, errors and τ: {runs}"
            )
        else:
            text = (
                f"the definition of these numbers is unknown: {n} are not met by {rule}; nothing "
                "is said about their published order"
            )
        return [warning(f"{self.column.name}: {text}")]

    def summarise(self, alpha: float) -> tuple[dict[str, object], list[DecisionError]]:
        """Count runs and pairs that ties affect, and compare the orders of a board.

        ``reversed``: pairs whose official order is not that of their expected values.
        ``overlapping``: pairs that some tie order reverses. ``undecided``: pairs whose order of
        expected values has a probability below ``1 − alpha`` under random tie-breaking.
        ``decision_errors``: reversed pairs that are not undecided.

        If the definition of the published values is unknown, their order may have other causes
        than ties: ``reversed``, ``decision_errors`` and the τ of the official order are None.
        ``oblivious_reversed`` and ``oblivious_errors`` are the same counts for the oblivious
        values, which are always computed here. Kendall's τ-b compares the official order with the
        orders by expected, best and worst values. With a published board, it uses only runs whose
        numbers are reproduced.
        """
        expected, oblivious = self.views["expected"], self.views["oblivious"]
        comparable = self.comparable
        n_reversed = overlapping = undecided = oblivious_reversed = oblivious_errors = 0
        errors: list[DecisionError] = []
        pairs = list(combinations(range(len(expected)), 2))
        for i, j in pairs:
            order = sign(expected[i] - expected[j])
            odds = duel(self.outcomes[i], self.outcomes[j], alpha, close=CLOSE)
            decided = keeps_order(order, odds, alpha)
            overlapping += odds.method != "certain"
            undecided += not decided
            if order * np.nan_to_num(comparable[i] - comparable[j]) < -TOLERANCE:
                n_reversed += 1
                if decided:
                    errors.append(self._decision_error(*((i, j) if order < 0 else (j, i))))
            if order * sign(oblivious[i] - oblivious[j]) < 0:
                oblivious_reversed += 1
                oblivious_errors += decided
        is_published = self.column is not None
        used, width = ~np.isnan(comparable), self.views["range"]
        facts: dict[str, object] = {
            "measure": repr(self.measure),
            "runs": len(expected),
            "official": ("published" if is_published else "oblivious") if self.known else None,
            "published": self.runs["published"].count() if is_published else None,
            "met": self.runs["reproduced"].sum() if is_published else None,
            **{f"range_above_{x:g}": int((width > max(x, TOLERANCE)).sum()) for x in MOVED},
            "pairs": len(pairs),
            "reversed": n_reversed if self.known else None,
            "overlapping": overlapping,
            "undecided": undecided,
            "decision_errors": len(errors) if self.known else None,
            "oblivious_reversed": oblivious_reversed,
            "oblivious_errors": oblivious_errors,
            **{
                f"tau_official_{view}": _kendall_tau(comparable[used], self.views[view][used])
                for view in ("expected", "best", "worst")
            },
        }
        # Pairs at the top of the board first, then pairs with a wide gap.
        errors.sort(key=lambda error: (error.rank, error.expected[0] - error.expected[1]))
        return facts, errors

    def _decision_error(self, above: int, below: int) -> DecisionError:
        names, official = self.runs["run"], self.official.tolist()
        expected = self.views["expected"].tolist()
        return DecisionError(
            repr(self.measure),
            names[above],
            names[below],
            (official[above], official[below]),
            (expected[above], expected[below]),
            1 + sum(value > official[above] + TOLERANCE for value in official),
            self.column is not None,
        )

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
    # Values that differ only in the last bits count as equal.
    a, b = (np.sign(np.subtract.outer(x, x)) for x in (np.round(one, 12), np.round(other, 12)))
    pairs = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / pairs) if pairs else None
