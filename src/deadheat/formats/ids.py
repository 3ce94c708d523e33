"""Ids of queries and documents: what is one, and how it is written as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np

from deadheat.errors import InputError
from deadheat.late import pl

V = TypeVar("V")


def text_id(value: Any, at: str = "") -> str:
    """Give an id as text: text as it is, bytes as UTF-8, numbers as Python prints them.

    An id is never empty, and nothing else is one: what the text of a list or of ``None`` would
    be, nobody wrote.

    Parameters
    ----------
    at
        Where the value stands, to begin a message with.

    Examples
    --------
    >>> text_id("d7"), text_id(b"d7"), text_id(2**70)
    ('d7', 'd7', '1180591620717411303424')
    """
    if isinstance(value, str):
        text = str(value)
    elif isinstance(value, bytes):
        text = value.decode(errors="surrogateescape")
    elif _is_number(value):
        text = _digits(value.item() if isinstance(value, np.generic) else value)
    else:
        kind = type(value).__name__
        raise InputError(f"{_begun(at)}a {kind} is no id: {value!r:.60}; write ids as text")
    if not text:
        raise InputError(f"{_begun(at)}an id is empty; give every query and document an id")
    if not is_unicode(text):
        raise InputError(f"{_begun(at)}the id {value!r:.60} cannot be written as UTF-8 text")
    return text


def are_numbers(ids: Iterable[Any] | None) -> bool:
    """Whether ids were given, all of them whole numbers of 64 bits: such come back as numbers."""
    if ids is None or not hasattr(ids, "__len__"):  # an iterator was read before
        return False
    return all(
        isinstance(id_, (int, np.integer)) and not isinstance(id_, bool) and -(2**63) <= id_ < 2**63
        for id_ in ids
    )


def with_text_ids(docs: Mapping[Any, V], at: str) -> dict[str, V]:
    """Give a list by document with its ids as text; refuse two that are written alike."""
    named = {text_id(doc, at): value for doc, value in docs.items()}
    if len(named) < len(docs):
        raise InputError(f"{at}: two documents have the same id once their ids are written as text")
    return named


def id_column(ids: Sequence[str]) -> pl.Series:
    """Ids as a column of text."""
    try:
        return pl.Series(ids, dtype=pl.String)
    except UnicodeEncodeError as error:
        raise InputError(f"the id {error.object!r:.60} cannot be written as UTF-8 text") from None


def is_unicode(text: str) -> bool:
    """Whether a text is free of halves of surrogate pairs, which no file can hold."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _is_number(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    is_fraction = isinstance(value, (float, np.floating, Decimal))
    return isinstance(value, (int, np.integer)) or (is_fraction and math.isfinite(value))


def _digits(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # Python prints no whole number of more than 4300 digits
        raise InputError("a number of thousands of digits is no id; write ids as text") from None


def _begun(at: str) -> str:
    return f"{at}: " if at else ""
