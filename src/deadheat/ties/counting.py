"""What counts and groups: the compiled functions, or NumPy where none were built."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.ties.numpy_counting import Counts as Counts

try:
    import deadheat.ties.compiled_counting as _active

    BACKEND = "compiled"
except ImportError:  # no C compiler when deadheat was installed
    import deadheat.ties.numpy_counting as _active

    BACKEND = "numpy"


def count_candidates(
    scores: NDArray[Any],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    offsets: NDArray[np.int64],
    values: NDArray[Any],
    rows: NDArray[np.int64],
) -> Counts:
    """Count candidates above, equal and tied before; `numpy_counting` holds the definition."""
    counts: Counts = _active.count_candidates(scores, starts, stops, offsets, values, rows)
    return counts


def group_documents(
    query: NDArray[np.int64], score: NDArray[Any], grade: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
    """Part documents into groups of equal score; `numpy_counting` holds the definition."""
    group, first, falling = _active.group_documents(query, score, grade)
    return group, first, falling
