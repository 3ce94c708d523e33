"""Every view against enumeration for extreme numbers: floats, all dtypes, integers."""

from __future__ import annotations

import json
import math

import ml_dtypes
import numpy as np
import oracle
import polars as pl
import pytest
from hypothesis import assume, given, settings, strategies as st
from oracle import Doc

import deadheat as dh

MEASURES = {
    "nDCG@3": {"name": "nDCG", "cutoff": 3},
    "nDCG(gain='exp')": {"name": "nDCG", "gain": "exp"},
    "MRR": {"name": "MRR"},
    "MAP@2": {"name": "MAP", "cutoff": 2},
    "Precision@1": {"name": "Precision", "cutoff": 1},
    "RBP": {"name": "RBP"},
}
pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")


def check(result: dh.Result, docs: list[Doc]) -> None:
    """Compare a result of one query with the enumeration of all orders of its exact scores."""
    for measure, parameters in MEASURES.items():
        views = result.views[dh.measures.parse_measures([measure])[0]]
        expected = oracle.views(docs=docs, absent=[], **parameters)
        for view in ("expected", "variance", "best", "worst", "oblivious"):
            assert getattr(views, view)[0] == pytest.approx(expected[view], abs=1e-12), (
                measure,
                view,
            )


grades = st.lists(st.sampled_from([0, 1, 2]), min_size=6, max_size=6).filter(any)
FLOATS = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, 0.1, 0.1 + 0.2, 0.3]
FLOATS += [1.0, math.nextafter(1, 2) if hasattr(math, "nextafter") else 1 + 2**-52, 1 - 2**-53]
FLOATS += [math.inf, -math.inf, 1.7976931348623157e308, 2.0**53, 2.0**53 + 2, 1e16, -1e16]


@settings(max_examples=150)
@given(scores=st.lists(st.sampled_from(FLOATS), min_size=2, max_size=6), grades=grades)
def test_extreme_floats(backend, scores, grades):
    docs = [Doc(*each) for each in zip(scores, grades, strict=False)]
    assume(oracle.n_orders(docs) <= 720 and any(doc.grade for doc in docs))
    run = {"q": {f"d{i}": doc.score for i, doc in enumerate(docs)}}
    qrels = {"q": {f"d{i}": doc.grade for i, doc in enumerate(docs)}}
    check(dh.evaluate(qrels, run, list(MEASURES)), docs)
    array, labels = [[doc.score for doc in docs]], [[doc.grade for doc in docs]]
    check(dh.evaluate_arrays(labels, np.array(array), list(MEASURES)), docs)


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
SMALL = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
DTYPES = [np.float16, np.float32, np.float64, np.bool_, *INTEGERS, *SMALL]


def list_limits(dtype: type) -> list[object]:
    """Return the extreme values of a number type and their neighbours."""
    if dtype is np.bool_:
        return [True, False]
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return [info.min, info.min + 1, 0, 1, info.max - 1, info.max]
    info = ml_dtypes.finfo(dtype)
    values = [
        info.max,
        info.min,
        info.tiny,
        info.smallest_subnormal,
        0,
        -0.0,
        1,
        1 + float(info.eps),
    ]
    return values if dtype is ml_dtypes.float8_e4m3fn else [*values, np.inf, -np.inf]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@settings(max_examples=40)
@given(data=st.data(), grades=grades)
def test_every_dtype(backend, dtype, data, grades):
    values = data.draw(st.lists(st.sampled_from(list_limits(dtype)), min_size=2, max_size=6))
    scores = np.array(values).astype(dtype) if dtype in SMALL else np.array(values, dtype)
    exact = [int(v) if dtype in (*INTEGERS, np.bool_) else float(v) for v in scores]
    docs = [Doc(*each) for each in zip(exact, grades, strict=False)]
    assume(oracle.n_orders(docs) <= 720 and any(doc.grade for doc in docs))
    labels = [[doc.grade for doc in docs]]
    check(dh.evaluate_arrays(labels, scores[None, :], list(MEASURES)), docs)


HUGE = [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53), -(2**53) - 1, 2**63 - 1, 2**63, 2**64 - 1]
HUGE += [2**64, 2**64 + 1, 10**30, 10**30 + 1, -(10**30), 0, 1]
INPUT_FORMATS = {
    "dict": lambda folder, scores: {"q": {f"d{i}": score for i, score in enumerate(scores)}},
    "JSON": lambda folder, scores: _write(
        folder / "run.json", json.dumps(INPUT_FORMATS["dict"](0, scores))
    ),
    "JSONL": lambda folder, scores: _write(
        folder / "run.jsonl", "\n".join(json.dumps(row) for row in _rows(scores))
    ),
    "TREC": lambda folder, scores: _write(
        folder / "run.txt", "".join(f"q Q0 d{i} 1 {score!r} t\n" for i, score in enumerate(scores))
    ),
    "CSV": lambda folder, scores: _write(
        folder / "run.csv",
        "query_id,doc_id,score\n" + "".join(f"q,d{i},{s!r}\n" for i, s in enumerate(scores)),
    ),
    "tuples": lambda folder, scores: [(*row,) for row in map(dict.values, _rows(scores))],
    "frame": lambda folder, scores: pl.DataFrame(_rows(scores), infer_schema_length=None),
    "array": lambda folder, scores: np.array([scores]),
    "lists": lambda folder, scores: [scores],
}


def _rows(scores):
    return [{"query_id": "q", "doc_id": f"d{i}", "score": s} for i, s in enumerate(scores)]


def _write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("input_format", INPUT_FORMATS)
@settings(max_examples=80)
@given(
    scores=st.lists(st.sampled_from([*HUGE, 0.5, 2.0**53, 1e300]), min_size=2, max_size=5),
    grades=grades,
)
def test_huge_integers_stay_distinct_or_are_rejected(
    tmp_path_factory, input_format, scores, grades
):
    """Scores are compared exactly in every input format; otherwise the input is rejected."""
    docs = [Doc(*each) for each in zip(scores, grades, strict=False)]
    assume(oracle.n_orders(docs) <= 120 and any(doc.grade for doc in docs))
    labels = [doc.grade for doc in docs]
    try:
        given_run = INPUT_FORMATS[input_format](tmp_path_factory.getbasetemp(), scores)
    except (
        OverflowError,
        TypeError,
        pl.exceptions.PolarsError,
    ):  # numpy or polars cannot hold them
        assume(False)
    if input_format == "array" and given_run.dtype.kind == "f":  # numpy has already rounded them
        docs = [Doc(float(s), d.grade) for s, d in zip(given_run[0], docs, strict=True)]
    if input_format == "frame" and given_run["score"].dtype == pl.Float64:
        docs = [Doc(s, d.grade) for s, d in zip(given_run["score"], docs, strict=True)]
    try:
        if input_format in ("array", "lists"):
            result = dh.evaluate_arrays([labels], given_run, list(MEASURES))
        else:
            qrels = {"q": {f"d{i}": grade for i, grade in enumerate(labels)}}
            result = dh.evaluate(qrels, given_run, list(MEASURES))
    except dh.InputError as error:
        assert "distinct" in str(error) or "exact" in str(error) or "float" in str(error), error
        return
    check(result, docs)
