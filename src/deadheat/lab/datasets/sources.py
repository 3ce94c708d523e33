"""The protocol of a source of datasets."""

from __future__ import annotations

from typing import Protocol

from deadheat._lazy import pl


class TableSource(Protocol):
    """A place that holds named tables, each in one or more splits."""

    location: str
    """What the source is called in messages."""
    revision: str | None

    def tables(self) -> list[str]:
        """Names of the tables."""

    def splits(self, table: str) -> list[str]:
        """Return the splits of a table."""

    def read(self, table: str, split: str) -> pl.DataFrame:
        """Read one split of a table.

        Columns that `deadheat.formats.frames.is_known` does not know, images for one, may be
        there by name alone.
        """
