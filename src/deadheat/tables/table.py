"""What a table is: a frame, and what kind of thing each of its columns holds.

Results, comparisons, diagnoses and experiments describe themselves as tables; `tables.write`
knows how each kind of column is written, and nothing of whose table it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

Kind = Literal[
    "name",  # what somebody called a thing, flush left; shortened where there is no room
    "word",  # one of few words, such as a verdict; never shortened
    "value",  # of a measure: 0.7353, or 73.53 in percent
    "signed",  # a difference of such values: +0.0328
    "firm",  # (value, tie std): digits that ties make meaningless are grey, or 0.66x
    "firm signed",  # (difference, tie std)
    "span",  # (worst, best): 0.5675–0.7167
    "interval",  # (low, high) of a difference: [−0.0113, +0.0328]
    "count",  # 12,345
    "ranks",  # (best, worst): 1–3
    "share",  # 34.1 %
    "ratio",  # 1.0013
    "distance",  # 0.0039, 1.8e−07: two digits, however small
    "probability",  # (p, method): <0.0005, ≈0.312
    "flag",  # yes, no
]


Tint = Literal["good", "bad", "open"]
LABELS: tuple[Kind, ...] = ("name", "word")
"""Kinds that say whose a row is: flush left, and never without room."""


class Heading(str):
    """What a document of sentences and tables is called."""


class Prose(str):
    """A sentence that is text in LaTeX, too, where others are comments."""


class Verbatim(str):
    """Lines that stay as they are, such as BibTeX; a comment in LaTeX."""


@dataclass(frozen=True)
class Column:
    """A column as it is shown, and the columns of the frame that it is made of."""

    of: str | tuple[str, ...]
    kind: Kind = "value"
    title: str = ""
    """Its heading; the name of the frame's column unless given."""
    over: str = ""
    """A heading that it shares with its neighbours of the same name."""
    latex: str = ""
    """Its heading in LaTeX, where that has a notation of its own."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What is shown in place of a text: short names in place of paths."""
    bold: str = ""
    """A column of true and false that says which of its cells stand out."""
    tints: Mapping[str, Tint] = field(default_factory=dict)
    """Colours of words, by how they begin: what is decided, wrong, or left open."""
    bar: tuple[str, str, str] | None = None
    """Columns (low, high, middle) of the frame that a bar beside the number shows, in HTML."""
    gives_way: int = 0
    """When it goes where a terminal has no room for it: 1 first, 2 next; 0 never."""
    instead: Column | None = None
    """What then stands in its place: one column for two that go together."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the frame's columns."""
        return (self.of,) if isinstance(self.of, str) else self.of

    @property
    def heading(self) -> str:
        """What stands over the column."""
        return self.title or self.sources[0]

    def tint(self, text: str) -> Tint | None:
        """Give the colour of a cell."""
        return next((tint for word, tint in self.tints.items() if text.startswith(word)), None)

    @property
    def is_label(self) -> bool:
        """Whether it says whose a row is."""
        return self.kind in LABELS


@dataclass(frozen=True)
class Table:
    """A frame for machines, with the columns and words that people see."""

    frame: pl.DataFrame
    """Everything in full precision; CSV is this frame."""
    columns: Sequence[Column]
    title: str = ""
    notes: Sequence[str] = ()
    grouped: int = 0
    """Rows that agree in this many first columns stand together."""
    narrow: Table | None = None
    """The same facts in more rows and fewer columns, for a terminal that is not wide enough."""
