"""Every way in gives the same result, to the bit."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import lzma
import math
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import ir_measures
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zstandard
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import deadheat as dh
from deadheat.formats import trec

MEASURES = ["nDCG@3", "MRR", "MAP", "Recall@2", "Judged@3", "ERR"]
pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")

QRELS = {
    "q1": {"d1": 1, "d3": 2, "gone": 1, "d4": 0},
    "ü2": {"d#1": 1, '"quoted"': 3, "文書": 2, "d2": -1},
    "#3": {"d1": 0, "d2": 1},
    "7": {"10": 1, "11": 0},
}
RUN = {
    "q1": {"d1": 0.9, "d2": 0.5, "d3": 0.5, "d4": 0.5},
    "ü2": {"d2": 0.25, "d#1": 0.25, '"quoted"': -1.5, "文書": 0.25},
    "#3": {"d1": 1e-3, "d2": 1e-3},
    "7": {"12": 3.0, "10": 3.0, "11": 0.1},
}


def rows(nested: dict) -> list[tuple]:
    return [(q, d, x) for q, docs in nested.items() for d, x in docs.items()]


def scattered(nested: dict) -> list[tuple]:
    """The rows with those of a query apart; the order inside a query stays."""
    lists = [[(q, d, x) for d, x in docs.items()] for q, docs in nested.items()]
    return [row for turn in itertools.zip_longest(*lists) for row in turn if row]


def facts(result: dh.Result) -> dict:
    """Everything numeric in a result, by query."""
    return {
        (row["query_id"], row["measure"]): tuple(row.values())[2:]
        for row in result.per_query.iter_rows(named=True)
    }


def expected(**options) -> dict:
    return facts(dh.evaluate(QRELS, RUN, MEASURES, **options))


def same(qrels, run, **options) -> None:
    found = dh.evaluate(qrels, run, MEASURES, **options)
    assert facts(found) == expected(**options)
    assert found.warnings == dh.evaluate(QRELS, RUN, MEASURES, **options).warnings


def trec_text(nested: dict, sep: str = " ", end: str = "\n", order=rows) -> str:
    lines = []
    for rank, (q, d, x) in enumerate(order(nested), 1):
        fields = [q, "0", d, str(x)] if nested is QRELS else [q, "Q0", d, str(rank), repr(x), "tag"]
        lines.append(sep.join(fields))
    return end.join(lines) + end


@pytest.fixture(autouse=True)
def not_a_comment(request, monkeypatch):
    """A TREC line that begins with # is a comment, so files name that query otherwise."""
    if "trec" in request.node.name:
        for nested in (QRELS, RUN):
            monkeypatch.setitem(nested, "three#", nested["#3"])
            monkeypatch.delitem(nested, "#3")


