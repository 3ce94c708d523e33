"""Checks of single values and of how tables refer to one another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from deadheat.errors import InputError

V = TypeVar("V")


def identifier(value: Any, where: str) -> str:
    """Return the value as an id; numbers become text."""
    if value is None or value == "" or isinstance(value, (list, dict)):
        raise InputError(f"{where}: {value!r} is no id; give every row an id")
    return str(value)


def text_of(value: Any, where: str) -> str:
    """Return the value as text; a missing one is empty."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"{where}: expected text, found a {type(value).__name__} ({value!r:.60}); "
            "only datasets of plain text can be read"
        )
    return value


def grade_of(value: Any, where: str) -> float:
    """Return the value as a grade, an ``int`` where it is whole."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: {value!r} is no grade; expected a number")
    return int(number) if number.is_integer() else number


def unique(items: Iterable[tuple[str, V]], where: str) -> dict[str, V]:
    """Collect pairs in a dict; an id must not come twice."""
    found: dict[str, V] = {}
    for key, value in items:
        if key in found:
            raise InputError(f"{where}: id {key!r} occurs twice; keep one of the two")
        found[key] = value
    return found


def check_references(
    lists: Mapping[str, Iterable[str]], corpus: Mapping[str, str], verb: str, where: str
) -> None:
    """Refuse documents that some query refers to but the corpus lacks."""
    missing = [
        (query, document)
        for query, documents in lists.items()
        for document in documents
        if document not in corpus
    ]
    if missing:
        query, document = missing[0]
        raise InputError(
            f"{where}: query {query!r} {verb} document {document!r}, which the corpus lacks "
            f"({len(missing)} such references in all); add the documents or remove the references"
        )
