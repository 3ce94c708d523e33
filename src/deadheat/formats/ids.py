"""Ids of queries and documents: validate them and convert them to text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TypeVar

import numpy as np

from deadheat._internal.lazy import pl
from deadheat.errors import InputError

Key = TypeVar("Key")
V = TypeVar("V")
_KEPT = 1 << 16
"""Largest number of query names that are cached."""
_SURROGATES = re.compile("[\ud800-\udfff]")


def text_id(value: object, at: str = "") -> str:
    """Convert an id to text: bytes are decoded as UTF-8, numbers are printed as by Python.

    Anything else, and an empty id, is an `InputError`.

    Parameters
    ----------
    at
        Location of the value, the start of a message.

    Examples
    --------
    >>> text_id("d7"), text_id(b"d7"), text_id(2**70)
    ('d7', 'd7', '1180591620717411303424')
    """
    place = f"{at}: " if at else ""
    if isinstance(value, str):
        text = str(value)
    elif isinstance(value, bytes):
        text = value.decode(errors="surrogateescape")
    elif _is_number(value):
        text = str(value.item() if isinstance(value, np.generic) else value)
    else:
        kind = type(value).__name__
        raise InputError(f"{place}a {kind} is not an id: {value!r:.60}; write ids as text")
    if not text:
        raise InputError(f"{place}an id is empty; give every query and document an id")
    if not text.isascii() and not is_unicode(text):
        raise InputError(f"{place}the id {value!r:.60} cannot be written as UTF-8 text")
    return text


def _is_number(value: object) -> bool:
    """Return whether a value is a finite number, and not a bool."""
    if isinstance(value, (int, np.integer)):
        return not isinstance(value, bool)
    return isinstance(value, (float, np.floating, Decimal)) and math.isfinite(value)


def are_numbers(ids: Iterable[object] | None) -> bool:
    """Return whether all ids are 64-bit integers; results then have numbers as query ids."""
    if ids is None or not hasattr(ids, "__len__"):  # an iterator cannot be read again
        return False
    return all(
        isinstance(id_, (int, np.integer)) and not isinstance(id_, bool) and -(2**63) <= id_ < 2**63
        for id_ in ids
    )


def query_names(query_ids: Sequence[object] | None, n: int) -> list[str]:
    """Return the names of `n` queries: as given, or their numbers."""
    if query_ids is None:
        return list(_numbers(n) if n <= _KEPT else map(str, range(n)))
    is_listed = isinstance(query_ids, Iterable) and not isinstance(query_ids, str)
    names = [text_id(q, "query_ids") for q in query_ids] if is_listed else []
    if not len(set(names)) == len(names) == n:
        raise InputError(f"query_ids must name each of the {n} queries once, not {query_ids!r:.60}")
    return names


@lru_cache(maxsize=4)
def _numbers(n: int) -> tuple[str, ...]:
    return tuple(map(str, range(n)))


def with_text_ids(docs: Mapping[Key, V], at: str) -> dict[str, V]:
    """Convert document ids, the keys of a dict, to text; raise an error for duplicates."""
    named = {text_id(doc, at): value for doc, value in docs.items()}
    if len(named) < len(docs):
        raise InputError(f"{at}: two documents have the same id once their ids are written as text")
    return named


def id_column(ids: Sequence[str]) -> pl.Series:
    """Build a column of ids."""
    try:
        return pl.Series(ids, dtype=pl.String)
    except UnicodeEncodeError as error:
        raise InputError(f"the id {error.object!r:.60} cannot be written as UTF-8 text") from None


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8, that is, has no lone surrogates."""
    return _SURROGATES.search(text) is None
