"""The compiled reader of TREC runs agrees with the Python reader in `trec.py` to the bit."""

from __future__ import annotations

import locale
import random

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from quiet import quiet

import deadheat as dh
from deadheat.formats import lines, trec
from deadheat.formats.lines import LineDocuments, run_from_lines
from deadheat.settings import TIE_RULES

pytestmark = pytest.mark.skipif(lines.compiled is None, reason="the reader is not compiled")


def read_in_python(path, monkeypatch, **options):
    """Read a run without the compiled reader."""
    with monkeypatch.context() as patch:
        patch.setattr(lines, "compiled", None)
        return dh.read_run(path, **options)


def assert_same_runs(run, other):
    assert run.query_ids == other.query_ids
    np.testing.assert_array_equal(run.offsets, other.offsets)
    assert run.scores.dtype == other.scores.dtype
    assert run.scores.tobytes() == other.scores.tobytes()  # distinguishes −0 from 0
    rows = np.arange(len(run.scores))
    assert run.documents.ids(rows).to_list() == other.documents.ids(rows).to_list()


def random_run(seed: int, *, spaces=(" ",), ends=("\n",), extra=(), sorted_queries=True) -> str:
    """Return a run of random lines without duplicate documents."""
    rng = random.Random(seed)
    pairs = [(f"q{q}", f"d{d}") for q in range(9) for d in range(rng.randrange(1, 40))]
    if not sorted_queries:
        rng.shuffle(pairs)
    text = ""
    for query, doc in pairs:
        score = rng.choice([repr(rng.gauss(0, 3)), f"{rng.random():.3f}", "-0", "1e-7", "12"])
        fields = [query, "Q0", doc, str(rng.randrange(9)), score, "tag"]
        text += "".join(field + rng.choice(spaces) for field in fields[:-1]) + fields[-1]
        text += rng.choice(ends) + "".join(rng.choices(extra, k=rng.randrange(2)) if extra else ())
    return text


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"spaces": ("\t",)},
        {"spaces": (" ", "\t ", " \x0b\x0c")},
        {"ends": ("\r\n", "\n", " \n")},
        {"extra": ("\n", "# a comment q Q0 d 1 x tag\n", " \t\n", "#\n")},
        {"sorted_queries": False},
    ],
)
def test_compiled_reader_matches_the_python_reader(tmp_path, monkeypatch, shape, threads):
    monkeypatch.setattr(lines, "_PIECE", 256)
    monkeypatch.setattr(lines, "available_cores", lambda: threads)
    for seed in range(4):
        path = tmp_path / f"{seed}.run"
        text = random_run(seed, **shape)
        path.write_bytes(text.encode() if seed % 2 else text.rstrip().encode())
        run = dh.read_run(path)
        assert isinstance(run.documents, LineDocuments)
        assert_same_runs(run, read_in_python(path, monkeypatch))


def test_query_split_between_threads_stays_one_list(monkeypatch):
    monkeypatch.setattr(lines, "_PIECE", 16)
    monkeypatch.setattr(lines, "available_cores", lambda: 7)
    data = b"".join(b"q Q0 d%d 1 0.5 tag\n" % i for i in range(100))
    run = run_from_lines("a", data, trec.RUN_FIELDS)
    assert run.query_ids == ["q"]
    # The documents were not sorted.
    assert run.documents.starts.base is None or run.documents.starts[0] == 5
    assert run.documents.ids(np.arange(100)).to_list() == [f"d{i}" for i in range(100)]


decimals = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6, width=32).map(repr),
    st.from_regex(r"[+-]?[0-9]{1,21}(\.[0-9]{0,21})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"[+-]?\.[0-9]{1,25}", fullmatch=True),
    st.integers(1, 2**54).flatmap(lambda n: st.integers(-70, 70).map(lambda e: f"{n}e{e}")),
)


@settings(max_examples=300, deadline=None)
@example(["9007199254740993", "9007199254740993e-1", "1.7976931348623157e308", "5e-324"])
@example(["0.500000000000000166533453693773481063544750213623046875", "1e23", "8.5e22"])
@given(st.lists(decimals, min_size=1, max_size=40))
def test_scores_are_rounded_to_the_nearest_float(texts):
    data = b"".join(b"q 0 d%d 1 %s t\n" % (i, text.encode()) for i, text in enumerate(texts))
    n = len(texts)
    buffers = (np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.uint32), np.empty(n))
    rows, _ = lines.compiled.scan(data, 0, len(data), 6, 2, 4, *buffers)
    assert rows == n
    for i, text in enumerate(texts):
        assert buffers[3][i].tobytes() == np.float64(text).tobytes(), text


