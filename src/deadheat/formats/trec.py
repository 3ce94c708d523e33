"""Read TREC files: lines of fields separated by white space.

polars reads a regular file (one separator, the same number of fields in each line). Any other file
is parsed line by line, which also gives the line number for errors.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import islice

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import LARGEST_WHOLE, number
from deadheat.errors import InputError
from deadheat.formats.content import BOM, as_plain_text

RUN_FIELDS = ("query_id", "iteration", "doc_id", "rank", "score", "tag")
FOUR_FIELDS = ("query_id", "doc_id", "rank", "score")
"""Fields of a run without iteration and tag, separated by tabs."""
QRELS_FIELDS = ("query_id", "iteration", "doc_id", "relevance")
_HINTS = {
    (QRELS_FIELDS, 6): ". This is the shape of a run: are judgements and run swapped?",
    (RUN_FIELDS, 4): ". This is the shape of judgements: are judgements and run swapped?",
}
"""Hints for a wrong number of fields, by the fields expected and the number found."""


def read_lines(
    source: str, data: bytes, fields: tuple[str, ...], numeric: str, keep: tuple[str, ...]
) -> pl.DataFrame:
    """Read the columns `keep` of a TREC file.

    The column `numeric` is float64, or text if float64 may not hold every whole number in it.
    """
    frame = _read_regular(data, fields, numeric, keep)
    if frame is not None and (frame[numeric].abs() >= LARGEST_WHOLE).any():
        frame = _read_regular(data, fields, None, keep)
    return _read_any(source, data, fields, numeric, keep) if frame is None else frame


def run_fields(data: bytes) -> tuple[str, ...]:
    """Return the fields of a run, from its first lines: four separated by tabs, or those of TREC.

    Judgements may have four fields separated by tabs, too; their second is always 0 or Q0.
    """
    lines = skip_comments(io.BytesIO(data))
    rows = [line.strip().split(b"\t") for line in islice(lines, 100)]
    if not rows or len(rows[0]) != 4 or not rows[0][2].strip().isdigit():
        return RUN_FIELDS
    judgements = {row[1] for row in rows if len(row) == 4} <= {b"0", b"Q0"}
    return RUN_FIELDS if judgements else FOUR_FIELDS


def skip_comments(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Return the lines that are neither empty nor comments."""
    return (line for line in lines if line.strip() and not line.startswith(b"#"))


def _read_regular(
    data: bytes, fields: tuple[str, ...], numeric: str | None, keep: tuple[str, ...]
) -> pl.DataFrame | None:
    """Read a regular file with polars; None if it is not regular.

    The column `numeric` is read as float64, all others as text.
    """
    separator = "\t" if b"\t" in data[:4096] else " "
    other = b" \x0b\x0c" if separator == "\t" else b"\t\x0b\x0c"
    if any(bytes([space]) in data for space in other) or data.startswith(BOM):
        return None
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return None
    schema = {name: pl.Float64 if name == numeric else pl.String for name in fields}
    lines = pl.scan_csv(
        as_plain_text(data),
        has_header=False,
        separator=separator,
        quote_char=None,
        comment_prefix="#",
        schema=schema,
    )
    try:
        frame = lines.select(*keep, complete=pl.all_horizontal(pl.all().is_not_null())).collect()
    except pl.exceptions.PolarsError:
        return None
    return frame.drop("complete") if frame["complete"].all() else None


def _read_any(
    source: str, data: bytes, fields: tuple[str, ...], numeric: str, keep: tuple[str, ...]
) -> pl.DataFrame:
    schema = dict.fromkeys(keep, pl.String)
    index = [fields.index(name) for name in keep]
    lines = _parse(source, data, fields, numeric)
    rows = (tuple(values[i] for i in index) for values in lines)
    return pl.DataFrame(rows, schema, orient="row")


def _parse(source: str, data: bytes, fields: tuple[str, ...], numeric: str) -> Iterator[list[str]]:
    """Yield the fields of each line; separators are ASCII white space.

    This function defines the format. The other readers are faster and return the same.
    """
    place = fields.index(numeric)
    for line_number, line in enumerate(io.BytesIO(data), start=1):
        parts = line.split()
        if not parts or line.startswith(b"#"):
            continue
        location = f"{source}, line {line_number}"
        if len(parts) != len(fields):
            raise InputError(
                f"{location}: expected {len(fields)} fields ({' '.join(fields)}), found "
                f"{len(parts)}: {quote_line(line)}{_HINTS.get((fields, len(parts)), '')}"
            )
        try:
            values = [part.decode() for part in parts]
            number(values[place])
        except UnicodeDecodeError:
            raise InputError(
                f"{location}: not UTF-8 text: {quote_line(line)}; convert the file to UTF-8"
            ) from None
        except ValueError:
            raise InputError(
                f"{location}: the {numeric} is not a number: {quote_line(parts[place])} in "
                f"{quote_line(line)}"
            ) from None
        yield values


def quote_line(line: bytes) -> str:
    """Return a line, or the start of a long line, for a message."""
    text = line.decode(errors="backslashreplace").rstrip("\r\n")
    return repr(text if len(text) <= 100 else text[:97] + "…")
