"""What can go wrong, and how it is said: what, where, and what to do about it."""

from __future__ import annotations


class DeadheatError(Exception):
    """Base class of every error deadheat raises on purpose."""


class InputError(DeadheatError, ValueError):
    """The input cannot be evaluated; the message says where it is wrong and what to do."""


class MissingPackageError(DeadheatError, ImportError):
    """An optional package is needed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}: pip install 'deadheat[{extra}]'"
        )


def one_line(error: BaseException) -> str:
    """Give what another library said, short enough for a sentence."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"


class DeadheatWarning(UserWarning):
    """Something about the input changes what the numbers mean."""
