"""TREC files: every accepted syntax is read, and writing loses nothing."""

from __future__ import annotations

import gzip
import io
import itertools
import lzma
import math
import struct
import sys
from urllib.parse import unquote

import numpy as np
import polars as pl
import pytest
import zstandard
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from ways_in import QRELS, RUN, rows, same, scattered, written

import deadheat as dh
from deadheat.formats import trec
from deadheat.formats.write import trec_id, trec_qrels, trec_run

pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")


def trec_text(nested: dict, sep: str = " ", end: str = "\n", order=rows) -> str:
    lines = []
    for rank, (q, d, x) in enumerate(order(nested), 1):
        fields = [q, "0", d, str(x)] if nested is QRELS else [q, "Q0", d, str(rank), repr(x), "tag"]
        lines.append(sep.join(fields))
    return end.join(lines) + end


@pytest.fixture(autouse=True)
def rename_comment_like_query(monkeypatch):
    """Rename the query "#3", because a TREC line that starts with # is a comment."""
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


def test_trec_file_with_blank_lines_and_no_final_newline(tmp_path):
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
def test_trec_compressed_in_several_streams(tmp_path, pack):
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


@settings(max_examples=400, suppress_health_check=[HealthCheck.filter_too_much])
@given(trec_files())
def test_fast_reader_matches_the_reference_reader(file):
    fields, number, data = file
    keep = tuple(f for f in fields if f in ("query_id", "doc_id", "rank", number))
    fast = trec._read_regular(data, fields, number, keep)
    assume(fast is not None)
    slow = trec._read_any("file", data, fields, number, keep)
    others = [name for name in keep if name != number]
    assert fast.select(others).rows() == slow.select(others).rows()
    for a, b in zip(fast[number], map(float, slow[number]), strict=True):
        assert struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))


def test_fast_reader_accepts_regular_files():
    for sep, end in itertools.product(" \t", ("\n", "\r\n")):
        data = sep.join(["q", "Q0", 'd"#1', "1", "0.5", "t"]) + end
        frame = trec._read_regular(data.encode(), trec.RUN_FIELDS, "score", ("doc_id", "score"))
        assert frame is not None
        assert frame.rows() == [('d"#1', 0.5)]


# written files

unusual_ids = st.one_of(
    st.text(min_size=1, max_size=4),
    st.text("a %#{\0\t\n\r\x1c\x85\xa0\u2028\ufeff\"'25", min_size=1, max_size=4),
)
scored = st.one_of(st.sampled_from([0.5, 0.25, -0.0, 0.0, math.inf]), st.floats())


def as_frame(nested: dict, number: str) -> pl.DataFrame:
    lines = [(query, doc, x) for query, docs in nested.items() for doc, x in docs.items()]
    schema = {"query_id": pl.String, "doc_id": pl.String, number: pl.Float64}
    return pl.DataFrame(lines, schema, orient="row")


@settings(max_examples=150)
@given(
    st.dictionaries(unusual_ids, st.dictionaries(unusual_ids, scored, min_size=1), min_size=1),
    st.sampled_from([pl.Float64, pl.Float32]),
)
def test_written_run_can_be_read_back(tmp_path, lists, dtype):
    frame = as_frame(lists, "score").with_columns(pl.col("score").cast(dtype))
    run = dh.read_run(written(tmp_path, "run", trec_run(frame, "a tag")), with_ranks=True)
    assert run.query_ids == [trec_id(query) for query in lists]
    for q, (query, docs) in enumerate(lists.items()):
        own = slice(run.offsets[q], run.offsets[q + 1])
        given = frame.filter(pl.col("query_id") == query)["score"].to_list()
        # Best first, NaN last, ties in input order, because Python's sort is stable.
        order = sorted(range(len(given)), key=lambda i: (given[i] != given[i], -given[i]))
        assert [float(x).hex() for x in run.scores[own]] == [float(given[i]).hex() for i in order]
        ids = run.documents.ids(np.arange(own.start, own.stop)).to_list()
        assert ids == [trec_id(list(docs)[i]) for i in order]
        assert run.ranks[own].tolist() == list(range(1, len(order) + 1))
        assert [unquote(doc) for doc in ids] == [list(docs)[i] for i in order]


