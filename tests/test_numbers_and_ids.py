"""Every input format parses numbers and ids alike, and distinct numbers stay distinct."""

from __future__ import annotations

import csv
import io
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from ways_in import written

import deadheat as dh
from deadheat._internal.numbers import exact_scores, number
from deadheat.formats.keys import plain_list, python_plain_list

pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")

NAMES = ("query_id", "doc_id", "score")


def as_frame(rows) -> pl.DataFrame:
    return pl.DataFrame([dict(zip(NAMES, row, strict=True)) for row in rows], strict=True)


def as_pandas(rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=NAMES, dtype=object)


def as_csv(rows, folder):
    text = io.StringIO()
    csv.writer(text).writerows([NAMES, *rows])
    return written(folder, "run.csv", text.getvalue())


def as_json(rows, folder):
    return written(folder, "run.json", json.dumps({"q": {doc: x for _, doc, x in rows}}))


def as_json_lines(rows, folder):
    lines = [json.dumps(dict(zip(NAMES, row, strict=True))) for row in rows]
    return written(folder, "run.jsonl", "\n".join(lines))


def as_trec(rows, folder):
    return written(folder, "run.trec", "".join(f"{q} Q0 {d} 1 {x} t\n" for q, d, x in rows))


def as_irregular_trec(rows, folder):
    return written(folder, "odd.trec", "".join(f"{q}  Q0 {d} 1 {x} t\n" for q, d, x in rows))


INPUT_FORMATS = {
    "dict": lambda rows, _: {"q": {doc: x for _, doc, x in rows}},
    "tuples": lambda rows, _: list(rows),
    "polars": lambda rows, _: as_frame(rows),
    "pandas": lambda rows, _: as_pandas(rows),
    "json": as_json,
    "jsonl": as_json_lines,
    "csv": as_csv,
    "trec": as_trec,
    "irregular trec": as_irregular_trec,
}
NUMBER_TEXTS = (
    "1e3 1E+3 .5 5. +5 -0 00012 inf -Infinity nan 1e400 1e-400 9007199254740993 " + "1" * 300
).split()
INVALID_NUMBERS = [
    "1_000",
    "１２",
    "٣",
    "0x10",
    "1,5",
    "1d5",
    "5L",
    "\u00a05",
    "1e",
    "--1",
    "infin",
    "½",
]


@pytest.mark.parametrize("input_format", INPUT_FORMATS)
@pytest.mark.parametrize("text", NUMBER_TEXTS)
def test_text_is_parsed_alike_in_every_format(tmp_path, input_format, text):
    run = dh.read_run(INPUT_FORMATS[input_format]([("q", "d", text)], tmp_path))
    assert run.rounded.tolist() == [float(text)] or math.isnan(run.rounded[0])
    exact = run.scores if run.exact is None else run.exact
    assert exact[0] == number(text) or text == "nan"


@pytest.mark.parametrize("input_format", INPUT_FORMATS)
@pytest.mark.parametrize("text", INVALID_NUMBERS)
def test_invalid_number_is_rejected_in_every_format(tmp_path, input_format, text):
    with pytest.raises(dh.InputError, match=r"not a number|is not \(query_id, doc_id, score\)"):
        dh.read_run(INPUT_FORMATS[input_format]([("q", "d", text)], tmp_path))
    with pytest.raises(dh.InputError, match="must be numbers"):
        dh.evaluate_arrays([[1, 0]], [[text, "1"]])


@settings(max_examples=300)
@given(
    st.one_of(
        st.text("0123456789+-.eEinfaty_ \t\x0b\x1c\u00a0１", max_size=7),
        st.floats().map(repr),
        st.integers().map(str),
    )
)
def test_text_columns_are_parsed_like_single_values(text):
    """Polars parses columns and Python parses single values; both must accept the same texts."""
    frame = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [text]})
    try:
        value = float(number(text))
    except ValueError:
        with pytest.raises(dh.InputError, match="not a number"):
            dh.read_run(frame)
    else:
        actual = dh.read_run(frame).rounded[0]
        assert np.array_equal(actual, value, equal_nan=True)


