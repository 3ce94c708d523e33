"""What ties do to a whole board: runs moved, pairs reversed, winners contested."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.comparison.statistics import (
    CLOSE,
    METHODS,
    TOLERANCE,
    Outcomes,
    duel,
    first_places,
    keeps_order,
    rank_intervals,
    ranks,
    sign,
)
from deadheat.errors import MissingPackageError
from deadheat.evaluation import Result
from deadheat.evaluation.result import Floats
from deadheat.measures import Measure
from deadheat.packages import require

MOVED = (0.0, 0.001, 0.01)
"""Ranges from which on a run counts as moved by its ties."""
ORDERS = ("official", "expected", "best", "worst")
"""The orders of a board that Kendall's τ compares."""
FIRST_METHODS = METHODS
"""How the probability to come first was obtained."""


@dataclass(frozen=True)
class Standing:
    """All runs of a board in one measure."""

    measure: Measure
    names: list[str]
    results: Sequence[Result]
    official: Floats
    """The published values, NaN where there is none; the oblivious ones without a board."""
    published: bool = False
    """Whether the official values were published."""
    met: NDArray[np.bool_] | None = None
    """Per run: whether the published value is the oblivious one, to its printed digits."""
    known: bool = True
    """Whether the definition of the published values is known: more than half of them are met."""

    @property
    def comparable(self) -> Floats:
        """The official values whose order says something about ties; NaN elsewhere.

        A published value that deadheat does not compute itself may differ from the expected one
        for any other reason.
        """
        if self.met is None:
            return self.official
        return np.where(self.met & self.known, self.official, np.nan)

    def of(self, view: str) -> Floats:
        """Means of a view, NaN where there is none."""
        values = [getattr(result[self.measure], view) for result in self.results]
        return np.array(values, np.float64)

    @cached_property
    def expected(self) -> Floats:
        """Expected values."""
        return self.of("expected")

    @cached_property
    def worst(self) -> Floats:
        """Values with ties broken against each run."""
        return self.of("worst")

    @cached_property
    def best(self) -> Floats:
        """Values with ties broken in favour of each run."""
        return self.of("best")

    @cached_property
    def outcomes(self) -> list[Outcomes]:
        """What random tie-breaking can make of the value of each run."""
        return [Outcomes.of(result, self.measure) for result in self.results]

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """Ranks in expectation."""
        return ranks(self.expected)

    @cached_property
    def rank_interval(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Best and worst ranks that ties allow."""
        return rank_intervals(self.worst, self.best)

    def part(self, rows: Sequence[int]) -> Standing:
        """Some of the runs."""
        kept = list(rows)
        names, results = [self.names[i] for i in kept], [self.results[i] for i in kept]
        met = None if self.met is None else self.met[kept]
        official = self.official[kept]
        return Standing(self.measure, names, results, official, self.published, met, self.known)


@dataclass(frozen=True)
class DecisionError:
    """Two runs whose official order is the reverse of the one that their ties leave them."""

    measure: str
    above: str
    """The run with the higher official value, and the lower expected one."""
    below: str
    official: tuple[float, float]
    """Their official values."""
    expected: tuple[float, float]
    """Their means over all orders of tied documents."""
    rank: int
    """Rank of the upper one by its official value, among the runs that were evaluated."""
    published: bool
    """Whether the official values were published; else they are the oblivious ones."""

    def __str__(self) -> str:
        high, low = apart(*self.official)
        mean, other = apart(*self.expected)
        verb = "is published above" if self.published else "is above"
        values = f"{high} > {low}" if self.published else f"oblivious {high} > {low}"
        return (
            f"{self.above} {verb} {self.below} in {self.measure} ({values}), but its mean over all "
            f"tie orders is lower ({mean} < {other})"
        )


def apart(one: float, other: float) -> tuple[str, str]:
    """Write two values with four decimals, or with as many as tell them apart.

    >>> apart(0.702, 0.6968), apart(0.70201, 0.70203)
    (('0.7020', '0.6968'), ('0.70201', '0.70203'))
    """
    for digits in range(4, 17):
        texts = f"{one:.{digits}f}", f"{other:.{digits}f}"
        if texts[0] != texts[1]:
            break
    return texts


def summarised(standing: Standing, alpha: float) -> tuple[dict[str, Any], list[DecisionError]]:
    """Count what ties do to the runs and pairs of a board, and compare its orders.

    ``reversed``: pairs whose official order is not that of their expectations. ``overlapping``:
    pairs that some way to break their ties reverses. ``undecided``: pairs that random
    tie-breaking leaves in the order of their expectations with a probability below
    ``1 − alpha``. ``decision_errors``: reversed pairs that are not undecided.

    Where the definition of the published values is unknown, nothing about their order is
    attributed to ties: ``reversed``, ``decision_errors`` and the τ of the official order are None.
    ``oblivious_reversed`` and ``oblivious_errors`` count the same for the oblivious values, which
    are always computed here.
    """
    width = standing.best - standing.worst
    facts: dict[str, Any] = {"measure": repr(standing.measure), "runs": len(standing.names)}
    known = standing.known
    facts["official"] = ("published" if standing.published else "oblivious") if known else None
    facts["published"] = int((~np.isnan(standing.official)).sum()) if standing.published else None
    facts["met"] = None if standing.met is None else int(standing.met.sum())
    facts |= {
        f"range_above_{limit:g}": int((width > max(limit, TOLERANCE)).sum()) for limit in MOVED
    }
    against = overlapping = undecided = oblivious_against = oblivious_errors = 0
    comparable, oblivious = standing.comparable, standing.of("oblivious")
    errors: list[DecisionError] = []
    pairs = list(combinations(range(len(standing.names)), 2))
    for i, j in pairs:
        order = sign(standing.expected[i] - standing.expected[j])
        odds = duel(standing.outcomes[i], standing.outcomes[j], alpha, close=CLOSE)
        decided = keeps_order(order, odds, alpha)
        overlapping += odds.method != "certain"
        undecided += not decided
        if order * _sign_of(comparable[i], comparable[j]) < 0:
            against += 1
            if decided:
                errors.append(_decision_error(standing, *((i, j) if order < 0 else (j, i))))
        if order * _sign_of(oblivious[i], oblivious[j]) < 0:
            oblivious_against += 1
            oblivious_errors += decided
    facts |= {"pairs": len(pairs), "reversed": against if known else None}
    facts |= {"overlapping": overlapping, "undecided": undecided}
    facts["decision_errors"] = len(errors) if known else None
    facts |= {"oblivious_reversed": oblivious_against, "oblivious_errors": oblivious_errors}
    return facts | _agreement(standing), _by_importance(errors)


def _sign_of(a: float, b: float) -> int:
    return 0 if math.isnan(a) or math.isnan(b) else sign(a - b)


def _decision_error(standing: Standing, above: int, below: int) -> DecisionError:
    official, expected = standing.official, standing.expected
    return DecisionError(
        repr(standing.measure),
        standing.names[above],
        standing.names[below],
        (float(official[above]), float(official[below])),
        (float(expected[above]), float(expected[below])),
        1 + int((official > official[above] + TOLERANCE).sum()),
        standing.published,
    )


def _by_importance(errors: Iterable[DecisionError]) -> list[DecisionError]:
    """Sort decision errors: those at the top of the board first, then those of a wide gap."""
    return sorted(errors, key=lambda error: (error.rank, error.expected[0] - error.expected[1]))


def _agreement(standing: Standing) -> dict[str, float | None]:
    """Kendall's τ-b between every two orders of the board; None where an order is missing.

    With a published board, of the runs that have a number in it.
    """
    values = {view: standing.of(view) for view in ORDERS[1:]} | {"official": standing.comparable}
    taus: dict[str, float | None] = {}
    for one, other in combinations(ORDERS, 2):
        official = values["official"] if one == "official" else standing.official
        told = ~np.isnan(official)
        taus[f"tau_{one}_{other}"] = _tau(values[one][told], values[other][told])
    return taus


def _tau(one: Floats, other: Floats) -> float | None:
    if len(one) < 2 or not np.ptp(one) or not np.ptp(other) or not has_scipy():
        return None  # there is no order
    return float(require("scipy.stats", "Kendall's τ").kendalltau(one, other).statistic)


def has_scipy() -> bool:
    """Whether Kendall's τ can be computed."""
    try:
        require("scipy.stats", "Kendall's τ")
    except MissingPackageError:
        return False
    return True


@dataclass(frozen=True)
class Winner:
    """Who comes first in a measure, on the whole board or inside a group of it."""

    measure: str
    group: str | None
    """None: the whole board."""
    runs: int
    official: list[str]
    """First by the published values, or by the oblivious ones without a board; several share
    the place where they are equal. Empty where the published value of the first is not met."""
    expected: str
    """First in expectation."""
    probability: float
    """That the expected winner comes first under random tie-breaking."""
    method: str
    """One of `FIRST_METHODS`."""
    contenders: dict[str, float]
    """Everybody whom some way to break ties puts first, with the probability of that."""
    error: float = 0.0
    """Largest distance of these probabilities from the true ones."""

    @property
    def contested(self) -> bool:
        """Whether ties decide who comes first."""
        return self.method != "certain"


def winner_of(standing: Standing, group: str | None = None) -> Winner:
    """Find who comes first, and how sure that is."""
    first = np.flatnonzero(standing.rank_interval[0] == 1).tolist()
    leader = int(np.argmax(standing.expected))
    odds, method, error = _first_place(standing, first)
    told = np.nan_to_num(standing.official, nan=-np.inf)
    official = np.flatnonzero((told >= told.max() - TOLERANCE) & np.isfinite(told)).tolist()
    if np.isnan(standing.comparable[official]).any():
        official = []
    return Winner(
        repr(standing.measure),
        group,
        len(standing.names),
        [standing.names[i] for i in official],
        standing.names[leader],
        odds[first.index(leader)],
        method,
        {standing.names[i]: p for i, p in zip(first, odds, strict=True)},
        error,
    )


def _first_place(standing: Standing, first: list[int]) -> tuple[list[float], str, float]:
    """Return the probability of each of these runs to come first, its method and its error."""
    width = (standing.best - standing.worst)[first]
    if len(first) == 1 or width.max() <= TOLERANCE:  # runs of equal value share the place
        return [1.0 / len(first)] * len(first), "certain", 0.0
    return first_places([standing.outcomes[i] for i in first])
