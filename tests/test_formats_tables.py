"""Tables give the same result as dictionaries, in memory and in files."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from ways_in import MEASURES, QRELS, RUN, columns, facts, rows, same, scattered, written

import deadheat as dh
from deadheat.formats.files import table_from_file
from deadheat.formats.write import to_parquet, trec_run

pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")

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
    assert truth[1, "MRR"] == (0.75, 1.0, 0.5, 0.5, 0.25, 1.0, 0.25)


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


def test_tables_with_a_rank_column():
    frame = pl.DataFrame(
        {"query_id": "q", "doc_id": ["a", "b"], "score": 0.5, "rank": [2, 1]},
    )
    for table in (frame, frame.to_pandas(), frame.with_columns(pl.col("rank").cast(pl.Float64))):
        assert dh.evaluate({"q": {"b": 1}}, table, "MRR", tie_break="rank")["MRR"].oblivious == 1
    fractions = frame.with_columns(rank=pl.Series([1.7, 1.2]))
    with pytest.raises(dh.InputError, match=r"'rank' .*column of ranks"):
        dh.evaluate({"q": {"b": 1}}, fractions, "MRR", tie_break="rank")


# files


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
                comma = kind.endswith("csv")
                style = "necessary" if comma else "never"  # TSV has no quoting
                frame.write_csv(output, separator="," if comma else "\t", quote_style=style)
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


def test_quotes_in_tsv_are_literal(tmp_path):
    lines = ["query_id\tdoc_id\tscore", 'q\t"5 inch\t1', "q\td2\t2", 'q\td"3"\t2']
    run = dh.read_run(written(tmp_path, "run.tsv", "\n".join(lines)))
    assert run.documents.ids(np.arange(3)).to_list() == ['"5 inch', "d2", 'd"3"']
    csv = ["query_id,doc_id,score", 'q,"5"" inch, round",1', "q,d2,2"]
    run = dh.read_run(written(tmp_path, "run.csv", "\n".join(csv)))
    assert run.documents.ids(np.arange(2)).to_list() == ['5" inch, round', "d2"]


@pytest.mark.parametrize("folder", ["g[1]", "g*", "g?", "g{1}", "~"])
def test_glob_characters_in_paths_are_literal(tmp_path, folder):
    for name, score in ((folder, 1.0), ("g1", 2.0)):
        (tmp_path / name).mkdir()
        frame = pl.DataFrame({"query_id": "q", "doc_id": ["d"], "score": [score]})
        for stem in ("x[1]", "x1"):
            path = tmp_path / name / stem
            frame.write_csv(path.with_suffix(".csv"))
            frame.write_ndjson(path.with_suffix(".jsonl"))
            frame.write_parquet(path.with_suffix(".parquet"))
            path.with_suffix(".trec").write_text(f"q Q0 d 1 {score} t\n")
    for kind in ("csv", "jsonl", "parquet", "trec"):
        path = tmp_path / folder / f"x[1].{kind}"
        assert dh.read_run(path).scores.tolist() == [1.0]
        assert dh.read_run(str(path)).scores.tolist() == [1.0]
        if kind != "trec":
            assert dh.read_qrels(path).grades.tolist() == [1.0]


def test_json_lines_of_several_types(tmp_path):
    rows = [("q", 1, 1), ("q", "a", 0.5), (7, 2.5, "0.25"), (7, "b", -math.inf)]
    names = ("query_id", "doc_id", "score")
    lines = [
        json.dumps(dict(zip(names, row, strict=True)) | {"x": i}) for i, row in enumerate(rows)
    ]
    run = dh.read_run(written(tmp_path, "run.jsonl", "\n".join(lines)))
    assert run.query_ids == ["q", "7"]
    assert run.documents.ids(np.arange(4)).to_list() == ["1", "a", "2.5", "b"]
    assert run.scores.tolist() == [1, 0.5, 0.25, -math.inf]


def test_unused_columns_are_not_read(tmp_path):
    """They may be large or of a type unknown to polars; errors still list their names."""
    images = [[1], {"a": 1}, "x"]
    lines = [json.dumps({"query_id": "q", "doc_id": "d", "image": image}) for image in images]
    path = written(tmp_path, "run.jsonl", "\n".join(lines))
    with pytest.raises(dh.InputError, match=r"no column 'score'.*'doc_id', 'image'; rename"):
        dh.read_run(path)
    frame = pl.DataFrame({"query_id": ["q"], "Doc-ID": ["d"], "score": [1.0], "image": [b"abc"]})
    frame.write_parquet(tmp_path / "run.parquet")
    table = table_from_file(tmp_path / "run.parquet")
    assert table.to_dicts() == [{"query_id": "q", "Doc-ID": "d", "score": 1.0, "image": None}]
    assert table_from_file(tmp_path / "run.parquet", all_columns=True).equals(frame)


def test_json_lines_with_long_texts(tmp_path):
    lines = [
        json.dumps({"query_id": "q", "doc_id": d, "score": 1, "text": d * 9_000}) for d in "ab"
    ]
    assert dh.read_run(written(tmp_path, "run", "\n".join(lines))).scores.tolist() == [1, 1]


def test_list_as_id_is_rejected(tmp_path):
    lines = [json.dumps({"query_id": "q", "doc_id": doc, "score": 1}) for doc in ("a", ["b"])]
    path = written(tmp_path, "run.jsonl", "\n".join(lines))
    with pytest.raises(dh.InputError, match=r"run.jsonl: the doc_id of row 2: a list is not an id"):
        dh.read_run(path)


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="pipes have no names here")
@pytest.mark.parametrize("kind", ["parquet", "tsv", "trec"])
def test_pipe_is_read_only_once(kind):
    frame = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [0.5]})
    tsv = frame.write_csv(separator="\t").encode()
    data = {"parquet": to_parquet(frame), "tsv": tsv, "trec": trec_run(frame)}[kind]
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    try:
        assert dh.read_run(f"/dev/fd/{reader}").scores.tolist() == [0.5]
    finally:
        os.close(reader)


def test_damaged_parquet_is_rejected(tmp_path):
    data = to_parquet(pl.DataFrame({"query_id": ["q"] * 99, "doc_id": map(str, range(99))}))
    for cut in (4, 5, 12, len(data) // 2, len(data) - 9, len(data) - 1):
        for tail in (b"", b"PAR1"):
            path = written(tmp_path, "run.parquet", data[:cut] + tail)
            with pytest.raises(dh.InputError, match=r"run.parquet: cannot be read as Parquet"):
                dh.read_run(path)
