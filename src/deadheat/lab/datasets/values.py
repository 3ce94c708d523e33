"""Columns of a dataset as checked Python values: texts, lists, and what ids stand for."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, TypeVar

from deadheat._lazy import pl
from deadheat.errors import InputError
from deadheat.formats.frames import column_ids, needed_column

V = TypeVar("V")


def read_texts(location: str, frame: pl.DataFrame, name: str) -> list[str]:
    """Return a column as texts; a missing value is empty."""
    column = needed_column(location, frame, name)
    values = enumerate(frame[column].to_list(), start=1)
    return [_check_text(value, location, column, row) for row, value in values]


def read_lists(location: str, frame: pl.DataFrame, name: str) -> list[list[Any]]:
    """Return a column as lists; in CSV a cell is a JSON array."""
    column = needed_column(location, frame, name)
    values = enumerate(frame[column].to_list(), start=1)
    return [_check_list(value, location, column, row) for row, value in values]


def read_text_lists(location: str, frame: pl.DataFrame, name: str) -> list[list[str]]:
    """Return a column as lists of texts."""
    lists = enumerate(read_lists(location, frame, name), start=1)
    return [[_check_text(value, location, name, row) for value in values] for row, values in lists]


def map_ids(location: str, frame: pl.DataFrame, name: str, values: list[V]) -> dict[str, V]:
    """Map the ids in a column to the values of their rows."""
    ids = column_ids(location, frame, name)
    mapping = dict(zip(ids.to_list(), values, strict=True))
    if len(mapping) < len(values):
        twice = ids.filter(ids.is_duplicated())[0]
        raise InputError(f"{location}: id {twice!r} occurs twice; keep one of the two")
    return mapping


def _check_text(value: Any, location: str, column: str, row: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"{location}: the {column} of row {row}: expected text, found a {type(value).__name__} "
            f"({value!r:.60}); only datasets of plain text can be read"
        )
    return value


def _check_list(value: Any, location: str, column: str, row: int) -> list[Any]:
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