def written(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


# dictionaries


@pytest.mark.parametrize("number", [float, np.float32, np.float64, str], ids=lambda t: t.__name__)
def test_dict_of_numbers_of_any_type(number):
    halves = {"q": {"a": 0.5, "b": 0.5, "c": 0.25}}
    truth = facts(dh.evaluate({"q": {"b": 1}}, halves, MEASURES))
    run = {"q": {d: number(x) for d, x in halves["q"].items()}}
    assert facts(dh.evaluate({"q": {"b": 1}}, run, MEASURES)) == truth


@pytest.mark.parametrize("number", [int, np.int8, np.uint64, np.bool_, float, np.float16])
def test_dict_of_grades_of_any_type(number):
    qrels = {"q": {"a": number(1), "b": number(0)}}
    truth = facts(dh.evaluate({"q": {"a": 1, "b": 0}}, {"q": {"b": 1, "a": 1}}, MEASURES))
    assert facts(dh.evaluate(qrels, {"q": {"b": 1, "a": 1}}, MEASURES)) == truth


def test_dict_with_ids_of_any_type():
    run = {7: {12: 3.0, np.int64(10): 3.0, b"11": 0.1}}
    qrels = {np.str_("7"): {np.str_("10"): 1, 11: 0}}
    truth = facts(dh.evaluate({"7": QRELS["7"]}, {"7": RUN["7"]}, MEASURES))
    assert facts(dh.evaluate(qrels, run, MEASURES)) == truth


def test_empty_list_in_a_dict_is_a_missing_query():
    with_empty = dh.evaluate(QRELS, {**RUN, "q1": {}}, MEASURES)
    without = dh.evaluate(QRELS, {q: d for q, d in RUN.items() if q != "q1"}, MEASURES)
    assert facts(with_empty) == facts(without)
    assert with_empty.warnings == without.warnings != []
    both = {**RUN, "q1": {}}
    assert "q1" not in dh.evaluate(QRELS, both, MEASURES, queries="intersection").query_ids


# tables


def columns(nested: dict, names: tuple[str, str, str], order=rows) -> dict:
    return dict(zip(names, map(list, zip(*order(nested), strict=True)), strict=True))


NAMES = [
    (("query_id", "doc_id", "relevance"), ("query_id", "doc_id", "score")),
    (("query-id", "corpus-id", "score"), ("qid", "docno", "score")),
    (("Topic", "DOCID", "Label"), ("q_id", "pid", "similarity")),
]


@pytest.mark.parametrize("names", NAMES, ids=str)
@pytest.mark.parametrize("order", [rows, scattered])
@pytest.mark.parametrize(
    "make",
    [
        pl.DataFrame,
        lambda data: pl.DataFrame(data).lazy(),
        lambda data: pl.DataFrame(data).with_columns(pl.col(pl.String).cast(pl.Categorical)),
        lambda data: pl.DataFrame(data).with_columns(pl.col(pl.String).cast(pl.Binary)),
        pd.DataFrame,
        lambda data: pd.DataFrame(data).astype(object),
        lambda data: pd.DataFrame(data).convert_dtypes(),
        lambda data: pd.DataFrame(data).astype(
            {n: "category" for n, v in data.items() if isinstance(v[0], str)}
        ),
        lambda data: pd.DataFrame(data, index=range(5, 5 + len(next(iter(data.values()))))),
        lambda data: pd.DataFrame({"other": [{}, 1.5, "x"] * 100}).iloc[: len(pd.DataFrame(data))]
        .assign(**data),
        pa.table,
        lambda data: pa.table(data).to_batches()[0],
        lambda data: pa.table(data).to_reader(),
    ],
    ids=[
        "polars", "lazy", "polars-categorical", "polars-binary", "pandas", "pandas-object",
        "pandas-nullable", "pandas-categorical", "pandas-index", "pandas-other-columns", "pyarrow",
        "pyarrow-batch", "pyarrow-reader",
    ],
)  # fmt: skip
def test_tables(make, names, order):
    qrels = make(columns(QRELS, names[0], order))
    same(qrels, make(columns(RUN, names[1], order)))


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table])
def test_tables_with_integer_ids_and_scores_beyond_2_53(make):
    run = {1: {5: 2**60, 6: 2**60 + 1, 7: 2**60 + 1}, 2: {5: 3, 6: 2, 7: 3}}
    qrels = {1: {6: 1}, 2: {5: 1}}
    truth = facts(dh.evaluate(qrels, run, MEASURES))
    made = make(columns(run, ("query_id", "doc_id", "score")))
    assert facts(dh.evaluate(qrels, made, MEASURES)) == truth
    assert facts(dh.evaluate(qrels, rows(run), MEASURES)) == truth
    assert truth["1", "MRR"] == (0.75, 1.0, 0.5, 0.5, 0.25, 1.0, 0.25)


