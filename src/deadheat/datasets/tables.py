"""The shape every source hands over: named columns of Python values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

Table: TypeAlias = dict[str, list[Any]]
"""Values by column; a column outside `COLUMNS` may be empty whatever the others hold."""

ALIASES = {
    "id": ("_id", "id"),
    "query-id": ("query-id", "query_id"),
    "corpus-id": ("corpus-id", "corpus_id"),
    "corpus-ids": ("corpus-ids", "corpus_ids"),
}
"""How datasets spell the names of the columns that identify things."""

COLUMNS = frozenset(
    {"title", "text", "instruction", "score", "query", "positive", "negative"}
).union(*ALIASES.values())
"""The columns some layout uses; of others, images for one, only the name is kept."""


class Source(Protocol):
    """A place that holds named tables, each in one or more splits."""

    where: str
    revision: str | None

    def tables(self) -> list[str]:
        """Names of the tables."""

    def splits(self, table: str) -> list[str]:
        """Return the splits of a table."""

    def read(self, table: str, split: str) -> Table:
        """Columns of one split of a table."""


def concatenate(parts: Iterable[Table]) -> Table:
    """Rows of all parts under one another; columns missing somewhere become ``None``."""
    whole: Table = {}
    rows = 0
    for part in parts:
        height = max((len(values) for values in part.values()), default=0)
        for name in part.keys() | whole.keys():
            values = whole.setdefault(name, [None] * rows)
            values.extend(part.get(name, [None] * height))
        rows += height
    return whole
