"""What a Parquet file says of its pages, checked before a library allocates what it says.

A page of a few bytes can claim to hold 2^61 values, or a negative number of them; polars then
asks for so much memory that the process is ended. Only numbers are looked at here, not values.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, Any

from deadheat.formats.content import size_limit

# Fields of the format's Thrift definition that are looked at, by the names they have there.
_NUM_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _GROUP_ROWS = 1, 3
_META_DATA = 3
_NUM_VALUES, _TOTAL_COMPRESSED_SIZE, _DATA_PAGE, _DICTIONARY_PAGE = 5, 7, 9, 11
_PAGE_TYPE, _UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 1, 2, 3
_HEADERS = {0: 5, 2: 7, 3: 8}
"""Per type of page the field that describes it: data, dictionary, and data of version 2."""
_LONGEST_HEADER = 1 << 20
_DEEPEST = 32
_VALUE = 8
"""Bytes that a value of a column takes in memory."""


class WrongPagesError(Exception):
    """The file says something of its pages that cannot be."""


def check_pages(file: IO[bytes]) -> list[int]:
    """Refuse a file with an intact end whose pages cannot be what it says.

    Returns how many rows each of its groups of rows has.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(size - 8)
    length = int.from_bytes(file.read(4), "little")
    file.seek(size - 8 - length)
    try:
        footer = _Thrift(file.read(length)).struct()
        for column in _columns(footer):
            _check_column(file, column, size)
        return [group[_GROUP_ROWS] for group in footer.get(_ROW_GROUPS) or []]
    except (IndexError, KeyError, TypeError, ValueError, AttributeError):
        raise WrongPagesError("its footer or a page is not what the format has there") from None
    finally:
        file.seek(0)


def _columns(footer: dict[int, Any]) -> Iterator[dict[int, Any]]:
    """Give what is said of each column of each group of rows."""
    most = size_limit() / _VALUE
    groups = footer.get(_ROW_GROUPS) or []
    for rows in (footer[_NUM_ROWS], *(group[_GROUP_ROWS] for group in groups)):
        _check("rows", rows, most)
    for group in groups:
        for column in group[_COLUMNS]:
            if _META_DATA in column:  # else in another file, which is not read
                _check("values", column[_META_DATA][_NUM_VALUES], most)
                yield column[_META_DATA]


def _check_column(file: IO[bytes], column: dict[int, Any], size: int) -> None:
    """Check the headers of all pages of a column."""
    place = min(column[field] for field in (_DATA_PAGE, _DICTIONARY_PAGE) if column.get(field))
    _check("place", place, size)
    _check("length", column[_TOTAL_COMPRESSED_SIZE], size - place)
    end = place + column[_TOTAL_COMPRESSED_SIZE]
    while place < end:
        file.seek(place)
        thrift = _Thrift(file.read(min(_LONGEST_HEADER, end - place)))
        header = thrift.struct()
        place += thrift.place
        _check("page", header[_COMPRESSED_SIZE], end - place)
        _check("page", header[_UNCOMPRESSED_SIZE], size_limit())
        described = header.get(_HEADERS.get(header[_PAGE_TYPE], 0), {})
        # A dictionary has as many values as it has bytes at most, a page what its column has.
        is_dictionary = header[_PAGE_TYPE] == 2
        most = header[_UNCOMPRESSED_SIZE] if is_dictionary else column[_NUM_VALUES]
        for number in described.values():
            if isinstance(number, int) and not isinstance(number, bool):
                _check("page", number, max(most, header[_UNCOMPRESSED_SIZE], 16))
        _check("values", described.get(1, 0), most)
        place += header[_COMPRESSED_SIZE]


def _check(what: str, number: Any, most: float) -> None:
    if type(number) is not int or not 0 <= number <= most:
        raise WrongPagesError(f"it says of a {what} what cannot be: {number!r:.30}")


class _Thrift:
    """Reads Thrift's compact protocol: structs as dicts by the numbers of their fields."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Read a struct up to its end."""
        if depth > _DEEPEST:
            raise WrongPagesError("its footer is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            fields[number] = self._value(head & 15, depth, in_field=True)
        return fields

    def _value(self, kind: int, depth: int, *, in_field: bool = False) -> Any:
        if kind in (1, 2):  # of a boolean field the type is the value
            return kind == 1 if in_field else self._byte() == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind in (9, 10):
            head = self._byte()
            return self._values(head >> 4 if head >> 4 < 15 else self._unsigned(), head & 15, depth)
        if kind == 11:
            length = self._unsigned()
            kinds = self._byte() if length else 0
            return self._values(length, kinds >> 4, depth, kinds & 15)
        if kind == 12:
            return self.struct(depth + 1)
        raise WrongPagesError(f"its footer or a page holds a value of the unknown type {kind}")

    def _values(self, length: int, *kinds: Any) -> list[Any]:
        first, depth, *second = kinds
        if length > len(self._data) - self.place:  # each takes a byte at least
            raise IndexError
        return [
            [self._value(kind, depth) for kind in (first, *second)]
            if second
            else self._value(first, depth)
            for _ in range(length)
        ]

    def _byte(self) -> int:
        value = self._data[self.place]
        self.place += 1
        return value

    def _bytes(self, length: int) -> bytes:
        if length > len(self._data) - self.place:
            raise IndexError
        self.place += length
        return self._data[self.place - length : self.place]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise WrongPagesError("its footer or a page holds a number without end")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