@pytest.mark.parametrize("dtype", ["float32", "float64", "Float32", "uint8", "bool"])
def test_pandas_numbers_keep_their_type(dtype):
    frame = pd.DataFrame(
        {"query_id": "q", "doc_id": list("abc"), "score": pd.Series([1, 1, 0], dtype=dtype)}
    )
    result = dh.evaluate({"q": {"b": 1}}, frame, "MRR")
    assert result["MRR"].expected == 0.75


def test_float32_table_ties_as_float32():
    score = np.array([0.1, np.nextafter(np.float32(0.1), np.float32(1))], np.float32)
    frame = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": score})
    assert dh.evaluate({"q": {"b": 1}}, frame, "MRR")["MRR"].expected == 1


def test_rank_column_of_tables():
    frame = pl.DataFrame(
        {"query_id": "q", "doc_id": ["a", "b"], "score": 0.5, "rank": [2, 1]},
    )
    for table in (frame, frame.to_pandas(), frame.with_columns(pl.col("rank").cast(pl.Float64))):
        assert dh.evaluate({"q": {"b": 1}}, table, "MRR", tie_break="rank")["MRR"].oblivious == 1
    fractions = frame.with_columns(rank=pl.Series([1.7, 1.2]))
    with pytest.raises(dh.InputError, match="needs a run with a column of ranks"):
        dh.evaluate({"q": {"b": 1}}, fractions, "MRR", tie_break="rank")


# tuples


@pytest.mark.parametrize("order", [rows, scattered])
@pytest.mark.parametrize("kind", [list, iter, lambda x: (row for row in x), tuple])
def test_plain_tuples(order, kind):
    same(kind(order(QRELS)), kind([list(row) for row in order(RUN)]))


def test_tuples_of_ir_measures():
    same(
        (ir_measures.Qrel(*row) for row in rows(QRELS)),
        (ir_measures.ScoredDoc(*row) for row in rows(RUN)),
    )


def test_objects_with_attributes():
    names = ("query_id", "doc_id", "relevance", "iteration")
    same(
        [SimpleNamespace(**dict(zip(names, (*row, "0"), strict=True))) for row in rows(QRELS)],
        rows(RUN),
    )


# TREC files


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


# other files


@pytest.mark.parametrize("order", [rows, scattered])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_tables_in_files(tmp_path, order, pack):
    frames = {
        "qrels": pl.DataFrame(columns(QRELS, ("query-id", "corpus-id", "score"), order)),
        "run": pl.DataFrame(columns(RUN, ("query_id", "doc_id", "score"), order)),
    }
    for kind in ("tsv", "csv", "jsonl", "ndjson", "parquet", "crlf.tsv", "bom.csv"):
        paths = []
        for name, frame in frames.items():
            output = io.BytesIO()
            if kind.endswith("sv"):
                frame.write_csv(output, separator="," if kind.endswith("csv") else "\t")
            elif kind == "parquet":
                frame.write_parquet(output)
            else:
                frame.write_ndjson(output)
            data = output.getvalue()
            data = data.replace(b"\n", b"\r\n") if kind.startswith("crlf") else data
            data = b"\xef\xbb\xbf" + data if kind.startswith("bom") else data
            paths.append(written(tmp_path, f"{name}.{kind}", pack(data)))
        same(*paths)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("ascii_", [True, False])
@pytest.mark.parametrize("name", ["x.json", "x.txt"])
def test_json(tmp_path, indent, ascii_, name):
    qrels, run = (json.dumps(x, indent=indent, ensure_ascii=ascii_) for x in (QRELS, RUN))
    same(written(tmp_path, "q" + name, qrels), written(tmp_path, "r" + name, "\n" + run))


def test_csv_keeps_leading_zeros_of_ids(tmp_path):
    run = written(tmp_path, "run.csv", "query_id,doc_id,score\n01,007,1\n01,7,1\n")
    assert dh.evaluate({"01": {"007": 1}}, run, "MRR")["MRR"].expected == 0.75