@pytest.mark.parametrize(
    "value", [None, [1], {"a": 1}, b"5", 1j, object()], ids=lambda value: type(value).__name__
)
def test_values_of_other_types_are_rejected(value):
    for run in ({"q": {"d": value}}, [("q", "d", value)], as_pandas([("q", "d", value)])):
        with pytest.raises(dh.InputError, match=r"number|is not \(query_id, doc_id, score\)"):
            dh.read_run(run)


# Numbers that float64 cannot distinguish: a lower one, a higher one and sometimes others.

CLOSE_NUMBERS = {
    "2**53": (2**53, 2**53 + 1),
    "negative": (-(2**53) - 1, -(2**53)),
    "2**63": (2**63, 2**63 + 1, -1),
    "beyond 64 bits": (2**70, 2**70 + 1),
    "beyond float64": (10**400, 10**400 + 1, 0.5),
    "beside a float": (2**53, 2**53 + 1, 0.5),
    "beside inf": (2**53, 2**53 + 1, math.inf),
    "a float and an int": (2.0**53, 2**53 + 1),
    "texts": ("9007199254740992", "9007199254740993"),
}
CLOSE_OBJECTS = {
    "Decimal": (Decimal("0.1"), Decimal("0.1000000000000000000001")),
    "large Decimal": (Decimal(2**53), Decimal(2**53 + 1)),
    "Fraction": (Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)),
    "long double": (np.longdouble(1), np.longdouble(1) + np.finfo(np.longdouble).eps),
}
QRELS = {"q": {"b": 1}}


def get_ranks(run, **options) -> tuple[float, float, float]:
    summary = dh.evaluate(QRELS, run, "MRR", **options)["MRR"]
    return tuple(round(1 / x, 9) for x in (summary.best, summary.worst, summary.oblivious))


@pytest.mark.parametrize("input_format", INPUT_FORMATS)
@pytest.mark.parametrize("case", CLOSE_NUMBERS)
def test_distinct_numbers_never_tie(tmp_path, input_format, case):
    numbers = CLOSE_NUMBERS[case]
    if input_format == "polars" and len(set(map(type, numbers))) > 1:
        pytest.skip("polars rounds, or cannot build the column")
    if (
        input_format == "polars"
        and max(map(abs, map(float, (str(x)[:40] for x in numbers)))) > 1e38
    ):
        pytest.skip("polars cannot store this number")
    rows = [("q", doc, x) for doc, x in zip("abc", numbers, strict=False)]
    highest = sorted(map(number, numbers), reverse=True)
    place = highest.index(number(numbers[1])) + 1
    assert get_ranks(INPUT_FORMATS[input_format](rows, tmp_path)) == (place, place, place)


@pytest.mark.parametrize("case", CLOSE_OBJECTS)
def test_distinct_objects_never_tie(case):
    low, high = CLOSE_OBJECTS[case]
    if case == "long double" and float(high) != 1:
        pytest.skip("a long double has no more digits than a double here")
    rows = [("q", "a", low), ("q", "b", high)]
    for run in ({"q": {"a": low, "b": high}}, rows, as_pandas(rows)):
        assert get_ranks(run) == (1, 1, 1)
    for scores in ([[low, high]], np.array([[low, high]])):
        assert dh.evaluate_arrays([[0, 1]], scores, "MRR")["MRR"].worst == 1


def test_wide_decimal_columns_keep_their_last_digit():
    digits = ["12345678901234567890.1", "12345678901234567890.2"]
    score = pl.Series([Decimal(x) for x in digits])
    frame = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": score})
    assert get_ranks(frame) == (1, 1, 1)
    assert get_ranks(frame, tie_tolerance=0.05) == (1, 1, 1)
    assert get_ranks(frame, tie_tolerance=0.1)[:2] == (1, 2)
    narrow = frame.with_columns(score=pl.Series([Decimal("0.1"), Decimal("0.2")]))
    assert dh.read_run(narrow).scores.tolist() == [0.1, 0.2]