@settings(max_examples=100)
@given(
    st.dictionaries(
        unusual_ids,
        st.dictionaries(unusual_ids, st.integers(-2, 9) | st.floats(-1e100, 1e100), min_size=1),
        min_size=1,
    )
)
def test_written_judgements_can_be_read_back(tmp_path, judged):
    frame = as_frame(judged, "relevance")
    data = trec_qrels(frame)
    qrels = dh.read_qrels(written(tmp_path, "qrels", data))
    assert [unquote(query) for query in qrels.query_ids] == list(judged)
    assert [unquote(doc) for doc in qrels.doc_ids] == frame["doc_id"].to_list()
    assert qrels.grades.tolist() == frame["relevance"].to_list()
    for line, grade in zip(data.decode().split("\n"), frame["relevance"], strict=False):
        if grade.is_integer() and abs(grade) < 1e15:
            assert line.endswith(f" {int(grade)}") or grade == 0  # trec_eval reads whole numbers


def test_scattered_rows_of_a_query_are_ranked_together(tmp_path):
    apart = pl.DataFrame(
        {"query_id": ["b", "a", "b"], "doc_id": ["x", "y", "z"], "score": [1, 5, 2]}
    )
    lines = ["b Q0 z 1 2 t", "b Q0 x 2 1 t", "a Q0 y 1 5 t", ""]
    assert trec_run(apart, "t").decode().split("\n") == lines


def test_unwritable_rows_are_rejected():
    nothing = pl.DataFrame({"query_id": ["q"], "doc_id": [""], "score": [None]})
    with pytest.raises(dh.InputError, match="doc_id of row 1 is empty"):
        trec_run(nothing)
    with pytest.raises(dh.InputError, match=r"score of row 1 \(query 'q'\) is not a number"):
        trec_qrels(nothing.with_columns(doc_id=pl.lit("d")))


FOUR_COLUMNS = "q1\td1\t1\t0.5\nq1\td2\t2\t0.25\nq2\td1\t1\t1e-3\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_four_column_run_is_read(tmp_path, end):
    """Some official runs contain tab-separated query, document, rank and score."""
    run = dh.read_run(
        written(tmp_path, "run.tsv", FOUR_COLUMNS.replace("\n", end)), with_ranks=True
    )
    assert run.query_ids == ["q1", "q2"]
    assert run.documents.ids(np.arange(3)).to_list() == ["d1", "d2", "d1"]
    assert run.scores.tolist() == [0.5, 0.25, 0.001]
    assert run.ranks.tolist() == [1, 2, 1]
    zipped = tmp_path / "run.gz"
    zipped.write_bytes(gzip.compress(f"# a comment{end}\n{FOUR_COLUMNS}".encode()))
    assert dh.read_run(zipped).scores.tolist() == [0.5, 0.25, 0.001]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1\t0\td1\t1\nq1\t0\td2\t0\n", "line 1: .*judgements.*swapped"),
        (
            "q1\t0\t17\t1\nq1\t0\t18\t0\n",
            "line 1: .*judgements.*swapped",
        ),  # ids that look like ranks
        ("q1 d1 1 0.5\nq1 d2 2 0.25\n", "expected 6 fields"),
        (FOUR_COLUMNS + "q2\td2\t2\n", "line 4: .*4 fields .query_id doc_id rank score., found 3"),
        (FOUR_COLUMNS + "q2\td2\t2\thigh\n", "line 4: .*score .*'high'"),
        (FOUR_COLUMNS + "q2\td1\t2\t0.1\n", "'q2' .*'d1' .*once"),
    ],
)
def test_invalid_four_column_run_is_rejected(tmp_path, text, message):
    with pytest.raises(dh.InputError, match=message):
        dh.read_run(written(tmp_path, "run.tsv", text))
