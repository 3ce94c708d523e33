"""Scores that are sigmoids of coarse logits: a number grid that shows in logit space only.

A sigmoid in FP32 spreads 16-bit logits over values that look arbitrary. Each score is taken back to
its logit, that to the nearest value of a grid, and that forth again: does it give the score? Where
the grid is coarse, an arbitrary score has little chance to; how little is known for each score, and
so is how unlikely it is that as many scores as do so do by coincidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.dtypes import FORMATS

Values = NDArray[Any]

_TELLING = 1 / 8
"""Scores that arbitrary numbers would hit with a larger chance than this say nothing."""
_SHARE = 0.9
"""So large a share of the telling scores must lie on a grid that is named."""
_EVIDENCE = 20
"""Bits of evidence that a statement needs; some are lost to the number of grids that are tried."""
_FEWEST = 8
"""Fewer scores than this tell nothing, whatever their evidence: they may be chosen numbers."""
_FINEST = 10
"""The finest even grid that is looked for: multiples of 2 to minus this."""


@dataclass(frozen=True)
class LogitGrid:
    """What is true of the logits of a share of the scores."""

    name: str
    """``"bf16"``, ``"fp16"``, or ``"1/256"`` for its multiples."""
    statement: str
    share: float
    """Share of the telling scores whose logit lies on the grid."""
    telling: int
    """Distinct scores that could have told otherwise."""
    bits: float
    """Evidence: so many arbitrary scores would lie on the grid with a chance of 2^−bits at most."""


def find_logit_grid(values: Values, step: Values) -> LogitGrid | None:
    """Find the coarsest grid that holds the logits of nearly all scores, if there is one.

    Parameters
    ----------
    values
        Distinct finite scores.
    step
        Per score: how far its neighbours on the grid that the scores themselves live on are.

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
    # A sigmoid may miss by a unit of its last place or two, and so may the way it is read.
    slack = 2.5 * step
    logits = np.log(scores) - np.log1p(-scores)
    found = [_tested(name, nearest, scores, logits, slack) for name, nearest in _GRIDS.items()]
    known = [grid for grid in found if grid is not None]
    return max(known, key=lambda grid: grid.bits, default=None)


def _multiple(values: Values, power: int) -> tuple[Values, Values]:
    unit = 2.0**-power
    return np.rint(values / unit) * unit, np.full(len(values), unit)


def _of_format(values: Values, name: str) -> tuple[Values, Values]:
    rounded = FORMATS[name].round(values)
    size = np.abs(rounded).astype(FORMATS[name].dtype)
    return rounded.astype(np.float64), np.spacing(size).astype(np.float64)


_Grid = Callable[[Values], tuple[Values, Values]]
_GRIDS: dict[str, _Grid] = {
    **{f"1/{2**q}" if q else "1": partial(_multiple, power=q) for q in range(_FINEST + 1)},
    "bf16": partial(_of_format, name="bf16"),
    "fp16": partial(_of_format, name="fp16"),
}
"""Per grid: the nearest of its values, and how far its values are apart there."""


def _tested(
    name: str, nearest: _Grid, scores: Values, logits: Values, slack: Values
) -> LogitGrid | None:
    grid, spacing = nearest(logits)
    apart = scores * (1 - scores) * spacing
    chance = np.minimum(2 * slack / np.maximum(apart, 1e-300), 1)
    telling = chance <= _TELLING
    n = int(telling.sum())
    if n < _FEWEST:
        return None
    met = np.abs(1 / (1 + np.exp(-grid)) - scores) <= slack
    # Distinct scores have distinct logits: several that share one are near it by coincidence.
    share = len(np.unique(grid[telling & met])) / n
    expected = float(chance[telling].mean())
    bits = n * _divergence(share, expected) - np.log2(len(_GRIDS))
    if share < _SHARE or bits < _EVIDENCE:
        return None
    what = f"values of {name}" if name in FORMATS else f"multiples of {name}"
    statement = f"{share:.1%} of the scores are sigmoids (or two-way softmaxes) of {what}"
    return LogitGrid(name, statement, share, n, float(bits))


def _divergence(share: float, expected: float) -> float:
    """Bits per score against a share that arises by coincidence (Chernoff's bound)."""
    if share <= expected:
        return 0.0
    parts = [(share, expected), (1 - share, 1 - expected)]
    return float(sum(p * np.log2(p / q) for p, q in parts if p > 0))
