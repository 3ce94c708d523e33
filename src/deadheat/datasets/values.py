"""Columns of a dataset as checked Python values: texts, lists, and what ids stand for."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, TypeVar

from deadheat.errors import InputError
from deadheat.formats.frames import column_ids, needed_column
from deadheat.late import pl

V = TypeVar("V")


def column_texts(location: str, frame: pl.DataFrame, name: str) -> list[str]:
    """Give the column of this name as texts; a missing one is empty."""
    column = needed_column(location, frame, name)
    values = enumerate(frame[column].to_list(), start=1)
    return [_text(value, location, column, row) for row, value in values]


def column_lists(location: str, frame: pl.DataFrame, name: str) -> list[list[Any]]:
    """Give the column of this name as lists; CSV has none, there a cell is a JSON array."""
    column = needed_column(location, frame, name)
    values = enumerate(frame[column].to_list(), start=1)
    return [_list(value, location, column, row) for row, value in values]


def column_text_lists(location: str, frame: pl.DataFrame, name: str) -> list[list[str]]:
    """Give the column of this name as lists of texts."""
    lists = enumerate(column_lists(location, frame, name), start=1)
    return [[_text(value, location, name, row) for value in values] for row, values in lists]


def by_id(location: str, frame: pl.DataFrame, name: str, values: list[V]) -> dict[str, V]:
    """Map the ids in the column of this name to the values of their rows."""
    ids = column_ids(location, frame, name)
    mapping = dict(zip(ids.to_list(), values, strict=True))
    if len(mapping) < len(values):
        twice = ids.filter(ids.is_duplicated())[0]
        raise InputError(f"{location}: id {twice!r} occurs twice; keep one of the two")
    return mapping


def _text(value: Any, location: str, column: str, row: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"{location}: the {column} of row {row}: expected text, found a {type(value).__name__} "
            f"({value!r:.60}); only datasets of plain text can be read"
        )
    return value


def _list(value: Any, location: str, column: str, row: int) -> list[Any]:
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(
            f"{location}: the {column} of row {row}: expected a list (in CSV a JSON array), found "
            f"{value!r:.60}"
        )
    return value
