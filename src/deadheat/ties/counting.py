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


def count_lists(
    scores: Scores, bounds: Bounds, offsets: Ints, values: Scores, rows: Ints
) -> Counts:
    """Count the candidates of lists; see `numpy_counting.count_candidates`.

    `scores` and `values` may be of different float types.
    """
    if scores.dtype != values.dtype:
        with np.errstate(over="ignore"):  # values too large for the type become infinite
            narrow = values.astype(scores.dtype)
        if np.array_equal(narrow, values):
            values = narrow
        else:
            scores, values = scores.astype(np.float64), values.astype(np.float64)
    flat, values = np.ascontiguousarray(scores), np.ascontiguousarray(values)
    if flat.dtype.itemsize == 2:
        flat, values = flat.view(np.int16), values.view(np.int16)
    counts: Counts = active.count_candidates(flat, *bounds, offsets, values, rows)
    return counts


def count_columns(scores: Matrix, offsets: Ints, values: Scores, column: Ints) -> Counts:
    """Count the candidates above, equal to and tied before each document of interest.

    Parameters
    ----------
    scores
        ``[queries, n]``, an array or a tensor on any device, without NaN.
    offsets, values
        As for `numpy_counting.count_candidates`.
    column
        Per document: equal scores in columns before this one are counted as before the document.
    """
    if is_on_device(scores):
        return count_tensor(scores, offsets, values, column)
    starts = np.arange(len(scores)) * scores.shape[1]
    before = column + starts.repeat(np.diff(offsets))
    bounds = starts, starts + scores.shape[1]
    return count_lists(flatten_scores(scores), bounds, offsets, values, before)


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
    if isinstance(scores, np.ndarray) and scores.dtype.char in "fd":
        return scores
    return exact_floats(scores, by_place=False)


def flatten_scores(scores: Matrix) -> Scores:
    """Return flat scores: 16-bit floats without conversion, others as float32 or float64."""
    if str(scores.dtype).endswith("float16"):  # bfloat16, too
        return np.ascontiguousarray(half_floats(scores)).reshape(-1)
    return np.ascontiguousarray(to_floats(scores)).reshape(-1)


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
