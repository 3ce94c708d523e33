"""Counting of tie groups: compiled and NumPy functions agree exactly, and counts add up."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from importlib.util import find_spec

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deadheat as dh
from deadheat.errors import InputError
from deadheat.formats import Run, keys
from deadheat.measures import MEASURES
from deadheat.ties import (
    BACKEND,
    TieCounter,
    build_groups,
    counter as counter_module,
    counting,
    numpy_counting,
)
from deadheat.ties.counting import count_columns, count_tensor
from deadheat.ties.lists import JudgedLists

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

compiled = pytest.mark.skipif(
    BACKEND != "compiled",
    reason="the counting functions are not compiled: no C compiler at install",
)


def random_case(seed: int, queries: int, length: int, documents: int, levels: int, dtype: type):
    """Return concatenated lists, and documents in the order that `count_candidates` requires."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, length + 1, queries)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    scores = rng.integers(-levels, levels, offsets[-1]).astype(dtype) / 3
    scores[rng.random(len(scores)) < 0.02] = np.inf
    scores[rng.random(len(scores)) < 0.02] = -np.inf
    per_query = rng.integers(0, documents + 1, queries)
    query = np.repeat(np.arange(queries), per_query)
    # Some values are not in the list, and some rows are outside of it.
    values = (rng.integers(-levels, levels, len(query)) / 3).astype(dtype)
    rows = offsets[query] + rng.integers(-2, length + 3, len(query))
    order = np.lexsort((rows, -values, query))
    bounds = np.searchsorted(query, np.arange(queries + 1)).astype(np.int64)
    return scores, offsets[:-1], offsets[1:], bounds, values[order], rows[order]


def count_by_brute_force(scores, starts, stops, offsets, values, rows):
    out = []
    for q in range(len(starts)):
        for i in range(offsets[q], offsets[q + 1]):
            row = scores[starts[q] : stops[q]]
            before = scores[starts[q] : max(starts[q], min(stops[q], rows[i]))]
            out.append(
                ((row > values[i]).sum(), (row == values[i]).sum(), (before == values[i]).sum())
            )
    return np.array(out, np.int64).reshape(-1, 3).T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    seed=st.integers(0, 2**32),
    shape=st.sampled_from([(1, 1, 1, 2), (5, 20, 4, 6), (3, 400, 150, 900), (4, 50, 90, 3)]),
)
def test_count_candidates_matches_brute_force(backend, dtype, seed, shape):
    case = random_case(seed, *shape, dtype)
    counts = counting.active.count_candidates(*case)
    np.testing.assert_array_equal(np.stack(counts), count_by_brute_force(*case))


@compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_equals_numpy_on_long_lists(dtype):
    """Lists longer than a block of 2**20; few and many values use different algorithms."""
    from deadheat.ties import compiled_counting

    rng = np.random.default_rng(5)
    scores = rng.integers(0, 3_000, 2_500_000).astype(dtype)
    for documents in (1, 47, 48, 49, 2_000):
        rows = np.sort(rng.choice(len(scores), documents, replace=False))
        order = np.lexsort((rows, -scores[rows]))
        case = (
            scores,
            np.array([0]),
            np.array([len(scores)]),
            np.array([0, documents]),
            scores[rows][order],
            rows[order],
        )
        modules = (compiled_counting, numpy_counting)
        counts = (module.count_candidates(*case) for module in modules)
        for actual, expected in zip(*counts, strict=True):
            np.testing.assert_array_equal(actual, expected)


@compiled
@given(
    docs=st.lists(st.text(max_size=3), unique=True),
    wanted=st.lists(st.text(max_size=3), unique=True),
    other=st.one_of(st.none(), st.integers(), st.binary()),
)
def test_compiled_places_of_matches_python(docs, wanted, other):
    lists = dict.fromkeys(docs if other is None else [*docs, other], 0.0)
    numbers = dict(zip(wanted, range(len(wanted)), strict=True))
    assert keys.places_of(lists, numbers) == keys.python_places_of(lists, numbers)


