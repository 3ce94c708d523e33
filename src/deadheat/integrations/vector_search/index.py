"""The interface of an index, whatever its library."""

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
    """Whether its scores are similarities; False where they are distances."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many documents it holds."""

    @abstractmethod
    def nearest(self, queries: Array, k: int) -> Lists:
        """The k nearest documents of each query, fewer where there are fewer."""

    def within(self, queries: Array, last: Sequence[float]) -> Lists | None:
        """All documents of each query that are as near as a score; None without such a search."""
        return None

    def worst(self, scores: Array) -> float:
        """The worst of some scores, in their own type."""
        worst: float = scores.min() if self.larger_is_better else scores.max()
        return worst

    def beyond(self, score: float) -> np.float32:
        """The next float32 that is worse than a score: a limit that leaves the score inside."""
        worse = -np.inf if self.larger_is_better else np.inf
        limit: np.float32 = np.nextafter(np.float32(score), np.float32(worse))
        return limit


def without_padding(ids: ArrayLike, scores: ArrayLike) -> tuple[Array, Array]:
    """Return ids and scores without the padding of a list with fewer documents."""
    row = np.asarray(ids)
    listed = row != PADDING if row.dtype.kind == "i" else np.ones(len(row), bool)
    return row[listed], np.asarray(scores)[listed]
