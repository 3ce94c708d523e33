"""The types of a table: a frame, and the kind of each of its columns.

Results, comparisons, diagnoses and experiments build tables; `tables.write` formats them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

Kind = Literal[
    "name",  # a name, flush left; shortened in a narrow terminal
    "word",  # one of few words, such as a verdict; never shortened
    "value",  # of a measure: 0.7353, or 73.53 in percent
    "signed",  # a difference of such values: +0.0328
    "significant",  # (value, tie std): digits that are not significant are grey, or 0.66x
    "significant signed",  # (difference, tie std)
    "span",  # (worst, best): 0.5675–0.7167
    "interval",  # (low, high) of a difference: [−0.0113, +0.0328]
    "count",  # 12,345
    "ranks",  # (best, worst): 1–3
    "share",  # 34.1 %
    "ratio",  # 1.0013
    "distance",  # 0.0039, 1.8e−07: two digits, however small
    "probability",  # (p, method, error): <0.0005, 0.312±0.010
    "flag",  # yes, no
]


Tint = Literal["good", "bad", "open"]


class Heading(str):
    """The title of a document of sentences and tables."""


class Prose(str):
    """A sentence that is written as text in LaTeX; others are comments there."""


class Verbatim(str):
    """Lines that are written unchanged, such as BibTeX."""


@dataclass(frozen=True)
class Column:
    """A column of the table, and the columns of the frame that it shows."""

    of: str | tuple[str, ...]
    kind: Kind = "value"
    title: str = ""
    """Heading. Default: the name of the frame's column."""
    over: str = ""
    """A heading that it shares with its neighbours of the same name."""
    bold: str = ""
    """Name of a boolean column of the frame: True makes a cell bold."""
    tints: Mapping[str, Tint] = field(default_factory=dict)
    """Colours of cells by the beginning of their text."""
    bar: tuple[str, ...] = ()
    """Columns of the frame for an interval next to the number on pages: low, high, dot, and
    optionally a cross."""
    drop_priority: int = 0
    """Order in which columns are hidden in a narrow terminal: 1 first, 2 next; 0 never."""
    instead: Column | None = None
    """The column that then replaces it."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the frame's columns."""
        return (self.of,) if isinstance(self.of, str) else self.of

    @property
    def heading(self) -> str:
        """The heading of the column."""
        return self.title or self.sources[0]

    def tint(self, text: str) -> Tint | None:
        """Return the colour of a cell."""
        return next((tint for word, tint in self.tints.items() if text.startswith(word)), None)

    @property
    def is_label(self) -> bool:
        """Whether it identifies a row: flush left, and never hidden."""
        return self.kind in ("name", "word")


@dataclass(frozen=True)
class Table:
    """A frame, with the columns, title and notes to show."""

    frame: pl.DataFrame
    """All values in full precision; CSV and JSON contain this frame."""
    columns: Sequence[Column]
    title: str = ""
    notes: Sequence[str] = ()
    grouped: int = 0
    """Number of first columns that define a group: rows with the same values are a group."""
    narrow: Table | None = None
    """The same values in more rows and fewer columns, for a narrow terminal."""