@given(data=st.data(), dtype=st.sampled_from([np.float32, np.float64, np.int8, np.float16]))
def test_chunking_does_not_change_the_groups(backend, data, dtype):
    """Pieces of any order and size, counted by one counter or by several."""
    seed = data.draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    queries, length = data.draw(st.sampled_from([(1, 1), (3, 7), (4, 60)]))
    scores = rng.integers(0, 4, (queries, length)).astype(dtype)
    relevance = rng.integers(0, 3, (queries, length)) * (rng.random((queries, length)) < 0.5)
    query, position = np.nonzero(relevance)
    documents = (query, scores[query, position], relevance[query, position], position)

    whole = TieCounter(queries, *documents)
    whole.update(scores)
    cuts = sorted(data.draw(st.lists(st.integers(0, length), max_size=5)))
    pieces = list(zip([0, *cuts], [*cuts, length], strict=True))
    one = TieCounter(queries, *documents)
    several = [TieCounter(queries, *documents) for _ in range(2)]
    for i, (start, stop) in enumerate(data.draw(st.permutations(pieces))):
        one.update(scores[:, start:stop], start)
        several[i % 2].update(scores[:, start:stop], start)
    for counter in (one, several[0] + several[1]):
        for name in ("query", "above", "size", "group", "grade", "rank", "retrieved"):
            expected, actual = getattr(whole.groups(), name), getattr(counter.groups(), name)
            np.testing.assert_array_equal(actual, expected, err_msg=name)


