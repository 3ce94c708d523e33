"""Read a whole file, decompressed, up to a size limit."""

from __future__ import annotations

import io
import lzma
import math
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import IO, Any, TypeAlias

from deadheat.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    import zstandard as zstd

LIMIT = "DEADHEAT_MAX_GIB"
"""The environment variable that limits how much is read from a compressed file or a pipe."""
_DEFAULT_GIB = 4.0
_PIECE = 1 << 12  # zstandard cannot limit what it makes of a piece, up to 2**15 times its size
_LONGEST_MAGIC = 6
_LOOKED_AT = 4096
"""A zero in this many bytes at the start of a file means that it is not text."""
PARQUET = b"PAR1"
"""First and last bytes of Parquet files."""
BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""
# First bytes of gzip, zstd and zlib. Those of zlib are letters: an id may start with x^.
_TAKEN_FOR_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"x\x01", b"x^", b"x\x9c", b"x\xda")

NewFrame: TypeAlias = "Callable[[], zlib._Decompress | lzma.LZMADecompressor]"
"""Returns a decompressor of one frame."""


def read_content(source: str, file: IO[bytes]) -> io.BytesIO:
    """Read a file to its end, decompressed, without a byte order mark.

    A regular file that is not compressed has no size limit. The content of a compressed file, a
    pipe or a device is limited, because a few bytes can decompress to more than the memory, and
    ``/dev/zero`` has no end.
    """
    try:
        data = _read(source, file).removeprefix(BOM)
    except (EOFError, lzma.LZMAError, zlib.error, zstd.ZstdError) as error:
        raise InputError(f"{source}: the compressed data is damaged ({error})") from None
    except MemoryError:
        raise InputError(f"{source}: it does not fit in memory") from None
    if not data or data.isspace():
        raise InputError(f"{source}: the file is empty")
    return io.BytesIO(data)


def as_plain_text(data: bytes) -> bytes:
    """Return lines that polars does not decompress, because it has no size limit.

    polars drops a byte order mark, and does not look for compressed data after one.
    """
    return BOM + data if data.startswith(_TAKEN_FOR_COMPRESSED) else data


def _read(source: str, file: IO[bytes]) -> bytes:
    head = file.read(_LONGEST_MAGIC)
    new_frame = _frame_type(head)
    if new_frame is None and _is_regular(file):
        # Without the buffer of the file, which saves a copy.
        raw = getattr(file, "raw", file)
        raw.seek(file.tell() - len(head))
        data = raw.read()
    else:
        pieces = chain([head], iter(partial(file.read, _PIECE), b""))
        data = _join(source, pieces if new_frame is None else _decompress(pieces, new_frame))
    _refuse_binary(source, data)
    return data


def _join(source: str, chunks: Iterable[bytes]) -> bytes:
    """Join chunks, up to the size limit."""
    limit = _size_limit()
    out = io.BytesIO()
    for chunk in chunks:
        if not out.tell():  # before much is read: a device has no end
            _refuse_binary(source, chunk)
        out.write(chunk)
        if out.tell() > limit:
            raise InputError(
                f"{source}: this is more than {limit / 2**30:g} GiB after decompression; to read "
                f"it, set the environment variable {LIMIT} to a larger number"
            )
    return out.getvalue()


def _decompress(pieces: Iterable[bytes], new_frame: NewFrame) -> Iterator[bytes]:
    """Decompress all frames (gzip: members, xz: streams); zeros between them are skipped.

    The readers of the libraries cannot be used: `lzma.LZMAFile` ignores data after zeros or garbage
    that follow a frame, and ``stream_reader`` of zstandard does not detect a truncated frame.
    """
    frame = None
    for data in pieces:
        while data:
            if frame is None and not (data := data.lstrip(b"\0")):
                break
            frame = frame or new_frame()
            yield frame.decompress(data)
            data = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("the file ends in the middle of it")


def _frame_type(head: bytes) -> NewFrame | None:
    """Return the decompressor of a file with these first bytes; None if it is not compressed."""
    if head.startswith(b"\x1f\x8b"):
        return partial(zlib.decompressobj, 16 + zlib.MAX_WBITS)  # gzip
    if head.startswith(b"\xfd7zXZ\0"):
        return partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=1 << 30)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        whole: Any = zstd.ZstdDecompressor  # of zstandard: makes decompressors of one frame
        new: NewFrame = getattr(whole(), "decompressobj", whole)
        return new
    return None


def _refuse_binary(source: str, beginning: bytes) -> None:
    if b"\0" in beginning[:_LOOKED_AT] and not beginning.startswith(PARQUET):
        raise InputError(f"{source}: this is a binary file of an unknown format")


def _is_regular(file: IO[bytes]) -> bool:
    """Return whether this is a regular file, not a pipe or a device."""
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, AttributeError):  # not a system file
        return False


def _size_limit() -> float:
    """Return the largest number of bytes to read from a compressed file, a pipe or a device."""
    given = os.environ.get(LIMIT, str(_DEFAULT_GIB))
    try:
        gibibytes = float(given)
    except ValueError:
        gibibytes = math.nan
    if not gibibytes > 0:
        raise InputError(f"{LIMIT} must be a number above 0, not {given!r:.60}")
    return gibibytes * 2**30
