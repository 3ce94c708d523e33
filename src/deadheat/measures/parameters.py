"""Parameters of measures: default, allowed values and meaning, declared once."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deadheat._internal.numbers import LARGEST_GRADE
from deadheat.errors import InputError

LIMITS = {
    "at_least": ("from", operator.ge),
    "above": ("above", operator.gt),
    "below": ("below", operator.lt),
    "at_most": ("up to", operator.le),
}
"""Limits of a number: the text for messages, and the comparison."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a measure: one of several words, or a number."""

    default: object
    """Default value. If it is None, None is a valid value."""
    about: str
    """Meaning of the parameter."""
    choices: Mapping[str, str]
    """The valid words and the meaning of each; empty for a number."""
    whole: bool
    """Whether it is a whole number."""
    limits: Mapping[str, float]
    """Limits of the number, by the names in `LIMITS`."""

    @property
    def rule(self) -> str:
        """Description of valid values, such as ``a number above 0 and up to 500``."""
        if self.choices:
            return " or ".join(map(repr, self.choices))
        limits = " and ".join(f"{LIMITS[name][0]} {limit}" for name, limit in self.limits.items())
        return f"a {'whole ' if self.whole else ''}number {limits}"

    def check(self, name: str, value: object) -> None:
        """Raise `InputError` for an invalid value; `name` is used in the message."""
        admitted, why = False, ""
        if value is None:
            admitted = self.default is None
        elif self.choices:
            admitted = isinstance(value, str) and value in self.choices
        elif isinstance(value, int if self.whole else (int, float)):
            is_flag = self.whole and isinstance(value, bool)
            too_large = value > (2**63 - 1 if self.whole else LARGEST_GRADE)
            within = all(LIMITS[word][1](value, limit) for word, limit in self.limits.items())
            admitted = within and not is_flag and not too_large
            why = ", which is too large for a rank or a grade" if too_large else ""
        if not admitted:
            raise InputError(f"{name} must be {self.rule}, not {value!r}{why}")


def parameter(
    default: object,
    *,
    about: str,
    choices: Mapping[str, str] | None = None,
    whole: bool = False,
    **limits: float,
) -> Any:
    """Declare a field of a measure as a parameter; the arguments are those of `Parameter`.

    Validation, error messages and help use this declaration:
    ``p: float = parameter(0.8, above=0, below=1, about="the probability to continue")``.
    """
    declared = Parameter(default, about, choices or {}, whole, limits)
    return field(default=default, metadata={"parameter": declared})