@pytest.mark.parametrize("kind", ["array", "tensor", "tensor on a device"])
@settings(max_examples=40)
@given(data=st.data())
def test_type_and_order_of_pieces_do_not_change_the_groups(kind, data):
    """Columns in any order, 16-bit scores, several threads and PyTorch tensors."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    queries, length = data.draw(st.sampled_from([(1, 1), (4, 9), (7, 60)]))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.float16, np.int8, BFLOAT16]))
    scores = rng.integers(-3, 4, (queries, length)).astype(dtype)
    relevance = rng.integers(0, 2, (queries, length))
    query, position = np.nonzero(relevance)
    exact = scores.astype(np.float64)
    documents = (query, exact[query, position], relevance[query, position], position)
    whole, pieces = TieCounter(queries, *documents), TieCounter(queries, *documents)
    whole.update(exact)
    order = np.array(data.draw(st.permutations(range(length))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counter_module, "BLOCK", data.draw(st.sampled_from([1, 50, 1 << 18])))
        if kind == "tensor on a device":
            patch.setattr(counting, "is_on_device", is_tensor)
        for part in np.array_split(order, data.draw(st.integers(1, 3))):
            piece = scores[:, part] if kind == "array" else as_tensor(scores[:, part])
            pieces.update(piece, positions=part, threads=data.draw(st.integers(1, 2)))
    for name in ("query", "above", "size", "group", "grade", "rank", "retrieved"):
        expected, actual = getattr(whole.groups(), name), getattr(pieces.groups(), name)
        np.testing.assert_array_equal(actual, expected, err_msg=name)


@given(seed=st.integers(0, 2**32), dtype=st.sampled_from([np.float32, np.float16, BFLOAT16]))
def test_count_columns_and_count_tensor_match_brute_force(backend, seed, dtype):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-2, 3, (4, 9)).astype(dtype)
    lengths = rng.integers(0, 4, 4)
    query = np.repeat(np.arange(4), lengths)
    values = rng.integers(-2, 3, len(query)).astype(np.float32)
    values = values[np.lexsort((-values, query))]
    column = rng.integers(0, 10, len(query))
    column = column[np.lexsort((column, -values, query))]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    counts = count_columns(scores, offsets, values, column)
    for i, (q, value, last) in enumerate(zip(query, values, column, strict=True)):
        row = scores[q].astype(np.float32)
        expected = [(row > value).sum(), (row == value).sum(), (row[:last] == value).sum()]
        assert counts[:, i].tolist() == expected
    if find_spec("torch"):
        from_tensor = count_tensor(as_tensor(scores), offsets, values, column)
        np.testing.assert_array_equal(counts, from_tensor)


def is_tensor(scores):
    """Replace `is_on_device`, so that a CPU tensor counts as one on a device."""
    return not isinstance(scores, np.ndarray)


def as_tensor(array):
    torch = pytest.importorskip("torch")
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(array)


def test_memory_of_16_bit_scores_is_bounded():
    """Only some queries are widened to float32 at a time."""
    scores = np.zeros((512, 20_000), np.float16)
    counter = TieCounter(512, [3], [0.0], [1], [5])
    tracemalloc.start()
    counter.update(scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < scores.nbytes / 2  # all in float32 would be twice its size
    assert counter.groups().size.tolist() == [20_000]


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16])
def test_bits_of_16_bit_floats_are_counted_by_value(backend, dtype):
    """All 16-bit floats, with infinities and both zeros, against their FP32 values."""
    all_values = np.arange(1 << 16).astype(np.uint16).view(dtype)
    scores = np.random.default_rng(0).permutation(
        all_values[~np.isnan(all_values.astype(np.float32))]
    )
    for n_documents in (5, 400):  # one pass per value, and one pass with a binary search
        values = np.array([*scores[:n_documents], -np.inf, np.inf, 0.0, -0.0], dtype)
        rows = np.arange(len(values)) * 150
        order = np.lexsort((rows, -values.astype(np.float32)))
        places = (np.array([0]), np.array([len(scores)]), np.array([0, len(values)]))
        counts, expected = (
            counting.active.count_candidates(
                convert(scores), *places, convert(values[order]), rows[order]
            )
            for convert in (lambda x: x.view(np.int16), lambda x: x.astype(np.float32))
        )
        np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16])
@pytest.mark.parametrize("bits", [0x7FFF, 0xFFFF])
def test_16_bit_nan_of_either_sign_is_rejected(dtype, bits):
    scores = np.array([[1, -np.inf, np.inf, -1]], dtype)
    TieCounter(1, [0], [1.0], [1], [0]).update(scores)
    scores.view(np.uint16)[0, 3] = bits
    with pytest.raises(InputError, match="NaN"):
        TieCounter(1, [0], [1.0], [1], [0]).update(scores)


def test_judged_score_that_the_dtype_cannot_represent_has_no_ties():
    """0.1 is not a BF16 value and must not be rounded to one, on a device either."""
    torch = pytest.importorskip("torch")
    scores = torch.tensor([[0.1, 0.5]], dtype=torch.bfloat16)
    offsets, values, column = np.array([0, 1]), np.array([0.1]), np.zeros(1, np.int64)
    from_tensor = count_tensor(scores, offsets, values, column)
    from_columns = count_columns(scores, offsets, values, column)
    assert from_tensor.ravel().tolist() == from_columns.ravel().tolist() == [2, 0, 0]


def test_stream_matches_evaluate_arrays():
    """Measures have the same values for groups of a stream and of an array."""
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 50, (20, 3_000)).astype(np.float32)
    relevance = (rng.random(scores.shape) < 0.003) * rng.integers(1, 4, scores.shape)
    relevance[:, 7] = 1
    query, position = np.nonzero(relevance)
    counter = TieCounter(20, query, scores[query, position], relevance[query, position], position)
    for start in range(0, 3_000, 431):
        counter.update(scores[:, start : start + 431], start)
    groups = counter.groups()
    measures = [m if m.whole_list else m @ 100 for m in MEASURES if not m.needs_judged]
    result = dh.evaluate_arrays(relevance, scores, measures)
    assert dh.evaluation.evaluate_groups(groups, measures).views == result.views


def test_memory_of_a_counter_does_not_grow_with_the_stream():
    counter = TieCounter(2, [0, 1], [0.5, 0.5], [1, 1], [0, 0])
    size = sum(v.nbytes for v in vars(counter).values() if isinstance(v, np.ndarray))
    for start in (0, 10_000, 20_000):
        counter.update(np.full((2, 10_000), 0.5), start)
    after = sum(v.nbytes for v in vars(counter).values() if isinstance(v, np.ndarray))
    assert after == size < 1_000
    assert counter.groups().size.tolist() == [30_000, 30_000]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.update(np.zeros((3, 4))), "shape"),
        (lambda c: c.update([[np.nan], [1.0]]), "NaN"),
        (lambda c: c.update([[0.25], [0.5]]), "score 0.5.* 0.25"),
        (lambda c: c.groups(), "counted 0 times"),
        (lambda c: c + TieCounter(2, [0], [0.5], [1], [0]), "same judged documents"),
    ],
)
def test_invalid_streams_are_rejected(call, message):
    counter = TieCounter(2, [0, 1], [0.5, 0.5], [1, 1], [0, 0])
    with pytest.raises(dh.InputError, match=message):
        call(counter)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0.5], [1, 1], [0, 1]), "position .*same length.* 2, 1, 2, 2"),
        (([2], [0.5], [1], [0]), "query index"),
        (([-1], [0.5], [1], [0]), "from 0 on"),
        (([0.5], [0.5], [1], [0]), "whole numbers"),
        (([[0]], [0.5], [1], [0]), "one row"),
        ((["a"], [0.5], [1], [0]), "whole numbers"),
        (([0], [np.nan], [1], [0]), "NaN"),
        (([0], [0.5], [np.nan], [0]), "grade is nan"),
        (([0], [0.5], [-np.inf], [0]), "grade is -inf"),
        (([0], [0.5], ["good"], [0]), "grades must be numbers"),
        (([0], [0.5], [1], [-1]), "position must be"),
        (([0], [0.5], [1], [2**63]), "position must be"),
        (([0, 0], [0.5, 0.25], [1, 1], [3, 3]), "query 0 .*position 3"),
    ],
)
def test_invalid_documents_are_rejected(arguments, message):
    with pytest.raises(dh.InputError, match=message):
        TieCounter(2, *arguments)


@pytest.mark.parametrize(
    ("unretrieved", "message"),
    [
        (([2], [1]), "unretrieved .*query index 2"),
        (([0], [np.inf]), "grade is inf"),
        (([0], [1, 1]), "unretrieved.* 1, 2"),
    ],
)
def test_invalid_unretrieved_documents_are_rejected(unretrieved, message):
    with pytest.raises(dh.InputError, match=message):
        TieCounter(2, [0], [0.5], [1], [0], unretrieved=unretrieved)


@pytest.mark.parametrize("n_queries", [-1, 1.5, "two", True])
def test_invalid_number_of_queries_is_rejected(n_queries):
    with pytest.raises(dh.InputError, match="n_queries"):
        TieCounter(n_queries, [], [], [], [])


@pytest.mark.parametrize("start", [-1, 0.5, [0, 1, 2], [[0], [0]], 2**63])
def test_invalid_start_of_a_piece_is_rejected(start):
    counter = TieCounter(2, [0, 1], [0.5, 0.5], [1, 1], [0, 0])
    with pytest.raises(dh.InputError, match="start must be"):
        counter.update(np.full((2, 3), 0.5), start)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": [0, 1, 2], "start": 3}, "positions .*start"),
        ({"threads": 0}, "threads must be"),
        ({"threads": "2"}, "threads must be"),
    ],
)
def test_invalid_positions_and_threads_are_rejected(options, message):
    counter = TieCounter(2, [0, 1], [0.5, 0.5], [1, 1], [0, 0])
    with pytest.raises(dh.InputError, match=message):
        counter.update(np.full((2, 3), 0.5), **options)


@compiled
@given(data=st.data())
def test_compiled_counting_never_reads_out_of_bounds(data):
    """For any indices, the function counts or raises an IndexError."""
    from deadheat.ties import compiled_counting

    index = st.integers(-(2**62), 2**62) | st.integers(-1, 5)
    arrays = [
        np.array(data.draw(st.lists(index, min_size=n, max_size=n)), np.int64) for n in (2, 2, 3, 3)
    ]
    starts, stops, offsets, rows = arrays
    scores, values = np.zeros(4), np.zeros(3)
    try:
        counts = compiled_counting.count_candidates(scores, starts, stops, offsets, values, rows)
    except IndexError:
        ends = np.concatenate((starts, stops, offsets))
        ordered = (starts <= stops).all() and (np.diff(offsets) >= 0).all()
        assert not ordered or ends.min() < 0 or stops.max() > 4 or offsets.max() > 3
    else:
        assert all(count.min() >= 0 and count.max() <= 4 for count in counts)


def random_lists(seed: int, queries: int, length: int, share: float, levels: int, dtype: type):
    """Return concatenated lists, and judged documents in the order of queries."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, length + 1, queries)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    scores = (rng.integers(-levels, levels, offsets[-1]) / 3).astype(dtype)
    scores[rng.random(len(scores)) < 0.1] = -0.0
    scores[rng.random(len(scores)) < 0.02] = rng.choice([np.inf, -np.inf])
    rows = np.flatnonzero(rng.random(len(scores)) < share)
    query = np.searchsorted(offsets, rows, "right") - 1
    order = np.lexsort((rng.random(len(rows)), query))  # any order within a query
    query, position = query[order], rows[order] - offsets[query[order]]
    grade = rng.choice([-1.0, 0, 1, 1, 2, 0.5], len(rows))
    return scores, offsets[:-1], offsets[1:], query, position, grade


