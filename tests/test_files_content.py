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


@pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
def test_zeros_between_streams_hold_nothing(tmp_path, pack):
    first, second = pack(FIRST), pack(SECOND)
    padded = written(tmp_path, "run", first + bytes(8) + second + bytes(5000 * 4))
    assert len(dh.read_run(padded).scores) == 300


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=4), st.integers(1, 40))
@pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
def test_streams_are_read_however_their_bytes_arrive(pack, texts, size):
    packed = b"".join(map(pack, texts))
    pieces = [packed[i : i + size] for i in range(0, len(packed), size)]
    new_frame = content._frame_type(packed[:6])
    assert b"".join(content._decompress(pieces, new_frame)) == b"".join(texts)
    with pytest.raises(EOFError):
        b"".join(content._decompress([packed[:-1]], new_frame))


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
    with pytest.raises(dh.InputError, match=r"DEADHEAT_MAX_GIB .*above 0"):
        dh.read_run(written(tmp_path, "run", gzip.compress(FIRST)))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device here")
def test_what_never_ends_is_refused(monkeypatch):
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
        assert content.read_content("pipe", file).read() == FIRST + SECOND


# JSON


def test_a_repeated_key_is_found_in_linear_time(tmp_path):
    pairs = ",".join(f'"d{i}": 1' for i in range(100_000))
    path = written(tmp_path, "run.json", '{"q": {' + pairs + ', "d99999": 1}}')
    begin = time.perf_counter()
    with pytest.raises(dh.InputError, match=r"'d99999' .*twice"):
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


@given(st.integers(0, len(PARQUET) - 1))
def test_cut_parquet_is_refused(tmp_path, cut):
    with pytest.raises(dh.InputError, match=r"run\.parquet"):
        dh.read_run(written(tmp_path, "run.parquet", PARQUET[:cut]))


@given(st.binary(max_size=40), st.integers(0, 2**32 - 1))
def test_parquet_with_another_footer_is_refused(tmp_path, garbage, length):
    """The footer is not longer than the file, or is not what the format has there."""
    data = b"PAR1" + garbage + length.to_bytes(4, "little") + b"PAR1"
    with pytest.raises(dh.InputError, match=r"run\.parquet: cannot be read as Parquet"):
        dh.read_run(written(tmp_path, "run.parquet", data))


def test_a_panic_of_polars_is_an_input_error(tmp_path, monkeypatch):
    def panicking(_):
        raise pl.exceptions.PanicException("index out of bounds")

    path = written(tmp_path, "run.parquet", PARQUET)
    monkeypatch.setattr(parquet.pl, "scan_parquet", panicking)
    with pytest.raises(dh.InputError, match=r"cannot be read as Parquet: index out of bounds"):
        dh.read_run(path)


def test_reading_parquet_leaves_standard_error_alone(tmp_path, monkeypatch, capfd):
    """What any thread writes while a file is read is there at once."""
    path = written(tmp_path, "run.parquet", PARQUET)
    seen = []
    scan = pl.scan_parquet

    def writing(file):
        os.write(2, b"a word\n")
        seen.append(capfd.readouterr().err)
        return scan(file)

    monkeypatch.setattr(parquet.pl, "scan_parquet", writing)
    assert len(dh.read_run(path).scores) == 60
    assert seen == ["a word\n"]


def test_parquet_without_standard_error(tmp_path):
    path = written(tmp_path, "run.parquet", PARQUET)
    code = f"import os, deadheat as dh; os.close(2); print(len(dh.read_run({str(path)!r}).scores))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout == "60\n"


def test_a_long_name_is_not_repeated_in_full():
    with pytest.raises(dh.InputError, match="cannot be read") as refused:
        dh.read_run("n" * 5_000)
    assert len(str(refused.value)) < 300
