"""Find the number grids of scores, and of their logits, from the values of the scores.

Every statement about scores is tested on all distinct finite scores: each score is converted to the
format and back, and must not change. The coarsest true statement is reported, that is the one
whose values have the largest spacing around the scores. The spacing is divided by that of the type
in which the scores came. The product of these ratios over the distinct scores gives the probability
that the statement is true by chance.

A sigmoid in FP32 turns 16-bit logits into values that look arbitrary. So each score is also
converted to its logit, rounded to the nearest value of a grid, and converted back. On a coarse
grid, the result is rarely the score if the score is arbitrary. The probability of that is known
for each score, and so is the probability that as many scores fit the grid by chance.
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
"""Floating-point formats, from fine to coarse."""
_DOUBT = 10
"""Bits of evidence needed to prefer one statement to another: a chance of 1 in 1,024."""
_TELLING = 1 / 8
"""A score is not used to find logits if an arbitrary number fits with a larger chance than this."""
_SHARE = 0.9
"""Smallest share of the tested scores whose logits must lie on a grid that is reported."""
_EVIDENCE = 20
"""Bits of evidence needed for a grid of logits; more than for scores, as many grids are tried."""
_FEWEST = 8
"""With fewer scores than this, no grid of logits is searched: they may be chosen numbers."""
_LOGIT_UNITS = {f"1/{2**q}" if q else "1": 2.0**-q for q in range(11)}
"""Even grids of logits, by name: multiples of a unit."""


@dataclass(frozen=True)
class NumberGrid:
    """The coarsest number grid that contains every finite score, or nearly every logit."""

    name: str
    """``"bf16"``, ``"integer"``, ``"4 decimals"``, ``"bf16, 4 decimals"``, …; of logits ``"bf16"``,
    ``"fp16"``, or ``"1/256"`` for its multiples."""
    statement: str
    """The name as a sentence."""
    distinct: int
    """Number of distinct finite scores that were tested."""
    bits: float
    """Evidence: arbitrary numbers would fit as well with a chance of 2^−bits at most."""
    share: float = 1.0
    """Share of these scores, or of their logits, that lie on the grid."""
    not_excluded: tuple[str, ...] = ()
    """Other true statements; there are too few scores to exclude them."""


def find_grid(scores: Values) -> NumberGrid:
    """Return the coarsest grid that contains all finite scores (float32 or float64).

    "4 decimals" means that each score is the float nearest to a number with 4 decimals: the nearest
    float32 if float32 can represent all scores, otherwise the nearest float64.

    >>> find_grid(np.array([0.99609375, 0.9921875, 0.875, 0.30664062])).name
    'bf16, 8 decimals'
    """
    return grid_with_steps(scores)[0]


def grid_with_steps(scores: Values) -> tuple[NumberGrid, Values, Values]:
    """Return the grid like `find_grid`, the distinct scores, and the step of each.

    A step is the distance of neighbours on the grid around a score. The distinct scores are
    float32 if that can represent them.
    """
    values = np.unique(scores[np.isfinite(scores)])
    own = _spacing(np.abs(values), values.dtype)
    if _unchanged(values, 1, FORMATS["fp32"].round):
        values = values.astype(np.float32)
    told = values != 0  # 0 lies on every grid, so it is no evidence
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
    """Return the steps of the coarsest grids that may contain 90 % of the scores.

    They replace `step` if it is finer. A few other scores, for example in a run made from two
    runs, make every statement of `find_grid` false, and few distinct scores leave it uncertain.
    Here, every grid that is not excluded counts.
    """
    spacings = [spacing for _, _, spacing, _ in _statements(values, share=0.9)]
    return np.asarray(np.maximum.reduce([step, *spacings]))


def write_decimals(values: Values, k: int) -> Values:
    """Write values with `k` decimals and read them back."""
    return np.asarray(np.round(values.astype(np.float64), k))


def shortest_digits(values: Values) -> Values:
    """Write FP32 values with the fewest digits that identify them, and read these as FP64."""
    text = pl.Series(values.astype(np.float32)).cast(pl.String)
    return np.asarray(text.cast(pl.Float64))


def _statements(values: Values, share: float = 1) -> Iterator[tuple[str, str, Values, float]]:
    """Yield every true statement: name, words, step around each value, penalty.

    The penalty, in bits, is for statements that were fitted to the values. If `share` is below 1, a
    statement must be true of that share of a sample of the values.
    """
    k = _fewest_decimals(values, share)
    forms: list[tuple[str, str, Rounding, float]] = [("", "", np.asarray, 0.0)]
    if k is not None:
        digits = f"{k} decimal{'s' * (k != 1)}"
        name, text = digits, f"a number of {digits}"
        if k == 0:
            name, text = "integer", "a whole number, as counts, votes, ranks and Borda points are"
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
    """Return whether these steps leave at least this share of the values unchanged.

    A sample of the values is tested first. If the share is below 1, only the sample is tested.
    """
    for some in (values[:: len(values) // 1000 + 1], values):
        with np.errstate(over="ignore", invalid="ignore"):
            after = np.asarray(reduce(lambda x, step: step(x), steps, some), some.dtype)
        if share < 1 or not np.array_equal(after, some):
            return bool((after == some).mean() >= share)
    return True


def _spacing(size: Values, dtype: np.dtype[Any]) -> Values:
    """Return the distance to the next value of a dtype, also for the largest value."""
    with np.errstate(over="ignore", invalid="ignore"):
        to_next, half = (np.spacing(x.astype(dtype)).astype(float) for x in (size, size / 2))
    return np.asarray(np.fmin(to_next, 2 * half))


def _fewest_decimals(values: Values, share: float) -> int | None:
    """Return the fewest decimals that keep every value; None if they would keep any number."""
    unit = _spacing(np.abs(values), values.dtype).max(initial=0)
    for k in range(16):
        if 10.0**-k < 2 * unit:
            break
        if _unchanged(values, share, partial(write_decimals, k=k)):
            return k
    return None


def find_logit_grid(values: Values, step: Values) -> NumberGrid | None:
    """Return the coarsest grid that contains the logits of nearly all scores, or None.

    Parameters
    ----------
    values
        Distinct finite scores.
    step
        Per score: the distance of neighbours on the number grid of the scores.

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


