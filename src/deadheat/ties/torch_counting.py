"""Count candidates in torch operations, for scores on another device than the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.packages import require
from deadheat.ties.numpy_counting import Counts, Ints


def count_tensor(scores: Any, offsets: Ints, values: NDArray[Any], column: Ints) -> Counts:
    """Count the candidates above, equal to and tied before each document of interest.

    Parameters
    ----------
    scores
        ``[queries, n]``, no NaN.
    offsets
        The documents of interest of query ``q`` are ``offsets[q]:offsets[q + 1]``.
    values, column
        Score of each document, and the column before which an equal score stands before it.
    """
    torch = require("torch", "counting on a device")
    device = scores.device
    if scores.is_floating_point() and scores.element_size() == 1:
        scores = scores.float()  # no comparison of 8-bit floats is sure to exist
    announced = torch.from_numpy(np.ascontiguousarray(values)).to(device)
    narrow = announced.to(scores.dtype)
    if not bool((narrow.to(announced.dtype) == announced).all()):
        scores, narrow = scores.to(announced.dtype), announced
    last = torch.from_numpy(np.clip(column, 0, scores.shape[1])).to(device)
    columns = torch.arange(scores.shape[1], device=device)
    counts = torch.zeros((3, len(values)), dtype=torch.int64, device=device)
    lengths = np.diff(offsets)
    # In each turn one document of every query that has so many.
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
