"""Errors and warnings. A message gives what happened, where, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Control characters, bidirectional controls, line separators, lone surrogates and noncharacters.
_CONTROL_CHARS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def printable(text: str, *, keep: str = "") -> str:
    r"""Escape the control characters of a text, because ids and names are untrusted.

    Parameters
    ----------
    text
        The text to print.
    keep
        Characters that are not escaped, such as line ends. Default: none.

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
    """The input cannot be evaluated; the message has the place of the error and what to do."""


class MissingPackageError(DeadheatError, ImportError):
    """An optional package is missing; the message has the command that installs it."""

    def __init__(self, package: str, command: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}: {command}")
        self._made_of = package, command, purpose

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        """Pickle the arguments, so that the error can be sent to another process."""
        return type(self), self._made_of


def one_line(error: BaseException) -> str:
    """Return the type and the message of an error as one short line."""
    text = " ".join(str(error).split())
    if len(text) > 150:
        text = text[:150].rsplit(" ", 1)[0] + "…"
    return f"{type(error).__name__}: {text}"


class DeadheatWarning(UserWarning):
    """The input has a property that changes the meaning of the numbers."""


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a suggestion ("did you mean …?"); empty if no known word is similar."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
