"""Tables: a frame, the kind of each column, and writers for every style."""

from deadheat.tables.cells import DIGITS, number, standing_digits
from deadheat.tables.table import Column, Heading, Kind, Prose, Table, Tint, Verbatim
from deadheat.tables.write import STYLES, render, rich_parts

__all__ = [
    "DIGITS",
    "STYLES",
    "Column",
    "Heading",
    "Kind",
    "Prose",
    "Table",
    "Tint",
    "Verbatim",
    "number",
    "render",
    "rich_parts",
    "standing_digits",
]