def test_jsonl_with_other_fields(tmp_path):
    lines = [
        json.dumps({"query_id": q, "doc_id": d, "score": x, "meta": {"a": 1}})
        for q, d, x in rows(RUN)
    ]
    same(QRELS, written(tmp_path, "run.jsonl", "\n\n".join(lines)))


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


@settings(max_examples=150)
@given(data=st.binary(max_size=60), start=st.sampled_from([b"", b"q 0 d 1\n", b"{", b'{"q":{"d":']))
def test_any_bytes_are_read_or_refused(tmp_path, data, start):
    path = written(tmp_path, "file", start + data)
    for read in (dh.read_run, dh.read_qrels):
        try:
            read(path)
        except dh.InputError as error:
            assert "file" in str(error)


# arbitrary runs through every door

id_text = st.text(
    st.characters(
        codec="utf-8", exclude_categories=("Cc", "Zs", "Zl", "Zp"), exclude_characters="#"
    ),
    min_size=1,
    max_size=4,
).filter(lambda s: s == s.strip() and not s.startswith("{"))
nested_scores = st.dictionaries(
    id_text,
    st.dictionaries(
        id_text,
        st.one_of(st.sampled_from([0.5, 0.25, -0.0, 0.0, math.inf]), st.floats(allow_nan=False)),
        min_size=1,
        max_size=5,
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40)
@given(run=nested_scores, data=st.data())
def test_arbitrary_runs_through_every_door(tmp_path, run, data):
    qrels = {
        q: {d: data.draw(st.integers(0, 3)) for d in [*docs, "absent"]} for q, docs in run.items()
    }
    truth = facts(dh.evaluate(qrels, run, MEASURES, queries="all"))
    frame = pl.DataFrame(columns(run, ("query_id", "doc_id", "score"), scattered))
    path = tmp_path / "run"
    lines = (f"{q} Q0 {d} 1 {x!r} t\n" for q, d, x in scattered(run))
    frame.write_parquet(tmp_path / "run.parquet")
    doors = [
        frame,
        frame.to_pandas(),
        frame.to_arrow(),
        rows(run),
        written(tmp_path, "run", "".join(lines)),
        written(tmp_path, "run.json", json.dumps(run)),
        tmp_path / "run.parquet",
    ]
    if all(math.isfinite(x) for x in frame["score"]):  # JSON lines have no infinity
        frame.write_ndjson(tmp_path / "run.jsonl")
        doors.append(tmp_path / "run.jsonl")
    for door in doors:
        found = dh.evaluate(qrels, door, MEASURES, queries="all")
        assert facts(found) == truth
    assert path.is_file()


# arrays

NUMPY_TYPES = [
    np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint8, np.int16, np.int32,
    np.int64, np.uint64, np.bool_, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2, ml_dtypes.int4,
]  # fmt: skip


def through_dicts(scores, relevance, **options) -> list[tuple]:
    def number(x):
        return int(x) if isinstance(x, (int, np.integer)) else float(x)

    run = {str(q): {str(i): number(x) for i, x in enumerate(row)} for q, row in enumerate(scores)}
    qrels = {
        str(q): {str(i): float(x) for i, x in enumerate(row)} for q, row in enumerate(relevance)
    }
    return list(facts(dh.evaluate(qrels, run, MEASURES, **options)).values())


def through_arrays(scores, relevance, **options) -> list[tuple]:
    return list(facts(dh.evaluate_arrays(scores, relevance, MEASURES, **options)).values())


@pytest.mark.parametrize("dtype", NUMPY_TYPES, ids=lambda t: np.dtype(t).name)
@given(data=st.data())
@settings(max_examples=20)
def test_arrays_of_every_type(dtype, data):
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 6)))
    size = shape[0] * shape[1]
    values = data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 7]), min_size=size, max_size=size))
    grades = data.draw(st.lists(st.integers(-1, 3), min_size=size, max_size=size))
    scores = np.array(values).astype(dtype).reshape(shape)
    relevance = np.array(grades).reshape(shape)
    assume((relevance > 0).any())
    truth = through_dicts(scores, relevance)
    assert through_arrays(scores, relevance) == truth
    assert through_arrays(np.asfortranarray(scores), relevance.astype(np.float32)) == truth
    assert through_arrays(np.repeat(scores, 2, axis=1)[:, ::2], relevance.tolist()) == truth
    assert through_arrays(list(scores), [list(row) for row in relevance]) == truth


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i8", "<f2", ">i2"])
def test_arrays_of_foreign_byte_order(dtype):
    scores = np.array([[3, 1, 3, 2]], dtype)
    assert through_arrays(scores, [[0, 1, 1, 0]]) == through_dicts(scores, [[0, 1, 1, 0]])


