"""Errors and warnings. A message says what happened, where, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Control characters, changes of writing direction, line separators and half characters.
_CONTROL_CHARS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str, *, keep: str = "") -> str:
    r"""Escape the control characters in a text: ids and names are untrusted text.

    Parameters
    ----------
    text
        Anything that is to be printed.
    keep
        Characters that stay as they are, such as the ends of lines.

    Examples
    --------
    >>> print(printable("\x1b]0;title\x07 \u202etxt.exe"))
    \x1b]0;title\x07 \u202etxt.exe
    """

    def escaped(found: re.Match[str]) -> str:
        return found[0] if found[0] in keep else found[0].encode("unicode_escape").decode()

    return _CONTROL_CHARS.sub(escaped, text)


class DeadheatError(Exception):
    """Base class of every error deadheat raises on purpose."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(DeadheatError, ValueError):
    """The input cannot be evaluated; the message says where it is wrong and what to do."""


class MissingPackageError(DeadheatError, ImportError):
    """An optional package is needed; the message gives the command that brings it."""

    def __init__(self, package: str, command: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}: {command}")
        self._made_of = package, command, purpose

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        """Pickle the arguments, so that the error can be sent to another process."""
        return type(self), self._made_of


def one_line(error: BaseException) -> str:
    """Return the type and the message of an error as one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"


class DeadheatWarning(UserWarning):
    """Something about the input changes what the numbers mean."""


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a question that names what was probably meant; nothing where nothing is near."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