@pytest.mark.parametrize(
    "numbers",
    [
        [2**53 + 1, 2**53, 0.5, 2**53 + 1],
        [10**400, -(10**400), math.inf, -math.inf, 10**400],
        [Decimal("0.1"), 0.1, Fraction(1, 10), 1],
        [True, 1, 1.0, "1", np.float32(1), np.int8(1), Decimal(1)],
    ],
    ids=str,
)
def test_exact_scores_keep_order_and_ties(numbers):
    exact = list(map(number, numbers))
    floats, _ = exact_scores(numbers if isinstance(numbers[0], int) else np.array(numbers, object))
    for i, a in enumerate(exact):
        for j, b in enumerate(exact):
            assert (floats[i] < floats[j]) == (a < b)
            assert (floats[i] == floats[j]) == (a == b)


@pytest.mark.parametrize(
    "array",
    [
        np.array([2**53, 2**53 + 1]),
        np.array([-(2**53), -(2**53) - 1]),
        np.array([2**63, 2**63 + 1], np.uint64),
        np.array([2**63 - 1, 2**63 - 2]),
    ],
    ids=str,
)
def test_64_bit_integers_stay_distinct(array):
    floats, exact = exact_scores(array)
    assert (floats[0] < floats[1]) == (array[0] < array[1])
    assert floats[0] != floats[1]
    assert exact.tolist() == array.tolist()


def test_integers_that_fit_float64_are_unchanged():
    array = np.array([2**62, -(2**63), 2**53, 3])
    floats, exact = exact_scores(array)
    assert floats.tolist() == array.tolist()
    assert exact is None


LARGE_SCORES = {"a": 2**60, "b": 2**60 + 10, "c": 2**60 + 11}


def test_tie_tolerance_compares_scores_not_their_ranks():
    assert get_ranks({"q": LARGE_SCORES}, tie_tolerance=1)[:2] == (1, 2)
    assert get_ranks({"q": LARGE_SCORES}, tie_tolerance=0.5)[:2] == (2, 2)
    assert get_ranks({"q": LARGE_SCORES}, tie_tolerance=10)[:2] == (1, 3)
    scores, labels = [list(LARGE_SCORES.values())], [[0, 1, 0]]
    views = dh.evaluate_arrays(labels, scores, "MRR", tie_tolerance=1)["MRR"]
    assert (views.best, views.worst, views.expected) == (1, 0.5, 0.75)
    with_inf = {"q": {**LARGE_SCORES, "d": math.inf, "e": -math.inf, "f": 10**400}}
    assert get_ranks(with_inf, tie_tolerance=1)[:2] == (3, 4)


def test_pytrec_eval_rule_casts_scores_not_their_ranks():
    """All scores are equal in float32, so pytrec_eval orders them by id, descending."""
    for run in ({"q": LARGE_SCORES}, [("q", doc, x) for doc, x in LARGE_SCORES.items()]):
        assert get_ranks(run, tie_break="pytrec_eval") == (2, 2, 2)
        assert get_ranks(run, tie_break="input") == (2, 2, 2)
    run = {"q": {"c": 2**60, "b": 2**60 + 1, "a": 2**60 + 2**59}}
    assert get_ranks(run, tie_break="pytrec_eval")[2] == 3
    assert get_ranks(run)[2] == 2
    nan_last = {"q": {**LARGE_SCORES, "z": math.nan}}
    assert get_ranks(nan_last, tie_break="pytrec_eval", nan="last") == (2, 2, 2)


