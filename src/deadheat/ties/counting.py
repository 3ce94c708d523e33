"""Count candidates: in compiled code if available, else in NumPy; in torch on other devices."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat._internal.numbers import exact_floats, half_floats
from deadheat._internal.packages import require
from deadheat.ties import numpy_counting
from deadheat.ties.numpy_counting import Counts as Counts, Ints, Scores

if TYPE_CHECKING:
    from torch import Tensor

    from deadheat.scoring import Matrix

try:
    active: ModuleType = import_module("deadheat.ties.compiled_counting")
    BACKEND = "compiled"
except ImportError:  # no C compiler when deadheat was installed
    active, BACKEND = numpy_counting, "numpy"

Bounds = tuple[Ints, Ints]
"""``(starts, stops)``: the scores of query ``q`` are ``scores[starts[q]:stops[q]]``."""


def is_on_device(scores: Matrix) -> TypeGuard[Tensor]:
    """Return whether the scores are a tensor that is not on the CPU."""
    return not isinstance(scores, np.ndarray) and scores.device.type != "cpu"


def count_tensor(scores: Tensor, offsets: Ints, values: Scores, column: Ints) -> Counts:
    """Count like `count_columns`, with torch operations, on any device.

    Parameters
    ----------
    scores
        ``[queries, n]``, without NaN.
    """
    torch = require("torch", "counting on a device")
    device = scores.device
    if scores.is_floating_point() and scores.element_size() == 1:
        scores = scores.float()  # torch may not compare 8-bit floats
    announced = torch.from_numpy(np.ascontiguousarray(values)).to(device)
    narrow = announced.to(scores.dtype)
    if not bool((narrow.to(announced.dtype) == announced).all()):
        scores, narrow = scores.to(announced.dtype), announced
    last = torch.from_numpy(np.clip(column, 0, scores.shape[1])).to(device)
    columns = torch.arange(scores.shape[1], device=device)
    counts = torch.zeros((3, len(values)), dtype=torch.int64, device=device)
    lengths = np.diff(offsets)
    # Each iteration counts for the next document of every query.
    for turn in range(int(lengths.max(initial=0))):
        queries = np.flatnonzero(lengths > turn)
        document = torch.from_numpy(offsets[queries] + turn).to(device)
        rows = scores if len(queries) == len(scores) else scores[torch.from_numpy(queries)]
        value = narrow[document][:, None]
        equal = rows == value
        counts[0, document] = (rows > value).sum(1)
        counts[1, document] = equal.sum(1)
        counts[2, document] = (equal & (columns < last[document][:, None])).sum(1)
    summed: Counts = counts.cpu().numpy()
    return summed


def find_columns(place: Ints, position: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Find documents among columns.

    Parameters
    ----------
    place
        Per column, ascending: its position in the lists.
    position
        Per document: its position.

    Returns
    -------
    column, inside
        Per document: the first column at or after its position, and whether that column is its
        own.
    """
    column = np.searchsorted(place, position)
    inside = column < len(place)
    inside[inside] = place[column[inside]] == position[inside]
    return column, inside


def to_floats(scores: Matrix | ArrayLike) -> Scores:
    """Return scores as float32 or float64, exactly; raise an error if that is impossible."""
    return exact_floats(scores, by_place=False)


def flatten_scores(scores: Matrix) -> Scores:
    """Return flat scores: 16-bit floats without conversion, others as float32 or float64."""
    halves = half_floats(scores)
    return np.ascontiguousarray(to_floats(scores) if halves is None else halves).reshape(-1)


def has_nan(scores: Scores | Tensor) -> bool:
    """Return whether a score is NaN; arrays are outputs of `flatten_scores`."""
    if not isinstance(scores, np.ndarray):
        return scores.is_floating_point() and bool(scores.isnan().any())
    if not scores.size:
        return False
    if scores.dtype.itemsize != 2:
        return bool(np.isnan(np.min(scores)))
    # The bits of NaN are larger than those of infinity.
    ends = np.array([np.inf, -np.inf], scores.dtype)
    positive = scores.view(np.int16).max() > ends.view(np.int16)[0]
    return bool(positive or scores.view(np.uint16).max() > ends.view(np.uint16)[1])
