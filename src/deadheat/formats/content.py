"""What is in a file: its bytes, decompressed, all of them, and not without end."""

from __future__ import annotations

import gzip
import io
import lzma
import math
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from deadheat.errors import InputError

LIMIT = "DEADHEAT_MAX_GIB"
"""The environment variable that says how much may come out of a compressed file or a pipe."""
_DEFAULT_GIB = 4.0
_PIECE = 1 << 12  # zstandard cannot limit what comes out of a piece, up to 2**15 times its size
_CHUNK = 1 << 20
_LONGEST_MAGIC = 6
_LOOKED_AT = 4096
"""Bytes among which a zero tells that a file is no text."""
PARQUET = b"PAR1"
"""How Parquet files begin and end."""
_MARK = b"\xef\xbb\xbf"
# The beginnings of gzip, zstd and zlib; those of zlib are letters: an id may begin with x^.
_TAKEN_FOR_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"x\x01", b"x^", b"x\x9c", b"x\xda")


def content(source: str, file: IO[bytes]) -> io.BytesIO:
    """Read a file to its end, decompressed, without a byte order mark.

    A plain file is as long as it is. What comes out of a compressed file, a pipe or a device is
    limited: a few bytes can stand for more than any memory holds, and ``/dev/zero`` has no end.
    """
    try:
        data = _read(source, file).removeprefix(_MARK)
    except (gzip.BadGzipFile, EOFError, lzma.LZMAError, zlib.error, _DamagedError) as error:
        raise InputError(f"{source}: the compressed data is damaged ({error})") from None
    except MemoryError:
        raise InputError(f"{source}: it does not fit in memory") from None
    if not data or data.isspace():
        raise InputError(f"{source}: the file is empty")
    return io.BytesIO(data)


def _read(source: str, file: IO[bytes]) -> bytes:
    if isinstance(file, io.BufferedReader) and isinstance(file.raw, io.FileIO):
        whole = _read_plain(source, file, file.raw)
        if whole is not None:
            return whole
    head = file.read(_LONGEST_MAGIC)
    limit = size_limit()
    out = io.BytesIO()
    for chunk in (_opener(head) or _plain)(_Rejoined(head, file)):
        out.write(chunk)
        if out.tell() > limit:
            raise InputError(
                f"{source}: this is more than {limit / 2**30:g} GiB, after decompression; if "
                f"that is right, set the environment variable {LIMIT} to a larger number"
            )
        if out.tell() == len(chunk):
            _refuse_binary(source, chunk)
    return out.getvalue()


def _read_plain(source: str, file: io.BufferedReader, raw: io.FileIO) -> bytes | None:
    """Read a file that is neither compressed nor without end; None if it is."""
    if not _is_regular(file) or _opener(file.peek(_LONGEST_MAGIC)) is not None:
        return None
    raw.seek(file.tell())  # in one go, past the buffer, from which it would be copied
    data: bytes = raw.readall()
    _refuse_binary(source, data)
    return data


def as_it_is(data: bytes) -> bytes:
    """Give lines to polars so that it does not decompress them, which it would do without a limit.

    A byte order mark, which polars drops, keeps it from looking.
    """
    return _MARK + data if data.startswith(_TAKEN_FOR_COMPRESSED) else data


class _DamagedError(Exception):
    """Compressed data that cannot be read."""


def _refuse_binary(source: str, beginning: bytes) -> None:
    if b"\0" in beginning[:_LOOKED_AT] and not beginning.startswith(PARQUET):
        raise InputError(f"{source}: this is a binary file that deadheat does not know")


def _is_regular(file: IO[bytes]) -> bool:
    """Whether a file has an end that the system knows, unlike a pipe or a device."""
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, AttributeError):  # not a file of the system
        return False


def size_limit() -> float:
    """Bytes to read at most of what may have no end."""
    given = os.environ.get(LIMIT, str(_DEFAULT_GIB))
    try:
        gibibytes = float(given)
    except ValueError:
        gibibytes = math.nan
    if not gibibytes > 0:
        raise InputError(f"{LIMIT} must be a number above 0, not {given!r:.60}")
    return gibibytes * 2**30


class _Rejoined:
    """A file whose first bytes were read already."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes."""
        head, self._head = self._head[:size], self._head[size:]
        return head or self._rest.read(size)


def _opener(head: bytes) -> Callable[[Any], Iterator[bytes]] | None:
    """What decompresses a file that begins so; None if it is not compressed."""
    openers = {b"\x1f\x8b": _gzip, b"\xfd7zXZ\0": _xz, b"\x28\xb5\x2f\xfd": _zstd}
    return next((opener for magic, opener in openers.items() if head.startswith(magic)), None)


def _plain(file: Any) -> Iterator[bytes]:
    return iter(lambda: file.read(_CHUNK), b"")


def _gzip(file: Any) -> Iterator[bytes]:
    return _plain(gzip.GzipFile(fileobj=file))


def _xz(file: Any) -> Iterator[bytes]:
    def stream() -> Any:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=1 << 30)

    return _frames(file, stream, padding=4)


def _zstd(file: Any) -> Iterator[bytes]:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return _reporting(_frames(file, zstd.ZstdDecompressor), zstd.ZstdError)
    import zstandard

    return _reporting(_frames(file, _ZstandardFrame), zstandard.ZstdError)


def _reporting(chunks: Iterator[bytes], error: type[Exception]) -> Iterator[bytes]:
    try:
        yield from chunks
    except error as reason:
        raise _DamagedError(reason) from None


def _frames(file: Any, frame: Callable[[], Any], padding: int = 0) -> Iterator[bytes]:
    """Decompress one frame (xz: stream) after the other, to the end of the file.

    `frame` makes what `lzma.LZMADecompressor` is. Between streams of xz there may be zeros, in
    groups of four; anything else that is no frame is an error.
    """
    data = file.read(_PIECE)
    while data:
        decompressor = frame()
        while not decompressor.eof:
            yield decompressor.decompress(data, _CHUNK)
            data = b""
            if not decompressor.eof and decompressor.needs_input:
                data = file.read(_PIECE)
                if not data:
                    raise EOFError("the file ends in the middle of it")
        data = decompressor.unused_data or file.read(_PIECE)
        while padding and data.startswith(bytes(padding)):
            data = data[padding:] + (file.read(_PIECE) if len(data) < 2 * padding else b"")


class _ZstandardFrame:
    """A frame of the package ``zstandard``, with the interface of `lzma.LZMADecompressor`."""

    needs_input = True

    def __init__(self) -> None:
        import zstandard

        self._frame = zstandard.ZstdDecompressor().decompressobj()

    def decompress(self, data: bytes, _: int) -> bytes:
        """Decompress a piece."""
        return bytes(self._frame.decompress(data))

    @property
    def eof(self) -> bool:
        """Whether the frame has ended."""
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        """What followed the frame."""
        return bytes(self._frame.unused_data)
