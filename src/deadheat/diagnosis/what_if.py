"""What if: the same scores kept in fewer bits or digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, takewhile

import numpy as np

from deadheat.diagnosis.number_grid import FLOATS, Values, write_decimals
from deadheat.evaluation.result import Result, Views
from deadheat.measures import Measure


def _same(scores: Values) -> Values:
    return scores


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


FAMILIES: tuple[Mapping[str, Callable[[Values], Values]], ...] = (
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


def round_all(
    scores: Values, evaluate: Callable[[Values], dict[Measure, Views]], tolerance: float
) -> list[WhatIf]:
    """Evaluate the scores ``"as given"``, then in every format that can hold them."""
    given = Result([], evaluate(scores))
    rows: list[WhatIf] = []
    for name, rounding in chain({"as given": _same}.items(), *(f.items() for f in FAMILIES)):
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = rounding(scores)
        if not np.all(np.isfinite(rounded) | (rounded == scores)):
            continue
        summaries = Result([], evaluate(rounded)).values()
        for new, old in zip(summaries, given.values(), strict=True):
            change = new.expected - old.expected
            enough = max(abs(change), new.range) <= tolerance
            row = (name, new.measure, new.expected, change, new.range, new.bias, enough)
            rows.append(WhatIf(*row))
    return rows


def coarsest_enough(rows: list[WhatIf]) -> dict[str, list[str]]:
    """Per measure: of each family the coarsest format that is enough, as are all finer ones."""
    enough: dict[str, list[str]] = {row.measure: [] for row in rows}
    for measure, formats in enough.items():
        for family in FAMILIES:
            own = (row for row in rows if row.measure == measure and row.format in family)
            formats += [row.format for row in takewhile(lambda row: row.enough, own)][-1:]
    return enough
