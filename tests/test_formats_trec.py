"""TREC files: read in every spelling, and written so that nothing is lost."""

from __future__ import annotations

import gzip
import io
import itertools
import lzma
import math
import struct
import sys

import pytest
import zstandard
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ways_in import QRELS, RUN, rows, same, scattered, written

import deadheat as dh
from deadheat.formats import trec

pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")


def trec_text(nested: dict, sep: str = " ", end: str = "\n", order=rows) -> str:
    lines = []
    for rank, (q, d, x) in enumerate(order(nested), 1):
        fields = [q, "0", d, str(x)] if nested is QRELS else [q, "Q0", d, str(rank), repr(x), "tag"]
        lines.append(sep.join(fields))
    return end.join(lines) + end


@pytest.fixture(autouse=True)
def not_a_comment(monkeypatch):
    """A TREC line that begins with # is a comment, so files name that query otherwise."""
    for nested in (QRELS, RUN):
        monkeypatch.setitem(nested, "three#", nested["#3"])
        monkeypatch.delitem(nested, "#3")


@pytest.mark.parametrize("sep", [" ", "\t", "  ", " \t ", "\x0b", "\x0c"])
@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "\t\r\n", "\n\n", "\n# a comment\n"])
@pytest.mark.parametrize("order", [rows, scattered])
def test_trec_files(tmp_path, sep, end, order):
    qrels = written(tmp_path, "qrels", trec_text(QRELS, sep, end, order))
    run = written(tmp_path, "run", trec_text(RUN, sep, end, order))
    same(qrels, run)
    same(str(qrels), str(run), tie_break="id_desc")


def test_trec_file_without_a_final_newline_and_with_blanks_around(tmp_path):
    qrels = written(tmp_path, "qrels", "\n \n# first\n" + trec_text(QRELS).rstrip("\n"))
    run = written(tmp_path, "run", " " + trec_text(RUN).replace("\n", "\n\t ").rstrip())
    same(qrels, run)


def test_trec_file_of_mixed_separators(tmp_path):
    seps = itertools.cycle([" ", "\t", "  \t", "\t\t"])
    run = "".join(c if c != " " else next(seps) for c in trec_text(RUN))
    same(written(tmp_path, "qrels", trec_text(QRELS, "\t")), written(tmp_path, "run", run))


def test_trec_file_with_a_byte_order_mark(tmp_path):
    for sep in (" ", "  "):  # read by polars, and line by line
        same(
            written(tmp_path, "qrels", "\ufeff" + trec_text(QRELS, sep)),
            written(tmp_path, "run", "\ufeff" + trec_text(RUN, sep)),
        )


PACK = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
@pytest.mark.parametrize("named", [True, False])
def test_trec_compressed(tmp_path, pack, named):
    ending = {v: k for k, v in PACK.items()}[pack] if named else "txt"
    same(
        written(tmp_path, f"qrels.{ending}", pack(trec_text(QRELS).encode())),
        written(tmp_path, f"run.{ending}", pack(trec_text(RUN).encode())),
    )


@pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
def test_trec_compressed_in_several_pieces(tmp_path, pack):
    lines = trec_text(RUN).encode().splitlines(keepends=True)
    run = written(tmp_path, "run", b"".join(map(pack, lines)))
    same(written(tmp_path, "qrels", trec_text(QRELS)), run)


def test_trec_from_standard_input(tmp_path, monkeypatch):
    qrels = written(tmp_path, "qrels", trec_text(QRELS))
    for data in (trec_text(RUN).encode(), gzip.compress(trec_text(RUN).encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        same(qrels, "-")


def test_trec_rank_column(tmp_path):
    run = written(tmp_path, "run", "q Q0 a 2 0.5 t\nq Q0 b 1 0.5 t\n")
    assert dh.evaluate({"q": {"b": 1}}, run, "MRR", tie_break="rank")["MRR"].oblivious == 1
    assert dh.evaluate({"q": {"b": 1}}, run, "MRR")["MRR"].oblivious == 0.5


# the two readers of TREC files

NUMBERS = """
1 0.5 1e400 -1e400 +1.5 nan NaN -nan +nan inf -inf Infinity -infinity 0x10 1_0 .5 5. -.5 1e-400 -0
1e e5 . + - 1d5 1f 1E5 1e+5 0.1234567890123456789012345 9007199254740993 5e-324 00012 1,5 ++1 true
2.4703282292062328e-324 1.7976931348623159e308 8.98846567431158e307 infin nan(1) 0.30000000000000004
123456789012345678901234567890
"""
ids = st.one_of(
    st.sampled_from(["a", "b2", "é", "d#1", "#d", '"d"', '"', "'", "null", "NA", "\\N", ",", "-"]),
    st.text("ab#\"'\0\x0b\x0c\x1c\x1f\x85\u00a0\u2003\u2028\ufeff\r文", max_size=3),
)
numbers = st.one_of(
    st.sampled_from(NUMBERS.split()),
    st.floats().map(repr),
    st.text('0123456789+-.e_ "', max_size=5),
)
breaks = st.sampled_from(["\n"] * 5 + ["\r\n"] * 3 + ["\r", "\n\n", " \n", "\n#c\n", "\n #c\n"])


@st.composite
def trec_files(draw):
    fields, number = draw(
        st.sampled_from([(trec.RUN_FIELDS, "score"), (trec.QRELS_FIELDS, "relevance")])
    )
    separator = st.just(draw(st.sampled_from(" \t")))
    if draw(st.booleans()):
        separator = st.sampled_from([" ", " ", "\t", "  ", "\x0b", "\x0c", " \t"])
    ending = breaks if draw(st.booleans()) else st.just(draw(st.sampled_from(["\n", "\r\n"])))
    text = draw(st.sampled_from(["", "", "#c x\n", "\n", "\ufeff"]))
    plain = draw(st.booleans())
    for _ in range(draw(st.integers(0, 4))):
        for i, name in enumerate(fields):
            text += draw(separator) if i else ""
            text += draw(numbers if name == number else st.just("a") if plain else ids)
        text += draw(ending)
    data = text.rstrip("\r\n").encode() if draw(st.booleans()) else text.encode()
    if draw(st.integers(0, 20)) == 20:
        data = data.replace("é".encode(), b"\xe9")
    return fields, number, data


@settings(max_examples=400)
@given(trec_files())
def test_the_fast_reader_agrees_with_the_definition(file):
    fields, number, data = file
    keep = tuple(f for f in fields if f in ("query_id", "doc_id", "rank", number))
    fast = trec._read_regular(data, fields, number, keep)
    assume(fast is not None)
    slow = trec._read_any("file", data, fields, number, keep)
    others = [name for name in keep if name != number]
    assert fast.select(others).rows() == slow.select(others).rows()
    for a, b in zip(fast[number], slow[number], strict=True):
        assert struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))


def test_the_fast_reader_accepts_what_is_regular():
    for sep, end in itertools.product(" \t", ("\n", "\r\n")):
        data = sep.join(["q", "Q0", 'd"#1', "1", "0.5", "t"]) + end
        frame = trec._read_regular(data.encode(), trec.RUN_FIELDS, "score", ("doc_id", "score"))
        assert frame is not None
        assert frame.rows() == [('d"#1', 0.5)]