def test_scores_beyond_float64_are_listed_rounded_and_not_diagnosed():
    from deadheat.evaluation.query import rank_query

    shown = rank_query(QRELS, {"q": LARGE_SCORES}, "q", "MRR").documents
    assert shown.doc_ids == ["c", "b", "a"]
    assert shown.scores.tolist() == [2.0**60] * 3
    assert shown.size.tolist() == [1, 1, 1]
    with pytest.raises(dh.InputError, match="number grid is unknown"):
        dh.diagnose({"q": LARGE_SCORES})


# Ids.

INVALID_IDS = [True, np.bool_(True), None, [1], ("a",), {"a": 1}, object(), math.nan]
INVALID_IDS += ["", b"", b"\xff", "\ud800"]


@pytest.mark.parametrize("value", INVALID_IDS, ids=lambda v: type(v).__name__)
def test_invalid_id_is_rejected_in_every_format(tmp_path, value):
    runs = [[("q", value, 1.0)], [(value, "d", 1.0)]]
    if not isinstance(value, (list, dict)):
        runs += [{"q": {value: 1.0, "d": 0.5}}, {value: {"d": 1.0}}]
    if isinstance(value, (bool, list, dict, float)) or value in (None, "", "\ud800"):
        runs.append(as_json_lines([("q", value, 1.0)], tmp_path))
        if value != "\ud800":
            runs.append(as_frame([("q", value, 1.0)]))
    for run in runs:
        with pytest.raises(dh.InputError, match=r"\bid\b|is empty"):
            dh.evaluate({"q": {"d": 1}}, run, "MRR")
    with pytest.raises(dh.InputError, match=r"query_ids.*\bid\b|no id"):
        dh.evaluate_arrays([[1]], [[1.0]], query_ids=[value])
    if not isinstance(value, (list, dict)):
        with pytest.raises(dh.InputError, match=r"\bid\b"):
            dh.read_qrels({"q": {value: 1}})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a b", "a b"),
        (b"d7", "d7"),
        (2**70, str(2**70)),
        (np.int64(7), "7"),
        (1e22, "1e+22"),
        (2.5, "2.5"),
        (np.float32(0.1), "0.10000000149011612"),
        (Decimal("1.50"), "1.50"),
    ],
)
def test_id_is_converted_alike_in_every_format(value, text):
    runs = [{"q": {value: 1.0}}, [("q", value, 1.0)], as_pandas([("q", value, 1.0)])]
    for run in runs:
        assert dh.evaluate({"q": {text: 1}}, run, "MRR")["MRR"].worst == 1


def test_long_ids_in_json_lines_keep_their_digits(tmp_path):
    ids = [1.5, 2**53 + 1, 2**64 + 1, "x"]
    run = dh.read_run(as_json_lines([("q", doc, 1.0) for doc in ids], tmp_path))
    assert run.documents.ids(np.arange(4)).to_list() == [str(doc) for doc in ids]


@pytest.mark.parametrize("name", ["run.jsonl", "run.json"])
def test_duplicate_json_key_is_rejected(tmp_path, name):
    line = '{"query_id": "q", "doc_id": "d", "score": 1, "score": 2}\n'
    data = line if name.endswith("l") else '{"q": {"d": 1, "e": 1, "d": 1}}'
    with pytest.raises(dh.InputError, match=r"key '(score|d)' appears twice"):
        dh.read_run(written(tmp_path, name, data))


# The compiled and the Python version of plain_list.


@given(
    st.dictionaries(
        st.one_of(st.text(max_size=3), st.characters(categories=["Cs"]), st.integers(), st.none()),
        st.one_of(
            st.floats(), st.integers(), st.booleans(), st.none(), st.text(max_size=1),
            st.sampled_from([2**53, 2**53 + 1, -(2**53), -(2**53) - 1, 2**63, np.float64(0.5)]),
        ),
        max_size=4,
    )
)  # fmt: skip
def test_compiled_plain_list_matches_python(docs):
    actual, expected = np.zeros(len(docs)), np.zeros(len(docs))
    plain = python_plain_list(docs, expected)
    assert plain_list(docs, actual) == plain
    if plain:
        assert np.array_equal(actual, expected, equal_nan=True)
