"""The interface of an index of any library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Lists: TypeAlias = list[tuple[Array, Array]]
"""Per query: ids of documents, and their scores or distances, best first."""


class Index(ABC):
    """An index that can be searched; a subclass defines `nearest`."""

    larger_is_better: bool = False
    """Whether its scores are similarities; False if they are distances."""

    @abstractmethod
    def nearest(self, queries: Array, k: int) -> Lists:
        """Return the k nearest documents of each query, or all if there are fewer."""
