"""Damaged, endless and highly compressed files: read completely or rejected with an error."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
import zstandard
from hypothesis import given, strategies as st
from ways_in import written

import deadheat as dh
from deadheat.formats import content, parquet
from deadheat.formats.write import to_parquet

LINES = [b"q Q0 d%d 1 0.5 t\n" % i for i in range(300)]
FIRST, SECOND = b"".join(LINES[:150]), b"".join(LINES[150:])
CHECKED = zstandard.ZstdCompressor(write_checksum=True)
PACK = {"gz": gzip.compress, "xz": lzma.compress, "zst": CHECKED.compress}


@pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
def test_damaged_second_stream_is_rejected(tmp_path, pack):
    first, second = pack(FIRST), pack(SECOND)
    intact = written(tmp_path, "run", first + second)
    assert len(dh.read_run(intact).scores) == 300
    for position in range(0, len(second), 3):
        damaged = bytearray(second)
        damaged[position] ^= 0xFF
        path = written(tmp_path, "run", first + damaged)
        try:
            scores = dh.read_run(path).scores
        except dh.InputError as error:
            assert "damaged" in str(error)
        else:  # a byte that does not affect the content, such as gzip's timestamp
            assert len(scores) == 300
    for cut in range(1, len(second), 3):
        with pytest.raises(dh.InputError, match="damaged"):
            dh.read_run(written(tmp_path, "run", first + second[:cut]))
    for garbage in (b"x", b"garbage", FIRST, b"\0\0x", first[:6]):
        with pytest.raises(dh.InputError, match="damaged"):
            dh.read_run(written(tmp_path, "run", first + garbage))


@pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
def test_zero_padding_between_streams_is_ignored(tmp_path, pack):
    first, second = pack(FIRST), pack(SECOND)
    padded = written(tmp_path, "run", first + bytes(8) + second + bytes(5000 * 4))
    assert len(dh.read_run(padded).scores) == 300


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=4), st.integers(1, 40))
@pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
def test_decompression_does_not_depend_on_chunk_size(pack, texts, size):
    packed = b"".join(map(pack, texts))
    pieces = [packed[i : i + size] for i in range(0, len(packed), size)]
    new_frame = content._frame_type(packed[:6])
    assert b"".join(content._decompress(pieces, new_frame)) == b"".join(texts)
    with pytest.raises(EOFError):
        b"".join(content._decompress([packed[:-1]], new_frame))


@pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
def test_decompression_bomb_error_names_the_limit_variable(tmp_path, monkeypatch, pack):
    bomb = written(tmp_path, "bomb", pack(LINES[0] + b"#" * 2_000_000))
    monkeypatch.setenv("DEADHEAT_MAX_GIB", "0.001")
    with pytest.raises(dh.InputError, match=r"more than 0.001 GiB.*DEADHEAT_MAX_GIB"):
        dh.read_run(bomb)
    monkeypatch.setenv("DEADHEAT_MAX_GIB", "0.01")
    assert len(dh.read_run(bomb).scores) == 1
    monkeypatch.setenv("DEADHEAT_MAX_GIB", "0.001")
    plain = written(tmp_path, "plain", LINES[0] + b"#" * 2_000_000)
    assert len(dh.read_run(plain).scores) == 1  # the size of an uncompressed file is known


@pytest.mark.parametrize("value", ["0", "-1", "many", "nan", ""])
def test_size_limit_must_be_a_positive_number(tmp_path, monkeypatch, value):
    monkeypatch.setenv("DEADHEAT_MAX_GIB", value)
    with pytest.raises(dh.InputError, match=r"DEADHEAT_MAX_GIB .*above 0"):
        dh.read_run(written(tmp_path, "run", gzip.compress(FIRST)))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device here")
def test_endless_input_is_rejected(monkeypatch):
    with pytest.raises(dh.InputError, match=r"/dev/zero: .*binary"):
        dh.read_run("/dev/zero")
    monkeypatch.setenv("DEADHEAT_MAX_GIB", "0.01")
    yes = subprocess.Popen(["yes", "q 0 d 1"], stdout=subprocess.PIPE)
    try:
        with pytest.raises(dh.InputError, match=r"more than 0.01 GiB.*DEADHEAT_MAX_GIB"):
            dh.read_qrels(f"/dev/fd/{yes.stdout.fileno()}")
    finally:
        yes.kill()
        yes.communicate()


def test_pipe_that_returns_one_byte_per_read():
    class Trickle(io.RawIOBase):
        def __init__(self, data):
            self.data = io.BytesIO(data)

        def readable(self):
            return True

        def readinto(self, buffer):
            piece = self.data.read(1)
            buffer[: len(piece)] = piece
            return len(piece)

    for pack in PACK.values():
        file = io.BufferedReader(Trickle(pack(FIRST) + pack(SECOND)))
        assert content.read_content("pipe", file).read() == FIRST + SECOND


# JSON


def test_duplicate_json_key_is_detected_in_linear_time(tmp_path):
    pairs = ",".join(f'"d{i}": 1' for i in range(100_000))
    path = written(tmp_path, "run.json", '{"q": {' + pairs + ', "d99999": 1}}')
    begin = time.perf_counter()
    with pytest.raises(dh.InputError, match=r"'d99999' .*twice"):
        dh.read_run(path)
    assert time.perf_counter() - begin < 30  # a quadratic check took minutes


DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("run.json", f'{{"q": {{"d": {DEEP}}}}}'),
        ("run.jsonl", f'{{"query_id": "q", "doc_id": "d", "score": 1, "x": {DEEP}}}\n'),
        ("run.txt", '{"a":' * 100_000),
    ],
)
def test_deeply_nested_json_is_rejected(tmp_path, name, data):
    with pytest.raises(dh.InputError, match=name):
        dh.read_run(written(tmp_path, name, data))
    with pytest.raises(dh.InputError, match="not valid JSON"):
        dh.Result.from_json(DEEP)


# Parquet

FRAME = pl.DataFrame(
    {
        "query_id": [f"q{i // 7}" for i in range(60)],
        "doc_id": [f"d{i}" for i in range(60)],
        "score": [i / 7 for i in range(60)],
    }
)
PARQUET = to_parquet(FRAME)


@given(st.integers(0, len(PARQUET) - 1))
def test_truncated_parquet_is_rejected(tmp_path, cut):
    with pytest.raises(dh.InputError, match=r"run\.parquet"):
        dh.read_run(written(tmp_path, "run.parquet", PARQUET[:cut]))


@given(st.binary(max_size=40), st.integers(0, 2**32 - 1))
def test_parquet_with_an_invalid_footer_is_rejected(tmp_path, garbage, length):
    """The footer length may exceed the file, and the footer itself may be garbage."""
    data = b"PAR1" + garbage + length.to_bytes(4, "little") + b"PAR1"
    with pytest.raises(dh.InputError, match=r"run\.parquet: cannot be read as Parquet"):
        dh.read_run(written(tmp_path, "run.parquet", data))


def test_polars_panic_becomes_an_input_error(tmp_path, monkeypatch):
    def panic(_):
        raise pl.exceptions.PanicException("index out of bounds")

    path = written(tmp_path, "run.parquet", PARQUET)
    monkeypatch.setattr(parquet.pl, "scan_parquet", panic)
    with pytest.raises(dh.InputError, match=r"cannot be read as Parquet: index out of bounds"):
        dh.read_run(path)


def test_reading_parquet_does_not_redirect_stderr(tmp_path, monkeypatch, capfd):
    """Text that another thread writes meanwhile reaches standard error at once."""
    path = written(tmp_path, "run.parquet", PARQUET)
    captured = []
    scan = pl.scan_parquet

    def write_and_scan(file):
        os.write(2, b"a word\n")
        captured.append(capfd.readouterr().err)
        return scan(file)

    monkeypatch.setattr(parquet.pl, "scan_parquet", write_and_scan)
    assert len(dh.read_run(path).scores) == 60
    assert captured == ["a word\n"]


def test_parquet_is_read_with_stderr_closed(tmp_path):
    path = written(tmp_path, "run.parquet", PARQUET)
    code = f"import os, deadheat as dh; os.close(2); print(len(dh.read_run({str(path)!r}).scores))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "60\n"


def test_long_file_name_is_shortened_in_the_error():
    with pytest.raises(dh.InputError, match="cannot be read") as caught:
        dh.read_run("n" * 5_000)
    assert len(str(caught.value)) < 300
