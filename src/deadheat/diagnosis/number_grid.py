"""The number grids that scores, or their logits, lie on, found in the values of the scores.

Every statement about scores is tested on all distinct finite scores, by writing them in the format
and reading them back. Of those that hold, the coarsest is reported: the one whose values lie
farthest apart around the scores. How much farther than the numbers the scores came as, multiplied
over the distinct scores, is also how unlikely it is that the statement holds by coincidence.

A sigmoid in FP32 spreads 16-bit logits over values that look arbitrary. So each score is also
converted to its logit, rounded to the nearest value of a grid, and converted back: is the result
the score? On a coarse grid this is unlikely for an arbitrary score. How unlikely is known for each
score, and so is the chance that as many scores pass by coincidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.dtypes import FORMATS
from deadheat._internal.lazy import pl

Values = NDArray[Any]
"""Scores: float32 or float64."""
Rounding = Callable[[Values], Values]

FLOATS = tuple(FORMATS[name] for name in ("fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"))
"""Floating-point formats, finest first."""
_DOUBT = 10
"""Bits of evidence that tell two statements apart: a chance of 1 in 1,024."""
_TELLING = 1 / 8
"""Scores that arbitrary numbers would hit with a larger chance than this say nothing of logits."""
_SHARE = 0.9
"""So large a share of the telling scores must have logits on a grid that is named."""
_EVIDENCE = 20
"""Bits of evidence for a grid of logits; some are lost to the number of grids that are tried."""
_FEWEST = 8
"""Fewer scores than this say nothing of logits: they may be chosen numbers."""
_LOGIT_UNITS = {f"1/{2**q}" if q else "1": 2.0**-q for q in range(11)}
"""Even grids of logits, by name: multiples of a unit."""


@dataclass(frozen=True)
class NumberGrid:
    """The coarsest statement that is true of every finite score."""

    name: str
    """``"bf16"``, ``"integer"``, ``"4 decimals"``, ``"bf16, 4 decimals"``, …"""
    statement: str
    """The same in words."""
    distinct: int
    """Distinct finite scores that were looked at."""
    bits: float
    """Evidence: arbitrary numbers would all lie on the grid with a chance of 2^−bits."""
    not_excluded: tuple[str, ...] = ()
    """Other true statements, which explain so few scores nearly as well."""


@dataclass(frozen=True)
class LogitGrid:
    """What is true of the logits of a share of the scores."""

    name: str
    """``"bf16"``, ``"fp16"``, or ``"1/256"`` for its multiples."""
    statement: str
    share: float
    """Share of the telling scores whose logit lies on the grid."""
    telling: int
    """Distinct scores that could have shown otherwise."""
    bits: float
    """Evidence: so many arbitrary scores would lie on the grid with a chance of 2^−bits at most."""


def find_grid(scores: Values) -> NumberGrid:
    """Find the coarsest grid that holds all finite scores, which are float32 or float64.

    A statement about decimals says that each score is the float nearest to such a number: the
    float32 where float32 holds all scores, whatever type they are given in.

    >>> find_grid(np.array([0.99609375, 0.9921875, 0.875, 0.30664062])).name
    'bf16, 8 decimals'
    """
    return grid_with_steps(scores)[0]


def grid_with_steps(scores: Values) -> tuple[NumberGrid, Values, Values]:
    """Find the grid as `find_grid` does; also return the distinct scores, and each one's step.

    A step is the distance of neighbours on the grid around a score. The distinct scores are
    float32 where that holds them.
    """
    values = np.unique(scores[np.isfinite(scores)])
    own = _spacing(np.abs(values), values.dtype)
    if _unchanged(values, 1, FORMATS["fp32"].round):
        values = values.astype(np.float32)
    told = values != 0  # 0 lies on every grid and speaks for none
    grids = []
    for name, text, spacing, penalty in _statements(values):
        bits = float(np.log2(spacing[told] / own[told]).sum()) - penalty
        grid = NumberGrid(name, f"every score is {text}", len(values), bits)
        grids.append((grid, spacing))
    grids.sort(key=lambda found: found[0].bits, reverse=True)
    if not grids or grids[0][0].bits < _DOUBT:
        name = f"fp{8 * scores.itemsize}"
        text = f"every score is a value of {name}; no coarser grid is evident"
        return NumberGrid(name, text, len(values), 0.0), values, own
    (best, step), *others = grids
    near = tuple(grid.name for grid, _ in others if best.bits - grid.bits < _DOUBT)
    return replace(best, not_excluded=near), values, step


def usual_steps(values: Values, step: Values) -> Values:
    """Steps of the coarsest grids that may hold nine scores in ten, where `step` is finer.

    A few other scores, as of a run put together from two, break every statement of `find_grid`,
    and few distinct scores leave it in doubt: here, what is not excluded counts.
    """
    spacings = [spacing for _, _, spacing, _ in _statements(values, share=0.9)]
    return np.asarray(np.maximum.reduce([step, *spacings]))


def write_decimals(values: Values, k: int) -> Values:
    """Write values with `k` decimals and read them back."""
    return np.asarray(np.round(values.astype(np.float64), k))


def shortest_digits(values: Values) -> Values:
    """Write FP32 values with the fewest digits that tell them apart, and read these as FP64."""
    text = pl.Series(values.astype(np.float32)).cast(pl.String)
    return np.asarray(text.cast(pl.Float64))


def _statements(values: Values, share: float = 1) -> Iterator[tuple[str, str, Values, float]]:
    """Every statement that holds: name, words, distance of neighbours around each value, penalty.

    A penalty, in bits, is for statements that were made to measure. A share below 1 is that of the
    values, as a sample shows them, for which a statement must hold.
    """
    k = _fewest_decimals(values, share)
    forms: list[tuple[str, str, Rounding, float]] = [("", "", np.asarray, 0.0)]
    if k is not None:
        digits = f"{k} decimal{'s' * (k != 1)}"
        name, text = (digits, f"a number of {digits}") if k else ("integer", "a whole number")
        yield name, text, np.full(len(values), 10.0**-k), 0
        decimals = partial(write_decimals, k=k)
        forms += [(f", {digits}", f", written with {digits}", decimals, 10.0**-k)]
    forms += [(", fewest digits", ", written with the fewest digits", shortest_digits, 0.0)]
    for format in FLOATS:
        for form, words, write, unit in forms:
            if _unchanged(values, share, format.round, write):
                spacing = _spacing(format.round(np.abs(values)), format.dtype)
                text = f"a value of {format.name}{words}"
                yield format.name + form, text, np.maximum(spacing, unit), _DOUBT if form else 0.0
                if not form:
                    break


def _unchanged(values: Values, share: float, *steps: Rounding) -> bool:
    """Whether these steps leave so large a share of the values as they are.

    A sample of the values is tested first; it decides where the share is below 1.
    """
    for some in (values[:: len(values) // 1000 + 1], values):
        with np.errstate(over="ignore", invalid="ignore"):
            after = np.asarray(reduce(lambda x, step: step(x), steps, some), some.dtype)
        if share < 1 or not np.array_equal(after, some):
            return bool((after == some).mean() >= share)
    return True


def _spacing(size: Values, dtype: np.dtype[Any]) -> Values:
    """Distance to the next value of a dtype, also at the largest, which has none."""
    with np.errstate(over="ignore", invalid="ignore"):
        to_next, half = (np.spacing(x.astype(dtype)).astype(float) for x in (size, size / 2))
    return np.asarray(np.fmin(to_next, 2 * half))


def _fewest_decimals(values: Values, share: float) -> int | None:
    """Return the fewest decimals that keep every value, unless as many would keep any number."""
    unit = _spacing(np.abs(values), values.dtype).max(initial=0)
    for k in range(16):
        if 10.0**-k < 2 * unit:
            break
        if _unchanged(values, share, partial(write_decimals, k=k)):
            return k
    return None


def find_logit_grid(values: Values, step: Values) -> LogitGrid | None:
    """Find the coarsest grid that holds the logits of nearly all scores, if there is one.

    Parameters
    ----------
    values
        Distinct finite scores.
    step
        Per score: how far its neighbours on the grid that the scores themselves lie on are.

    Examples
    --------
    >>> logits = np.arange(-300, 300) / 64
    >>> scores = (1 / (1 + np.exp(-logits))).astype(np.float32)
    >>> find_logit_grid(scores, np.spacing(scores)).name
    '1/64'
    """
    inside = (values > 0) & (values < 1)
    if not inside.any() or values.min() < 0 or values.max() > 1:
        return None
    scores, step = values[inside].astype(np.float64), step[inside].astype(np.float64)
    found = [_test_logits(name, scores, step) for name in (*_LOGIT_UNITS, "bf16", "fp16")]
    known = [grid for grid in found if grid is not None]
    return max(known, key=lambda grid: grid.bits, default=None)


def _test_logits(name: str, scores: Values, step: Values) -> LogitGrid | None:
    """Give what is true of the logits on one grid, if there is enough evidence."""
    logits = np.log(scores) - np.log1p(-scores)
    if name in _LOGIT_UNITS:
        what, unit = f"multiples of {name}", _LOGIT_UNITS[name]
        grid, spacing = np.rint(logits / unit) * unit, np.full(len(logits), unit)
    else:
        what, format = f"values of {name}", FORMATS[name]
        grid = format.round(logits).astype(np.float64)
        spacing = _spacing(np.abs(grid), format.dtype)
    # A sigmoid may miss by a unit of its last place or two, and so may the way it is read.
    slack = 2.5 * step
    chance = np.minimum(2 * slack / np.maximum(scores * (1 - scores) * spacing, 1e-300), 1)
    telling = chance <= _TELLING
    n = int(telling.sum())
    if n < _FEWEST:
        return None
    met = np.abs(1 / (1 + np.exp(-grid)) - scores) <= slack
    # Distinct scores have distinct logits: several that share one are near it by coincidence.
    share = len(np.unique(grid[telling & met])) / n
    expected = float(chance[telling].mean())
    bits = n * _divergence(share, expected) - np.log2(len(_LOGIT_UNITS) + 2)
    if share < _SHARE or bits < _EVIDENCE:
        return None
    statement = f"{share:.1%} of the scores are sigmoids (or two-way softmaxes) of {what}"
    return LogitGrid(name, statement, share, n, float(bits))


def _divergence(share: float, expected: float) -> float:
    """Bits per score against a share that arises by coincidence (Chernoff's bound)."""
    if share <= expected:
        return 0.0
    parts = [(share, expected), (1 - share, 1 - expected)]
    return float(sum(p * np.log2(p / q) for p, q in parts if p > 0))
