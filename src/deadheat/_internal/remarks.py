"""Remarks: warnings and notes about results, stored as data until they are printed.

Internal functions add remarks to the values that they return. Only public functions emit them as
warnings (`emits_warnings`), and only the command line prints them (`lines`).
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, TypeVar, get_args

from deadheat.errors import DeadheatWarning, printable

Level = Literal["warning", "note"]
# Not str.format: stored remarks are untrusted, and a pattern must not access attributes.
_FIELD = re.compile(r"\{(\w+)(?::(\w+))?\}")
_NAMED = 3
"""Up to this many runs with the same remark are named; for more, only the number is given."""


@dataclass(frozen=True)
class Remark:
    """A message pattern and its values, so that the remarks of many runs can be merged.

    >>> remark = warning("{missing:query} judged but missing from the run", missing=3)
    >>> str(remark)
    '3 queries judged but missing from the run'
    """

    level: Level
    """A warning changes the meaning of the numbers; a note explains them."""
    pattern: str
    """The message. ``{missing:query}`` is a number of queries; ``{measures:each}`` is words
    separated by ``; ``, which are joined when messages are merged."""
    values: Mapping[str, int | str] = field(default_factory=dict)

    def __str__(self) -> str:
        return _filled([self])

    def to_dict(self) -> dict[str, object]:
        """Return plain values; `from_dict` reads them back."""
        return {**vars(self), "values": dict(self.values)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Remark:
        """Read the output of `to_dict`; raise a ValueError or TypeError for anything else."""
        remark = cls(**data)
        plain = {int, str}.issuperset(map(type, remark.values.values()))
        if remark.level not in get_args(Level) or not isinstance(remark.pattern, str) or not plain:
            raise ValueError(f"{data!r:.60} is not a remark")
        return remark


def warning(pattern: str, **values: int | str) -> Remark:
    """Return a remark that changes the meaning of the numbers."""
    return Remark("warning", pattern, values)


def note(pattern: str, **values: int | str) -> Remark:
    """Return a remark that explains the numbers."""
    return Remark("note", pattern, values)


def texts(remarks: Iterable[Remark], level: Level) -> list[str]:
    """Return the remarks of one level as text, without repetitions."""
    return list(dict.fromkeys(str(remark) for remark in remarks if remark.level == level))


def lines(remarks: Mapping[str, Sequence[Remark]], level: Level, *, of: str = "run") -> list[str]:
    """Return the remarks of several runs as lines; those that differ only in numbers are merged.

    >>> twice = {"a.run": [note("{n:list} cut", n=2)], "b.run": [note("{n:list} cut", n=5)]}
    >>> lines(twice, "note")
    ['a.run, b.run: 2–5 lists cut']
    """
    sharing: dict[str, dict[str, Remark]] = {}
    for name, own in remarks.items():
        for remark in own:
            if remark.level == level:
                sharing.setdefault(remark.pattern, {}).setdefault(name, remark)
    merged = []
    for named in sharing.values():
        who = ", ".join(named) if len(named) <= _NAMED else _share(len(named), len(remarks), of)
        merged.append(f"{who}: {_filled(list(named.values()))}")
    return merged


def add_remarks(parts: Iterable[Sequence[Remark]]) -> tuple[Remark, ...]:
    """Merge the remarks of several parts into remarks of the whole: numbers are added."""
    whole: dict[tuple[Level, str], dict[str, int | str]] = {}
    for remark in (remark for part in parts for remark in part):
        values = whole.setdefault((remark.level, remark.pattern), {})
        for name, value in remark.values.items():
            before = values.get(name)
            if isinstance(before, int) and isinstance(value, int):
                values[name] = before + value
            else:
                values[name] = before or value
    return tuple(Remark(level, pattern, values) for (level, pattern), values in whole.items())


def emit_warnings(messages: Iterable[str]) -> None:
    """Emit each message as a `DeadheatWarning` at the caller of the public function."""
    for text in messages:
        warnings.warn(printable(text), DeadheatWarning, stacklevel=3)


P = ParamSpec("P")
R = TypeVar("R")


def emits_warnings(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function: emit the warnings of the value that it returns."""

    @functools.wraps(function)
    def with_warnings(*args: P.args, **options: P.kwargs) -> R:
        value: Any = function(*args, **options)
        emit_warnings(value.warnings)
        return value  # type: ignore[no-any-return]

    return with_warnings


def counted(n: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "query"), counted(1200, "query"), counted(2, "list")
    ('1 query', '1,200 queries', '2 lists')
    """
    return counted_range([n], noun)


def some(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and the number of the others.

    >>> some(["a", "b", "c", "d"], most=2), some(["a"])
    ('a, b and 2 more', 'a')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted_range(numbers: Sequence[int], noun: str) -> str:
    """Return the range of several numbers with their noun.

    >>> counted_range([3, 12, 7], "query")
    '3–12 queries'
    """
    plural = noun.removesuffix("y") + "ies" if noun.endswith("y") else f"{noun}s"
    return f"{_range(numbers)} {noun if max(numbers) == 1 else plural}"


def _filled(remarks: Sequence[Remark]) -> str:
    """Fill in the pattern of several remarks: ranges of numbers, and the words of the first."""

    def value(field: re.Match[str]) -> str:
        name, noun = field[1], field[2]
        numbers = [n for remark in remarks if isinstance(n := remark.values.get(name), int)]
        if noun == "each":
            return _each([remark.values.get(name, "") for remark in remarks])
        if not numbers:
            return str(remarks[0].values.get(name, field[0]))
        return counted_range(numbers, noun) if noun else _range(numbers)

    return _FIELD.sub(value, remarks[0].pattern)


def _each(lists: Iterable[int | str]) -> str:
    """Join the words of several lists, without repetitions."""
    return "; ".join(dict.fromkeys(word for words in lists for word in str(words).split("; ")))


def _range(numbers: Sequence[int]) -> str:
    return "–".join(f"{n:,}" for n in dict.fromkeys((min(numbers), max(numbers))))


def _share(part: int, whole: int, of: str) -> str:
    return f"all {counted(whole, of)}" if part == whole else f"{part:,} of {counted(whole, of)}"