def _test_logits(name: str, scores: Values, step: Values) -> NumberGrid | None:
    """Return the result of the test of one grid of logits, or None without enough evidence."""
    logits = np.log(scores) - np.log1p(-scores)
    if name in _LOGIT_UNITS:
        what, spacing = f"multiples of {name}", np.float64(_LOGIT_UNITS[name])
        grid = np.rint(logits / spacing) * spacing
    else:
        what, grid = f"values of {name}", FORMATS[name].round(logits).astype(np.float64)
        spacing = _spacing(np.abs(grid), FORMATS[name].dtype)
    # A computed sigmoid may be wrong by one or two units of its last place; so may its inverse.
    slack = 2.5 * step
    chance = np.minimum(2 * slack / np.maximum(scores * (1 - scores) * spacing, 1e-300), 1)
    telling = chance <= _TELLING
    n = int(telling.sum())
    if n < _FEWEST:
        return None
    met = np.abs(1 / (1 + np.exp(-grid)) - scores) <= slack
    # Distinct scores have distinct logits: several scores of one logit are near it by chance.
    share = len(np.unique(grid[telling & met])) / n
    expected = float(chance[telling].mean())
    bits = n * _divergence(share, expected) - np.log2(len(_LOGIT_UNITS) + 2)
    if share < _SHARE or bits < _EVIDENCE:
        return None
    statement = f"{share:.1%} of the scores are sigmoids (or two-way softmaxes) of {what}"
    return NumberGrid(name, statement, n, float(bits), share)


def _divergence(share: float, expected: float) -> float:
    """Return bits of evidence per score that a share is not due to chance (Chernoff's bound)."""
    if share <= expected:
        return 0.0
    parts = [(share, expected), (1 - share, 1 - expected)]
    return float(sum(p * np.log2(p / q) for p, q in parts if p > 0))
