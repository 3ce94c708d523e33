"""Files that are damaged, endless or full of air: all is read, or an error is given."""

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
from hypothesis import given, settings
from hypothesis import strategies as st
from ways_in import written

import deadheat as dh
from deadheat.formats import content
from deadheat.formats.parquet_pages import WrongPagesError, check_pages
from deadheat.formats.write import to_parquet

LINES = [b"q Q0 d%d 1 0.5 t\n" % i for i in range(300)]
FIRST, SECOND = b"".join(LINES[:150]), b"".join(LINES[150:])
CHECKED = zstandard.ZstdCompressor(write_checksum=True)
PACK = {"gz": gzip.compress, "xz": lzma.compress, "zst": CHECKED.compress}


@pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
def test_a_damaged_second_stream_is_never_dropped(tmp_path, pack):
    first, second = pack(FIRST), pack(SECOND)
    whole = written(tmp_path, "run", first + second)
    assert len(dh.read_run(whole).scores) == 300
    for place in range(0, len(second), 3):
        damaged = bytearray(second)
        damaged[place] ^= 0xFF
        path = written(tmp_path, "run", first + damaged)
        try:
            scores = dh.read_run(path).scores
        except dh.InputError as error:
            assert "damaged" in str(error)
        else:  # a byte that says nothing, like the time of writing in gzip
            assert len(scores) == 300
    for cut in range(1, len(second), 3):
        with pytest.raises(dh.InputError, match="damaged"):
            dh.read_run(written(tmp_path, "run", first + second[:cut]))
    for garbage in (b"x", b"garbage", FIRST, b"\0\0x", first[:6]):
        with pytest.raises(dh.InputError, match="damaged"):
            dh.read_run(written(tmp_path, "run", first + garbage))


def test_padding_between_streams_of_xz(tmp_path):
    first, second = lzma.compress(FIRST), lzma.compress(SECOND)
    padded = written(tmp_path, "run", first + bytes(8) + second + bytes(5000 * 4))
    assert len(dh.read_run(padded).scores) == 300
    with pytest.raises(dh.InputError, match="damaged"):
        dh.read_run(written(tmp_path, "run", first + bytes(5) + second))


@pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
def test_a_bomb_is_refused_with_the_way_to_raise_the_limit(tmp_path, monkeypatch, pack):
    bomb = written(tmp_path, "bomb", pack(LINES[0] + b"#" * 2_000_000))
    monkeypatch.setenv("DEADHEAT_MAX_GIB", "0.001")
    with pytest.raises(dh.InputError, match=r"more than 0.001 GiB.*DEADHEAT_MAX_GIB"):
        dh.read_run(bomb)
    monkeypatch.setenv("DEADHEAT_MAX_GIB", "0.01")
    assert len(dh.read_run(bomb).scores) == 1
    monkeypatch.setenv("DEADHEAT_MAX_GIB", "0.001")
    plain = written(tmp_path, "plain", LINES[0] + b"#" * 2_000_000)
    assert len(dh.read_run(plain).scores) == 1  # as long as it says it is


@pytest.mark.parametrize("value", ["0", "-1", "many", "nan", ""])
def test_the_limit_is_a_number(tmp_path, monkeypatch, value):
    monkeypatch.setenv("DEADHEAT_MAX_GIB", value)
    with pytest.raises(dh.InputError, match="DEADHEAT_MAX_GIB must be a number above 0"):
        dh.read_run(written(tmp_path, "run", gzip.compress(FIRST)))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device here")
def test_what_never_ends_is_refused(monkeypatch):
    with pytest.raises(dh.InputError, match="/dev/zero: this is a binary file"):
        dh.read_run("/dev/zero")
    monkeypatch.setenv("DEADHEAT_MAX_GIB", "0.01")
    yes = subprocess.Popen(["yes", "q 0 d 1"], stdout=subprocess.PIPE)
    try:
        with pytest.raises(dh.InputError, match=r"more than 0.01 GiB.*DEADHEAT_MAX_GIB"):
            dh.read_qrels(f"/dev/fd/{yes.stdout.fileno()}")
    finally:
        yes.kill()
        yes.communicate()


def test_a_pipe_may_give_a_byte_at_a_time():
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
        assert content.content("pipe", file).read() == FIRST + SECOND


# JSON


def test_a_repeated_key_is_found_in_linear_time(tmp_path):
    pairs = ",".join(f'"d{i}": 1' for i in range(100_000))
    path = written(tmp_path, "run.json", '{"q": {' + pairs + ', "d99999": 1}}')
    begin = time.perf_counter()
    with pytest.raises(dh.InputError, match="key 'd99999' appears twice"):
        dh.read_run(path)
    assert time.perf_counter() - begin < 30  # it took minutes


DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("run.json", f'{{"q": {{"d": {DEEP}}}}}'),
        ("run.jsonl", f'{{"query_id": "q", "doc_id": "d", "score": 1, "x": {DEEP}}}\n'),
        ("run.txt", '{"a":' * 100_000),
    ],
)
def test_deep_json_is_refused(tmp_path, name, data):
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


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(4, len(PARQUET) - 1), st.integers(0, 255)), min_size=1),
    st.integers(0, len(PARQUET)),
)
def test_damaged_parquet_is_read_or_refused(tmp_path, changes, cut):
    data = bytearray(PARQUET)
    for place, value in changes:
        data[place] = value
    for damaged in (data, data[:cut], data[:cut] + PARQUET[-8:]):
        try:
            dh.read_run(written(tmp_path, "run.parquet", bytes(damaged)))
        except dh.InputError as error:
            assert "run.parquet" in str(error)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_of_every_kind_pass(version):
    """Nulls, lists, maps, booleans, several pages and groups; by polars and by pyarrow."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    values = {
        "text": ["x", None] * 500,
        "whole": list(range(1000)),
        "flag": [True] * 1000,
        "map": pa.array([[("k", 1)]] * 1000, pa.map_(pa.string(), pa.int64())),
    }
    file = io.BytesIO()
    parquet.write_table(
        pa.table(values), file, data_page_version=version, data_page_size=100, row_group_size=300
    )
    check_pages(file)
    for compression in ("uncompressed", "snappy", "zstd", "gzip"):
        file = io.BytesIO()
        nested = FRAME.with_columns(lists=pl.lit([1, 2]))
        nested.write_parquet(file, compression=compression, row_group_size=7, data_page_size=20)
        check_pages(file)
    file = io.BytesIO()
    FRAME.clear().write_parquet(file)
    check_pages(file)


@pytest.mark.parametrize("claim", [-1, -(2**40), 2**40, 2**61])
def test_a_page_that_claims_what_cannot_be_is_refused(tmp_path, claim):
    """Polars would ask for so much memory that the process is ended."""
    file = io.BytesIO()
    FRAME.write_parquet(file, compression="uncompressed", statistics=False)
    data = file.getvalue()
    # A data page: type 0, its sizes, then a struct whose first number is that of its values.
    honest = bytes([0x15, 0x00, 0x15]), bytes([0x2C, 0x15, 2 * len(FRAME), 0x15])
    start = data.index(honest[0])
    place = data.index(honest[1], start) + 2
    damaged = data[:place] + varint(claim) + data[place + 1 :]
    with pytest.raises(dh.InputError, match=r"run.parquet: cannot be read as PARQUET"):
        dh.read_run(written(tmp_path, "run.parquet", damaged))
    with pytest.raises(WrongPagesError):
        check_pages(io.BytesIO(damaged))


def varint(number: int) -> bytes:
    """A number as Thrift's compact protocol writes it."""
    zigzag = (number << 1) ^ (number >> 63)
    zigzag &= 2**64 - 1
    out = bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    return bytes([*out, zigzag])


def test_a_panic_of_polars_is_an_error_without_a_report(tmp_path, monkeypatch, capfd):
    """Polars' threads report a panic to the file descriptor; what others say there is kept."""

    def panicking(_):
        os.write(2, b"thread '<unnamed>' panicked\n")
        raise pl.exceptions.PanicException("index out of bounds")

    path = written(tmp_path, "run.parquet", PARQUET)
    with monkeypatch.context() as patch:
        patch.setattr(pl, "scan_parquet", panicking)
        with pytest.raises(dh.InputError, match=r"cannot be read as PARQUET: index out of bounds"):
            dh.read_run(path)
    assert capfd.readouterr().err == ""
    scan = pl.scan_parquet
    monkeypatch.setattr(pl, "scan_parquet", lambda f: [os.write(2, b"a word\n"), scan(f)][1])
    assert len(dh.read_run(path).scores) == 60
    assert capfd.readouterr().err == "a word\n"


def test_parquet_without_standard_error(tmp_path):
    path = written(tmp_path, "run.parquet", PARQUET)
    code = f"import os, deadheat as dh; os.close(2); print(len(dh.read_run({str(path)!r}).scores))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout == "60\n"


def test_a_long_name_is_not_repeated_in_full():
    with pytest.raises(dh.InputError, match="cannot be read") as refused:
        dh.read_run("n" * 5_000)
    assert len(str(refused.value)) < 300
