"""What if: the same scores in fewer bits or digits, or on another scale of grades.

Two ways lead to another scale. Scores that are finer than it are *rounded* to its values: what
happens then is computed. Grades that are coarser are *refined*: each grade is split into equal
parts, and its documents fall into them at random. What finer grades would say of the documents is
not in the data, so that is an assumption: they are used evenly, and know no more of relevance than
the grades do. The expected value then stays exactly what it is, because a random order of random
parts is a random order. The range shrinks; its mean over draws is given, with an upper bound of its
true mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, takewhile
from operator import index
from typing import TypeVar

import numpy as np

from deadheat.diagnosis.number_grid import FLOATS, Rounding, Values, write_decimals
from deadheat.errors import InputError
from deadheat.evaluation import Result
from deadheat.ties import Floats

Evaluate = Callable[[Values], Result]
"""Gives every view of every measure from the scores of all documents of all queries."""
MOST = 101
"""Scales of more values than 0 to 100 has are no grades."""
DECIMALS = 2
"""Grades are written with so many decimals at most."""
TIED = 0.1
"""Where fewer of the documents are tied, their scores are not treated as grades."""
PARTS = (2, 3, 5, 10, 25, 100)
"""Into so many parts each grade is split, unless scales are named."""
DRAWS = 20
_BUDGET = 20_000_000
"""Documents that are drawn for one scale at most, all draws together."""


def to_levels(scores: Values, levels: int) -> Values:
    """Round to values evenly spaced from the lowest to the highest score of the run.

    >>> to_levels(np.array([0.0, 0.3, 1.0]), 4) * 3
    array([0., 1., 3.])
    """
    wide = scores.astype(np.float64)
    lowest, step = wide.min(), np.ptp(wide) / (levels - 1)
    if not 0 < step < np.inf:  # one value; or infinite ones, which no scale can hold
        return wide if step == 0 else np.full(len(wide), np.nan)
    return np.asarray(np.rint((wide - lowest) / step) * step + lowest)


FAMILIES: tuple[Mapping[str, Rounding], ...] = (
    {format.name: format.round for format in FLOATS},
    {"int8": partial(to_levels, levels=256)},
    {f"{k} decimal{'s' * (k > 1)}": partial(write_decimals, k=k) for k in (6, 5, 4, 3, 2, 1)},
)
"""How scores can be rounded: families of formats, each from fine to coarse."""


@dataclass(frozen=True)
class WhatIf:
    """One measure after all scores were rounded to one format."""

    format: str
    measure: str
    expected: float
    change: float
    """Expected value less that of the scores as given."""
    range: float
    bias: float
    enough: bool
    """Whether neither the change nor the range is larger than the tolerance."""


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


Row = TypeVar("Row", WhatIf, OnScale)


def round_all(scores: Values, evaluate: Evaluate, tolerance: float) -> list[WhatIf]:
    """Evaluate the scores ``"as given"``, then in every format that can hold them."""
    given = evaluate(scores)
    rows: list[WhatIf] = []
    unrounded: Mapping[str, Rounding] = {"as given": np.asarray}
    for name, rounding in chain.from_iterable(family.items() for family in (unrounded, *FAMILIES)):
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = rounding(scores)
        if not np.all(np.isfinite(rounded) | (rounded == scores)):
            continue
        for new, old in zip(evaluate(rounded).values(), given.values(), strict=True):
            change = new.expected - old.expected
            enough = max(abs(change), new.range) <= tolerance
            row = (name, new.measure, new.expected, change, new.range, new.bias, enough)
            rows.append(WhatIf(*row))
    return rows


def coarsest_enough(rows: Sequence[WhatIf]) -> dict[str, list[str]]:
    """Per measure: of each family the coarsest format that is enough, as are all finer ones."""
    by_family = [_last_enough([r for r in rows if r.format in family]) for family in FAMILIES]
    return {
        measure: [row.format for found in by_family if (row := found.get(measure)) is not None]
        for measure in dict.fromkeys(row.measure for row in rows)
    }


def _last_enough(rows: Sequence[Row]) -> dict[str, Row | None]:
    """Per measure: the last of the rows, from fine to coarse, that is enough as are all before."""
    last: dict[str, Row | None] = {}
    for measure in dict.fromkeys(row.measure for row in rows):
        own = (row for row in rows if row.measure == measure)
        last[measure] = next(reversed(list(takewhile(lambda row: row.enough, own))), None)
    return last


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
    evaluate: Evaluate,
    tolerance: float,
    scale: Scale | None,
    levels: Sequence[int] | None,
) -> list[OnScale]:
    """Evaluate the scores as given, then on other scales, the coarsest first.

    Parameters
    ----------
    scores, evaluate
        The scores of all documents, and what evaluates them.
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
    given = evaluate(scores)
    own = 0 if scale is None else scale.levels
    rows = [] if scale is None else _rows(own, "as given", [given], given, tolerance)
    for number in [own * parts for parts in PARTS] if levels is None else levels:
        if scale is None or number < own:
            rounded = to_levels(scores, number)
            if not np.isfinite(rounded).all():
                raise InputError(
                    "infinite scores fit on no scale: replace them, or leave the levels out"
                )
            rows += _rows(number, "rounded", [evaluate(rounded)], given, tolerance)
        elif number > own:
            parts = max(2, round(number / own))
            drawn = list(map(evaluate, _refine(scores, scale, parts)))
            rows += _rows(own * parts, "refined", drawn, given, tolerance)
    return sorted(dict.fromkeys(rows), key=lambda row: row.levels)


def _refine(scores: Values, scale: Scale, parts: int) -> Iterator[Values]:
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
        views = given.views[measure]
        bound = float(ranges.mean()) + _margin(ranges, views.best - views.worst)
        enough = bool(max(abs(expected - before.expected), bound) <= tolerance)
        row = (levels, how, before.measure, expected, float(ranges.mean()), bound, enough)
        rows.append(OnScale(*row))
    return rows


def _margin(ranges: Floats, most: Floats) -> float:
    """How much larger than the mean over draws the true mean may be.

    Where ties never mattered in n drawn lists, they do in fewer than 3 of n, with a chance of 95 %,
    and then by no more than they do as given: `most`, per query.
    """
    if len(ranges) == 1:
        return 0.0
    if ranges.any():
        return float(2.1 * ranges.std(ddof=1) / np.sqrt(len(ranges)))
    return float(most.max() * 3 / (len(most) * len(ranges)))


def fewest_enough(rows: Sequence[OnScale]) -> dict[str, OnScale | None]:
    """Per measure: the coarsest scale that is enough, as are all finer ones."""
    return _last_enough(sorted(rows, key=lambda row: -row.levels))