@pytest.mark.parametrize(
    "row",
    [
        np.array([2**60, 2**60 + 1, 2**60 + 1, 5]),
        np.array([2**64 - 1, 2**64 - 2, 2**64 - 2, 5], np.uint64),
        np.array([-(2**63), -(2**63) + 1, -(2**63) + 1, 5]),
        [2**70, 2**70 + 1, 2**70 + 1, -5],
        [2**63 + 5, 2**63 + 6, 2**63 + 6, -5],
        [10**400, 10**400 + 1, 10**400 + 1, 0],
        np.array([1, 1 + np.finfo(np.longdouble).eps, 1 + np.finfo(np.longdouble).eps, 0]),
    ],
    ids=["int64", "uint64", "negative", "python", "mixed", "huge", "long double"],
)
def test_numbers_that_float64_cannot_tell_apart(row):
    descending = [3, 2, 2, 1] if row[0] > row[1] else [1, 2, 2, 0 if row[3] < row[0] else 3]
    for labels in ([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]):
        truth = through_dicts([descending], [labels])
        assert through_arrays([row], [labels]) == truth
        if isinstance(row, np.ndarray):
            assert through_arrays(row[None], [labels]) == truth


def test_neighbours_in_bfloat16_and_float8_are_kept_apart_and_equals_together():
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float16):
        bits = np.arange(64).astype(np.uint8 if np.dtype(dtype).itemsize == 1 else np.uint16)
        scores = np.concatenate([bits, bits]).view(dtype)[None]
        relevance = np.zeros(scores.shape, int)
        relevance[0, 40] = 1
        result = dh.evaluate_arrays(scores, relevance, ["MRR"])["MRR"]
        rank = 2 * (63 - 40) + 1
        assert (result.best, result.worst) == (1 / rank, 1 / (rank + 1))


def test_ragged_lists():
    scores = [[0.9, 0.5, 0.5, 0.5], [0.25], [1, 2, 2], np.array([1, 1], np.float16)]
    relevance = [[1, 0, 1, 0], [1], [0, 1, 0], (0, 1)]
    assert through_arrays(scores, relevance) == through_dicts(scores, relevance)
    assert through_arrays(tuple(scores), tuple(relevance)) == through_dicts(scores, relevance)


def test_arrays_with_unlisted_relevant_documents():
    run = {"q": {"a": 1.0, "b": 1.0}, "r": {"a": 1.0, "b": 2.0}}
    qrels = {"q": {"a": 1, "x": 1, "y": 1}, "r": {"b": 1}}
    truth = list(facts(dh.evaluate(qrels, run, ["nDCG", "MAP", "Recall"])).values())
    for n in ([3, 1], np.array([3, 1], np.uint64), np.array([3, 1], np.int8)):
        result = dh.evaluate_arrays(
            [[1.0, 1.0], [1.0, 2.0]], [[1, 0], [0, 1]], ["nDCG", "MAP", "Recall"], n_relevant=n
        )
        assert list(facts(result).values()) == truth


