"""Runs out: TREC files that lose nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def write_run(
    path: Path, lists: Iterable[tuple[str, Sequence[str], Any]], tag: str = "deadheat"
) -> None:
    """Write a TREC run from (query id, document ids, scores) of each query.

    The lines of a query keep the order of the input, so that input order survives as a tie
    rule; the rank column is that order's rank by score. Scores are written with as many
    digits as tell them apart.
    """
    with path.open("w", encoding="utf-8") as file:
        for query, docs, scores in lists:
            values = np.asarray(scores)
            rank = np.empty(len(values), np.int64)
            rank[np.argsort(-values.astype(np.float64), kind="stable")] = range(1, len(values) + 1)
            rows = zip(docs, rank.tolist(), values.tolist(), strict=True)
            file.writelines(f"{query} Q0 {d} {r} {s!r} {tag}\n" for d, r, s in rows)
