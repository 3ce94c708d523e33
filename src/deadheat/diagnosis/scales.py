"""Scores that are grades: how fine their scale must be so that ties no longer decide.

Two ways lead to another scale. Scores that are finer than it are *rounded* to its values: what
happens then is computed. Grades that are coarser are *refined*: each grade is split into equal
parts, and its documents fall into them at random. What finer grades would say of the documents is
not in the data, so that is an assumption: they are used evenly, and know no more of relevance than
the grades do. The expected value then stays exactly what it is, for a random order of random parts
is a random order; the range shrinks, and its mean over draws is told, with a bound of what it may
really be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import index

import numpy as np

from deadheat.diagnosis.number_grid import Values, write_decimals
from deadheat.diagnosis.what_if import to_levels
from deadheat.errors import InputError
from deadheat.evaluation.result import Result, Views
from deadheat.measures import Measure
from deadheat.ties.groups import Floats

MOST = 101
"""Scales of more values than 0 to 100 has are no grades."""
DECIMALS = 2
"""Grades are written with so many decimals at most."""
TIED = 0.1
"""Where fewer of the documents are tied, their scores are no grades worth a word."""
PARTS = (2, 3, 5, 10, 25, 100)
"""Into so many parts each grade is split, unless scales are named."""
DRAWS = 20
_BUDGET = 20_000_000
"""Documents that are drawn for one scale at most, all draws together."""


@dataclass(frozen=True)
class Scale:
    """A few evenly spaced values, at which all scores of a run lie."""

    lowest: float
    highest: float
    step: float
    used: int
    """Values that some document has."""

    @property
    def levels(self) -> int:
        """Values from the lowest to the highest, used or not."""
        return round((self.highest - self.lowest) / self.step) + 1


@dataclass(frozen=True)
class OnScale:
    """One measure on another scale."""

    levels: int
    how: str
    """``"as given"``, ``"rounded"`` or ``"refined"``."""
    measure: str
    expected: float
    range: float
    bound: float
    """The range; where that is a mean over draws, what its true mean hardly exceeds (95 %)."""
    enough: bool
    """Whether neither this bound nor the change of the expected value exceeds the tolerance."""


def find_scale(values: Values, documents: int, tied: int) -> Scale | None:
    """Tell whether scores are grades: few evenly spaced values, each for many documents.

    Parameters
    ----------
    values
        Distinct finite scores, ascending.
    documents, tied
        Documents of the run, and how many of them share their score with another of their query.

    Examples
    --------
    >>> find_scale(np.array([0.0, 1.0, 3.0]), documents=50, tied=50)
    Scale(lowest=0.0, highest=3.0, step=1.0, used=3)
    >>> find_scale(np.array([0.0, 0.3, 0.437]), documents=50, tied=50)
    """
    if not 2 <= len(values) <= min(MOST, documents // 2) or tied < TIED * documents:
        return None
    for k in range(DECIMALS + 1):
        if np.array_equal(write_decimals(values, k).astype(values.dtype), values):
            whole = np.rint(values.astype(np.float64) * 10**k)
            if abs(whole).max() > 2**53:
                return None
            step = np.gcd.reduce(np.diff(whole).astype(np.int64)) / 10**k
            lowest, highest = (whole[[0, -1]] / 10**k).tolist()
            scale = Scale(lowest, highest, float(step), len(values))
            return scale if scale.levels <= MOST else None
    return None


def check_levels(levels: Iterable[int]) -> list[int]:
    """Give the scales that are asked for, by their numbers of values, the coarsest first."""
    try:
        checked = sorted({index(number) for number in levels})
    except TypeError:
        raise InputError(
            f"levels must be whole numbers, such as [4, 11, 101], not {levels!r:.60}"
        ) from None
    if not checked or checked[0] < 2:
        raise InputError(f"a scale has 2 values or more, not {checked[0] if checked else 'none'}")
    return checked


def on_scales(
    scores: Values,
    evaluate: Callable[[Values], dict[Measure, Views]],
    tolerance: float,
    scale: Scale | None,
    levels: Sequence[int] | None,
) -> list[OnScale]:
    """Evaluate the scores as given, then on other scales, the coarsest first.

    Parameters
    ----------
    scores
        Of all documents of all queries.
    evaluate
        Gives every view of every measure from such scores.
    tolerance
        The range, and the change of the expected value, that are small enough.
    scale
        The scale of the scores, where they are grades.
    levels
        Numbers of values that other scales have. Grades are refined to scales that are finer than
        theirs, to the nearest multiple of their number of values; None is a few of these, or no
        scale where the scores are no grades.
    """
    if levels is None and scale is None:
        return []
    given = Result([], evaluate(scores))
    own = 0 if scale is None else scale.levels
    asked = [own * parts for parts in PARTS] if levels is None else levels
    rows = [] if scale is None else _rows(own, "as given", [given], given, tolerance)
    for number in asked:
        if scale is None or number < own:
            rounded = Result([], evaluate(_rounded(scores, number)))
            rows += _rows(number, "rounded", [rounded], given, tolerance)
        elif number > own:
            parts = max(2, round(number / own))
            drawn = [Result([], evaluate(finer)) for finer in _refined(scores, scale, parts)]
            rows += _rows(own * parts, "refined", drawn, given, tolerance)
    return sorted(dict.fromkeys(rows), key=lambda row: row.levels)


def _rounded(scores: Values, levels: int) -> Values:
    rounded = to_levels(scores, levels)
    if not np.isfinite(rounded).all():
        raise InputError("infinite scores fit on no scale: replace them, or leave the levels out")
    return rounded


def _refined(scores: Values, scale: Scale, parts: int) -> Iterator[Values]:
    """Split each grade into parts, and draw one for each document, several times."""
    grade = np.rint((scores.astype(np.float64) - scale.lowest) / scale.step)
    rng = np.random.default_rng(0)
    for _ in range(max(2, min(DRAWS, _BUDGET // len(grade)))):
        yield grade * parts + rng.integers(parts, size=len(grade))


def _rows(
    levels: int, how: str, drawn: list[Result], given: Result, tolerance: float
) -> list[OnScale]:
    """Give a row per measure; of several draws the mean range."""
    rows = []
    for measure, before in zip(given.views, given.values(), strict=True):
        ranges = np.array([result[measure].range for result in drawn])
        # Random parts in a random order are a random order: refining keeps the expected value.
        expected = before.expected if how == "refined" else drawn[0][measure].expected
        bound = float(ranges.mean())
        if len(drawn) > 1:
            bound += _margin(ranges, given.views[measure])
        enough = max(abs(expected - before.expected), bound) <= tolerance
        row = (levels, how, before.measure, expected, float(ranges.mean()), bound, bool(enough))
        rows.append(OnScale(*row))
    return rows


def _margin(ranges: Floats, given: Views) -> float:
    """How much larger than the mean over draws the true mean may be.

    Where ties never mattered in n drawn lists, they do in fewer than 3 of n, with a chance of 95 %,
    and then by no more than they do as given.
    """
    if ranges.any():
        return float(2.1 * ranges.std(ddof=1) / np.sqrt(len(ranges)))
    most = given.best - given.worst
    return float(most.max() * 3 / (len(most) * len(ranges)))


def fewest_enough(rows: list[OnScale]) -> dict[str, OnScale | None]:
    """Per measure: the coarsest scale that is enough, as are all finer ones."""
    finest_first = sorted(rows, key=lambda row: -row.levels)
    enough: dict[str, OnScale | None] = {}
    for measure in dict.fromkeys(row.measure for row in rows):
        own = (row for row in finest_first if row.measure == measure)
        chosen = list(takewhile(lambda row: row.enough, own))
        enough[measure] = chosen[-1] if chosen else None
    return enough