def test_score_halfway_between_two_floats(tmp_path, monkeypatch):
    halfway = "9007199254740993e-1"
    path = tmp_path / "a.run"
    path.write_text("".join(f"q Q0 d{i} 1 {halfway if i == 7 else i} t\n" for i in range(40)))
    run = dh.read_run(path)
    assert isinstance(run.documents, LineDocuments)
    assert run.scores[7] == float(halfway)
    assert_same_runs(run, read_in_python(path, monkeypatch))


@pytest.mark.parametrize(
    "line",
    [
        "q Q0 dé 1 1.0 tag",
        "é Q0 d 1 1.0 tag",
        "q Q0 d 1 nan tag",
        "q Q0 d 1 -inf tag",
        "q Q0 d 1 9007199254740993 tag",
        "q Q0 d 1 1e400 tag",
        f"q Q0 d 1 0.{'1' * 200} tag",
    ],
)
def test_unusual_lines_are_read_in_python(tmp_path, monkeypatch, line):
    path = tmp_path / "a.run"
    path.write_text(f"{line}\nq Q0 d2 2 0.5 tag\n")
    run = dh.read_run(path)
    assert not isinstance(run.documents, LineDocuments)
    assert run.query_ids == read_in_python(path, monkeypatch).query_ids


@pytest.mark.parametrize(
    "line",
    [
        "q Q0 d9 1 1.0",
        "q Q0 d9 1 1.0 tag more",
        "q Q0 d9 1 1_0 tag",
        "q Q0 d9 1 0x1 tag",
        "q Q0 d9 1 1e tag",
        "q Q0 d9 1 . tag",
        "q Q0 d9 1 + tag",
        "q Q0 d3 1 1.0 tag",
    ],
)
def test_errors_match_the_python_reader(tmp_path, monkeypatch, line):
    path = tmp_path / "a.run"
    path.write_text("".join(f"q Q0 d{i} 1 1.0 tag\n" for i in range(5)) + f"{line}\n")
    with pytest.raises(dh.InputError) as error:
        dh.read_run(path)
    with pytest.raises(dh.InputError) as other:
        read_in_python(path, monkeypatch)
    assert str(error.value) == str(other.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("rule", list(TIE_RULES))
def test_results_match_the_python_reader_under_every_tie_rule(tmp_path, monkeypatch, rule):
    path = tmp_path / "a.run"
    rng = random.Random(1)
    path.write_text(
        "".join(
            f"q{q} Q0 d{d} {r} {rng.randrange(4) / 4} tag\n"
            for q in range(12)
            for r, d in enumerate(rng.sample(range(200), 60), 1)
        )
    )
    qrels = {f"q{q}": {f"d{d}": d % 3 for d in range(0, 200, 1 + q)} for q in range(13)}
    measures = ["nDCG@10", "MAP", "bpref"]
    result = quiet(dh.evaluate)(qrels, path, measures, tie_break=rule)
    monkeypatch.setattr(lines, "compiled", None)
    python = quiet(dh.evaluate)(qrels, path, measures, tie_break=rule)
    assert result.views == python.views
    assert result.remarks == python.remarks


def test_find_returns_the_rows_of_documents(monkeypatch):
    data = b"".join(b"q%d Q0 %d 1 0.5 t\n" % (q, d) for q in range(3) for d in range(5000))
    run = run_from_lines("a", data, trec.RUN_FIELDS)
    wanted = [(q, d) for q in (2, 0) for d in range(0, 10000, 3)]
    ids = run.documents.ids(np.arange(0)).to_list()
    assert ids == []
    found = run.documents.find(np.array([q for q, _ in wanted]), [str(d) for _, d in wanted])
    assert found.tolist() == [q * 5000 + d if d < 5000 else -1 for q, d in wanted]


def test_locale_with_decimal_comma_uses_the_python_reader(monkeypatch):
    line = b"q Q0 d 1 0.12345678901234567 t\n"  # so many digits that the reader calls strtod
    assert run_from_lines("a", line, trec.RUN_FIELDS).scores.tolist() == [0.12345678901234567]
    try:
        locale.setlocale(locale.LC_NUMERIC, "de_DE.UTF-8")
    except locale.Error:
        pytest.skip("this locale is not installed")
    try:
        run = run_from_lines("a", line, trec.RUN_FIELDS)
    finally:
        locale.setlocale(locale.LC_NUMERIC, "C")
    assert run is None


def test_count_lines_rejects_a_range_outside_the_data():
    for start, stop in ((0, 9), (-1, 2), (3, 2)):
        with pytest.raises(ValueError, match="part of the data"):
            lines.compiled.count_lines(b"q Q0 d\n", start, stop)
