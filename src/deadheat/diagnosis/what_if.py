"""Evaluate the same scores in fewer bits or digits, or on another scale of grades.

There are two ways to another scale. Scores that are finer than the scale are *rounded* to its
values; the effect is computed exactly. Grades that are coarser are *refined*: each grade is split
into equal parts, and its documents are put into them at random. The data do not contain finer
grades, so this is an assumption: finer grades are used evenly, and carry no more information on
relevance than the given grades. The expected value then does not change, because a random order of
random parts is a random order. The range shrinks; its mean over draws is reported, with an upper
bound of its true mean.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from operator import index

import numpy as np

from deadheat.diagnosis.number_grid import FLOATS, Rounding, Values, write_decimals
from deadheat.errors import InputError
from deadheat.evaluation import Result

Evaluate = Callable[[Values], Result]
"""Function that returns every view of every measure from the scores of all documents."""
MOST = 101
"""Largest number of values of a scale of grades: 0 to 100."""
DECIMALS = 2
"""Largest number of decimals of a grade."""
TIED = 0.1
"""Scores are treated as grades only if at least this share of the documents is tied."""
PARTS = (2, 3, 5, 10, 25, 100)
"""Numbers of parts into which each grade is split if no scales are given."""
DRAWS = 20
_BUDGET = 20_000_000
"""Largest number of documents drawn for one scale, over all draws."""


def to_levels(scores: Values, levels: int) -> Values:
    """Round scores to evenly spaced values from the lowest to the highest score of the run.

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
    """One measure after all scores were rounded to a format, or put on another scale."""

    format: str
    """``"as given"``, the name of a format, or ``"4 values"`` for a scale."""
    how: str
    """``"as given"``, ``"rounded"`` or ``"refined"``."""
    measure: str
    expected: float
    change: float
    """Expected value minus the expected value of the scores as given."""
    range: float
    bound: float
    """The range; if that is a mean over draws, an upper bound of its true mean (95 %)."""
    bias: float
    enough: bool
    """Whether both the change and this bound are at most the tolerance."""
    levels: int = 0
    """Number of values of the scale."""


@dataclass(frozen=True)
class Scale:
    """A few evenly spaced values that include all scores of a run."""

    lowest: float
    highest: float
    step: float
    used: int
    """Number of values that some document has."""

    @property
    def levels(self) -> int:
        """Number of values from the lowest to the highest, used or not."""
        return round((self.highest - self.lowest) / self.step) + 1


def round_all(scores: Values, given: Result, evaluate: Evaluate, tolerance: float) -> list[WhatIf]:
    """Evaluate the scores rounded to every format that can represent them, after `given`."""
    rows = _rows("as given", "as given", [given], given, tolerance)
    for name, rounding in (pair for family in FAMILIES for pair in family.items()):
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = rounding(scores)
        if np.all(np.isfinite(rounded) | (rounded == scores)):
            rows += _rows(name, "rounded", [evaluate(rounded)], given, tolerance)
    return rows


def coarsest_enough(
    rows: Sequence[WhatIf], families: Iterable[Container[str]] = FAMILIES
) -> dict[str, list[str]]:
    """Return per measure, for each family, the coarsest format such that all finer are enough.

    The rows of a family are sorted from fine to coarse.
    """
    found: dict[str, list[str]] = {row.measure: [] for row in rows}
    for measure, formats in found.items():
        for family in families:
            own = (row for row in rows if row.measure == measure and row.format in family)
            finer = list(takewhile(lambda row: row.enough, own))
            formats += [row.format for row in finer[-1:]]
    return found


def find_scale(values: Values, documents: int, tied: int) -> Scale | None:
    """Return the scale of scores that are grades, or None.

    Grades are few evenly spaced values, each shared by many documents.

    Parameters
    ----------
    values
        Distinct finite scores, ascending.
    documents, tied
        Number of documents of the run, and of those with the same score as another document of
        their query.

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
    """Return the given numbers of values of scales, ascending, after checking them."""
    try:
        checked = sorted({index(number) for number in levels})
    except TypeError:
        checked = []
    if not checked or checked[0] < 2:
        raise InputError(
            f"levels must be whole numbers of 2 or more, such as [4, 11, 101], not {levels!r:.60}"
        )
    return checked


def on_scales(
    scores: Values,
    given: Result,
    evaluate: Evaluate,
    tolerance: float,
    scale: Scale | None,
    levels: Sequence[int] | None,
) -> list[WhatIf]:
    """Evaluate the scores as given, then on other scales, the coarsest first.

    Parameters
    ----------
    scores, given, evaluate
        The scores of all documents, their result, and the function that evaluates others.
    tolerance
        Largest range, and largest change of the expected value, of a sufficient scale.
    scale
        The scale of the scores, if they are grades.
    levels
        Numbers of values of the other scales. Grades are refined to finer scales, to the nearest
        multiple of their number of values. Default (None): a few such multiples for grades, no
        scale for other scores.
    """
    if levels is None and scale is None:
        return []
    own = 0 if scale is None else scale.levels
    evaluated = {} if scale is None else {own: ("as given", [given])}
    for number in [own * parts for parts in PARTS] if levels is None else levels:
        if scale is None or number < own:
            rounded = to_levels(scores, number)
            if not np.isfinite(rounded).all():
                raise InputError(
                    "infinite scores do not fit on a scale; replace them, or leave levels out"
                )
            evaluated[number] = "rounded", [evaluate(rounded)]
        elif number > own:
            parts = max(2, round(number / own))
            drawn = list(map(evaluate, _refine(scores, scale, parts)))
            evaluated[own * parts] = "refined", drawn
    return [
        row
        for number, (how, results) in sorted(evaluated.items())
        for row in _rows(f"{number} values", how, results, given, tolerance, number)
    ]


def _refine(scores: Values, scale: Scale, parts: int) -> Iterator[Values]:
    """Yield scores with each grade split into parts and a random part for each document."""
    grade = np.rint((scores.astype(np.float64) - scale.lowest) / scale.step)
    rng = np.random.default_rng(0)
    for _ in range(max(2, min(DRAWS, _BUDGET // len(grade)))):
        yield grade * parts + rng.integers(parts, size=len(grade))


def _rows(
    format: str, how: str, drawn: list[Result], given: Result, tolerance: float, levels: int = 0
) -> list[WhatIf]:
    """Return a row per measure; the range of several draws is their mean."""
    rows = []
    for measure, before in zip(given.views, given.values(), strict=True):
        ranges = np.array([result[measure].range for result in drawn])
        # A random order of random parts is a random order: refining keeps the expected value.
        after = before if how == "refined" else drawn[0][measure]
        change, bound = after.expected - before.expected, float(ranges.mean())
        if len(drawn) > 1:
            # The error of the mean. If ties had no effect in any of n drawn lists, they have one in
            # fewer than 3 of n lists (95 %), not larger than with the scores as given.
            most = given.views[measure].range
            error = 2.1 * ranges.std(ddof=1) / np.sqrt(len(drawn))
            bound += float(max(error, most.max() * 3 / (len(most) * len(drawn))))
        rows.append(
            WhatIf(
                format,
                how,
                before.measure,
                after.expected,
                change,
                float(ranges.mean()),
                bound,
                after.bias,
                enough=max(abs(change), bound) <= tolerance,
                levels=levels,
            )
        )
    return rows
