"""Tables: a frame, the kind of each column, and writers for every style."""

from deadheat.tables.cells import (
    DIGITS as DIGITS,
    cell as cell,
    headings as headings,
    number as number,
    rows_of as rows_of,
    standing_digits as standing_digits,
)
from deadheat.tables.table import (
    Column as Column,
    Heading as Heading,
    Kind as Kind,
    Prose as Prose,
    Table as Table,
    Tint as Tint,
    Verbatim as Verbatim,
)
from deadheat.tables.terminal import (
    shorten_name as shorten_name,
    strip_shared as strip_shared,
)
from deadheat.tables.write import (
    STYLES as STYLES,
    Part as Part,
    Printable as Printable,
    render as render,
    rich_parts as rich_parts,
)