def test_negative_labels_are_said_once():
    result = dh.evaluate_arrays([[3, 2, 1]], [[1, -1, -1]], "nDCG")
    assert [note for note in result.notes if "below 0" in note] == [
        "2 judgements below 0: counted as not relevant"
    ]


@pytest.mark.parametrize(
    "name", ["bfloat16", "float16", "float32", "float64", "float8_e4m3fn", "int8", "uint8", "int64"]
)
def test_torch_tensors(name):
    torch = pytest.importorskip("torch")
    plain = [[3.0, 1.0, 3.0, 2.0], [1.0, 1.0, 1.0, 1.0]]
    labels = [[0, 1, 1, 0], [0, 0, 2, 1]]
    scores = torch.tensor(plain).to(getattr(torch, name))
    truth = through_dicts(plain, labels)
    assert through_arrays(scores, torch.tensor(labels)) == truth
    assert through_arrays(scores, torch.tensor(labels).bool()) == through_dicts(
        plain, np.array(labels) > 0
    )
    assert through_arrays(list(scores), labels) == truth
    assert through_arrays(scores.T.contiguous().T, torch.tensor(labels, dtype=torch.bfloat16)) == (
        truth
    )


def test_torch_bfloat16_loses_no_bit():
    torch = pytest.importorskip("torch")
    scores = torch.arange(0, 256, dtype=torch.int16).view(torch.bfloat16)[None].requires_grad_()
    relevance = torch.zeros(1, 256, dtype=torch.int64)
    relevance[0, 200] = 1
    result = dh.evaluate_arrays(scores, relevance, "MRR")["MRR"]
    assert (result.best, result.worst) == (1 / 56, 1 / 56)


# NaN last


@given(
    row=st.lists(
        st.sampled_from([math.nan, -math.inf, -1e308, 0.5, 0.5 + 1e-12, 0.6, math.inf]),
        min_size=1,
        max_size=6,
    ),
    data=st.data(),
)
def test_nan_last_changes_nothing_else(row, data):
    """NaN ranks below all else, whatever the tie rule and the tolerance."""
    labels = data.draw(st.lists(st.integers(0, 1), min_size=len(row), max_size=len(row)))
    assume(any(labels))
    rule = data.draw(st.sampled_from(["input", "id_desc", "pytrec_eval"]))
    tolerance = data.draw(st.sampled_from([0, 0.2]))
    options = {"tie_break": rule, "tie_tolerance": tolerance, "nan": "last"}
    # By hand: −inf makes room for NaN at the far end of the numbers.
    by_hand = [-math.inf if x != x else -1.5e308 if x == -math.inf else x for x in row]
    if rule == "pytrec_eval":  # in float32 −1.5e308 and −1e308 are −inf, too
        assume(sum(x != x or x < -1e300 for x in row) <= 1)
    qrels = {"q": {str(i): x for i, x in enumerate(labels)}}
    runs = [{"q": {str(i): x for i, x in enumerate(values)}} for values in (row, by_hand)]
    found, truth = (facts(dh.evaluate(qrels, run, MEASURES, **options)) for run in runs)
    assert found == truth


# real files


def test_real_files_through_two_doors(shared):
    for run, qrels in [
        ("round3-Emory_IRLab_rnd3_r1.run.gz", "round3.qrels.gz"),
        ("round4-ILPS_UvA_big_diverse.run.gz", "round4.qrels.gz"),
    ]:
        run_path, qrels_path = shared / "trec-covid" / run, shared / "trec-covid" / qrels
        nested: dict = {}
        for line in gzip.decompress(run_path.read_bytes()).decode().splitlines():
            q, _, d, _, x, _ = line.split()
            nested.setdefault(q, {})[d] = float(x)
        from_file = dh.evaluate(qrels_path, run_path, MEASURES)
        assert facts(from_file) == facts(dh.evaluate(qrels_path, nested, MEASURES))
        assert from_file["nDCG@3"].range > 0