@given(
    seed=st.integers(0, 2**32),
    queries=st.integers(1, 5),
    length=st.sampled_from([1, 10, 300]),
    share=st.sampled_from([0.05, 0.5, 1.0]),
    levels=st.sampled_from([1, 4, 1000]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_groups_of_lists_match_those_of_a_counter(
    backend, seed, queries, length, share, levels, dtype
):
    """Lists that are sorted in memory and lists that are counted in pieces have the same groups."""
    scores, starts, stops, query, position, grade = random_lists(
        seed, queries, length, share, levels, dtype
    )
    none = np.empty(0, np.int64)
    lists = JudgedLists(
        list(map(str, range(queries))),
        Run("lists", [], np.append(starts, len(scores)), scores, None),
        (starts, stops),
        query,
        position,
        grade,
        (none, np.empty(0)),
        complete=True,
    )
    all_groups = build_groups(lists)
    for q in range(queries):
        of_query = query == q
        row = scores[starts[q] : stops[q]]
        counter = TieCounter(
            1, query[of_query] - q, row[position[of_query]], grade[of_query], position[of_query]
        )
        counter.update([row[: len(row) // 2]])
        counter.update([row[len(row) // 2 :]], start=len(row) // 2)
        groups, part = counter.groups(), all_groups.take(np.array([q]))
        for name in ("query", "above", "size", "group", "rank", "grade", "retrieved", "zeros"):
            values = getattr(groups, name)
            np.testing.assert_array_equal(getattr(part, name), values, err_msg=name)


@compiled
@given(
    seed=st.integers(0, 2**32),
    queries=st.integers(1, 5),
    length=st.sampled_from([0, 1, 10, 300]),
    levels=st.sampled_from([1, 4, 1000]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_compiled_sorting_and_grouping_match_numpy(seed, queries, length, levels, dtype):
    """The documents are in any order of queries."""
    from deadheat.ties import compiled_counting

    rng = np.random.default_rng(seed)
    query = rng.integers(0, queries, length)
    score = (rng.integers(-levels, levels, length) / 3).astype(dtype)
    score[rng.random(length) < 0.1] = -0.0
    place = rng.permutation(length)
    modules = (compiled_counting, numpy_counting)
    outputs = [module.sort_documents(query, score, place, queries) for module in modules]
    for actual, expected in zip(*outputs, strict=True):
        np.testing.assert_array_equal(actual, expected)
    grade = rng.choice([-1.0, 0, 1, 1, 2, 0.5], length)
    order = outputs[0][0]
    columns = query[order], score[order], grade
    outputs = [module.group_documents(*columns) for module in modules]
    for actual, expected in zip(*outputs, strict=True):
        np.testing.assert_array_equal(actual, expected)


@compiled
@given(data=st.data())
def test_compiled_sorting_never_reads_out_of_bounds(data):
    """For any indices, the function sorts or raises an IndexError."""
    from deadheat.ties import compiled_counting

    index = st.integers(-(2**62), 2**62) | st.integers(-1, 4)
    query = np.array(data.draw(st.lists(index, max_size=4)), np.int64)
    score = np.full(data.draw(st.integers(0, 4)), data.draw(st.sampled_from([0.5, np.nan])))
    n = data.draw(st.integers(-1, 4))
    place = np.arange(len(query))
    try:
        order, offsets = compiled_counting.sort_documents(query, score, place, n)
    except IndexError:
        assert len(query) != len(score) or n < 0 or query.min() < 0 or query.max() >= n
    else:
        assert sorted(order) == list(place) and len(offsets) == n + 1
        grouped = compiled_counting.group_documents(query[order], score, np.ones(len(query)))
        assert all(((values >= 0) & (values < len(query))).all() for values in grouped)
    if len(score) != len(query):
        with pytest.raises(IndexError):
            compiled_counting.group_documents(query, score, np.ones(len(query)))


def test_judged_document_that_was_not_counted_is_rejected():
    counter = TieCounter(1, [0, 0], [0.5, 0.5], [1, 1], [0, 1])
    counter.update([[0.5, 0.25][:1]])
    with pytest.raises(dh.InputError, match=r"position 1 of query 0 .* 0 times"):
        counter.groups()


def test_document_with_another_score_at_its_position_is_rejected():
    counter = TieCounter(1, [0], [0.5], [1], [1])
    with pytest.raises(dh.InputError, match=r"position 1 of query 0 .* 0.5, .* 0.25"):
        counter.update([[0.5, 0.25]])
    assert counter.retrieved.tolist() == [0]


def test_document_that_was_counted_twice_is_rejected():
    one, two = (TieCounter(1, [0], [0.5], [1], [0]) for _ in range(2))
    one.update([[0.5, 0.25]])
    two.update([[0.5, 0.25]])
    with pytest.raises(dh.InputError, match="counted 2 times"):
        (one + two).groups()


def test_groups_do_not_change_with_later_pieces():
    grades, unretrieved = np.array([2.0]), (np.array([0]), np.array([1.0]))
    counter = TieCounter(1, [0], [0.5], grades, [0], unretrieved=unretrieved)
    counter.update([[0.5, 0.5]])
    groups = counter.groups()
    before = {name: np.copy(value) for name, value in vars(groups).items()}
    counter.update([[0.5, 0.75]], start=2)
    grades[:] = unretrieved[1][:] = 7
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(groups, name), value, err_msg=name)
    assert counter.groups().ideal_grade.tolist() == [2, 1]


def test_counters_with_different_unretrieved_documents_cannot_be_added():
    """Their ideal rankings of the same lists differ."""
    one = TieCounter(1, [0], [0.5], [1], [0], unretrieved=([0, 0], [1, 2]))
    same = TieCounter(1, [0], [0.5], [1], [0], unretrieved=([0, 0], [2, 1]))
    other = TieCounter(1, [0], [0.5], [1], [0])
    assert len((one + same).documents.unretrieved[0]) == 2
    for pair in ((one, other), (other, one)):
        with pytest.raises(dh.InputError, match="unretrieved"):
            pair[0] + pair[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group": np.array([9])}, "query and group"),
        ({"query": np.array([-1])}, "query and group"),
        ({"rank": np.array([7])}, "outside of its group"),
        ({"rank": np.array([1, 2])}, "differ in length"),
        ({"size": np.array([9])}, "group .*longer than"),
    ],
)
def test_invalid_groups_are_rejected(changes, message):
    counter = TieCounter(1, [0], [0.5], [1], [0])
    counter.update([[0.5, 0.5]])
    with pytest.raises(dh.InputError, match=message):
        dh.evaluation.evaluate_groups(replace(counter.groups(), **changes), ["MRR"])
