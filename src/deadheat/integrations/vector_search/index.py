"""The interface of an index of any library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.formats import PADDING

Array: TypeAlias = NDArray[Any]
Lists: TypeAlias = list[tuple[Array, Array]]
"""Per query: ids of documents, and their scores or distances, best first."""


class Index(ABC):
    """An index that can be searched; some can also return all documents down to a score."""

    larger_is_better: bool = False
    """Whether its scores are similarities; False if they are distances."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of documents in the index."""

    @abstractmethod
    def nearest(self, queries: Array, k: int) -> Lists:
        """Return the k nearest documents of each query, or all if there are fewer."""

    def within(self, queries: Array, last: Sequence[float]) -> Lists | None:
        """Return all documents of each query that are as near as a score; None if unsupported."""
        return None

    def worst(self, scores: Array) -> float:
        """Return the worst of some scores, in their own type."""
        worst: float = scores.min() if self.larger_is_better else scores.max()
        return worst

    def beyond(self, score: float) -> np.float32:
        """Return the next float32 that is worse than a score, for an exclusive limit."""
        worse = -np.inf if self.larger_is_better else np.inf
        limit: np.float32 = np.nextafter(np.float32(score), np.float32(worse))
        return limit


def without_padding(ids: ArrayLike, scores: ArrayLike) -> tuple[Array, Array]:
    """Return ids and scores without the padding of a list with fewer documents."""
    row = np.asarray(ids)
    listed = row != PADDING if row.dtype.kind == "i" else np.ones(len(row), bool)
    return row[listed], np.asarray(scores)[listed]
