"""What a reader of a result should know, and what changes what its numbers mean."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import DeadheatWarning
from deadheat.ties.rules import RULE_WORDS


@dataclass
class Remarks:
    """Warnings and notes, collected on the way."""

    notes: list[str]
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def under(cls, rule: str) -> Remarks:
        """Begin with what the oblivious value means."""
        return cls([f"oblivious = ties in the order of {RULE_WORDS[rule]}"])

    def warn(self, text: str) -> None:
        """Warn the caller of the public function, and keep the warning."""
        self.warnings.append(text)
        warnings.warn(text, DeadheatWarning, stacklevel=5)

    def note_left_out(self, n: int) -> None:
        """Note queries that do not count."""
        if n:
            self.notes.append(f"{queries_in_words(n)} without a relevant document: left out")

    def note_negative(self, grades: NDArray[Any]) -> None:
        """Note grades below 0."""
        if grades.size and grades.min() < 0:
            n = np.count_nonzero(grades < 0)
            word = "judgement" if n == 1 else "judgements"
            self.notes.append(f"{n:,} {word} below 0: counted as not relevant")


def queries_in_words(n: int) -> str:
    """Give a number of queries.

    >>> queries_in_words(1), queries_in_words(1200)
    ('1 query', '1,200 queries')
    """
    return f"{n:,} {'query' if n == 1 else 'queries'}"
